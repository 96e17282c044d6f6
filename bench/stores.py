"""What a store costs: a call with one question over each of them. `python -m bench.stores [SCALE]`.

The baseline is a stand-in that remembers nothing, so that the rest is what is paid for an approval that is spent once. Fails if the
memory store, which is the default, costs a tenth more than that.
"""

import asyncio
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from mcp_types import ElicitResult

from bespeak import Client, Elicit, MCPServer, RequestStateSecurity, Resolve
from bespeak.server import Decision, MemoryStore
from bespeak.state.stores.store import Claim, Entry, Store
from bespeak.transports.http.connection_limits import ConnectionLimits

TURNS = 7
CALLS = 150
OLDER_CALLS = 60
ALLOWED = 1.10


class Forgetful(MemoryStore):
    """Remembers nothing. Not for use: with it, an approval can be spent as often as it is sent."""

    async def claim(self, call: str, entry: Entry, lease: float) -> Claim | None:
        return None

    async def read(self, call: str, issued: float, deadline: float, incarnation: str | None) -> Claim | None:
        return None

    async def finish(self, call: str, owner: str, result: bytes) -> bool:
        return True

    async def check_room(self, holder: str | None, now: float) -> None: ...


async def ask(number: int) -> Elicit[bool]:
    return Elicit(f"Is {number} right?", bool)


async def accept(context: Any, params: Any) -> ElicitResult:
    return ElicitResult(action="accept", content={"value": True})


def shop(store: Store | str, *, decisions: bool = False) -> MCPServer[Any]:
    security = RequestStateSecurity(keys=[secrets.token_bytes(32)])
    mcp = MCPServer[Any]("shop", store=store, request_state_security=security, log_level="ERROR")
    if decisions:
        seen: list[Decision] = []
        mcp.on_decision(seen.append)

    @mcp.tool()
    async def buy(number: int, answer: Annotated[bool, Resolve(ask)]) -> int:
        return number

    return mcp


async def modern(mcp: MCPServer[Any], calls: int) -> float:
    """Return the seconds of one call: two rounds, in process."""
    async with Client(mcp, elicitation_callback=accept) as client:
        return await timed(client, calls)


async def older(mcp: MCPServer[Any], calls: int) -> float:
    """Return the seconds of one call whose question is pushed over HTTP, and answered with another request."""
    from bespeak.server.running import http_server

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    limits = ConnectionLimits()
    server = http_server(mcp.streamable_http_app(), "127.0.0.1", port, {"log_level": "error"}, limits)
    serving = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
        await asyncio.sleep(0.01)
    try:
        async with Client(f"http://127.0.0.1:{port}/mcp", elicitation_callback=accept, mode="legacy") as client:
            return await timed(client, calls)
    finally:
        server.should_exit = True
        await serving


async def timed(client: Client, calls: int) -> float:
    for number in range(max(1, calls // 10)):
        await client.call_tool("buy", {"number": number})
    began = time.perf_counter()
    for number in range(calls):
        result = await client.call_tool("buy", {"number": number})
        assert result.structured_content == {"result": number}, result
    return (time.perf_counter() - began) / calls


@contextmanager
def redis_server() -> Generator[str | None]:
    """The URL of a Redis server of its own; `None` where Redis is not installed."""
    program = shutil.which("redis-server")
    if program is None:
        print("redis-server is not installed: Redis is left out")
        yield None
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", folder]
        process = subprocess.Popen([program, *options], stdout=subprocess.DEVNULL)
        try:
            for _ in range(500):
                with socket.socket() as trying:
                    if not trying.connect_ex(("127.0.0.1", port)):
                        break
                time.sleep(0.01)
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            process.terminate()
            process.wait()


def main() -> None:
    """Measure all stores in turn, several times over, and print the best times."""
    scale = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    warnings.simplefilter("ignore", RuntimeWarning)
    with tempfile.TemporaryDirectory() as folder, redis_server() as redis:
        file = Path(folder) / "shop.db"
        stores: dict[str, Callable[[], MCPServer[Any]]] = {
            "nothing remembered": lambda: shop(Forgetful()),
            "memory": lambda: shop(MemoryStore()),
            "memory, with on_decision": lambda: shop(MemoryStore(), decisions=True),
            "SQLite": lambda: shop(f"sqlite:{file}"),
            "SQLite, durable=no": lambda: shop(f"sqlite:{file}?durable=no"),
            **({"Redis": lambda: shop(redis)} if redis else {}),
        }
        works = {"modern, in process": (modern, CALLS), "older client, HTTP": (older, OLDER_CALLS)}
        best: dict[tuple[str, str], float] = {}
        for _ in range(max(2, round(TURNS * min(1.0, scale * 4)))):
            for work, (measure, calls) in works.items():
                for name, make in stores.items():
                    took = asyncio.run(measure(make(), max(20, round(calls * scale))))
                    best[work, name] = min(best.get((work, name), took), took)
    print(f"{'a call with one question':30}{'modern, in process':>22}{'older client, HTTP':>22}")
    for name in stores:
        row = "".join(f"{best[work, name] * 1e6:>14,.0f} us {_ratio(best, work, name):>4}" for work in works)
        print(f"{name:30}{row}")
    paid = best["modern, in process", "memory"] / best["modern, in process", "nothing remembered"]
    if scale >= 1 and paid > ALLOWED:
        sys.exit(f"the memory store makes a call with a question {paid:.2f} times as long; {ALLOWED:g} is allowed")


def _ratio(best: dict[tuple[str, str], float], work: str, name: str) -> str:
    return f"{best[work, name] / best[work, 'nothing remembered']:.2f}"


if __name__ == "__main__":
    main()
