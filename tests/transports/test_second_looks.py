"""What a review of the wire found: cancellations that are nobody's business to swallow, bounds that held only for one, hints."""

import asyncio
from collections.abc import MutableMapping
from typing import Any

import httpx2
import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request

from bespeak import Client, MCPServer
from bespeak.aio import outbox
from bespeak.aio.in_place import within
from bespeak.client import Lost, streamable_http_client
from bespeak.transports.http import client as http_client
from bespeak.transports.http.app import HttpApp
from bespeak.transports.interfaces import Outgoing
from bespeak.transports.stdio.client_requests import ClientRequests
from tests.transports.http.asgi_wire import Wire
from tests.transports.http.callers import call, server_with
from tests.waiting import eventually
from tests.wires import Listening, OverPipes


async def test_a_cancellation_of_somebody_else_s_is_not_taken_for_the_client_s() -> None:
    cleaning = asyncio.Event()
    go_on = asyncio.Event()

    async def slow() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            cleaning.set()
            await go_on.wait()
        return "never"

    wire = Wire(call("slow"))
    serving = asyncio.create_task(wire.through(server_with(slow).streamable_http_app()))
    await eventually(lambda: wire.watchers)
    wire.gone.set()
    await asyncio.wait_for(cleaning.wait(), 5)
    serving.cancel()
    await asyncio.wait({serving}, timeout=5)
    assert serving.cancelled()


async def test_a_body_that_takes_its_cancellation_and_goes_on_leaves_none_behind() -> None:
    async def stubborn() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "all the same"
        return "never"

    wire = Wire(call("stubborn"))
    serving = asyncio.create_task(wire.through(server_with(stubborn).streamable_http_app()))
    await eventually(lambda: wire.watchers)
    wire.gone.set()
    await asyncio.wait_for(serving, 5)
    assert serving.cancelling() == 0
    assert wire.answer.status == 499


async def test_a_limit_does_not_count_cancellations_from_before_it_began() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.sleep(0)
    with pytest.raises(TimeoutError):
        await within(0.01, asyncio.sleep(5))
    assert task.uncancel() == 0


async def test_room_is_given_to_one_after_the_other() -> None:
    box = outbox.Outbox()
    box.add(b"x" * (outbox.UNREAD_BYTES + 1))
    waiting = [box.offer(b"y" * outbox.UNREAD_BYTES) for _ in range(5)]
    tasks = [asyncio.create_task(one) for one in waiting if one is not None]
    assert len(tasks) == 5
    await asyncio.sleep(0)
    box.take()
    box.sent()
    await asyncio.sleep(0.01)
    assert len(box.take()) <= 2 * outbox.UNREAD_BYTES
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_request_that_cannot_be_written_is_lost() -> None:
    async def broken(line: bytes) -> None:
        raise BrokenPipeError("nobody reads")

    conversation = ClientRequests(broken, 1000)
    with pytest.raises(Lost, match="cannot write to the server: nobody reads"):
        await asyncio.wait_for(conversation.exchange(Outgoing(1, "tools/call", b"{}", {}), lambda _: None), 5)


async def test_a_server_on_stdio_that_is_cancelled_ends_its_calls() -> None:
    ended: list[str] = []
    mcp = MCPServer("shop")

    @mcp.tool()
    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("ended")

    wire = OverPipes(mcp)
    async with Client(wire) as client:
        asked = asyncio.create_task(client.call_tool("slow"))
        await asyncio.sleep(0.05)
        wire.stop_serving()
        await eventually(lambda: ended)
        asked.cancel()
        await asyncio.wait({asked})


# Hints


async def test_a_server_that_knows_no_revision_at_all_is_said_to_serve_another_transport_perhaps() -> None:
    async def old(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            return
        await send({"type": "http.response.start", "status": 404, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async with Listening(old) as listening:
        with pytest.raises(ConnectionError) as caught:
            await Client(listening.url).__aenter__()
    assert caught.value.__notes__ == [
        "perhaps it serves HTTP+SSE, the transport of 2024-11-05, which this client does not speak",
        f"before that, the server did not speak 2026-07-28: {listening.url} answered with HTTP status 404; "
        "is this the path of its MCP endpoint?",
    ]


@pytest.mark.parametrize(
    ("own", "read"), [(httpx2.Timeout(5.0), http_client.SILENCE_SECONDS), (httpx2.Timeout(7.0), 7.0)]
)
async def test_a_client_of_the_caller_s_waits_as_long_as_a_server_may_be_silent(own: Any, read: float) -> None:
    seen: list[MutableMapping[str, Any]] = []

    async def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request.extensions["timeout"])
        return httpx2.Response(200, json={"jsonrpc": "2.0", "id": 1, "result": {}})

    client = httpx2.AsyncClient(transport=httpx2.MockTransport(answer), timeout=own)
    async with client, streamable_http_client("http://example.com/mcp", http_client=client) as transport:
        await transport.exchange(Outgoing(1, "tools/list", b"{}", {}), lambda _: None)
    assert seen[0]["read"] == read


async def test_a_mounted_server_that_nobody_runs_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    app = server_with().streamable_http_app()
    for number in range(2):
        wire = Wire(call("nothing"), Accept=f"*/*;q=0.{number + 1}")
        await wire.through(app)
    (warning,) = [record.getMessage() for record in caplog.records if record.name == "bespeak.http"]
    assert "give the app it is mounted in its lifespan: FastAPI(lifespan=mcp.lifespan)" in warning
    caplog.clear()
    async with Listening(server_with().streamable_http_app()) as listening, httpx2.AsyncClient() as client:
        await client.get(listening.url)
    assert not [record for record in caplog.records if record.name == "bespeak.http"]


# Heads


@pytest.mark.parametrize("head", [b"X: " + b"x" * 100_000, b"".join(b"X%d: x\r\n" % one for one in range(20_000))])
async def test_a_head_that_does_not_end_is_refused(head: bytes) -> None:
    async with Listening(server_with().streamable_http_app(), "httptools") as listening:
        reader, writer = await asyncio.open_connection("127.0.0.1", listening.port)
        writer.write(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n" + head)
        try:
            refused = (await asyncio.wait_for(reader.read(), 5)).startswith(b"HTTP/1.1 431 ")
        except ConnectionResetError:  # its answer was overtaken: it hung up on what was still coming
            refused = True
        writer.close()
    assert refused, "the head was taken, or the connection left open"


async def test_a_head_may_come_with_a_large_body() -> None:
    async with Listening(server_with().streamable_http_app(), "httptools") as listening, httpx2.AsyncClient() as client:
        for _ in range(2):  # on one connection
            response = await client.post(
                listening.url, content=b"x" * 1_000_000, headers={"content-type": "text/plain"}
            )
            assert response.status_code == 415


# Routes


async def ask(app: HttpApp, path: str) -> httpx2.Response:
    async with Listening(app) as listening, httpx2.AsyncClient() as client:
        return await client.get(listening.url.replace("/mcp", path))


async def test_an_http_error_of_starlette_keeps_its_status() -> None:
    mcp = MCPServer("shop")

    @mcp.custom_route("/books/{title}", ["GET"], name="book", include_in_schema=False)
    async def book(request: Request) -> Any:
        raise HTTPException(410, f"{request.path_params['title']} is out of print")

    response = await ask(mcp.streamable_http_app(), "/books/Dune")
    assert (response.status_code, response.text) == (410, "Dune is out of print")


def test_an_annotation_that_is_not_there_at_run_time_is_refused_with_what_to_do() -> None:
    async def handler(request: Any) -> Any: ...

    handler.__annotations__["request"] = "Missing"
    with pytest.raises(
        ValueError, match=r"'/x': name 'Missing' is not defined; import it where it is there at run time"
    ):
        MCPServer("shop").custom_route("/x", ["GET"])(handler)


@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
def test_a_route_at_the_endpoint_s_own_path_is_refused(path: str) -> None:
    mcp = MCPServer("shop")

    @mcp.custom_route(path, ["GET"])
    async def handler(request: Any) -> Any: ...

    with pytest.raises(ValueError, match="a custom route has the path of the MCP endpoint, '/mcp'"):
        mcp.streamable_http_app()
