"""Subscriptions: what a client may ask for, what it is told, and the bounds."""

import asyncio
import json
import threading
from typing import Any

import pytest

from bespeak import MCPError
from bespeak.protocol.headers import Headers
from bespeak.protocol.messages import Meta, Request
from bespeak.server.features import subscriptions
from bespeak.server.features.subscriptions import (
    Change,
    Changes,
    ListChanged,
    Listening,
    ResourceUpdated,
    Subscriber,
    read_filter,
)
from bespeak.server.incoming import Incoming
from tests.waiting import eventually, turns


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        (None, "params.notifications must be an object that says what to listen to"),
        ([], "params.notifications must be an object that says what to listen to"),
        ({"toolsListChanged": 1}, "params.notifications.toolsListChanged must be true or false"),
        ({"promptsListChanged": None}, "params.notifications.promptsListChanged must be true or false"),
        ({"resourceSubscriptions": "a://b"}, "params.notifications.resourceSubscriptions must be a list of URIs"),
        ({"resourceSubscriptions": [1]}, "params.notifications.resourceSubscriptions must be a list of URIs"),
        (
            {"resourceSubscriptions": [f"a://{n}" for n in range(1001)]},
            "a client may subscribe to 1000 resources, whose URIs have 65536 characters together",
        ),
        (
            {"resourceSubscriptions": ["a" * 70_000]},
            "a client may subscribe to 1000 resources, whose URIs have 65536 characters together",
        ),
    ],
)
def test_a_filter_that_makes_no_sense_is_refused(wanted: Any, reason: str) -> None:
    with pytest.raises(MCPError) as refused:
        read_filter(wanted)
    assert (refused.value.code, refused.value.message) == (-32602, reason)


def test_a_filter_names_lists_and_resources_and_ignores_what_it_does_not_know() -> None:
    wanted = {"resourcesListChanged": True, "resourceSubscriptions": ["a://b", "a://b"], "taskIds": ["t"]}
    assert read_filter(wanted) == (["resources"], ["a://b"])


async def test_a_subscriber_is_told_each_change_once_however_often_it_happened() -> None:
    subscriber = Subscriber(frozenset({"tools"}), {"a://b"})
    for change in (ListChanged("tools"), ListChanged("prompts"), ResourceUpdated("a://b"), ResourceUpdated("a://c")):
        subscriber.add(change)
        subscriber.add(change)
    told: list[Change] = []
    subscriber.end()
    await subscriber.deliver(told.append)
    assert told == []  # it had ended before anybody listened
    subscriber = Subscriber(frozenset({"tools"}), {"a://b"})
    delivering = asyncio.create_task(subscriber.deliver(told.append))
    subscriber.add(ListChanged("tools"))
    subscriber.add(ListChanged("tools"))
    subscriber.add(ResourceUpdated("a://b"))
    await eventually(lambda: told == [ListChanged("tools"), ResourceUpdated("a://b")])
    subscriber.end()
    await delivering


async def test_a_reader_that_is_behind_is_waited_for() -> None:
    subscriber, gate, told = Subscriber(frozenset({"tools"}), {"a://b"}), asyncio.Event(), list[Change]()

    async def slow(change: Change) -> None:
        await gate.wait()
        told.append(change)

    delivering = asyncio.create_task(subscriber.deliver(slow))
    subscriber.add(ListChanged("tools"))
    await turns()
    subscriber.add(ResourceUpdated("a://b"))
    subscriber.add(ResourceUpdated("a://b"))
    gate.set()
    await eventually(lambda: told == [ListChanged("tools"), ResourceUpdated("a://b")])
    subscriber.end()
    await delivering


async def test_changes_may_be_published_from_any_thread() -> None:
    changes, told = Changes(), list[Change]()
    subscriber = Subscriber(frozenset({"tools"}), set())
    changes.join(subscriber)
    delivering = asyncio.create_task(subscriber.deliver(told.append))
    thread = threading.Thread(target=lambda: changes.list_changed("tools"))
    thread.start()
    await asyncio.to_thread(thread.join)
    await eventually(lambda: told == [ListChanged("tools")])
    changes.leave(subscriber)
    changes.leave(subscriber)
    changes.list_changed("tools")
    subscriber.end()
    await delivering
    assert told == [ListChanged("tools")]


def test_a_subscriber_whose_event_loop_is_closed_holds_up_nobody() -> None:
    changes = Changes()

    async def subscribe() -> None:
        changes.join(Subscriber(frozenset({"tools"}), set()))

    asyncio.run(subscribe())
    changes.list_changed("tools")


async def test_the_subscriptions_of_all_older_clients_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriptions, "MOST_URI_BYTES_IN_ALL", 10)
    changes, one, two = Changes(), Subscriber(frozenset(), set()), Subscriber(frozenset(), set())
    changes.subscribe(one, "a://b")
    changes.subscribe(one, "a://b")
    changes.subscribe(two, "a://c")
    with pytest.raises(MCPError, match="there are too many subscriptions on this server; try again later"):
        changes.subscribe(two, "a://d")
    changes.unsubscribe(one, "a://b", "a://nothing")
    changes.subscribe(two, "a://d")
    assert (one.uris, two.uris) == (set(), {"a://c", "a://d"})


# Streams


def listen(listening: Listening, id_: int, heard: list[Any], address: str | None = None) -> "asyncio.Task[Any]":
    meta = Meta("2026-07-28", {}, None, None, None, {})
    request = Request(id_, "subscriptions/listen", {"notifications": {"toolsListChanged": True}}, meta)
    headers = Headers([], address) if address is not None else None

    def notify(message: bytes) -> None:
        heard.append(json.loads(message))

    return asyncio.create_task(listening.listen(Incoming(request, notify, headers)))


async def test_without_http_the_end_of_a_stream_is_said_before_its_result() -> None:
    listening, heard = Listening(Changes()), list[Any]()
    task = listen(listening, 7, heard)
    await eventually(lambda: heard)
    listening.end()
    assert await task == {"_meta": {"io.modelcontextprotocol/subscriptionId": 7}}
    assert heard[-1]["method"] == "notifications/cancelled"
    assert heard[-1]["params"]["requestId"] == 7


async def test_there_are_no_more_streams_than_the_server_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriptions, "MOST_STREAMS", 20)
    listening = Listening(Changes())
    tasks = [listen(listening, number, [], f"127.0.0.{number}") for number in range(20)]
    await turns()
    with pytest.raises(MCPError, match="20 streams are open, which is the limit of this server; try again later"):
        await listen(listening, 99, [], "127.0.0.99")
    listening.end()
    await asyncio.gather(*tasks)


async def test_above_half_one_address_has_at_most_a_tenth_of_the_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriptions, "MOST_STREAMS", 20)
    listening = Listening(Changes())
    tasks = [listen(listening, number, [], "127.0.0.1") for number in range(11)]
    await turns()
    with pytest.raises(MCPError, match="too many streams are open from your address; close one, or try again later"):
        await listen(listening, 99, [], "127.0.0.1")
    tasks.append(listen(listening, 100, [], "127.0.0.2"))
    await turns()
    listening.end()
    await asyncio.gather(*tasks)
    await turns()


async def test_a_client_that_leaves_is_forgotten() -> None:
    changes, heard = Changes(), list[Any]()
    listening = Listening(changes)
    task = listen(listening, 1, heard)
    await eventually(lambda: heard)
    task.cancel()
    await asyncio.wait({task})
    changes.list_changed("tools")
    assert len(heard) == 1
