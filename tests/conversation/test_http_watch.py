"""What is seen in responses over HTTP that a client has no use for."""

import json
from typing import Any

import pytest

from bespeak.conversation.connection import Connection
from bespeak.conversation.connection_settings import EVERYTHING
from bespeak.conversation.http_watch import HttpWatch
from bespeak.conversation.responses import Question
from bespeak.testing import converse
from bespeak.testing.conversations import ConversationFailed
from bespeak.transports.http.asgi import Receive, Scope, Send, read_body, respond
from bespeak.transports.http.client import HttpTransport
from tests.conversation.broken_servers import OLD
from tests.conversation.raw_runs import over_http
from tests.conversation.raw_servers import NOVEMBER, Json, done, log, said
from tests.wires import Listening


async def seen(app: Any, revision: str) -> list[tuple[str, str]]:
    """What is found in one call to a server."""

    async def answer(question: Question) -> Any:
        return {"action": "decline"}

    watch = HttpWatch()
    async with Listening(app) as listening, watch.client() as client:
        transport = HttpTransport(listening.url, http_client=client)
        async with Connection(transport, revision, EVERYTHING, 20, watch=watch) as connection:
            await connection.send("tools/call", {"name": "x"}, answer)
            await connection.settle()
            return [(one.rule, one.text) for one in connection.astray()]


async def test_ids_of_events_are_found_once_for_each_stream() -> None:
    served = said(log(), log(), done(), http=True, event="id: 1\n")
    assert await seen(over_http(served), served.revision) == [("event-ids", "the server sent an event with an id")]


async def test_older_revisions_may_have_ids() -> None:
    assert (
        await seen(over_http(said(log(), done(**OLD), http=True, event="id: 1\n", revision=NOVEMBER)), NOVEMBER) == []
    )


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [
        (200, b"", ["notifications/initialized was answered with the status 200, not 202"]),
        (202, b"{}", ["notifications/initialized was answered with a body"]),
        (202, b"", []),
    ],
)
@pytest.mark.long
async def test_a_notification_is_accepted_and_not_answered(status: int, body: bytes, told: list[str]) -> None:
    inner = over_http(said(done(**OLD), http=True, revision=NOVEMBER))

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        request: Json = json.loads(await read_body(receive, 100_000) or b"{}")
        if "id" not in request and scope["method"] == "POST":
            await respond(send, status, body)
            return

        async def again() -> Any:
            return {"type": "http.request", "body": json.dumps(request).encode()}

        await inner(scope, again if request else receive, send)

    assert await seen(app, NOVEMBER) == [("accepted", text) for text in told]


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        (b'{"jsonrpc": "2.0", "id": "push", "result": {}}', ["a response was answered with the status 200, not 202"]),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}', ["ping was answered with the content type none"]),
        (b"", []),
    ],
)
async def test_an_answer_to_the_server_is_accepted_and_a_request_has_a_response(sent: bytes, told: list[str]) -> None:
    watch = HttpWatch()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await respond(send, 200, b"")

    async with Listening(app) as listening, watch.client() as client:
        await client.post(listening.url, content=sent)
        await client.get(listening.url)
    assert [one.text for one in watch.taken()] == told
    assert watch.taken() == []


async def test_a_refused_notification_and_a_compressed_stream_are_left_alone() -> None:
    watch = HttpWatch()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if b"ping" in (await read_body(receive, 1000) or b""):
            coded = (b"content-type", b"text/event-stream"), (b"content-encoding", b"identity")
            await respond(send, 200, b"id: 1\ndata: {}\n\n", *coded)
        else:
            await respond(send, 400, b"")

    async with Listening(app) as listening, watch.client() as client:
        await client.post(listening.url, content=b'{"method": "notifications/x"}')
        await client.post(listening.url, content=b'{"id": 1, "method": "ping"}')
    assert watch.taken() == []


async def test_converse_sees_it_too() -> None:
    async with Listening(over_http(said(log(), done(), http=True, event="id: 1\n"))) as listening:
        with pytest.raises(ConversationFailed, match=r"the server sent an event with an id \(event-ids: "):
            await converse(listening.url, "x")
