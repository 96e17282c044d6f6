"""Log entries for a client: which levels there are, which ones a client wants, and how an entry is written."""

from typing import Any

from bespeak.protocol.errors import INVALID_PARAMS, MCPError
from bespeak.protocol.messages import LOG_LEVELS, write_notification

DEFAULT_LOG_LEVEL = "info"
"""The log level of an older client that has not set one. A modern client gets no entries unless its request names a level."""


def log_entry(wanted: str | None, level: str, data: Any, logger_name: str | None) -> bytes | None:
    """Return the notification of a log entry; `None` if the client does not want entries of this level.

    Raises `ValueError` for a level that the protocol does not define, even if nothing would be sent.
    """
    if level not in LOG_LEVELS:
        raise ValueError(f"unknown log level {level!r}; use one of {', '.join(LOG_LEVELS)}")
    if wanted is None or LOG_LEVELS.index(level) < LOG_LEVELS.index(wanted):
        return None
    named = {"logger": logger_name} if logger_name else {}
    return write_notification("notifications/message", {"level": level, **named, "data": data})


def read_level(params: dict[str, Any]) -> str:
    """Return the level of a `logging/setLevel` request. Raises `MCPError` if there is no such level."""
    level = params.get("level")
    if level not in LOG_LEVELS:
        raise MCPError(INVALID_PARAMS, f"level must be one of {', '.join(LOG_LEVELS)}")
    return level
