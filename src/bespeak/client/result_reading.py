"""Reading a server's result: complete, asking, or nothing the protocol allows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from bespeak.client.errors import InvalidServerResponse
from bespeak.protocol.methods import ELICIT, ROOTS, SAMPLE

ASKABLE = (ELICIT, SAMPLE, ROOTS)


@dataclass(frozen=True, slots=True)
class Asking:
    """A result that wants input: its questions as they were sent, and its state, `None` when there was none."""

    questions: dict[str, dict[str, Any]]
    state: str | None


def read_result(result: Mapping[str, Any]) -> Asking | None:
    """What a result asks; `None` if it is complete. Raises `InvalidServerResponse`."""
    kind = result.get("resultType", "complete")
    if kind == "complete":
        return None
    if kind != "input_required":
        raise InvalidServerResponse(f"unknown resultType {kind!r}")
    if "inputRequests" not in result and "requestState" not in result:
        raise InvalidServerResponse("an input_required result has neither inputRequests nor requestState")
    state = result.get("requestState")
    if "requestState" in result and not isinstance(state, str):
        raise InvalidServerResponse("requestState is no string")
    questions = result.get("inputRequests", {})
    if not isinstance(questions, dict):
        raise InvalidServerResponse("inputRequests is no object")
    for key, question in cast("dict[str, Any]", questions).items():
        _check_question(key, question)
    return Asking(cast("dict[str, dict[str, Any]]", questions), state)


def _check_question(key: str, question: Any) -> None:
    if not isinstance(question, dict):
        raise InvalidServerResponse(f"the question {key!r} is no object")
    asked = cast("dict[str, Any]", question)
    if asked.get("method") not in ASKABLE:
        raise InvalidServerResponse(f"the question {key!r} has the method {asked.get('method')!r}, which asks nothing")
    if not isinstance(asked.get("params", {}), dict):
        raise InvalidServerResponse(f"the params of the question {key!r} are no object")
