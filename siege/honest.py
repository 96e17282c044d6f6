"""The honest client: three kinds of calls, each on connections of its own, and how long they take."""

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from siege.wire import Place, initialize, read_event, read_json, reason

PATIENCE_SECONDS = 10.0
"""How long one call may take."""
PAUSE_SECONDS = 0.02
"""Between calls that only have to go on."""
FAILURES = 5
"""So many failures say enough; more would only take time."""


class Refused(Exception):
    """An honest call was not served."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What one kind of calls took."""

    times: list[float] = field(default_factory=list[float])
    failures: list[str] = field(default_factory=list[str])

    @property
    def median_ms(self) -> float | None:
        return statistics.median(self.times) * 1000 if self.times else None


Samples = dict[str, Sample]


def failures(samples: Samples) -> int:
    return sum(len(sample.failures) for sample in samples.values())


class Honest:
    """One honest person's client, with a session for the calls that need one."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._session = ""
        self._number = 0
        self.kinds: dict[str, Callable[[], Awaitable[None]]] = {
            "plain": self.plain,
            "asked": self.asked,
            "pushed": self.pushed,
        }

    async def begin(self) -> None:
        """Open the session."""
        self._session = await open_session(self._place)

    async def measure(self, calls: int, seconds: float) -> Samples:
        """Make so many calls of each kind, in turn. Ends early when the time is up or too many have failed."""
        samples = {kind: Sample() for kind in self.kinds}
        until = time.perf_counter() + seconds
        for _ in range(calls):
            if time.perf_counter() > until or failures(samples) >= FAILURES:
                break
            await self._one_of_each(samples)
        return samples

    async def measure_until(self, event: asyncio.Future[None]) -> Samples:
        """Make calls of each kind, in turn, with pauses, until something happens or too many have failed."""
        samples = {kind: Sample() for kind in self.kinds}
        while not event.done() and failures(samples) < FAILURES:
            await self._one_of_each(samples)
            await asyncio.wait({event}, timeout=PAUSE_SECONDS)
        return samples

    async def _one_of_each(self, samples: Samples) -> None:
        for kind, call in self.kinds.items():
            started = time.perf_counter()
            try:
                async with asyncio.timeout(PATIENCE_SECONDS):
                    await call()
            except TimeoutError:
                samples[kind].failures.append(f"no answer within {PATIENCE_SECONDS:g} s")
            except (OSError, Refused, EOFError) as failure:
                samples[kind].failures.append(f"{type(failure).__name__}: {failure}")
            else:
                samples[kind].times.append(time.perf_counter() - started)

    async def plain(self) -> None:
        """A call of 2026-07-28 that asks nothing."""
        number = self._next()
        reader, writer = await self._place.connect()
        try:
            writer.write(self._place.modern("plain", {"a": number, "b": 2}))
            _expect_sum(await read_json(reader), number)
        finally:
            writer.close()

    async def asked(self) -> None:
        """A call of 2026-07-28 with a question that is answered: two requests."""
        number = self._next()
        arguments = {"a": number, "b": 2}
        reader, writer = await self._place.connect()
        try:
            writer.write(self._place.modern("asked", arguments))
            head, content = await read_json(reader)
            try:
                (key,) = content["result"]["inputRequests"]
                state = content["result"]["requestState"]
            except (KeyError, TypeError):
                raise Refused(reason(head, content)) from None
            answers = {key: {"action": "accept", "content": {"yes": True}}}
            writer.write(self._place.modern("asked", arguments, inputResponses=answers, requestState=state))
            _expect_sum(await read_json(reader), number)
        finally:
            writer.close()

    async def pushed(self) -> None:
        """A call of 2025-11-25 whose question is pushed in mid-call and answered."""
        number = self._next()
        params = {"name": "asked", "arguments": {"a": number, "b": 2}}
        reader, writer = await self._place.connect()
        try:
            call = {"id": number, "method": "tools/call", "params": params}
            writer.write(self._place.legacy(call, self._session))
            head, question = await read_json(reader)
            if "method" not in question:
                raise Refused(reason(head, question))
            answer = {"id": question["id"], "result": {"action": "accept", "content": {"yes": True}}}
            await _tell(self._place, answer, self._session)
            _expect_sum((head, await read_event(reader)), number)
        finally:
            writer.close()

    def _next(self) -> int:
        self._number += 1
        return self._number


def _expect_sum(answer: tuple[Any, Any], number: int) -> None:
    head, content = answer
    try:
        said = content["result"]["content"][0]["text"]
    except (KeyError, TypeError, IndexError):
        said = None
    if said != str(number + 2):
        raise Refused(reason(head, content))


async def open_session(place: Place) -> str:
    """A session of an older client that has said something since its handshake. Raises `Refused`."""
    reader, writer = await place.connect()
    try:
        writer.write(place.legacy(initialize()))
        head, content = await read_json(reader)
    finally:
        writer.close()
    session = head.headers.get("mcp-session-id")
    if session is None:
        raise Refused(reason(head, content))
    await _tell(place, {"method": "notifications/initialized"}, session)
    await list_tools(place, session)
    return session


async def list_tools(place: Place, session: str) -> None:
    """Say something in a session. Raises `Refused` if it is there no more."""
    reader, writer = await place.connect()
    try:
        writer.write(place.legacy({"id": "tools", "method": "tools/list", "params": {}}, session))
        head, content = await read_json(reader)
    finally:
        writer.close()
    if head.status != 200 or "result" not in content:
        raise Refused(reason(head, content))


async def _tell(place: Place, content: dict[str, Any], session: str) -> None:
    reader, writer = await place.connect()
    try:
        writer.write(place.legacy(content, session))
        head, said = await read_json(reader)
    finally:
        writer.close()
    if head.status != 202:
        raise Refused(reason(head, said))
