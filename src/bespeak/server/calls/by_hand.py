"""Questions made by hand: a body returns an `InputRequiredResult` instead of having resolvers ask."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pydantic_core import from_json, to_json
from typing_extensions import TypeIs

from bespeak.protocol import wire_types
from bespeak.protocol.capabilities import AskingObstacle, lacking, merge, requirements
from bespeak.resolve.errors import MissingCapability
from bespeak.state.seal import BUDGET

if TYPE_CHECKING:
    from mcp_types import InputRequiredResult

ObstacleOf = Callable[[Mapping[str, Any], Mapping[str, Any]], AskingObstacle | None]
"""Returns why a request cannot be sent to the client, given the capabilities it did not declare; `None` if it can."""


def asks_by_hand(value: object) -> "TypeIs[InputRequiredResult]":
    """Return whether a body has returned questions."""
    return wire_types.in_use() and isinstance(value, wire_types.InputRequiredResult)


def questions_of(
    name: str, asked: "InputRequiredResult", declared: Mapping[str, Any], obstacle_of: ObstacleOf
) -> dict[str, Any]:
    """Return the questions of a body, by key. Raises `MissingCapability` if the client cannot answer them."""
    requests = asked.model_dump(mode="json", by_alias=True, exclude_none=True).get("inputRequests", {})
    if not requests and asked.request_state is None:
        raise TypeError(f"{name!r} returned an InputRequiredResult with neither input_requests nor request_state")
    missing_in_all: dict[str, Any] = {}
    words: str | None = None
    for request in requests.values():
        needs = requirements(request["method"], request.get("params", {}))
        missing = lacking(needs, declared)
        obstacle = obstacle_of(request, missing)
        if obstacle is not None:
            merge(missing_in_all, missing or needs)
            words = words or obstacle.words
    if missing_in_all:
        raise MissingCapability(missing_in_all, words)
    return requests


def state_of(name: str, asked: "InputRequiredResult", requests: Mapping[str, Any]) -> str:
    """Return what is sealed for the next round: the author's own state, and the keys that were asked."""
    body = to_json([asked.request_state, list(requests)]).decode()
    if len(body) > BUDGET // 2:
        size = len(asked.request_state or "")
        raise ValueError(f"{name!r} returned a request_state of {size} characters; keep large data on the server")
    return body


def read_state(body: str) -> tuple[str | None, list[str]]:
    """Return the author's own state and the keys that were asked in that round."""
    state, asked = from_json(body)
    return state, asked
