"""The app inside other apps: mounted under prefixes, behind middlewares, with its lifespan run or forgotten."""

import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount

from bespeak import Client, Context, MCPServer
from bespeak.transports.http.asgi import ASGIApp
from tests.answering import text
from tests.transports.http.asgi_wire import Wire
from tests.transports.http.callers import HEADERS, Body, Caller, call, fetch, post, server_with, soon
from tests.wires import Listening


async def greet(ctx: Context) -> str:
    await ctx.report_progress(1)
    return "hello"


def make_server(events: list[str] | None = None, value: Any = None) -> MCPServer[Any]:
    """A server with a lifespan, which writes down when it is entered and left."""
    seen: list[str] = [] if events is None else events

    @asynccontextmanager
    async def lifespan(mcp: MCPServer[Any]) -> AsyncGenerator[Any]:
        seen.append("entered")
        yield value
        seen.append("left")

    async def shows(ctx: Context) -> bool:
        return ctx.request_context.lifespan_context is value

    mcp = MCPServer("Mounted", lifespan=lifespan)
    mcp.add_tool(greet)
    mcp.add_tool(shows)
    return mcp


Framework = Callable[[MCPServer[Any], str, ASGIApp], Any]


def in_fastapi(mcp: MCPServer[Any], prefix: str, app: ASGIApp) -> Any:
    outer = FastAPI(lifespan=mcp.lifespan)

    @outer.get("/outer")
    async def here() -> str:
        return "outer"

    outer.mount(prefix, app)
    return outer


def in_starlette(mcp: MCPServer[Any], prefix: str, app: ASGIApp) -> Any:
    return Starlette(routes=[Mount(prefix, app=app)], lifespan=mcp.lifespan)


FRAMEWORKS = [in_fastapi, in_starlette]


# Mounted


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize(
    ("prefix", "path", "url"),
    [
        ("/", "/mcp", "/mcp"),
        ("/tools", "/mcp", "/tools/mcp"),
        ("/tools", "/", "/tools/"),
        ("/tenants/{tenant}", "/mcp", "/tenants/7/mcp"),
    ],
)
async def test_a_client_reaches_a_mounted_server(framework: Framework, prefix: str, path: str, url: str) -> None:
    events: list[str] = []
    mcp = make_server(events)
    outer = framework(mcp, prefix, mcp.streamable_http_app(streamable_http_path=path))
    async with Listening(outer) as server, Client(f"http://127.0.0.1:{server.port}{url}") as client:
        assert text(await client.call_tool("greet")) == "hello"
        assert events == ["entered"]
    assert events == ["entered", "left"]


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("value", [{"a": "dict"}], ids=lambda value: type(value).__name__)
async def test_the_lifespan_of_a_mounted_server_may_yield_anything(framework: Framework, value: Any) -> None:
    mcp = make_server(value=value)
    async with Listening(framework(mcp, "/", mcp.streamable_http_app())) as server:
        assert (await post(server.port, call("shows"))).text == "true"


@pytest.mark.parametrize("framework", FRAMEWORKS)
async def test_a_server_mounted_where_its_path_is_the_prefix_is_reached_without_a_slash(framework: Framework) -> None:
    mcp = make_server()
    outer = framework(mcp, "/mcp", mcp.streamable_http_app(streamable_http_path="/"))
    async with Listening(outer) as server, Client(server.url) as client:
        assert text(await client.call_tool("greet")) == "hello"


@pytest.mark.parametrize("root_path", ["/m", "/", "/other"])
async def test_a_root_path_is_taken_away_only_where_it_is_a_prefix_of_whole_segments(root_path: str) -> None:
    """As Starlette reads it: below `/m`, the path `/mcp` is not `cp`."""
    (start, _) = await direct(server_with(greet).streamable_http_app(), path="/mcp", root_path=root_path)
    assert start["status"] == 200


async def test_the_outer_app_keeps_its_own_paths_and_unknown_ones_below_the_prefix_are_not_found() -> None:
    mcp = make_server()
    outer = in_fastapi(mcp, "/tools", mcp.streamable_http_app())
    async with Listening(outer) as server:
        assert await fetch(server, "/outer") == (200, b'"outer"')
        for wrong in ("/tools/nothing", "/tools/"):
            status, body = await fetch(server, wrong)
            assert status == 404
            assert f"there is nothing at '{wrong}'; MCP messages go to '/tools/mcp'".encode() in body
        assert await fetch(server, "/tools/health") == (200, b'{"status":"ok"}')


async def test_two_servers_may_be_mounted_side_by_side() -> None:
    one, two = MCPServer[Any]("One"), MCPServer[Any]("Two")
    outer = Starlette(
        routes=[Mount("/one", app=one.streamable_http_app()), Mount("/two", app=two.streamable_http_app())]
    )
    async with Listening(outer) as server:
        for path, name in (("/one/mcp", "One"), ("/two/mcp", "Two")):
            async with Client(f"http://127.0.0.1:{server.port}{path}") as client:
                assert client.server_info is not None
                assert client.server_info.name == name


async def test_one_server_may_be_served_at_two_places_and_shares_its_lifespan() -> None:
    events: list[str] = []
    mcp = make_server(events)
    apps = mcp.streamable_http_app(), mcp.streamable_http_app(json_response=True)
    async with Listening(apps[0]) as one, Listening(apps[1]) as two, Client(one.url) as first, Client(two.url) as other:
        assert text(await first.call_tool("greet")) == text(await other.call_tool("greet"))
    assert events == ["entered", "left"]


# Without its lifespan


async def test_a_server_mounted_without_its_lifespan_says_what_to_do(caplog: pytest.LogCaptureFixture) -> None:
    mcp = make_server()
    outer = FastAPI()
    outer.mount("/", mcp.streamable_http_app())
    async with Listening(outer) as server:
        answer = await post(server.port, call("greet"))
        health = await fetch(server, "/health")
    message = answer.messages[0]["error"]["message"]
    assert answer.status == 500
    assert "the server's lifespan is not running" in message
    assert "FastAPI(lifespan=mcp.lifespan)" in message
    assert "the server's lifespan is not running" in caplog.text
    assert health == (503, b'{"status":"starting"}')


async def test_a_server_without_a_lifespan_needs_none_to_be_run() -> None:
    outer = FastAPI()
    outer.mount("/", server_with(greet).streamable_http_app())
    async with Listening(outer) as server:
        assert (await post(server.port, call("greet"))).text == "hello"


async def test_the_lifespan_may_be_entered_inside_the_outer_apps_own() -> None:
    mcp = make_server()

    @asynccontextmanager
    async def own(app: Any) -> AsyncGenerator[None]:
        async with mcp.running():
            yield

    outer = Starlette(routes=[Mount("/", app=mcp.streamable_http_app())], lifespan=own)
    async with Listening(outer) as server:
        assert (await post(server.port, call("greet"))).text == "hello"


# The lifespan as the ASGI server runs it


async def run_lifespan(app: ASGIApp, *messages: str) -> list[dict[str, Any]]:
    said: list[dict[str, Any]] = []
    to_come = iter(messages)

    async def receive() -> MutableMapping[str, Any]:
        return {"type": next(to_come)}

    async def send(message: MutableMapping[str, Any]) -> None:
        said.append(dict(message))

    await app({"type": "lifespan"}, receive, send)
    return said


def failing(where: str) -> MCPServer[Any]:
    @asynccontextmanager
    async def lifespan(mcp: MCPServer[Any]) -> AsyncGenerator[None]:
        if where == "start":
            raise LookupError("no database")
        yield
        raise OSError("cannot close")

    return MCPServer("Failing", lifespan=lifespan)


async def test_a_lifespan_that_fails_to_start_is_told_to_the_asgi_server(caplog: pytest.LogCaptureFixture) -> None:
    said = await run_lifespan(failing("start").streamable_http_app(), "lifespan.startup")
    assert said == [{"type": "lifespan.startup.failed", "message": "LookupError: no database"}]
    assert "the server's lifespan failed to start" in caplog.text


async def test_a_lifespan_that_fails_to_end_is_told_to_the_asgi_server(caplog: pytest.LogCaptureFixture) -> None:
    said = await run_lifespan(failing("end").streamable_http_app(), "lifespan.startup", "lifespan.shutdown")
    assert said[0] == {"type": "lifespan.startup.complete"}
    assert said[1] == {"type": "lifespan.shutdown.failed", "message": "OSError: cannot close"}
    assert "the server's lifespan failed to end" in caplog.text


async def test_a_shutdown_before_any_start_is_complete() -> None:
    said = await run_lifespan(make_server().streamable_http_app(), "lifespan.shutdown")
    assert said == [{"type": "lifespan.shutdown.complete"}]


async def test_an_app_may_be_started_again_after_it_was_stopped() -> None:
    events: list[str] = []
    app = make_server(events).streamable_http_app()
    for _ in range(2):
        async with Listening(app) as server:
            assert (await post(server.port, call("greet"))).status == 200
    assert events == ["entered", "left"] * 2


async def test_health_tells_whether_the_server_starts_serves_or_stops() -> None:
    app = make_server().streamable_http_app(health_path="/alive")
    assert await health(app) == (503, {"status": "starting"})
    async with Listening(app):
        assert await health(app) == (200, {"status": "ok"})
    assert await health(app) == (503, {"status": "stopping"})


async def test_there_is_no_health_path_if_none_is_wanted() -> None:
    (start, _) = await direct(make_server().streamable_http_app(health_path=None), path="/health")
    assert start["status"] == 404


async def test_a_websocket_is_closed() -> None:
    sent: list[dict[str, Any]] = []

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(dict(message))

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "websocket.connect"}

    await make_server().streamable_http_app()({"type": "websocket", "path": "/mcp"}, receive, send)
    assert sent == [{"type": "websocket.close", "code": 1000}]


# Behind middlewares


class Stamp(BaseHTTPMiddleware):
    """The kind of middleware most apps have."""

    async def dispatch(self, request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        response = await call_next(request)
        response.headers["x-stamp"] = "yes"
        return response


class Reading(BaseHTTPMiddleware):
    """One that looks at the body first."""

    async def dispatch(self, request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        assert b"jsonrpc" in await request.body()
        return await call_next(request)


MIDDLEWARES = {
    "reading": [Middleware(Reading)],
    "gzip": [Middleware(GZipMiddleware, minimum_size=1)],
    "all": [Middleware(GZipMiddleware), Middleware(Stamp), Middleware(Reading), Middleware(CORSMiddleware)],
}


@pytest.fixture(params=MIDDLEWARES)
def behind(request: pytest.FixtureRequest) -> Callable[[MCPServer[Any]], Any]:
    def wrap(mcp: MCPServer[Any]) -> Any:
        routes = [Mount("/", app=mcp.streamable_http_app())]
        return Starlette(routes=routes, middleware=MIDDLEWARES[request.param], lifespan=mcp.lifespan)

    return wrap


@pytest.mark.parametrize("progress", [False, True], ids=["json", "stream"])
async def test_answers_pass_through_middlewares(behind: Callable[[MCPServer[Any]], Any], progress: bool) -> None:
    async with Listening(behind(make_server())) as server:
        answer = await post(server.port, call("greet", progress=progress))
    assert (answer.status, answer.is_stream, answer.text) == (200, progress, "hello")


@pytest.mark.parametrize("progress", [False, True], ids=["json", "stream"])
async def test_a_disconnect_cancels_behind_middlewares_and_is_not_an_error(
    behind: Callable[[MCPServer[Any]], Any], progress: bool, caplog: pytest.LogCaptureFixture
) -> None:
    body = Body()

    async def slow(ctx: Context) -> str:
        return await body(ctx)

    async with Listening(behind(server_with(slow))) as server:
        async with Caller(server.port, call("slow", progress=progress)) as caller:
            await soon(body.began)
            caller.leave()
            await soon(body.ended)
        body.go_on.set()
        assert (await post(server.port, call("slow"))).text == "the result"
    assert body.how == ["cancelled", "finished"]
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


# Ways to ask


async def direct(app: ASGIApp, *, path: str, root_path: str = "", verb: str = "POST") -> list[dict[str, Any]]:
    """What an app sends for one call, handed to it straight."""
    headers = {**HEADERS, "Mcp-Name": "greet"}
    scope: dict[str, Any] = {
        "type": "http",
        "method": verb,
        "path": path,
        "root_path": root_path,
        "headers": [(key.lower().encode(), value.encode()) for key, value in headers.items()],
    }
    sent: list[dict[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": json.dumps(call("greet")).encode()}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(dict(message))

    await app(scope, receive, send)
    return sent


async def health(app: ASGIApp) -> tuple[int, Any]:
    start, body = await direct(app, path="/alive", verb="GET")
    return start["status"], json.loads(body["body"])


async def test_a_mounted_server_that_nobody_runs_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    app = server_with().streamable_http_app()
    for number in range(2):
        wire = Wire(call("nothing"), Accept=f"*/*;q=0.{number + 1}")
        await wire.through(app)
    (warning,) = [record.getMessage() for record in caplog.records if record.name == "bespeak.http"]
    assert "Pass it to the app that mounts this server: FastAPI(lifespan=mcp.lifespan)" in warning
    caplog.clear()
    async with Listening(server_with().streamable_http_app()) as listening, httpx2.AsyncClient() as client:
        await client.get(listening.url)
    assert not [record for record in caplog.records if record.name == "bespeak.http"]
