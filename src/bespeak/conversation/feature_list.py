"""What a server lists, page by page: its tools, prompts, resources and resource templates."""

from collections.abc import AsyncIterator
from typing import Any, cast

from bespeak.conversation.connection import Connection

PAGES = 100
"""How many pages are read. A server may hand out cursors forever."""


async def list_all(connection: Connection, method: str, member: str) -> AsyncIterator[dict[str, Any]]:
    """Yield the entries of a list, such as `tools/list` with the member `tools`. Raises what a request raises."""
    cursor: str | None = None
    for _ in range(PAGES):
        page = await connection.session.request(method, {} if cursor is None else {"cursor": cursor})
        listed: Any = page.get(member)
        for entry in cast("list[Any]", listed) if isinstance(listed, list) else ():
            if isinstance(entry, dict):
                yield cast("dict[str, Any]", entry)
        cursor = page.get("nextCursor")
        if not isinstance(cursor, str):
            return


def list_tools(connection: Connection) -> AsyncIterator[dict[str, Any]]:
    """Yield the server's tools. Raises what a request raises."""
    return list_all(connection, "tools/list", "tools")
