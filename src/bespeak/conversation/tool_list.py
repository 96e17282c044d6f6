"""The tools that a server lists, page by page."""

from collections.abc import AsyncIterator
from typing import Any, cast

from bespeak.conversation.connection import Connection

PAGES = 100
"""How many pages are read. A server may hand out cursors forever."""


async def list_tools(connection: Connection) -> AsyncIterator[dict[str, Any]]:
    """Yield the server's tools. Raises what a request raises."""
    cursor: str | None = None
    for _ in range(PAGES):
        page = await connection.session.request("tools/list", {} if cursor is None else {"cursor": cursor})
        listed: Any = page.get("tools")
        for tool in cast("list[Any]", listed) if isinstance(listed, list) else ():
            if isinstance(tool, dict):
                yield cast("dict[str, Any]", tool)
        cursor = page.get("nextCursor")
        if not isinstance(cursor, str):
            return
