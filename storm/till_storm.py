"""The storm at the till: calls of both eras through a proxy, while the workers behind it are killed one after another."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from storm import book
from storm.exchanges import Exchanges, exchanges
from storm.fleet import Fleet, fleet
from storm.judgement import Violation, judge
from storm.logs import complaints, tracebacks
from storm.modern_client import ModernClient
from storm.older_client import OlderClient
from storm.proxy import Proxy
from storm.records import Era, Plan, Record, Wreckage
from storm.replies import CLEAR_ERRORS, Ending, Reply

CALLS_IN_A_SESSION = 5
KILLED_UNTIL = 0.9
"""Workers are killed until this part of the calls has ended. The last ones only wait for the claims of dead workers to lapse."""


@dataclass(frozen=True, slots=True)
class Length:
    """How long a storm is."""

    calls: int
    at_once: int
    """How many clients there are at the same time."""
    kill_seconds: tuple[float, float]
    """The shortest and the longest time between two kills."""
    seconds: float
    """Over how long a time the calls are begun, if the machine is fast enough: there must be time for kills."""


LONG = Length(2000, 32, (0.7, 1.3), 40.0)
SHORT = Length(200, 12, (0.8, 1.4), 8.0)


@dataclass(frozen=True, slots=True)
class Storm:
    """What happened in a storm."""

    records: Sequence[Record]
    asides: Sequence[Reply]
    book: Sequence[book.Entry]
    wreckage: Wreckage
    seconds: float
    requests: int
    log: Counter[str]
    """What the workers have logged beyond uvicorn's notes."""

    def violations(self) -> list[Violation]:
        return judge(self.records, self.book, self.wreckage, self.asides)


def plans(calls: int, chance: random.Random) -> list[Plan]:
    """Return so many calls, half of each era. A third of the bodies take a while; one call in ten is declined."""
    made: list[Plan] = []
    for number in range(calls):
        tips = chance.random() < 0.3
        made.append(
            Plan(
                order=f"ORD-{number:05}",
                era=Era.MODERN if number % 2 else Era.OLDER,
                tool="charge_with_tip" if tips else "charge",
                cents=chance.randrange(100, 10_000),
                tip=chance.randrange(1, 100) if tips else None,
                pause_ms=chance.randrange(2, 400) if chance.random() < 0.33 else 0,
                consents=chance.random() < 0.9,
            )
        )
    return made


async def rage(store: str, length: Length, directory: Path, seed: int) -> Storm:
    """Make all calls while workers are killed."""
    chance = random.Random(seed)
    file = directory / "book.jsonl"
    file.touch()
    todo = plans(length.calls, chance)
    async with fleet(store, directory, file) as workers:
        proxy = Proxy([worker.port for worker in workers.workers], lambda number: workers.workers[number].pid)
        async with proxy.listening() as port, exchanges(f"http://127.0.0.1:{port}/mcp") as line:
            started = time.perf_counter()
            killing = asyncio.create_task(workers.kill_some(chance, *length.kill_seconds))
            records: list[Record] = []

            def ended(record: Record) -> None:
                records.append(record)
                if len(records) >= KILLED_UNTIL * len(todo):
                    killing.cancel()

            try:
                asides = await _make_calls(line, todo, length, ended)
            finally:
                killing.cancel()
                await asyncio.wait({killing})
            seconds = time.perf_counter() - started
        await workers.stop()
    logs = [worker.log.read_text(errors="replace") for worker in workers.workers]
    return Storm(
        records,
        asides,
        book.read(file.read_text().splitlines()),
        _wreckage(workers, proxy, logs),
        seconds,
        proxy.requests,
        complaints(logs),
    )


async def _make_calls(
    line: Exchanges, todo: Sequence[Plan], length: Length, ended: Callable[[Record], None]
) -> list[Reply]:
    """Make all calls. Return the replies to requests that belong to no call and did not go well."""
    asides: list[Reply] = []
    room = asyncio.Semaphore(length.at_once)
    modern = ModernClient(line)

    async def one(plan: Plan) -> None:
        async with room:
            ended(await modern.call(plan))

    async def session(some: Sequence[Plan], *, ends: bool) -> None:
        async with room:
            client = OlderClient(line)
            await client.begin()
            for plan in some:
                ended(await client.call(plan))
            if ends:
                await client.end()
            asides.extend(client.troubles)

    older, newer = ([plan for plan in todo if plan.era is era] for era in (Era.OLDER, Era.MODERN))
    batches = [older[first : first + CALLS_IN_A_SESSION] for first in range(0, len(older), CALLS_IN_A_SESSION)]
    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for number, plan in enumerate(newer):
            await asyncio.sleep(began + length.seconds * number / len(newer) - time.perf_counter())
            group.create_task(one(plan))
            if number % CALLS_IN_A_SESSION == 0 and batches:
                some = batches.pop()
                group.create_task(session(some, ends=len(batches) % 2 == 0))
        for some in batches:
            group.create_task(session(some, ends=True))
    return asides


def _wreckage(workers: Fleet, proxy: Proxy, logs: Sequence[str]) -> Wreckage:
    return Wreckage(
        frozenset(workers.killed),
        tuple(proxy.breaks),
        tuple(workers.exits),
        tuple(found for log in logs for found in tracebacks(log)),
    )


def figures(storm: Storm) -> list[str]:
    """Return what is to be printed of a storm."""
    begun = sum(entry.event is book.Event.BEGUN for entry in storm.book)
    ended = sum(entry.event is book.Event.ENDED for entry in storm.book)
    lines = [
        f"{len(storm.records)} calls in {storm.seconds:.0f} s, {storm.requests} requests, "
        f"{len(storm.wreckage.killed)} workers killed, {len(storm.wreckage.breaks)} connections broken by that",
        f"bodies: {begun} begun, {ended} ended",
    ]
    for era in Era:
        records = [record for record in storm.records if record.plan.era is era]
        endings = Counter(record.ending for record in records)
        good = endings[Ending.RESULT] + endings[Ending.DECLINED]
        lines.append(
            f"{era.value}: {len(records)} calls, {endings[Ending.RESULT]} results, {endings[Ending.DECLINED]} declined, "
            f"{len(records) - good} other ends"
        )
        lines += [f"  {times} x {ending.value}" for ending, times in endings.items() if ending in CLEAR_ERRORS]
        detours = Counter(reply.ending.value for record in records for reply in record.detours)
        lines += [f"  {times} x on the way, sent again: {what}" for what, times in detours.items()]
    replies = Counter(
        reply.ending.value for record in storm.records if record.plan.era is Era.MODERN for reply in record.replies
    )
    lines.append(f"replays: {sum(replies.values())} sent, " + ", ".join(f"{n} {what}" for what, n in replies.items()))
    crossed = Counter(record.crossed for record in storm.records)
    lines.append(
        f"answers of older clients: {crossed[True]} calls had one that reached another worker than the one that asked, "
        f"{crossed[False]} had none; slowest answer {max(record.waited for record in storm.records):.1f} s"
    )
    if storm.asides:
        asides = Counter(reply.ending.value for reply in storm.asides)
        lines.append("handshakes and ends of sessions, sent again: " + ", ".join(f"{n} {w}" for w, n in asides.items()))
    lines += [f"log, {times} x {line}" for line, times in storm.log.most_common()]
    return lines
