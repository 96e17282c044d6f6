"""Attacks on a client and on the test tool: a server that sends too much, and a pattern that never comes to an end."""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from siege.judgement import Check, Turn
from siege.laying import Outcome
from siege.readings import Reading

MIB = 1024 * 1024
MOST_TIMES_ITS_SIZE = 8.0
"""What a client may take for an event, counted in its length: its lines, the JSON, the text in it, and the result."""
TOOL_SECONDS = 30.0
SUITE = Path(__file__).parent / "patterns.bespeak.yaml"
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


def one_line(id_: Any, size: int) -> bytes:
    """An event with a text of so many bytes in one line."""
    return b"data: " + _response(id_, "x" * size) + b"\n\n"


def short_lines(id_: Any, size: int) -> bytes:
    """An event of so many bytes in lines as short as can be; what follows the message in it is blank."""
    blank = b"data:\n"
    return b"data: " + _response(id_, "x") + b"\n" + blank * (size // len(blank)) + b"\n"


def _response(id_: Any, text: str) -> bytes:
    """A result that will do for whatever the client asks for on its way."""
    result: dict[str, Any] = {
        "resultType": "complete",
        "content": [{"type": "text", "text": text}],
        "capabilities": {"tools": {}},
        "supportedVersions": ["2026-07-28"],
        "tools": [],
        "ttlMs": 0,
        "cacheScope": "private",
    }
    return json.dumps({"jsonrpc": "2.0", "id": id_, "result": result}).encode()


async def large_event(name: str, mib: int, event: Callable[[Any, int], bytes]) -> Outcome:
    """Send a client an event of so many MiB."""
    started = time.perf_counter()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        request = json.loads(await reader.readexactly(length))
        params: dict[str, Any] = request["params"]
        writer.write(_HEAD + event(request["id"], mib * MIB if params.get("name") == "large" else 1))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, limit=MIB)
    async with server:
        port: int = server.sockets[0].getsockname()[1]
        reading = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "siege.event_reader", str(port), stdout=subprocess.PIPE
        )
        said, _ = await reading.communicate()
    if reading.returncode:
        return Outcome(
            name, {}, (), (Check("the client reads the event", False, f"it exited with {reading.returncode}"),)
        )
    found: dict[str, float] = json.loads(said)
    before, peak = Reading(found["before"]), Reading(found["peak"])
    times = (peak.memory - before.memory) / mib
    turn = Turn(before, peak, peak, {}, time.perf_counter() - started)
    demand = f"an event takes at most {MOST_TIMES_ITS_SIZE:g} times its size"
    return Outcome(name, {}, (turn,), (Check(demand, times <= MOST_TIMES_ITS_SIZE, f"{times:.1f} times"),))


async def endless_pattern(name: str) -> Outcome:
    """Run a suite whose pattern takes for ever on the text it meets."""
    started = time.perf_counter()
    testing = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bespeak.cli", "test", str(SUITE), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        async with asyncio.timeout(TOOL_SECONDS):
            status = await testing.wait()
    except TimeoutError:
        testing.kill()
        await testing.wait()
        said, met = f"it was still running after {TOOL_SECONDS:g} s", False
    else:
        said, met = f"it exited with {status} after {time.perf_counter() - started:.1f} s", status == 1
    return Outcome(name, {}, (), (Check("the test tool ends and reports a failure", met, said),))
