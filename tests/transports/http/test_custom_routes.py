"""Custom routes beside the MCP endpoint: how requests come, what may be returned, and what is refused."""

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Callable, MutableMapping
from typing import Any, ClassVar

import pytest
from fastapi import HTTPException as FastApiError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, StreamingResponse
from starlette.routing import Mount

from bespeak import MCPServer
from bespeak.transports.http.asgi import BodyTooLarge, Receive, Scope, Send, read_body, respond
from bespeak.transports.http.custom_routes import HttpRequest, HttpResponse
from tests.transports.http.callers import fetch
from tests.waiting import pass_time
from tests.wires import Listening


class Reply:
    def __init__(self, sent: list[MutableMapping[str, Any]]) -> None:
        start, *bodies = sent
        self.status: int = start["status"]
        self.headers = {key.decode(): value.decode() for key, value in start["headers"]}
        self.body: bytes = b"".join(one["body"] for one in bodies)


async def visit(
    mcp: MCPServer[Any],
    path: str,
    verb: str = "GET",
    *,
    body: bytes = b"",
    query: bytes = b"",
    limit: int = 4 * 1024 * 1024,
    **headers: str,
) -> Reply:
    """The reply of an app that is handed a request straight."""
    scope: dict[str, Any] = {
        "type": "http",
        "method": verb,
        "path": path,
        "query_string": query,
        "headers": [(key.encode(), value.encode()) for key, value in headers.items()],
    }
    sent: list[MutableMapping[str, Any]] = []
    pieces = [body[:5], body[5:]]

    async def receive() -> MutableMapping[str, Any]:
        if not pieces:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": pieces.pop(0), "more_body": bool(pieces)}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    await mcp.streamable_http_app(max_request_body_size=limit)(scope, receive, send)
    return Reply(sent)


@pytest.fixture
def mcp() -> MCPServer[Any]:
    return MCPServer("Routes")


# Requests


async def test_a_handler_gets_a_request_with_all_it_carries(mcp: MCPServer[Any]) -> None:
    seen: list[Any] = []

    @mcp.custom_route("/orders/{order}/lines/{line}", ["post"])
    async def handle(request: HttpRequest) -> HttpResponse:
        seen.extend([request.method, request.path, request.headers["X-Kind"], dict(request.query_params)])
        seen.extend([dict(request.path_params), await request.body(), await request.json()])
        return HttpResponse()

    path = "/orders/a b/lines/2"
    await visit(mcp, path, "POST", body=b'{"n": 1}', query=b"a=1&b=%20x&c=&a=2", limit=100, **{"x-kind": " retail "})
    assert seen[:4] == ["POST", path, "retail", {"a": "2", "b": " x", "c": ""}]
    assert seen[4:] == [{"order": "a b", "line": "2"}, b'{"n": 1}', {"n": 1}]


@pytest.mark.parametrize("annotation", [Any, "HttpRequest"])
async def test_a_request_is_ours_unless_the_annotation_names_another_class(
    mcp: MCPServer[Any], annotation: Any
) -> None:
    async def handle(request: Any) -> HttpResponse:
        return HttpResponse(type(request).__name__)

    handle.__annotations__["request"] = annotation
    mcp.custom_route("/x", ["GET"])(handle)
    assert (await visit(mcp, "/x")).body == b"HttpRequest"


async def test_a_handler_may_take_and_return_what_starlette_has(mcp: MCPServer[Any]) -> None:
    @mcp.custom_route("/items/{item}", ["POST"])
    async def handle(request: Request) -> JSONResponse:
        return JSONResponse(
            {**request.path_params, **request.query_params, **await request.json()}, headers={"x-made-by": "starlette"}
        )

    reply = await visit(mcp, "/items/7", "POST", body=b'{"b": 2}', query=b"a=1")
    assert json.loads(reply.body) == {"item": "7", "a": "1", "b": 2}
    assert reply.headers["x-made-by"] == "starlette"


async def test_a_query_that_is_not_utf_8_is_the_clients_fault_and_no_crash(mcp: MCPServer[Any]) -> None:
    @mcp.custom_route("/x", ["GET"])
    async def handle(request: HttpRequest) -> HttpResponse:
        return HttpResponse("served")

    assert (await visit(mcp, "/x", query=b"a=\xff")).status < 500


def echoing(mcp: MCPServer[Any]) -> None:
    """One route for each way of reading a body."""

    @mcp.custom_route("/ours", ["POST"])
    async def ours(request: HttpRequest) -> HttpResponse:
        return HttpResponse(await request.body())

    @mcp.custom_route("/starlette", ["POST"])
    async def starlette(request: Request) -> PlainTextResponse:
        return PlainTextResponse(await request.body())

    @mcp.custom_route("/streamed", ["POST"])
    async def streamed(request: Request) -> PlainTextResponse:
        return PlainTextResponse(b"".join([piece async for piece in request.stream()]))

    @mcp.custom_route("/app", ["POST"])
    async def app(request: HttpRequest) -> Any:
        async def read(scope: Scope, receive: Receive, send: Send) -> None:
            body = await read_body(receive, sys.maxsize)
            await respond(send, 200, bytes(body or b""))

        return read


READERS = ["/ours", "/starlette", "/streamed", "/app"]


@pytest.mark.parametrize("path", READERS)
async def test_a_body_that_is_too_large_is_refused_however_it_is_read(mcp: MCPServer[Any], path: str) -> None:
    echoing(mcp)
    assert (await visit(mcp, path, "POST", body=b"x" * 10, limit=10)).status == 200
    for declared in ({}, {"content-length": "11"}):
        reply = await visit(mcp, path, "POST", body=b"x" * 11, query=b"", limit=10, **declared)
        assert (reply.status, reply.body) == (413, b"the body is too large")
        assert reply.headers["connection"] == "close"


@pytest.mark.timing
@pytest.mark.parametrize("path", READERS)
async def test_a_body_that_does_not_arrive_in_time_is_refused_however_it_is_read(
    mcp: MCPServer[Any], path: str
) -> None:
    echoing(mcp)
    async with Listening(mcp.streamable_http_app(request_body_timeout=0.1)) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nx".encode())
        said = await asyncio.wait_for(reader.read(), 10)
        writer.close()
    assert said.startswith(b"HTTP/1.1 408 ")
    assert said.endswith(b"the body did not arrive within 0.1 s")


async def test_a_handler_may_wait_for_the_end_of_the_connection_as_long_as_it_likes(mcp: MCPServer[Any]) -> None:
    ended = asyncio.Event()

    @mcp.custom_route("/x", ["POST"])
    async def handle(request: Request) -> StreamingResponse:
        await request.body()

        async def pieces() -> AsyncGenerator[bytes]:
            try:
                yield b"first"
                await asyncio.sleep(30)
            finally:
                ended.set()

        return StreamingResponse(pieces())

    async with Listening(mcp.streamable_http_app(request_body_timeout=5)) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nx")
        await reader.readuntil(b"first")
        await pass_time(10)
        assert not ended.is_set()
        writer.close()
        await asyncio.wait_for(ended.wait(), 5)


async def test_a_response_that_has_begun_is_broken_off_when_the_body_is_too_large(mcp: MCPServer[Any]) -> None:
    @mcp.custom_route("/x", ["POST"])
    async def handle(request: HttpRequest) -> Any:
        async def echo(scope: Scope, receive: Receive, send: Send) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await read_body(receive, sys.maxsize)

        return echo

    with pytest.raises(BodyTooLarge):
        await visit(mcp, "/x", "POST", body=b"x" * 11, limit=10)


@pytest.mark.parametrize("path", ["/ours", "/starlette"])
async def test_a_client_that_goes_away_is_no_failure_of_the_handler(
    mcp: MCPServer[Any], path: str, caplog: pytest.LogCaptureFixture
) -> None:
    echoing(mcp)
    sent: list[Any] = []

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.disconnect"}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": list[Any]()}
    await mcp.streamable_http_app()(scope, receive, send)
    assert (sent, caplog.messages) == ([], [])


# Responses


@pytest.mark.parametrize(
    ("content", "body", "kind"),
    [
        ("text \u00e9", "text \u00e9".encode(), "text/plain; charset=utf-8"),
        (b"\x00", b"\x00", "application/octet-stream"),
        ({"a": [1, None]}, b'{"a": [1, null]}', "application/json"),
    ],
)
async def test_a_response_may_be_text_bytes_or_json(mcp: MCPServer[Any], content: Any, body: bytes, kind: str) -> None:
    @mcp.custom_route("/x", ["GET"])
    async def handle(request: HttpRequest) -> HttpResponse:
        return HttpResponse(content)

    reply = await visit(mcp, "/x")
    assert (reply.status, reply.body, reply.headers["content-type"]) == (200, body, kind)


async def test_a_handler_that_fails_is_logged_and_the_client_sees_only_that(
    mcp: MCPServer[Any], caplog: pytest.LogCaptureFixture
) -> None:
    @mcp.custom_route("/x", ["GET"])
    async def handle(request: HttpRequest) -> HttpResponse:
        raise LookupError("secret")

    reply = await visit(mcp, "/x")
    assert (reply.status, reply.body) == (500, b"internal server error")
    assert "the custom route /x failed" in caplog.text
    assert "secret" in caplog.text


class Rejected(Exception):
    """Some library's error, which is not meant for a client."""

    status_code = 418
    detail = "password=hunter2"
    headers: ClassVar = {"x-secret": "yes"}


@pytest.mark.parametrize("starlette", [True, False])
async def test_an_error_that_only_looks_like_an_answer_is_logged_and_not_sent(
    mcp: MCPServer[Any], caplog: pytest.LogCaptureFixture, starlette: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not starlette:
        monkeypatch.delitem(sys.modules, "starlette.exceptions")
        monkeypatch.delitem(sys.modules, "starlette.requests")

    @mcp.custom_route("/x", ["GET"])
    async def handle(request: HttpRequest) -> HttpResponse:
        raise Rejected("refused by the back end")

    reply = await visit(mcp, "/x")
    assert (reply.status, reply.body) == (500, b"internal server error")
    assert "x-secret" not in reply.headers
    assert "the custom route /x failed" in caplog.text
    assert "Rejected: refused by the back end" in caplog.text
    assert ("starlette.exceptions" in sys.modules) is starlette  # it is not imported for this


@pytest.mark.parametrize(
    ("error", "status", "body", "header"),
    [
        (HTTPException(410, "out of print"), 410, b"out of print", None),
        (HTTPException(401, "who?", {"WWW-Authenticate": "Basic"}), 401, b"who?", "Basic"),
        (HTTPException(404), 404, b"Not Found", None),
        (HTTPException(304), 304, b"", None),
        (FastApiError(422, {"field": "title"}), 422, b'{"field": "title"}', None),
    ],
)
async def test_an_http_exception_of_starlette_is_an_answer_and_no_failure(
    mcp: MCPServer[Any],
    error: Exception,
    status: int,
    body: bytes,
    header: str | None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    @mcp.custom_route("/x", ["GET"])
    async def handle(request: HttpRequest) -> HttpResponse:
        raise error

    reply = await visit(mcp, "/x")
    assert (reply.status, reply.body, reply.headers.get("www-authenticate")) == (status, body, header)
    assert caplog.messages == []


async def test_a_handler_that_returns_no_response_is_told_what_it_must_return(
    mcp: MCPServer[Any], caplog: pytest.LogCaptureFixture
) -> None:
    @mcp.custom_route("/x", ["GET"])
    async def handle(request: HttpRequest) -> str:
        return "text"

    assert (await visit(mcp, "/x")).status == 500
    assert "a custom route must return HttpResponse or an ASGI app, not str" in caplog.text


# Methods and paths


async def test_other_methods_are_not_allowed_and_told_which_are(mcp: MCPServer[Any]) -> None:
    @mcp.custom_route("/x", ["get", "PUT"])
    async def handle(request: HttpRequest) -> HttpResponse:
        return HttpResponse("got")

    reply = await visit(mcp, "/x", "POST")
    assert (reply.status, reply.headers["allow"]) == (405, "GET, HEAD, PUT")


async def test_a_route_for_get_answers_head_too(mcp: MCPServer[Any]) -> None:
    @mcp.custom_route("/x", ["GET"])
    async def handle(request: HttpRequest) -> HttpResponse:
        return HttpResponse("got")

    async with Listening(mcp.streamable_http_app()) as server:
        assert await fetch(server, "/x", "HEAD") == (200, b"")


async def test_one_path_may_have_a_handler_for_each_method(mcp: MCPServer[Any]) -> None:
    @mcp.custom_route("/x", ["GET"])
    async def get(request: HttpRequest) -> HttpResponse:
        return HttpResponse("got")

    @mcp.custom_route("/x", ["POST"])
    async def post(request: HttpRequest) -> HttpResponse:
        return HttpResponse("posted")

    assert [(await visit(mcp, "/x", verb)).body for verb in ("GET", "POST")] == [b"got", b"posted"]
    assert (await visit(mcp, "/x", "PUT")).status == 405


@pytest.mark.parametrize("path", ["/a.b", "/health"])
async def test_a_path_is_taken_literally_even_that_of_health(mcp: MCPServer[Any], path: str) -> None:
    @mcp.custom_route(path, ["GET"])
    async def handle(request: HttpRequest) -> HttpResponse:
        return HttpResponse("mine")

    assert (await visit(mcp, path)).body == b"mine"
    assert (await visit(mcp, path.replace(".", "x").replace("+", "a") + "z")).status == 404


async def test_a_parameter_stands_for_one_segment(mcp: MCPServer[Any]) -> None:
    @mcp.custom_route("/a/{x}", ["GET"])
    async def handle(request: HttpRequest) -> HttpResponse:
        return HttpResponse(request.path_params["x"])

    assert (await visit(mcp, "/a/b")).body == b"b"
    assert [(await visit(mcp, path)).status for path in ("/a/", "/a/b/c", "/a/b/")] == [404, 404, 404]


async def test_a_route_added_after_the_app_was_made_is_served(mcp: MCPServer[Any]) -> None:
    app = mcp.streamable_http_app()

    @mcp.custom_route("/late", ["GET"])
    async def handle(request: HttpRequest) -> HttpResponse:
        return HttpResponse("late")

    async with Listening(app) as server:
        assert await fetch(server, "/late") == (200, b"late")


async def test_a_route_works_below_a_prefix(mcp: MCPServer[Any]) -> None:
    @mcp.custom_route("/x/{y}", ["GET"])
    async def handle(request: Request) -> PlainTextResponse:
        return PlainTextResponse(f"{request.path_params['y']} at {request.url.path}")

    outer = Starlette(routes=[Mount("/tools", app=mcp.streamable_http_app())])
    async with Listening(outer) as server:
        assert await fetch(server, "/tools/x/1") == (200, b"1 at /tools/x/1")


async def test_routes_are_open_to_every_origin_and_served_while_calls_run(mcp: MCPServer[Any]) -> None:
    released = asyncio.Event()

    @mcp.custom_route("/slow", ["GET"])
    async def handle(request: HttpRequest) -> HttpResponse:
        await released.wait()
        return HttpResponse("slow")

    @mcp.custom_route("/fast", ["GET"])
    async def fast(request: HttpRequest) -> HttpResponse:
        return HttpResponse("fast")

    async with Listening(mcp.streamable_http_app()) as server:
        slow = asyncio.create_task(fetch(server, "/slow"))
        assert await fetch(server, "/fast") == (200, b"fast")
        released.set()
        assert await slow == (200, b"slow")
    assert (await visit(mcp, "/fast", origin="http://anywhere.example", host="anywhere.example")).status == 200


async def test_a_protected_route_checks_host_and_origin_as_the_endpoint_does(mcp: MCPServer[Any]) -> None:
    @mcp.custom_route("/x", ["GET"], protected=True)
    async def handle(request: HttpRequest) -> HttpResponse:
        return HttpResponse("mine")

    assert (await visit(mcp, "/x", host="localhost:8000")).status == 200
    assert (await visit(mcp, "/x", host="localhost:8000", origin="http://localhost:5173")).status == 200
    for host, origin, says in [
        ("evil.example", "http://localhost", b"the host 'evil.example' is not allowed"),
        ("localhost", "http://evil.example", b"the origin 'http://evil.example' is not allowed"),
    ]:
        reply = await visit(mcp, "/x", host=host, origin=origin)
        assert reply.status == 403
        assert says in reply.body


# What is refused when it is registered


async def fine(request: HttpRequest) -> HttpResponse:
    return HttpResponse()


async def takes_two(request: HttpRequest, more: str) -> HttpResponse:
    return HttpResponse()


async def takes_none() -> HttpResponse:
    return HttpResponse()


@pytest.mark.parametrize(
    ("path", "methods", "handler", "says"),
    [
        ("x", ["GET"], fine, "the path of a route must start with '/'; got 'x'"),
        ("/x", "GET", fine, "a route needs a list of methods, such as"),
        ("/{a:path}", ["GET"], fine, "write a parameter as {name}"),
        ("/x", ["GET"], takes_two, "the handler of '/x' must take one parameter, the request"),
        ("/x", ["GET"], takes_none, "the handler of '/x' must take one parameter, the request"),
        ("/{a}/{a}", ["GET"], fine, "'/{a}/{a}'"),
    ],
)
def test_a_wrong_route_is_refused_when_it_is_registered(
    mcp: MCPServer[Any], path: str, methods: Any, handler: Callable[..., Any], says: str
) -> None:
    with pytest.raises(ValueError) as refusal:  # noqa: PT011 - what it says is looked at below
        mcp.custom_route(path, methods)(handler)
    assert says in str(refusal.value)


def test_an_annotation_that_is_not_there_at_run_time_is_refused_with_what_to_do() -> None:
    async def handler(request: Any) -> Any: ...

    handler.__annotations__["request"] = "Missing"
    with pytest.raises(
        ValueError, match=r"handler of '/x' cannot be read: name 'Missing' is not defined. Import the name"
    ):
        MCPServer("shop").custom_route("/x", ["GET"])(handler)


@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
def test_a_route_at_the_endpoint_s_own_path_is_refused(path: str) -> None:
    mcp = MCPServer("shop")

    @mcp.custom_route(path, ["GET"])
    async def handler(request: Any) -> Any: ...

    with pytest.raises(ValueError, match="a custom route matches the path of the MCP endpoint, '/mcp'"):
        mcp.streamable_http_app()
