"""Commands as they are typed, without a terminal, and servers for them: a desk that asks, and one that does what a script says."""

import json
import shlex
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from bespeak.cli.commands import app

DESK = """
import asyncio, signal
from typing import Annotated, Literal
from mcp_types import ToolAnnotations
from pydantic import BaseModel
from bespeak import Elicit, MCPServer, RequestStateSecurity, Resolve
from bespeak.server import MemoryStore

# its keys outlive a process, so a call that waits can be resumed
kept = RequestStateSecurity(keys=["a" * 32])
mcp = MCPServer("desk", request_state_security=kept, store=MemoryStore())
other = MCPServer("other")
READS = ToolAnnotations(read_only_hint=True)

class Seat(BaseModel):
    row: int
    side: Literal["window", "aisle"] = "aisle"

async def ask_city() -> Elicit[str]:
    return Elicit("Which city?", str)

async def ask_units() -> Elicit[Literal["C", "F"]]:
    return Elicit("Which units?", Literal["C", "F"])

City = Annotated[str, Resolve(ask_city, key="city")]
Units = Annotated[str, Resolve(ask_units, key="units")]

async def ask_sure(city: City) -> Elicit[bool]:
    return Elicit(f"Sure about {city}?", bool)

async def ask_seat() -> Elicit[Seat]:
    return Elicit("Which seat?", Seat)

@mcp.tool(annotations=READS)
async def say(text: str = "nothing") -> str:
    return text

@mcp.tool(annotations=READS)
async def typed(s: str = "", i: int = 0, b: bool = False, l: list[int] = [], n: str | None = None, f: float = 0.0) -> str:
    return repr((s, i, b, l, n, f))

@mcp.tool(annotations=READS)
async def forecast(city: City, units: Units, day: str = "today") -> str:
    return f"{city} in {units} {day}"

@mcp.tool(annotations=READS)
async def trip(city: City, sure: Annotated[bool, Resolve(ask_sure, key="sure")], day: str = "today") -> str:
    return f"{city} {sure} {day}"

@mcp.tool(annotations=READS)
async def sit(seat: Annotated[Seat, Resolve(ask_seat, key="seat")]) -> Seat:
    return seat

@mcp.tool(annotations=READS)
async def shout() -> str:
    print("PRINTED")
    return "said"

@mcp.tool(annotations=READS)
async def interrupted() -> str:
    signal.raise_signal(signal.SIGINT)
    await asyncio.sleep(20)
    return "never"
"""
RAW = """
import json, os, sys, time

script = json.load(open(sys.argv[1]))
if "pid" in script:
    print(os.getpid(), file=open(script["pid"], "w"), flush=True)
done = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
calls = iter(script["calls"])
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    method, params = request["method"], request.get("params", {})
    if method == "server/discover":
        response = {"result": {**done, "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}}
    elif method == "tools/list":
        page = script["pages"][int(params.get("cursor", 0))]
        response = page if "error" in page else {"result": {**done, **page}}
    elif method.endswith("/list"):
        page = script.get("lists", {}).get(method, {"error": {"code": -32601, "message": "no list"}})
        response = page if "error" in page else {"result": {**done, **page}}
    else:
        response = next(calls)
        if response == "exit":
            sys.exit("goodbye")
        if response == "hang":
            continue
        if response == "echo":
            sent = {name: value for name, value in params.items() if name != "_meta"}
            response = {"result": {**done, "content": [{"type": "text", "text": json.dumps(sent)}]}}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **response}), flush=True)
"""
"""A server without any framework: it answers each call with the next entry of its script."""
Raw = Callable[..., str]
QUESTION: dict[str, Any] = {"type": "string"}


def bespeak(*words: str, stdin: str = "") -> Result:
    """What came of a command, typed where there is no terminal."""
    return CliRunner().invoke(app, list(words), input=stdin, catch_exceptions=False)


def told(result: Result, code: int) -> str:
    """What it said on standard error, having ended with that code."""
    assert (result.exit_code, "Traceback" in result.stderr) == (code, False), result.output
    return result.stderr


def form(message: str, **properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}


WORD = form("?", x=QUESTION)


def page(url: str) -> dict[str, Any]:
    return {"method": "elicitation/create", "params": {"mode": "url", "message": "Log in", "url": url}}


def accepted(**content: Any) -> dict[str, Any]:
    return {"action": "accept", "content": content}


def asking(**questions: Any) -> dict[str, Any]:
    return {"result": {"resultType": "input_required", "inputRequests": questions, "requestState": "TOKEN"}}


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"result": {"resultType": "complete", "content": [{"type": "text", "text": words}], **more}}


def write_raw(folder: Path) -> Raw:
    file = folder / "raw.py"
    file.write_text(RAW)

    def scripted(*calls: Any, pages: Any = ({"tools": []},), **more: Any) -> str:
        script = folder / f"script{len(list(folder.iterdir()))}.json"
        script.write_text(json.dumps({"calls": calls, "pages": pages, **more}))
        return shlex.join([sys.executable, "-I", "-S", str(file), str(script)])

    return scripted


@contextmanager
def served(file: Path) -> Generator[str]:
    """The desk in a file, as a target. What loading it does to this process is undone."""
    modules, path = set(sys.modules), list(sys.path)
    file.write_text(DESK)
    yield f"{file}:mcp"
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if str(file) == getattr(sys.modules[name], "__file__", ""):
            del sys.modules[name]
