"""Custom routes beside the MCP endpoint: how requests come, what may be returned, and what is refused."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, MutableMapping
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, StreamingResponse
from starlette.routing import Mount

from bespeak import MCPServer
from bespeak.transports import http_routes
from bespeak.transports.http_routes import HttpRequest, HttpResponse
from tests.transports.test_http_mounting import fetch
from tests.wires import Listening


class Reply:
    def __init__(self, sent: list[MutableMapping[str, Any]]) -> None:
        start, *bodies = sent
        self.status: int = start["status"]
        self.headers = {key.decode(): value.decode() for key, value in start["headers"]}
        self.body: bytes = b"".join(one["body"] for one in bodies)


async def visit(
    mcp: MCPServer[Any], path: str, verb: str = "GET", *, body: bytes = b"", query: bytes = b"", **headers: str
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

    await mcp.streamable_http_app()(scope, receive, send)
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
    await visit(mcp, path, "POST", body=b'{"n": 1}', query=b"a=1&b=%20x&c=&a=2", **{"x-kind": " retail "})
    assert seen[:4] == ["POST", path, "retail", {"a": "2", "b": " x", "c": ""}]
    assert seen[4:] == [{"order": "a b", "line": "2"}, b'{"n": 1}', {"n": 1}]


async def test_a_handler_may_leave_its_request_unannotated(mcp: MCPServer[Any]) -> None:
    async def handle(request):  # pyright: ignore[reportMissingParameterType, reportUnknownParameterType] - what is tested
        return HttpResponse(type(request).__name__)  # pyright: ignore[reportUnknownArgumentType] - as above

    mcp.custom_route("/x", ["GET"])(handle)  # pyright: ignore[reportUnknownArgumentType] - as above
    assert (await visit(mcp, "/x")).body == b"HttpRequest"


@pytest.mark.parametrize("annotation", [Any, object, "HttpRequest", HttpRequest])
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


async def test_a_handler_may_stream_with_starlette(mcp: MCPServer[Any]) -> None:
    @mcp.custom_route("/stream", ["GET"])
    async def handle(request: Request) -> StreamingResponse:
        async def pieces() -> AsyncGenerator[bytes]:
            for piece in (b"a", b"b"):
                yield piece

        return StreamingResponse(pieces())

    async with Listening(mcp.streamable_http_app()) as server:
        status, body = await fetch(server, "/stream")
    assert status == 200
    assert body.replace(b"1\r\n", b"").startswith(b"a\r\nb\r\n")


async def test_a_handler_may_be_a_method(mcp: MCPServer[Any]) -> None:
    class Shop:
        async def handle(self, request: HttpRequest) -> HttpResponse:
            return HttpResponse("bound")

    mcp.custom_route("/x", ["GET"])(Shop().handle)
    assert (await visit(mcp, "/x")).body == b"bound"


async def test_a_query_that_is_not_utf_8_is_the_clients_fault_and_no_crash(mcp: MCPServer[Any]) -> None:
    @mcp.custom_route("/x", ["GET"])
    async def handle(request: HttpRequest) -> HttpResponse:
        return HttpResponse("served")

    assert (await visit(mcp, "/x", query=b"a=\xff")).status < 500


async def test_a_body_that_breaks_off_is_a_connection_error_for_the_handler(mcp: MCPServer[Any]) -> None:
    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.disconnect"}

    scope = {"method": "POST", "path": "/", "headers": list[Any](), "query_string": b""}
    with pytest.raises(ConnectionError, match="the client went away"):
        await HttpRequest(scope, receive).body()


async def test_a_body_that_is_too_large_is_refused(mcp: MCPServer[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_routes, "MESSAGE_LIMIT", 10)

    @mcp.custom_route("/x", ["POST"])
    async def handle(request: HttpRequest) -> HttpResponse:
        return HttpResponse(await request.body())

    assert (await visit(mcp, "/x", "POST", body=b"x" * 10)).status == 200
    reply = await visit(mcp, "/x", "POST", body=b"x" * 11)
    assert (reply.status, reply.body) == (413, b"the body is too large")


# Responses


@pytest.mark.parametrize(
    ("content", "body", "kind"),
    [
        ("text \u00e9", "text \u00e9".encode(), "text/plain; charset=utf-8"),
        (b"\x00", b"\x00", "application/octet-stream"),
        ({"a": [1, None]}, b'{"a": [1, null]}', "application/json"),
        (None, b"null", "application/json"),
        ("", b"", "text/plain; charset=utf-8"),
    ],
)
async def test_a_response_may_be_text_bytes_or_json(mcp: MCPServer[Any], content: Any, body: bytes, kind: str) -> None:
    @mcp.custom_route("/x", ["GET"])
    async def handle(request: HttpRequest) -> HttpResponse:
        return HttpResponse(content)

    reply = await visit(mcp, "/x")
    assert (reply.status, reply.body, reply.headers["content-type"]) == (200, body, kind)


async def test_a_response_may_have_its_own_status_and_headers(mcp: MCPServer[Any]) -> None:
    @mcp.custom_route("/x", ["GET"])
    async def handle(request: HttpRequest) -> HttpResponse:
        return HttpResponse("<p>", 418, {"Content-Type": "text/html", "X-More": "yes"})

    reply = await visit(mcp, "/x")
    assert (reply.status, reply.headers) == (
        418,
        {"content-type": "text/html", "x-more": "yes", "content-length": "3"},
    )


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


async def test_who_takes_get_takes_head(mcp: MCPServer[Any]) -> None:
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


@pytest.mark.parametrize("path", ["/a.b", "/a+b/c", "/", "/health"])
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
    @mcp.custom_route("/slow", ["GET"])
    async def handle(request: HttpRequest) -> HttpResponse:
        await asyncio.sleep(0.02)
        return HttpResponse("slow")

    @mcp.custom_route("/fast", ["GET"])
    async def fast(request: HttpRequest) -> HttpResponse:
        return HttpResponse("fast")

    async with Listening(mcp.streamable_http_app()) as server:
        slow = asyncio.create_task(fetch(server, "/slow"))
        assert await fetch(server, "/fast") == (200, b"fast")
        assert not slow.done()
        assert await slow == (200, b"slow")
    assert (await visit(mcp, "/fast", origin="http://anywhere.example", host="anywhere.example")).status == 200


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
        ("x", ["GET"], fine, "a route's path must start with '/', unlike 'x'"),
        ("", ["GET"], fine, "a route's path must start with '/'"),
        ("/x", [], fine, "a route needs a list of methods, such as"),
        ("/x", "GET", fine, "a route needs a list of methods, such as"),
        ("/{a", ["GET"], fine, "a parameter of a path is written {name} and stands for one segment"),
        ("/{a:path}", ["GET"], fine, "a parameter of a path is written {name}"),
        ("/{}", ["GET"], fine, "a parameter of a path is written {name}"),
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
