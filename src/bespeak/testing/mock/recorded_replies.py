"""Recorded errors and notifications, as they are sent again."""

from collections.abc import Mapping
from typing import Any

from bespeak.protocol.errors import MCPError
from bespeak.protocol.messages import LOG_LEVELS, Meta, write_notification
from bespeak.testing.mock.tapes import Step


def recorded_error(error: Mapping[str, Any]) -> MCPError:
    """Return a recorded error, to raise."""
    return MCPError(error.get("code", 0), error.get("message", ""), error.get("data"))


def notifications_of(step: Step, number: int, meta: Meta) -> list[bytes]:
    """Return the recorded notifications of a turn that a client wants to have, written."""
    written: list[bytes] = []
    for one in step.tape.recorded.notifications(step.tape.turns[number]):
        method, params = one["method"], one["params"]
        if method == "notifications/progress":
            if meta.progress_token is None:
                continue
            params = {**params, "progressToken": meta.progress_token}
        if method == "notifications/message" and not _is_wanted(params.get("level"), meta.log_level):
            continue
        written.append(write_notification(method, params))
    return written


def _is_wanted(level: Any, least: str | None) -> bool:
    if least is None:
        return False
    return level not in LOG_LEVELS or LOG_LEVELS.index(level) >= LOG_LEVELS.index(least)
