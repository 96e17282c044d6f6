"""The retry's half of a round on the wire: reading `inputResponses`."""

from typing import Any, cast

from mcp_types import (
    CreateMessageResult,
    CreateMessageResultWithTools,
    ElicitResult,
    InputResponse,
    ListRootsResult,
)
from pydantic import BaseModel, ValidationError

from bespeak.protocol.errors import INVALID_PARAMS, MCPError
from bespeak.protocol.methods import ELICIT, ROOTS


def read_answers(params: dict[str, Any]) -> dict[str, dict[str, Any]] | None:
    """The answers a request carries, by key; `None` if it carries no map. Raises `MCPError` if that is malformed."""
    if "inputResponses" not in params:
        return None
    answers = params["inputResponses"]
    if not isinstance(answers, dict):
        raise MCPError(INVALID_PARAMS, "inputResponses must be an object: answers by the key of their question")
    for key, answer in cast("dict[str, Any]", answers).items():
        if not isinstance(answer, dict):
            raise MCPError(INVALID_PARAMS, f"inputResponses[{key!r}] must be an object")
    return cast("dict[str, dict[str, Any]]", answers)


def typed_answer(key: str, answer: dict[str, Any], method: str | None = None) -> InputResponse:
    """An answer as a wire type, told apart by what it holds unless it is known what was asked. Raises `MCPError` if it is none."""
    model: type[BaseModel]
    if method == ELICIT or (method is None and "action" in answer):
        model = ElicitResult
    elif method == ROOTS or (method is None and "roots" in answer):
        model = ListRootsResult
    else:
        model = CreateMessageResultWithTools if isinstance(answer.get("content"), list) else CreateMessageResult
    try:
        return model.model_validate(answer)
    except ValidationError:
        raise MCPError(INVALID_PARAMS, f"inputResponses[{key!r}] is no valid {model.__name__}") from None
