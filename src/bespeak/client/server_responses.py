"""Reads a server's responses: an error, a complete result, or a result that requires input."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar, cast

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from bespeak.client.errors import InvalidServerResponse
from bespeak.protocol import wire_types
from bespeak.protocol.errors import URL_ELICITATION_REQUIRED, MCPError
from bespeak.protocol.methods import ELICIT, QUESTIONS

_SCOPES = ("public", "private")
ModelT = TypeVar("ModelT", bound=BaseModel)


class RawResponse(NamedTuple):
    """A response as it was received, and the id of its request."""

    id: int
    response: bytes


@dataclass(frozen=True, slots=True)
class InputRequired:
    """A result that asks for input, as it was sent."""

    questions: dict[str, dict[str, Any]]
    """By key."""
    state: str | None
    """`requestState`; `None` if there was none."""


def read_response(raw: RawResponse) -> dict[str, Any]:
    """Return the result in a response. Raises `MCPError` for an error, `InvalidServerResponse` for anything else."""
    try:
        message = from_json(raw.response)
    except ValueError:
        raise InvalidServerResponse("the server's response is not JSON") from None
    if not isinstance(message, dict):
        raise InvalidServerResponse("the server's response is not an object")
    body = cast("dict[str, Any]", message)
    error = body.get("error")
    answered: Any = body.get("id")
    # An error may have no id: the server could not read the id of the request.
    if (answered != raw.id or isinstance(answered, bool)) and not (answered is None and isinstance(error, dict)):
        raise InvalidServerResponse(f"the server responded to request {answered!r} instead of {raw.id!r}")
    if isinstance(error, dict):
        raised = cast("dict[str, Any]", error)
        raise MCPError(raised.get("code", 0), str(raised.get("message", "")), raised.get("data"))
    result = body.get("result")
    if not isinstance(result, dict):
        raise InvalidServerResponse("the server's response has no result")
    return cast("dict[str, Any]", result)


def read_input_required(result: Mapping[str, Any]) -> InputRequired | None:
    """Return what a result asks; `None` if it is complete. Raises `InvalidServerResponse`."""
    kind = result.get("resultType", "complete")
    if kind == "complete":
        return None
    if kind != "input_required":
        raise InvalidServerResponse(f"unknown resultType {kind!r}")
    if "inputRequests" not in result and "requestState" not in result:
        raise InvalidServerResponse("an input_required result has neither inputRequests nor requestState")
    state = result.get("requestState")
    if "requestState" in result and not isinstance(state, str):
        raise InvalidServerResponse("requestState is not a string")
    questions = result.get("inputRequests", {})
    if not isinstance(questions, dict):
        raise InvalidServerResponse("inputRequests is not an object")
    for key, question in cast("dict[str, Any]", questions).items():
        _check_question(key, question)
    return InputRequired(cast("dict[str, dict[str, Any]]", questions), state)


def read_required_urls(error: MCPError) -> InputRequired | None:
    """Return the URLs that an error asks a person to open before the request is sent again; `None` if it does not."""
    data = cast("dict[str, Any]", error.data) if isinstance(error.data, dict) else {}
    listed: Any = data.get("elicitations")
    if error.code != URL_ELICITATION_REQUIRED or not isinstance(listed, list) or not listed:
        return None
    questions: dict[str, dict[str, Any]] = {}
    for number, params in enumerate(cast("list[Any]", listed)):
        if not isinstance(params, dict):
            return None
        asked = cast("dict[str, Any]", params)
        if asked.get("mode") != "url":
            return None
        name = asked.get("elicitationId")
        questions[name if isinstance(name, str) and name not in questions else f"#{number}"] = {
            "method": ELICIT,
            "params": asked,
        }
    return InputRequired(questions, None)


def _check_question(key: str, question: Any) -> None:
    if not isinstance(question, dict):
        raise InvalidServerResponse(f"the question {key!r} is not an object")
    asked = cast("dict[str, Any]", question)
    if asked.get("method") not in QUESTIONS:
        raise InvalidServerResponse(
            f"the question {key!r} has the method {asked.get('method')!r}, which is not a method for questions"
        )
    if not isinstance(asked.get("params", {}), dict):
        raise InvalidServerResponse(f"the params of the question {key!r} are not an object")


def with_valid_hints(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result without caching hints that are not valid. Such a result is not cached, but it can be used."""
    lifetime, scope = result.get("ttlMs", 0), result.get("cacheScope", "private")
    if isinstance(lifetime, int) and not isinstance(lifetime, bool) and lifetime >= 0 and scope in _SCOPES:
        return result
    return {name: value for name, value in result.items() if name not in ("ttlMs", "cacheScope")} | {"ttlMs": 0}


def typed(model: type[ModelT], result: dict[str, Any]) -> ModelT:
    """Return a result as its `mcp_types` model. Raises `InvalidServerResponse`."""
    if issubclass(model, wire_types.CacheableResult):
        result = with_valid_hints(result)
    try:
        return model.model_validate(result)
    except ValidationError as error:
        places = ", ".join(sorted({".".join(map(str, detail["loc"])) for detail in error.errors()}))
        raise InvalidServerResponse(f"the server's {model.__name__} is malformed: see {places}") from None
