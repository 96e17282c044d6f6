"""One library in its own process, run by the interpreter that has it: `python in_process.py bespeak|mcp|fastmcp SCALE`.

Every reply is checked. Prints one JSON object: seconds per call, and for the import seconds and MiB.
"""

# pyright: basic, reportMissingImports=false
# The peers are not installed where the types are checked.

import asyncio
import json
import logging
import resource
import sys
import time
from importlib.metadata import version
from typing import Any

LIBRARY, SCALE = sys.argv[1], float(sys.argv[2])

started = time.perf_counter()
if LIBRARY == "bespeak":
    from bespeak import MCPServer

    mcp: Any = MCPServer("Bench")
elif LIBRARY == "mcp":
    from mcp.server import MCPServer

    mcp = MCPServer("Bench")
else:
    from fastmcp import FastMCP

    mcp = FastMCP("Bench")
IMPORT_SECONDS = time.perf_counter() - started
IMPORT_MIB = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


async def person(_context: Any, _params: Any) -> Any:
    from mcp_types import ElicitResult

    return ElicitResult(action="accept", content={"yes": True})


async def handler(_message: str, _type: Any, _params: Any, _context: Any) -> dict[str, bool]:
    return {"yes": True}


def connected() -> Any:
    """A client of the library itself, in the same process as the server."""
    if LIBRARY == "fastmcp":
        from fastmcp import Client
        from fastmcp_tools import make

        logging.disable(logging.WARNING)
        return Client(make(), elicitation_handler=handler)
    if LIBRARY == "bespeak":
        from bespeak import Client, Context, Elicit, Resolve
    else:
        from mcp import Client
        from mcp.server.mcpserver import Context, Elicit, Resolve
    from tools import register

    register(mcp, Elicit, Resolve, Context)
    return Client(mcp, elicitation_callback=person)


async def measure(client: Any, tool: str, calls: int) -> float:
    """Seconds per call, the best of five stretches."""
    best = float("inf")
    for _ in range(5):
        began = time.perf_counter()
        for number in range(calls):
            result = await client.call_tool(tool, {"a": number, "b": 2})
            assert result.content[0].text == str(number + 2), result
        best = min(best, (time.perf_counter() - began) / calls)
    return best


async def main() -> dict[str, float]:
    seconds: dict[str, float] = {"import": IMPORT_SECONDS, "memory": IMPORT_MIB}
    async with connected() as client:
        for tool, calls in [("plain", 400), ("resolved", 300), ("asked", 100)]:
            await measure(client, tool, 5)
            seconds[tool] = await measure(client, tool, max(5, int(calls * SCALE)))
        seconds["waiting"] = await measure(client, "waiting", 1)
    return seconds


print(json.dumps({"version": version(LIBRARY), **asyncio.run(main())}))
