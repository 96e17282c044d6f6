"""Subscriptions against scripted servers: acknowledgement, refusals, endings, and what a server must not send."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from bespeak import Client, MCPError
from bespeak.client import InvalidServerResponse, Lost, Subscription, SubscriptionLost, subscriptions
from bespeak.client.subscriptions import ResourceUpdated, ServerEvent, ToolsListChanged
from tests.client.scripted_transport import DISCOVERED, Fake, fails, lost
from tests.waiting import eventually, turns

TAG = "io.modelcontextprotocol/subscriptionId"


class Stream:
    """A reply of `Fake` that keeps its stream open, and sends what a test tells it to."""

    def __init__(self, *, acknowledges: bool = True) -> None:
        self._acknowledges = acknowledges
        self.id: Any = None
        self.params: dict[str, Any] = {}
        self.ended: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.cancelled = False

    async def __call__(self, request: Any, notify: Any) -> Any:
        self.id, self.params, self._notify = request["id"], request["params"], notify
        if self._acknowledges:
            self.say("subscriptions/acknowledged", notifications=self.params["notifications"])
        try:
            return await self.ended
        except asyncio.CancelledError:
            self.cancelled = True
            raise

    def say(self, method: str, tag: Any = None, **params: Any) -> None:
        meta = {TAG: self.id if tag is None else tag}
        message = {"jsonrpc": "2.0", "method": f"notifications/{method}", "params": {**params, "_meta": meta}}
        self._notify(json.dumps(message).encode())

    def close(self) -> None:
        self.ended.set_result({"resultType": "complete", "_meta": {TAG: self.id}})


async def rest(changes: Subscription) -> list[ServerEvent]:
    async with asyncio.timeout(20):
        return [event async for event in changes]


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


async def listening(stack: AsyncExitStack, stream: Any, **options: Any) -> Subscription:
    client = await stack.enter_async_context(Client(Fake(stream), **options))
    asked: dict[str, Any] = {"tools_list_changed": True, "resource_subscriptions": ("a://b",)}
    return await stack.enter_async_context(client.listen(**asked))


async def test_the_request_says_what_is_wanted_and_nothing_else(stack: AsyncExitStack) -> None:
    stream = Stream()
    changes = await listening(stack, stream)
    assert stream.params["notifications"] == {"toolsListChanged": True, "resourceSubscriptions": ["a://b"]}
    assert stream.params["_meta"]["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
    assert changes.subscription_id == stream.id


async def test_the_subscription_shows_what_the_server_agreed_to(stack: AsyncExitStack) -> None:
    async def acknowledge(request: Any, notify: Any) -> Any:
        stream.id, stream._notify = request["id"], notify  # pyright: ignore[reportPrivateUsage]
        stream.say("subscriptions/acknowledged", notifications={"toolsListChanged": True})
        return await stream.ended

    stream = Stream()
    changes = await listening(stack, acknowledge)
    assert changes.honored.tools_list_changed is True
    assert changes.honored.resource_subscriptions is None


async def test_an_event_waits_once_however_often_it_happens(stack: AsyncExitStack) -> None:
    stream = Stream()
    changes = await listening(stack, stream)
    for _ in range(3):
        stream.say("tools/list_changed")
        stream.say("resources/updated", uri="a://b/c")
    stream.close()
    assert await rest(changes) == [ToolsListChanged(), ResourceUpdated("a://b/c")]


async def test_what_was_not_asked_for_or_belongs_to_another_stream_is_not_an_event(stack: AsyncExitStack) -> None:
    stream = Stream()
    changes = await listening(stack, stream)
    stream.say("prompts/list_changed")
    stream.say("resources/list_changed")
    stream.say("resources/updated", uri=5)
    stream.say("message", level="info", data="x")
    stream.say("tools/list_changed", tag="another")
    stream.say("cancelled", requestId="another")
    stream.close()
    assert await rest(changes) == []


async def test_a_cancellation_by_the_server_ends_the_iteration(stack: AsyncExitStack) -> None:
    stream = Stream()
    changes = await listening(stack, stream)
    stream.say("tools/list_changed")
    stream.say("cancelled", requestId=stream.id)
    assert await rest(changes) == [ToolsListChanged()]
    stream.say("tools/list_changed")
    stream.close()
    await turns()
    assert await rest(changes) == []


async def test_a_lost_connection_raises_after_the_events_that_arrived(stack: AsyncExitStack) -> None:
    stream = Stream()
    changes = await listening(stack, stream)
    stream.say("tools/list_changed")
    stream.ended.set_exception(Lost("the request", "the connection broke"))
    assert await anext(changes) == ToolsListChanged()
    with pytest.raises(SubscriptionLost, match="the subscription was lost: the connection broke before") as broken:
        await anext(changes)
    assert isinstance(broken.value.__cause__, Lost)


async def test_an_error_after_the_acknowledgement_is_a_lost_subscription(stack: AsyncExitStack) -> None:
    stream = Stream()
    changes = await listening(stack, stream)
    error = {"jsonrpc": "2.0", "id": stream.id, "error": {"code": -32603, "message": "out of order"}}
    stream.ended.set_result(json.dumps(error).encode())
    with pytest.raises(SubscriptionLost, match="the subscription was lost: out of order"):
        await anext(changes)


async def test_a_subscription_that_ends_before_it_is_acknowledged_is_lost(stack: AsyncExitStack) -> None:
    with pytest.raises(SubscriptionLost, match=r"ended before the server acknowledged it$"):
        await listening(stack, {"resultType": "complete"})
    with pytest.raises(SubscriptionLost, match="ended before the server acknowledged it: the connection broke"):
        await listening(stack, lost)


async def test_the_server_s_refusal_is_raised_as_it_is(stack: AsyncExitStack) -> None:
    with pytest.raises(MCPError, match="no such method"):
        await listening(stack, fails({"code": -32601, "message": "no such method"}))


async def test_a_malformed_acknowledgement_is_an_invalid_response(stack: AsyncExitStack) -> None:
    async def acknowledge(request: Any, notify: Any) -> Any:
        stream.id, stream._notify = request["id"], notify  # pyright: ignore[reportPrivateUsage]
        stream.say("subscriptions/acknowledged", notifications=[])
        return await stream.ended

    stream = Stream()
    with pytest.raises(InvalidServerResponse, match="acknowledgement of the subscription is malformed"):
        await listening(stack, acknowledge)


async def test_a_server_that_does_not_acknowledge_in_time_is_a_timeout_and_the_request_is_cancelled(
    stack: AsyncExitStack,
) -> None:
    stream = Stream(acknowledges=False)
    with pytest.raises(TimeoutError, match=r"the server did not acknowledge subscriptions/listen within 0\.01 s"):
        await listening(stack, stream, read_timeout_seconds=0.01)
    assert stream.cancelled


async def test_the_time_limit_of_requests_does_not_end_a_subscription(stack: AsyncExitStack) -> None:
    stream = Stream()
    changes = await listening(stack, stream, read_timeout_seconds=0.05)
    reading = asyncio.create_task(anext(changes))
    await asyncio.wait({reading}, timeout=0.1)
    stream.say("tools/list_changed")
    assert await reading == ToolsListChanged()


async def test_leaving_the_block_cancels_the_request() -> None:
    stream = Stream()
    async with Client(Fake(stream)) as client:
        async with client.listen(tools_list_changed=True):
            assert not stream.cancelled
        assert stream.cancelled


async def test_a_reader_that_falls_too_far_behind_loses_the_subscription(
    stack: AsyncExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscriptions, "MOST_WAITING", 3)
    stream = Stream()
    changes = await listening(stack, stream)
    for number in range(5):
        stream.say("resources/updated", uri=f"a://b/{number}")
    await turns()
    with pytest.raises(SubscriptionLost, match="3 events were waiting to be read"):
        await anext(changes)


async def test_every_notification_of_a_stream_reaches_the_message_handler(stack: AsyncExitStack) -> None:
    seen: list[str] = []

    async def heard(message: dict[str, Any]) -> None:
        seen.append(message["method"])

    stream = Stream()
    await listening(stack, stream, message_handler=heard)
    stream.say("tools/list_changed")
    await eventually(lambda: len(seen) == 2)
    assert seen == ["notifications/subscriptions/acknowledged", "notifications/tools/list_changed"]


async def test_resource_subscriptions_are_a_sequence_of_uris() -> None:
    async with Client(Fake({}, discovered=DISCOVERED)) as client:
        with pytest.raises(TypeError, match="resource_subscriptions must be a sequence of URIs, not a string"):
            await client.listen(resource_subscriptions="a://b").__aenter__()


async def test_a_client_that_is_not_connected_cannot_listen() -> None:
    with pytest.raises(RuntimeError, match="the client is not connected"):
        Client(Fake({})).listen()
