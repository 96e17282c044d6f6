"""Reads `inputResponses`: the answers that a retried request carries."""

from typing import TYPE_CHECKING, Any, cast

from pydantic import BaseModel, ValidationError

from bespeak.protocol import wire_types
from bespeak.protocol.errors import INVALID_PARAMS, MCPError
from bespeak.protocol.methods import ELICIT, ROOTS

if TYPE_CHECKING:
    from mcp_types import InputResponse


def read_answers(params: dict[str, Any]) -> dict[str, dict[str, Any]] | None:
    """Return the answers in a request by question key; `None` if there are none. Raises `MCPError` if they are malformed."""
    if "inputResponses" not in params:
        return None
    answers = params["inputResponses"]
    if not isinstance(answers, dict):
        raise MCPError(INVALID_PARAMS, "inputResponses must be an object that maps question keys to answers")
    for key, answer in cast("dict[str, Any]", answers).items():
        if not isinstance(answer, dict):
            raise MCPError(INVALID_PARAMS, f"inputResponses[{key!r}] must be an object")
    return cast("dict[str, dict[str, Any]]", answers)


def typed_answer(key: str, answer: dict[str, Any], method: str | None = None) -> "InputResponse":
    """Return an answer as its `mcp_types` model. Raises `MCPError` if it is not valid.

    Without the `method` of the question, the members of the answer decide which model it is.
    """
    model: type[BaseModel]
    if method == ELICIT or (method is None and "action" in answer):
        model = wire_types.ElicitResult
    elif method == ROOTS or (method is None and "roots" in answer):
        model = wire_types.ListRootsResult
    else:
        model = (
            wire_types.CreateMessageResultWithTools
            if isinstance(answer.get("content"), list)
            else wire_types.CreateMessageResult
        )
    try:
        return model.model_validate(answer)
    except ValidationError:
        raise MCPError(INVALID_PARAMS, f"inputResponses[{key!r}] is not a valid {model.__name__}") from None
