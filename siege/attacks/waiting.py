"""Calls of an older client that are left at their question."""

import asyncio
from collections.abc import Iterator
from typing import Any, cast

from siege.honest import Refused, open_session
from siege.orders import Orders
from siege.wire import Closed, initialize, read_json, reason

TEXT, UNKNOWN, NESTED = range(3)
"""One long text; objects in an argument that the tool does not have; objects in one that it has."""
ARRIVING_SECONDS = 0.5
"""Time for the server to have taken in all but the last bytes."""
BATCHES = "2025-03-26"
"""The only revision in which one request may hold many messages."""


async def leave_waiting(orders: Orders) -> None:
    """Make calls, read their questions, never answer. With `keep` the connections stay open."""
    sessions: list[str] = []
    for _ in range(orders.number("sessions")):
        try:
            sessions.append(await open_session(orders.place))
        except (Refused, OSError) as refusal:
            orders.refused(f"no session: {refusal}")
    if not sessions:
        return
    orders.tally["sessions"] = len(sessions)
    arguments = _filling(orders.number("size"), orders.number("sort"))
    numbers = iter(range(orders.number("count")))
    held: list[asyncio.StreamWriter] = []

    async def work(numbers: Iterator[int]) -> None:
        for number in numbers:
            if orders.stop.is_set():
                return
            await _leave(orders, number, sessions[number % len(sessions)], arguments, held)

    await asyncio.gather(*(work(numbers) for _ in range(orders.number("at_once"))))
    orders.holding()
    await orders.stop.wait()
    for writer in held:
        writer.close()


def _filling(size: int, sort: int) -> dict[str, Any]:
    """Arguments that take so many bytes to send, in one of the ways there are to fill them."""
    objects: list[Any] = [{}] * (size // 3)  # each of them is three bytes on the wire, and many more in memory
    if sort == UNKNOWN:
        return {"note": "", "unknown": objects}
    return {"note": objects if sort == NESTED else "x" * size}


async def _leave(
    orders: Orders, number: int, session: str, arguments: dict[str, Any], held: list[asyncio.StreamWriter]
) -> None:
    params = {"name": "left", "arguments": {"a": number, **arguments}}
    try:
        reader, writer = await orders.place.connect()
    except OSError as error:
        orders.tally[f"no connection: {error.strerror}"] += 1
        return
    writer.write(orders.place.legacy({"id": number, "method": "tools/call", "params": params}, session))
    if await _read_question(orders, reader) and orders.number("keep"):
        held.append(writer)
    else:
        writer.close()


async def arrive_together(orders: Orders) -> None:
    """Large calls whose last bytes are kept back for a while, so that all arrive together. What they ask is left unanswered."""
    session = await open_session(orders.place)
    arguments = _filling(orders.number("size"), orders.number("sort"))
    opened: list[tuple[asyncio.StreamReader, asyncio.StreamWriter, bytes]] = []
    for number in range(orders.number("count")):
        params = {"name": "left", "arguments": {"a": number, **arguments}}
        request = orders.place.legacy({"id": number, "method": "tools/call", "params": params}, session)
        reader, writer = await orders.place.connect()
        writer.write(
            request[:-1]
        )  # not drained: a server that lets in one after the other would wait for the last byte
        opened.append((reader, writer, request[-1:]))
    await asyncio.sleep(ARRIVING_SECONDS)
    for _, writer, last in opened:
        writer.write(last)
    await asyncio.gather(*(_read_question(orders, reader) for reader, _, _ in opened))
    orders.holding()
    await orders.stop.wait()
    for _, writer, _ in opened:
        writer.close()


async def _read_question(orders: Orders, reader: asyncio.StreamReader) -> bool:
    """Whether the call waits at its question now."""
    try:
        head, content = await read_json(reader)
    except (Closed, OSError, EOFError):
        orders.tally["cut off without a word"] += 1
        return False
    if "method" in content:
        orders.tally["left at a question"] += 1
        return True
    orders.refused(reason(head, content))
    return False


async def leave_batches(orders: Orders) -> None:
    """Many calls in each request, which 2025-03-26 allows. It has no forms, so they wait for the client's roots."""
    reader, writer = await orders.place.connect()
    writer.write(orders.place.legacy(initialize(BATCHES)))
    head, _ = await read_json(reader)
    session = head.headers["mcp-session-id"]
    writer.close()
    held: list[asyncio.StreamWriter] = []
    size = orders.number("batch")
    for first in range(0, orders.number("count"), size):
        calls = [
            {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": _small(number)}
            for number in range(first, first + size)
        ]
        reader, writer = await orders.place.connect()
        held.append(writer)
        writer.write(orders.place.legacy(calls, session, BATCHES))
        try:
            head, content = await read_json(reader)
        except (Closed, OSError, EOFError):
            orders.tally["cut off without a word"] += 1
            continue
        if isinstance(content, list):
            for one in cast("list[Any]", content):
                orders.refused(reason(head, one))
        elif "method" in content:
            orders.tally["batches left at a question"] += 1
        else:
            orders.refused(reason(head, content))
    orders.holding()
    await orders.stop.wait()
    for writer in held:
        writer.close()


def _small(number: int) -> dict[str, Any]:
    return {"name": "left_for_roots", "arguments": {"a": number}}
