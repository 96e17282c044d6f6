"""What waits for a slow reader: all of it in order; responses are never dropped, notifications only after a while."""

import asyncio
import logging

import pytest

from bespeak.aio import outbox
from bespeak.aio.outbox import UNREAD_BYTES, Outbox

FULL = bytes(UNREAD_BYTES + 1)


def drain(box: Outbox) -> bytes:
    data = box.take()
    box.sent()
    return data


@pytest.fixture
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "PATIENCE_SECONDS", 0.02)


async def waits(task: "asyncio.Task[None]") -> bool:
    """Whether a task still waits once everything else has had its turn."""
    for _ in range(5):
        await asyncio.sleep(0)
    return not task.done()


async def test_everything_is_taken_in_order() -> None:
    box = Outbox()
    box.add(b"a")
    assert box.offer(b"b") is None
    box.add(b"c")
    assert drain(box) == b"abc"
    assert drain(box) == b""


async def test_waiting_for_something_ends_when_it_comes_or_is_there_already() -> None:
    box = Outbox()
    waiting = asyncio.create_task(box.something())
    assert await waits(waiting)
    assert box.empty
    box.add(b"a")
    await asyncio.wait_for(waiting, 5)
    await asyncio.wait_for(box.something(), 5)
    assert not box.empty


async def test_waiting_for_something_ends_when_the_time_is_up() -> None:
    box = Outbox()
    await asyncio.wait_for(box.something(0.01), 5)
    assert drain(box) == b""


async def test_what_was_taken_does_not_count_as_something_but_a_stir_does() -> None:
    box = Outbox()
    box.add(b"a")
    drain(box)
    waiting = asyncio.create_task(box.something())
    assert await waits(waiting)
    box.stir()
    await asyncio.wait_for(waiting, 5)
    await asyncio.wait_for(box.something(), 5)


async def test_there_is_room_up_to_the_limit_and_none_beyond_until_what_was_taken_is_sent() -> None:
    box = Outbox()
    box.add(bytes(UNREAD_BYTES))
    await asyncio.wait_for(box.has_room(), 5)
    assert box.room() is None
    box.add(b"x")
    waiting = asyncio.create_task(box.has_room())
    assert await waits(waiting)
    box.take()
    assert await waits(waiting)
    box.sent()
    await asyncio.wait_for(waiting, 5)


async def test_what_came_while_something_was_leaving_still_counts() -> None:
    box = Outbox()
    box.add(b"first")
    box.take()
    box.add(FULL)
    box.sent()
    waiting = asyncio.create_task(box.has_room())
    assert await waits(waiting)
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
    assert behind is not None
    waiting = asyncio.create_task(behind)
    assert await waits(waiting)
    assert drain(box) == FULL
    await asyncio.wait_for(waiting, 5)
    assert drain(box) == b"note"


async def test_room_is_given_to_one_after_the_other() -> None:
    box = Outbox()
    box.add(FULL)
    offers = [box.offer(bytes(UNREAD_BYTES)) for _ in range(5)]
    tasks = [asyncio.create_task(offer) for offer in offers if offer is not None]
    assert len(tasks) == 5
    assert all([await waits(task) for task in tasks])
    drain(box)
    assert await waits(tasks[-1])
    assert len(box.take()) <= 2 * UNREAD_BYTES
    for task in tasks:
        task.cancel()


async def test_nobody_waits_for_room_once_it_is_released_or_abandoned() -> None:
    box = Outbox()
    box.add(FULL)
    waiting = box.room()
    assert waiting is not None
    waiting = asyncio.create_task(waiting)
    box.release()
    assert await asyncio.wait_for(waiting, 5)
    box.add(FULL)
    assert box.offer(b"note") is None
    box.abandon()
    assert box.offer(b"dropped") is None
    assert drain(box) == FULL + FULL + b"note"


@pytest.mark.timing
@pytest.mark.usefixtures("short_patience")
async def test_after_a_while_notifications_are_dropped_with_one_warning(
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
    assert record.getMessage() == "The client is not reading. Notifications to it are dropped until it does."


@pytest.mark.timing
@pytest.mark.usefixtures("short_patience")
async def test_responses_are_kept_while_notifications_are_dropped_until_the_reader_has_caught_up() -> None:
    box = Outbox()
    box.add(FULL)
    behind, room = box.offer(b"dropped"), box.room()
    assert behind is not None
    assert room is not None
    await behind
    assert not await room
    box.add(b"response")
    assert drain(box) == FULL + b"response"
    assert box.offer(b"sent") is None
    assert drain(box) == b"sent"


async def test_a_notification_whose_sender_is_cancelled_while_it_waits_is_not_sent() -> None:
    box = Outbox()
    box.add(FULL)
    behind = box.offer(b"note")
    assert behind is not None
    waiting = asyncio.create_task(behind)
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait({waiting})
    assert waiting.cancelled()
    assert drain(box) == FULL
    assert drain(box) == b""
