"""A time limit on what runs in place."""

import asyncio

import pytest

from bespeak.aio.in_place import within


async def test_a_limit_does_not_count_cancellations_from_before_it_began() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.sleep(0)
    with pytest.raises(TimeoutError):
        await within(0.01, asyncio.sleep(5))
    assert task.uncancel() == 0
