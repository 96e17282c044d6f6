"""Calling back after some time."""

import asyncio

from bespeak.aio.timers import after


async def test_it_calls_back_while_the_block_is_open() -> None:
    called = asyncio.Event()
    with after(0.001, called.set):
        await asyncio.wait_for(called.wait(), 5)


async def test_it_does_not_call_back_when_the_block_has_ended() -> None:
    def never() -> None:
        raise AssertionError("the block has ended")

    with after(0, never):
        pass
    with after(None, never):
        await asyncio.sleep(0)
    await asyncio.sleep(0)
