"""What waits for a slow reader: everything in order, responses never dropped, notifications only after patience."""

import asyncio
import inspect
import logging

import pytest

from bespeak.aio import outbox
from bespeak.aio.outbox import UNREAD_BYTES, Outbox
from tests.waiting import turns

FULL = bytes(UNREAD_BYTES + 1)


def drain(box: Outbox) -> bytes:
    data = box.take()
    box.sent()
    return data


@pytest.fixture
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "PATIENCE_SECONDS", 0.02)


async def test_everything_is_handed_over_in_order() -> None:
    box = Outbox()
    box.add(b"a")
    assert box.offer(b"b") is None
    box.add(b"c")
    assert drain(box) == b"abc"
    assert drain(box) == b""


async def test_waiting_for_something_ends_when_it_comes() -> None:
    box = Outbox()
    waiting = asyncio.create_task(box.something())
    await turns()
    assert not waiting.done()
    box.add(b"a")
    await asyncio.wait_for(waiting, 5)


async def test_waiting_for_something_ends_when_the_time_is_up() -> None:
    box = Outbox()
    await asyncio.wait_for(box.something(0.01), 5)
    assert drain(box) == b""


async def test_what_was_taken_does_not_count_as_something() -> None:
    box = Outbox()
    box.add(b"a")
    drain(box)
    waiting = asyncio.create_task(box.something())
    await turns()
    assert not waiting.done()
    box.stir()
    await asyncio.wait_for(waiting, 5)


async def test_a_stir_that_comes_before_the_wait_is_not_lost() -> None:
    box = Outbox()
    box.stir()
    await asyncio.wait_for(box.something(), 0.2)


async def test_there_is_room_up_to_the_limit_and_none_beyond() -> None:
    box = Outbox()
    box.add(bytes(UNREAD_BYTES))
    await asyncio.wait_for(box.has_room(), 5)
    box.add(b"x")
    waiting = asyncio.create_task(box.has_room())
    await turns()
    assert not waiting.done()
    drain(box)
    await asyncio.wait_for(waiting, 5)


async def test_what_is_taken_holds_its_room_until_it_has_left() -> None:
    box = Outbox()
    box.add(FULL)
    waiting = asyncio.create_task(box.has_room())
    assert box.take() == FULL
    await turns()
    assert not waiting.done()
    box.sent()
    await asyncio.wait_for(waiting, 5)


async def test_what_came_while_something_was_leaving_still_counts() -> None:
    box = Outbox()
    box.add(b"first")
    box.take()
    box.add(FULL)
    box.sent()
    waiting = asyncio.create_task(box.has_room())
    await turns()
    assert not waiting.done()
    assert drain(box) == FULL
    await asyncio.wait_for(waiting, 5)


async def test_what_must_be_sent_is_taken_though_there_is_no_room() -> None:
    box = Outbox()
    for _ in range(5):
        box.add(FULL)
    assert len(drain(box)) == 5 * len(FULL)


async def test_a_notification_waits_for_room_and_is_then_sent() -> None:
    box = Outbox()
    box.add(FULL)
    behind = box.offer(b"note")
    assert inspect.iscoroutine(behind)
    waiting = asyncio.create_task(behind)
    await turns()
    assert not waiting.done()
    assert drain(box) == FULL
    await asyncio.wait_for(waiting, 5)
    assert drain(box) == b"note"


@pytest.mark.usefixtures("short_patience")
async def test_after_patience_notifications_are_dropped_and_that_is_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    box = Outbox()
    box.add(FULL)
    waiting = [box.offer(b"one"), box.offer(b"two")]
    async with asyncio.timeout(5):
        for behind in waiting:
            assert behind is not None
            await behind
        assert box.offer(b"three") is None, "nobody waits any longer"
    assert drain(box) == FULL
    (record,) = caplog.records
    assert (record.levelno, record.name) == (logging.WARNING, "bespeak.transports")
    assert record.getMessage() == "the client reads nothing; notifications are dropped until it does"


@pytest.mark.usefixtures("short_patience")
async def test_notifications_are_sent_again_once_the_reader_has_caught_up() -> None:
    box = Outbox()
    box.add(FULL)
    behind = box.offer(b"dropped")
    assert behind is not None
    await behind
    drain(box)
    assert box.offer(b"sent") is None
    assert drain(box) == b"sent"


async def test_a_notification_whose_sender_is_cancelled_while_it_waits_is_not_sent() -> None:
    box = Outbox()
    box.add(FULL)
    behind = box.offer(b"note")
    assert behind is not None
    waiting = asyncio.create_task(behind)
    await turns()
    waiting.cancel()
    await asyncio.wait({waiting})
    assert waiting.cancelled()
    assert drain(box) == FULL
    assert drain(box) == b""


async def test_room_is_given_to_one_after_the_other() -> None:
    box = Outbox()
    box.add(b"x" * (UNREAD_BYTES + 1))
    waiting = [box.offer(b"y" * UNREAD_BYTES) for _ in range(5)]
    tasks = [asyncio.create_task(one) for one in waiting if one is not None]
    assert len(tasks) == 5
    await turns()
    box.take()
    box.sent()
    await turns()
    assert len(box.take()) <= 2 * UNREAD_BYTES
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
