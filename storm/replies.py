"""What came back for a request, and how it counts: a result, a clear error, or something that must not happen."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, cast

from bespeak.protocol.errors import INTERNAL_ERROR
from bespeak.protocol.session_facts import SessionsUnavailable
from bespeak.state.ledger_errors import LedgerUnavailable, OutcomeUnknown, StillRunning
from bespeak.transports.http.legacy.endpoint import WORKER_GONE

DECLINED_TEXT = "elicitation was decline. A person said no. Do not try again in another way."
EXCERPT = 300


class Ending(Enum):
    """How a request ended."""

    RESULT = "result"
    DECLINED = "declined"
    ASKED = "asked"
    """Not an end: the call goes on with another request."""
    OUTCOME_UNKNOWN = "tool error: outcome unknown"
    STILL_RUNNING = "tool error: still running"
    STORE_UNREACHABLE = "the store cannot be reached"
    WORKER_GONE = "HTTP 400: the worker that asked is gone"
    BROKEN = "connection broken"
    """The worker that served the request died."""
    ACCEPTED = "HTTP 202"
    """What an older client sends without waiting for a response has arrived."""
    OVERDUE = "no reply in time"
    UNEXPECTED = "unexpected"


SETTLED = frozenset({Ending.RESULT, Ending.DECLINED, Ending.OUTCOME_UNKNOWN})
"""Ends of a call that cannot change when the same request is sent again."""
CLEAR_ERRORS = frozenset(
    {
        Ending.OUTCOME_UNKNOWN,
        Ending.STILL_RUNNING,
        Ending.STORE_UNREACHABLE,
        Ending.WORKER_GONE,
        Ending.BROKEN,
    }
)
"""What a client may be told instead of a result while workers are killed. It can tell from each what to do."""
_TOOL_ERRORS = {
    Ending.OUTCOME_UNKNOWN: str(OutcomeUnknown()),
    Ending.STILL_RUNNING: str(StillRunning()),
    Ending.STORE_UNREACHABLE: str(LedgerUnavailable()),
    Ending.DECLINED: DECLINED_TEXT,
}


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back for one request."""

    ending: Ending
    said: str = ""
    """The reply as text, for examples."""
    worker: str = ""
    """Which worker replied."""
    result: bytes = b""
    """The result as it was sent, to compare it with that of the same request on another worker."""
    content: Mapping[str, Any] | None = None
    """The result, read."""


def broken(reason: str) -> Reply:
    """Return the reply to a request whose connection broke."""
    return Reply(Ending.BROKEN, reason)


def overdue(seconds: float) -> Reply:
    """Return the reply to a request that took too long."""
    return Reply(Ending.OVERDUE, f"no reply within {seconds:g} s")


def read_reply(status: int, message: bytes, worker: str = "") -> Reply:
    """Return what an HTTP response with a JSON-RPC message means."""
    said = f"HTTP {status}: {message.decode(errors='replace')[:EXCERPT]}"
    try:
        read = _object(json.loads(message)) if message else {}
    except ValueError:
        return Reply(Ending.UNEXPECTED, said, worker)
    if status == 202 and not message:
        return Reply(Ending.ACCEPTED, said, worker)
    result, error = read.get("result"), read.get("error")
    if status == 200 and isinstance(result, dict):
        content = cast("dict[str, Any]", result)
        return Reply(_of_result(content), said, worker, _raw_result(message), content)
    if isinstance(error, dict):
        return Reply(_of_error(status, cast("dict[str, Any]", error)), said, worker)
    return Reply(Ending.UNEXPECTED, said, worker)


def _of_result(result: Mapping[str, Any]) -> Ending:
    if result.get("resultType") == "input_required":
        return Ending.ASKED
    if not result.get("isError"):
        return Ending.RESULT
    text = text_of(result)
    return next((ending for ending, known in _TOOL_ERRORS.items() if text.endswith(known)), _unavailable(text))


def _unavailable(text: str) -> Ending:
    """Return how a tool error counts that is none of the ledger's: a question could not be asked without the store."""
    return Ending.STORE_UNREACHABLE if str(SessionsUnavailable()) in text else Ending.UNEXPECTED


def _of_error(status: int, error: Mapping[str, Any]) -> Ending:
    said = (status, error.get("code"), error.get("message"))
    if said == (400, INTERNAL_ERROR, WORKER_GONE):
        return Ending.WORKER_GONE
    if said == (503, INTERNAL_ERROR, str(SessionsUnavailable())):
        return Ending.STORE_UNREACHABLE
    return Ending.UNEXPECTED


def text_of(result: Mapping[str, Any]) -> str:
    """Return the text of a tool's result."""
    blocks = result.get("content")
    if not isinstance(blocks, list):
        return ""
    return "".join(str(_object(block).get("text", "")) for block in cast("list[Any]", blocks))


def _raw_result(message: bytes) -> bytes:
    """Return the bytes of a message from its result on. The id, which differs from request to request, comes before it."""
    return message[message.index(b'"result"') :]


def _object(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
