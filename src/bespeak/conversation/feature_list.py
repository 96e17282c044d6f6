"""What a server lists, page by page: its tools, prompts, resources and resource templates."""

from collections.abc import AsyncIterator
from typing import Any, cast

from bespeak.client.session import ClientSession
from bespeak.conversation.json_values import as_array

PAGES = 100
"""How many pages are read. A server may hand out cursors forever."""


async def read_pages(
    session: ClientSession, method: str, *, seconds: float | None = None
) -> AsyncIterator[dict[str, Any]]:
    """Yield the pages of a list, such as `tools/list`, as they were sent. Raises what a request raises."""
    cursor: str | None = None
    for _ in range(PAGES):
        params = {} if cursor is None else {"cursor": cursor}
        page = await session.request(method, params, read_timeout_seconds=seconds)
        yield page
        cursor = page.get("nextCursor")
        if not isinstance(cursor, str):
            return


async def list_all(session: ClientSession, method: str, member: str) -> AsyncIterator[dict[str, Any]]:
    """Yield the entries of a list, such as `tools/list` with the member `tools`. Raises what a request raises."""
    async for page in read_pages(session, method):
        for entry in as_array(page.get(member)):
            if isinstance(entry, dict):
                yield cast("dict[str, Any]", entry)


def list_tools(session: ClientSession) -> AsyncIterator[dict[str, Any]]:
    """Yield the server's tools. Raises what a request raises."""
    return list_all(session, "tools/list", "tools")
