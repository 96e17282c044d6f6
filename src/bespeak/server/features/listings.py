"""Lists in pages: opaque cursors, and cache hints on every page."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from bespeak.protocol.errors import INVALID_PARAMS, MCPError

CacheableMethod = Literal[
    "prompts/list", "resources/list", "resources/read", "resources/templates/list", "server/discover", "tools/list"
]


@dataclass(frozen=True, slots=True)
class CacheHint:
    """How long a client may cache a result, and whether other clients may share it."""

    ttl_ms: int = 0
    scope: Literal["public", "private"] = "private"

    def __post_init__(self) -> None:
        if self.ttl_ms < 0:
            raise ValueError("ttl_ms must be a number of milliseconds that is not negative")

    def fields(self) -> dict[str, Any]:
        """Return the hint as members of a result."""
        return {"ttlMs": self.ttl_ms, "cacheScope": self.scope}


def hint_fields(
    hints: Mapping[CacheableMethod, CacheHint], method: CacheableMethod, *, private: bool = False
) -> dict[str, Any]:
    """Return the cache members of a result. One that depends on the caller is `private`, whatever the author's hint says."""
    fields = (hints.get(method) or CacheHint()).fields()
    return {**fields, "cacheScope": "private"} if private else fields


def page_after(params: Mapping[str, Any]) -> str | None:
    """Return the name after which a request's page begins; `None` for the first page.

    Raises `MCPError` for a cursor that cannot be read.
    """
    if "cursor" not in params:
        return None
    after = _read_cursor(params["cursor"])
    if after is None:
        raise _invalid_cursor()
    return after


def page(names: Sequence[str], after: str | None, size: int | None) -> tuple[slice, dict[str, Any]]:
    """Return the part of a list that begins after a name, and the cursor of the next part.

    Raises `MCPError` if there is no such name.
    """
    start = 0
    if after is not None:
        if after not in names:
            raise _invalid_cursor()
        start = names.index(after) + 1
    end = len(names) if size is None else min(start + size, len(names))
    more = {"nextCursor": urlsafe_b64encode(names[end - 1].encode()).decode()} if end < len(names) else {}
    return slice(start, end), more


def _invalid_cursor() -> MCPError:
    return MCPError(INVALID_PARAMS, "invalid cursor; list again from the start")


def _read_cursor(cursor: Any) -> str | None:
    if not isinstance(cursor, str):
        return None
    try:
        return urlsafe_b64decode(cursor.encode()).decode()
    except ValueError:
        return None
