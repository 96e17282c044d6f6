"""The end of a server without a server: what is waited for, and what a hurry cuts off. With uvicorn: test_uvicorn_server.py."""

import asyncio

import pytest

from bespeak.transports.http import graceful_shutdown
from bespeak.transports.http.graceful_shutdown import INTERRUPT, GracefulShutdown
from bespeak.transports.interfaces import Shutdown
from tests.waiting import eventually


class Ended:
    """What a server was told at its end, in order."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.go_on = asyncio.Event()
        self.ending = GracefulShutdown(Shutdown(self._cut_off, lambda: ["buy"], lambda _: None))

    async def _cut_off(self, reason: str) -> None:
        self.log.append(f"cut off by {reason}")

    async def _in_order(self) -> None:
        await self.go_on.wait()
        self.log.append("ended in order")

    async def run(self) -> None:
        await self.ending.run(
            self._in_order(),
            lambda reason: self.log.append(f"cancelled by {reason}"),
            lambda: self.log.append("forced"),
        )


async def test_it_waits_until_all_has_ended_in_order() -> None:
    ended = Ended()
    running = asyncio.create_task(ended.run())
    ended.go_on.set()
    await running
    assert ended.log == ["ended in order"]
    assert ended.ending.cut_off == ["buy"]


async def test_a_hurry_cuts_off_calls_and_requests_and_lets_the_rest_end_in_order() -> None:
    ended = Ended()
    running = asyncio.create_task(ended.run())
    await asyncio.sleep(0)
    ended.ending.hurry()
    await eventually(lambda: len(ended.log) == 2)
    ended.go_on.set()
    await running
    assert ended.log == [f"cut off by {INTERRUPT}", f"cancelled by {INTERRUPT}", "ended in order"]


async def test_what_does_not_end_after_a_hurry_is_forced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graceful_shutdown, "FORCED_SECONDS", 0.01)
    ended = Ended()
    ended.ending.hurry()  # before the end has begun
    await ended.run()
    assert ended.log == [f"cut off by {INTERRUPT}", f"cancelled by {INTERRUPT}", "forced"]
    assert ended.ending.cut_off == ["buy"]


async def test_an_error_at_the_end_is_raised() -> None:
    async def fail() -> None:
        raise RuntimeError("a lifespan failed")

    ended = Ended()
    with pytest.raises(RuntimeError, match="a lifespan failed"):
        await ended.ending.run(fail(), lambda _: None, lambda: None)
    assert ended.ending.cut_off == ["buy"]
