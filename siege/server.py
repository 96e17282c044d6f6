"""The server under attack, with a view of its inside for the siege only: `python -m siege.server FD OPTIONS`.

FD is one end of a socket pair that is there from the start, and a thread answers on it: a server without any more files can
still be looked into.
"""

import asyncio
import inspect
import json
import os
import resource
import socket
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Sized
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from mcp_types import ListRootsResult
from pydantic import BaseModel

from bespeak import Elicit, ListRoots, MCPServer, Resolve
from bespeak.state.stores.memory import MemoryStore

if TYPE_CHECKING:
    from bespeak.transports.http.app import HttpApp


class Answer(BaseModel):
    yes: bool


@dataclass(slots=True)
class Inside:
    """What the siege may ask about."""

    loop: asyncio.AbstractEventLoop | None = None
    waiting: int = 0
    """Calls that have opened what their question depends on and have not closed it: the author's own view of a waiting call."""


INSIDE = Inside()
LOOP_SECONDS = 5.0
"""How long a busy loop may take to say how many tasks it has."""


class Watched(MCPServer[None]):
    """A server that remembers the app it runs."""

    app: "HttpApp | None" = None

    def streamable_http_app(self, **options: Any) -> "HttpApp":
        self.app = super().streamable_http_app(**options)
        return self.app


@asynccontextmanager
async def lifespan(_: MCPServer[None]) -> AsyncGenerator[None]:
    if INSIDE.loop is None:
        INSIDE.loop = asyncio.get_running_loop()
    yield


async def ask(a: int) -> Elicit[Answer]:
    return Elicit(f"Is {a} right?", Answer)


async def counted() -> AsyncGenerator[int]:
    INSIDE.waiting += 1
    try:
        yield INSIDE.waiting
    finally:
        INSIDE.waiting -= 1


async def ask_and_count(a: int, open_: Annotated[int, Resolve(counted)]) -> Elicit[Answer]:
    return Elicit(f"Is {a} right?", Answer)


async def ask_for_roots(open_: Annotated[int, Resolve(counted)]) -> ListRoots:
    return ListRoots()


def register(mcp: MCPServer[None]) -> None:
    """The tools and the route that are attacked."""

    @mcp.tool()
    async def plain(a: int, b: int) -> str:
        return str(a + b)

    @mcp.tool()
    async def asked(a: int, b: int, answer: Annotated[Answer, Resolve(ask)]) -> str:
        return str(a + b if answer.yes else 0)

    @mcp.tool()
    async def left(a: int, note: Any, answer: Annotated[Answer, Resolve(ask_and_count)]) -> str:
        return f"{a} {len(note)} {answer.yes}"

    @mcp.tool()
    async def left_for_roots(a: int, roots: Annotated[ListRootsResult, Resolve(ask_for_roots)]) -> str:
        return f"{a} {len(roots.roots)}"

    @mcp.tool(structured_output=False)
    async def large(size: int) -> str:
        return "x" * size

    @mcp.custom_route("/upload", methods=["POST"])
    async def upload(request: Any) -> Any:
        from bespeak.transports.http.custom_routes import HttpResponse

        return HttpResponse(str(len(await request.body())))


def look(mcp: Watched, store: MemoryStore) -> dict[str, int | None]:
    return {
        "tasks": tasks_of(INSIDE.loop),
        "sessions": reached(mcp.app, "_legacy", "sessions"),
        "waiting": INSIDE.waiting,
        "claims": reached(store, "claims"),
    }


def tasks_of(loop: asyncio.AbstractEventLoop | None) -> int | None:
    """How many tasks a loop has. Only the loop itself can count them; `None` if it does not come to it."""
    if loop is None or loop.is_closed():
        return None
    number: Future[int] = Future()
    loop.call_soon_threadsafe(lambda: number.set_result(len(asyncio.all_tasks(loop))))
    try:
        return number.result(LOOP_SECONDS)
    except TimeoutError:
        return None


def reached(start: object, *names: str) -> int | None:
    """What is found by going from attribute to attribute, as a number; `None` if the inside looks different by now."""
    for name in names:
        start = getattr(start, name, None)
    if isinstance(start, int):
        return start
    return len(start) if isinstance(start, Sized) else None


async def use_elsewhere(mcp: Watched, calls: int) -> None:
    async with mcp.running():
        for number in range(calls):
            await mcp.call_tool("plain", {"a": number, "b": 2})


def answer_the_siege(channel: socket.socket, mcp: Watched, store: MemoryStore) -> None:
    with channel, channel.makefile("rwb") as lines:
        for line in lines:
            order = line.decode().strip()
            if order == "use elsewhere":
                asyncio.run(use_elsewhere(mcp, 20))
            lines.write(json.dumps(look(mcp, store)).encode() + b"\n")
            lines.flush()
    os._exit(0)  # whoever laid the siege is gone


def known(taker: Callable[..., Any], options: dict[str, Any]) -> dict[str, Any]:
    """Those options that there are."""
    parameters = inspect.signature(taker).parameters
    for name in options.keys() - parameters.keys():
        print(f"there is no option {name} yet", file=sys.stderr)
    return {name: value for name, value in options.items() if name in parameters}


def main() -> None:
    channel = socket.socket(fileno=int(sys.argv[1]))
    options: dict[str, Any] = json.loads(sys.argv[2])
    if options["core"] is not None:
        os.sched_setaffinity(0, {options["core"]})
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    files = options["files"] or hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    store = MemoryStore(**known(MemoryStore, options["store"]))
    mcp = Watched("Siege", log_level="CRITICAL", lifespan=lifespan, store=store, **known(MCPServer, options["server"]))
    register(mcp)
    threading.Thread(target=answer_the_siege, args=(channel, mcp, store), daemon=True).start()
    app = known(MCPServer[None].streamable_http_app, options["app"])
    app |= known(MCPServer[None].run_streamable_http_async, options["run"])
    mcp.run("streamable-http", port=options["port"], uvicorn_config={"log_level": "critical"}, **app)


if __name__ == "__main__":
    main()
