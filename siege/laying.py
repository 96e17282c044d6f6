"""Laying one siege: peace first, then the attack twice with the honest client beside it, then the judgement."""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from siege.besieged import Besieged, besieged
from siege.cases import Case
from siege.honest import Honest, Refused, Samples, list_tools, open_session
from siege.judgement import Check, Turn, judge_afterwards, judge_honest, judge_second
from siege.wire import Place

CALLS_AFTERWARDS = 5
ATTACK_SECONDS = 600.0
HONEST_SECONDS = 60.0
SLACK: dict[str, float] = {"tasks": 3, "files": 2, "waiting": 0}
"""By how much more than before is as before."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """All that was found."""

    case: str
    before: Samples
    turns: tuple[Turn, ...]
    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        return all(check.met for check in self.checks)


@dataclass(frozen=True, slots=True)
class Cores:
    """Which core each side has; `None` where there is only one."""

    server: int | None
    others: int | None

    @classmethod
    def choose(cls) -> "Cores":
        there = sorted(os.sched_getaffinity(0))
        return cls(there[-1], there[0]) if len(there) > 1 else cls(None, None)


@dataclass(frozen=True, slots=True)
class Length:
    """How long a siege is, beside the counts of its attacks."""

    calls: int
    """Honest calls of each kind before the first attack and under it."""
    few_calls: int
    """The same before anything is measured, and under the second attack."""
    second_holds: bool
    """Whether the second attack goes on as long as the first once everything is in place."""


FULL = Length(200, 20, second_holds=True)
SHORT = Length(30, 10, second_holds=False)


class Attacker:
    """The attacker's process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.tally: dict[str, int] = {}
        self.seconds = 0.0

    async def until(self, event: str) -> None:
        """Wait until it reports an event; the end of the attack is one."""
        assert self._process.stdout is not None
        async with asyncio.timeout(ATTACK_SECONDS):
            while line := await self._process.stdout.readline():
                told: dict[str, Any] = json.loads(line)
                self.tally = told["tally"]
                self.seconds = told.get("seconds", self.seconds)
                if told["event"] == event:
                    return
        raise ConnectionError("the attacker ended early")

    def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(b"stop\n")


@asynccontextmanager
async def attacking(case: Case, port: int, core: int | None) -> AsyncGenerator[Attacker]:
    address, forwarded = case.attacker
    orders = {
        "attack": case.attack,
        "port": port,
        "address": address,
        "forwarded": forwarded,
        "numbers": case.numbers,
        "core": core,
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "siege.attacker",
        json.dumps(orders),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        yield Attacker(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def lay(case: Case, length: Length, cores: Cores) -> Outcome:
    """Besiege one server."""
    async with besieged(case.options, cores.server) as server:
        place = Place(server.port, *case.honest)
        honest = Honest(place)
        await honest.begin()
        await honest.measure(length.few_calls, HONEST_SECONDS)
        before = await honest.measure(length.calls, HONEST_SECONDS)
        idle = await open_session(place) if case.idle_session else None
        first = await attack(case, server, honest, length.calls, cores)
        again = replace(case, settle_seconds=0.0, hold_seconds=case.hold_seconds if length.second_holds else 0.0)
        second = await attack(again, server, honest, length.few_calls, cores)
        turns = (first, second)
        checks = [
            *judge_honest(before, first.rising, 0, "while the attack rises"),
            *judge_honest(before, first.during, length.calls, "under the whole attack"),
            *judge_afterwards(turns),
            *judge_second(turns),
            *(criterion(turns) for criterion in case.criteria),
        ]
        if idle is not None:
            checks.append(await _works("an honest session that was idle survives", list_tools(place, idle)))
            checks.append(await _works("an honest newcomer gets a session", open_session(place)))
    return Outcome(case.name, before, turns, tuple(checks))


async def attack(case: Case, server: Besieged, honest: Honest, calls: int, cores: Cores) -> Turn:
    """One attack from its beginning until the server had time to let go."""
    before = await server.look()
    async with server.watched() as readings, attacking(case, server.port, cores.others) as attacker:
        elsewhere = asyncio.create_task(_use_elsewhere(server)) if case.elsewhere else None
        holding = asyncio.create_task(attacker.until("holding"))
        rising = await honest.measure_until(holding)
        await holding
        held_until = time.perf_counter() + case.hold_seconds
        during = await honest.measure(calls, HONEST_SECONDS)
        await asyncio.sleep(held_until - time.perf_counter())
        if elsewhere is not None:
            elsewhere.cancel()
            await asyncio.wait({elsewhere})
        attacker.stop()
        await attacker.until("done")
    after = await server.settled(before, SLACK, case.settle_seconds)
    afterwards = await honest.measure(CALLS_AFTERWARDS, HONEST_SECONDS)
    return Turn(before, readings[0], after, attacker.tally, attacker.seconds, rising, during, afterwards)


async def _use_elsewhere(server: Besieged) -> None:
    while True:
        await server.look("use elsewhere")
        await asyncio.sleep(0.1)


async def _works(demand: str, doing: Awaitable[object]) -> Check:
    try:
        await doing
    except (Refused, OSError) as failure:
        return Check(demand, False, str(failure))
    return Check(demand, True)
