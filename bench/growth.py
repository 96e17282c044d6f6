"""How the cost of a call grows: with resolvers, answers, registered tools, open sessions and calls that wait.

Calls go through the ASGI app without a socket, so that nothing but the server is measured. The best of many stretches counts.
Only workers are loaded over HTTP: what counts there is the CPU time that all of them take together for one call.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Annotated, Any

from bench.asgi import post
from bench.legacy import INITIALIZE
from bench.load import answered, message
from bench.workers import cpu_seconds_per_call
from bespeak import Elicit, MCPServer, Resolve

Growth = dict[str, dict[str, float]]
"""Seconds for one call, by what grows and how much of it there is."""

STRETCHES = 12
CALLS = 20
SIZES: dict[str, list[int]] = {
    "resolvers": [1, 10, 100],
    "answers": [1, 10, 50],
    "tools": [1, 10, 100, 1000],
    "sessions": [1, 100, 10_000],
    "waiting calls": [0, 100, 1000],
    "workers": [1, 2, 4],
    "workers that ask": [1, 2, 4],
}


async def best(call: Callable[[int], Awaitable[None]], calls: int = CALLS) -> float:
    """Return the seconds of one call, the best of several stretches."""
    found = float("inf")
    for stretch in range(STRETCHES):
        began = time.perf_counter()
        for number in range(stretch * calls, (stretch + 1) * calls):
            await call(number)
        found = min(found, (time.perf_counter() - began) / calls)
    return found


def server() -> MCPServer[Any]:
    return MCPServer("Bench", log_level="ERROR")


def caller(app: Any, tool: str) -> Callable[[int], Awaitable[None]]:
    """Return a function that calls a tool with a number, answers its questions and checks the result."""

    async def call(number: int) -> None:
        body: bytes | None = message(tool, number)
        while body is not None:
            body = answered(tool, number, json.loads(await post(app, tool, body)), {"value": True})

    return call


async def with_resolvers(count: int) -> float:
    """A tool with so many resolvers that do not depend on each other."""

    def resolver(index: int) -> Callable[..., Awaitable[int]]:
        async def value(a: int) -> int:
            return a + index

        return value

    async def total(a: int, b: int, **values: int) -> str:
        return str(a + b)

    return await best(caller(tool_with(total, [resolver(index) for index in range(count)], int), "total"))


async def with_answers(count: int) -> float:
    """A tool that asks so many questions in one round."""

    def resolver(index: int) -> Callable[..., Awaitable[Any]]:
        async def ask(a: int) -> Elicit[bool]:
            return Elicit(f"Is {a} + {index} right?", bool)

        return ask

    async def total(a: int, b: int, **values: bool) -> str:
        return str(a + b)

    return await best(caller(tool_with(total, [resolver(index) for index in range(count)], bool), "total"), 5)


def tool_with(body: Callable[..., Any], resolvers: list[Callable[..., Any]], kind: type[Any]) -> Any:
    """Return an app whose one tool has a parameter for each resolver."""
    names = [f"value_{index}" for index in range(len(resolvers))]
    marked = {f"{name}_type": Annotated[kind, Resolve(fn)] for name, fn in zip(names, resolvers, strict=True)}
    parameters = ", ".join(f"{name}: {name}_type" for name in names)
    made: dict[str, Any] = {**marked, "body": body}
    given = ", ".join(f"{name}={name}" for name in names)
    exec(f"async def total(a: int, b: int, {parameters}) -> str:\n    return await body(a, b, {given})", made)
    mcp = server()
    mcp.tool()(made["total"])
    return mcp.streamable_http_app()


async def with_tools(count: int) -> float:
    """A plain tool among so many."""
    mcp = server()

    async def plain(a: int, b: int) -> str:
        return str(a + b)

    for index in range(count - 1):
        mcp.add_tool(plain, name=f"plain_{index}")
    mcp.add_tool(plain)
    return await best(caller(mcp.streamable_http_app(), "plain"))


async def with_sessions(count: int) -> float:
    """A plain call of a client of 2025-11-25 among so many open sessions."""
    mcp = server()

    @mcp.tool()
    async def plain(a: int, b: int) -> str:
        return str(a + b)

    app = mcp.streamable_http_app(max_sessions=4 * count)
    first = json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INITIALIZE}).encode()
    for _ in range(count - 1):
        await post(app, None, first)
    heads: list[tuple[bytes, bytes]] = []
    await post(app, None, first, heads=heads)
    session = dict(heads)[b"mcp-session-id"]
    more = [(b"mcp-session-id", session), (b"mcp-protocol-version", b"2025-11-25")]

    async def call(number: int) -> None:
        params = {"name": "plain", "arguments": {"a": number, "b": 2}}
        body = json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}).encode()
        response = json.loads(await post(app, None, body, more))
        assert response["result"]["content"][0]["text"] == str(number + 2), response

    return await best(call)


async def with_waiting_calls(count: int) -> float:
    """A plain call while so many others wait."""
    mcp, go_on = server(), asyncio.Event()

    @mcp.tool()
    async def plain(a: int, b: int) -> str:
        return str(a + b)

    @mcp.tool()
    async def hold(a: int, b: int) -> str:
        await go_on.wait()
        return str(a + b)

    app = mcp.streamable_http_app()
    held = [asyncio.create_task(post(app, "hold", message("hold", number))) for number in range(count)]
    await asyncio.sleep(0.05)
    found = await best(caller(app, "plain"))
    go_on.set()
    await asyncio.gather(*held)
    return found


def run(measure: Callable[[int], Coroutine[Any, Any, float]]) -> Callable[[int], float]:
    return lambda size: asyncio.run(measure(size))


MEASURES: dict[str, Callable[[int], float]] = {
    "resolvers": run(with_resolvers),
    "answers": run(with_answers),
    "tools": run(with_tools),
    "sessions": run(with_sessions),
    "waiting calls": run(with_waiting_calls),
    "workers": lambda count: cpu_seconds_per_call("plain", count),
    "workers that ask": lambda count: cpu_seconds_per_call("asked", count),
}


def grown(scale: float = 1.0) -> Growth:
    """Return the seconds of one call for each size; a small scale leaves out the largest sizes."""
    return {
        what: {str(size): measure(size) for size in (SIZES[what] if scale >= 1 else SIZES[what][:-1])}
        for what, measure in MEASURES.items()
    }


def growth_table(growth: Growth) -> list[str]:
    """Return the growth as lines for a terminal."""
    lines = ["one call, through the app without a socket; with workers, their CPU time:"]
    for what, sizes in growth.items():
        told = ", ".join(f"{int(size):,}: {seconds * 1e6:,.1f} us" for size, seconds in sizes.items())
        lines.append(f"  by {what:<18}{told}")
    return lines
