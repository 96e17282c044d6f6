"""One library's measurements, run by the interpreter that has it: `python subject.py bespeak|mcp SCALE`.

The program is the same for both but for its imports. Every reply is checked. Prints one JSON object: seconds per call,
and for the import seconds and MiB.
"""

# pyright: basic, reportMissingImports=false
# The peer is not installed where the types are checked.

import asyncio
import json
import resource
import sys
import time
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from typing import Annotated, Any

LIBRARY, SCALE = sys.argv[1], float(sys.argv[2])

started = time.perf_counter()
if LIBRARY == "bespeak":
    from bespeak import Client, Elicit, MCPServer, Resolve
else:
    from mcp.server import MCPServer
    from mcp.server.mcpserver import Elicit, Resolve

mcp = MCPServer("Bench")
IMPORT_SECONDS = time.perf_counter() - started
IMPORT_MIB = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

if LIBRARY == "mcp":
    from mcp import Client

from mcp_types import ElicitResult  # noqa: E402
from pydantic import BaseModel  # noqa: E402


class Answer(BaseModel):
    yes: bool


@mcp.tool()
async def plain(a: int, b: int) -> str:
    return str(a + b)


async def first(a: int) -> int:
    return a


async def second(b: int, one: Annotated[int, Resolve(first)]) -> int:
    return one + b


async def third(two: Annotated[int, Resolve(second)]) -> int:
    return two


@mcp.tool()
async def resolved(
    a: int,
    b: int,
    one: Annotated[int, Resolve(first)],
    two: Annotated[int, Resolve(second)],
    three: Annotated[int, Resolve(third)],
) -> str:
    return str(one + two - three + b)


async def ask(a: int) -> Answer | Elicit[Answer]:
    return Elicit(f"Is {a} right?", Answer)


@mcp.tool()
async def asked(a: int, b: int, answer: Annotated[Answer, Resolve(ask)]) -> str:
    return str(a + b if answer.yes else 0)


def slow(number: int) -> Callable[[], Awaitable[int]]:
    async def wait() -> int:
        await asyncio.sleep(0.05)
        return number

    return wait


WAITS = [slow(number) for number in range(8)]


@mcp.tool()
async def waiting(
    a: int,
    b: int,
    w0: Annotated[int, Resolve(WAITS[0])],
    w1: Annotated[int, Resolve(WAITS[1])],
    w2: Annotated[int, Resolve(WAITS[2])],
    w3: Annotated[int, Resolve(WAITS[3])],
    w4: Annotated[int, Resolve(WAITS[4])],
    w5: Annotated[int, Resolve(WAITS[5])],
    w6: Annotated[int, Resolve(WAITS[6])],
    w7: Annotated[int, Resolve(WAITS[7])],
) -> str:
    assert w0 + w1 + w2 + w3 + w4 + w5 + w6 + w7 == 28
    return str(a + b)


async def person(_context: Any, _params: Any) -> ElicitResult:
    return ElicitResult(action="accept", content={"yes": True})


async def measure(client: Any, tool: str, calls: int) -> float:
    """Seconds per call, the best of five stretches."""
    best = float("inf")
    for _ in range(5):
        started = time.perf_counter()
        for number in range(calls):
            result = await client.call_tool(tool, {"a": number, "b": 2})
            assert result.content[0].text == str(number + 2), result
        best = min(best, (time.perf_counter() - started) / calls)
    return best


async def main() -> dict[str, float]:
    seconds: dict[str, float] = {"import": IMPORT_SECONDS, "memory": IMPORT_MIB}
    async with Client(mcp, elicitation_callback=person) as client:
        for tool, calls in [("plain", 400), ("resolved", 300), ("asked", 100)]:
            await measure(client, tool, 5)
            seconds[tool] = await measure(client, tool, max(5, int(calls * SCALE)))
        seconds["waiting"] = await measure(client, "waiting", 1)
    return seconds


print(json.dumps({"version": version(LIBRARY), **asyncio.run(main())}))
