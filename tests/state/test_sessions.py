"""One worker among several: changes of a session that meet, mail for what is gone, signs of life, and a store that is away."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bespeak import MCPServer, RequestStateSecurity
from bespeak.protocol.messages import Response
from bespeak.protocol.session_facts import Delivery, SessionFacts, SessionLimits, SessionsUnavailable
from bespeak.state import sessions
from bespeak.state.seal import Seal
from bespeak.state.sessions import SessionWorker
from bespeak.state.stores.sqlite import SQLiteStore
from bespeak.state.stores.store import StoreUnavailable
from tests.waiting import eventually

pytestmark = pytest.mark.timing

FACTS = SessionFacts("2025-11-25", {"elicitation": {}}, {"name": "client"}, "info")
LIMITS = SessionLimits(10, 1800.0)
KEYS = ["k" * 32]


class Part:
    """This worker's part of a session."""

    def __init__(self) -> None:
        self.got: list[Any] = []

    def answered(self, response: Response) -> None:
        self.got.append(response)

    def cancelled(self, id_: str | int) -> None:
        self.got.append(("cancelled", id_))

    def ended(self, reason: str) -> None:
        self.got.append(("ended", reason))

    def refresh(self, facts: SessionFacts) -> None:
        self.got.append(facts)


class Workers:
    """Workers that share a file. Changes that they hear of are kept."""

    def __init__(self, file: Path) -> None:
        self.store = SQLiteStore(file)
        self.changes: list[Any] = []

    @asynccontextmanager
    async def worker(self, *, listening: bool = False) -> AsyncGenerator[SessionWorker]:
        seal = Seal(RequestStateSecurity(keys=KEYS))
        worker = SessionWorker(self.store.sessions, seal, lambda: listening, self.changes.append)
        await self.store.start()
        try:
            async with worker.running():
                yield worker
        finally:
            await self.store.close()


@pytest.fixture
def workers(tmp_path: Path) -> Workers:
    return Workers(tmp_path / "shared.db")


async def facts_of(worker: SessionWorker, id_: str = "session") -> SessionFacts | None:
    facts = await worker.use(id_, (), used=False, idle_seconds=1800.0)
    return replace(facts, changes=0) if facts is not None else None


async def test_a_session_is_known_to_all_workers_and_gone_for_all(workers: Workers) -> None:
    async with workers.worker() as one, workers.worker() as two:
        await one.add("session", FACTS, "address", LIMITS)
        assert await facts_of(two) == FACTS
        await two.end("session", "enough")
        assert await facts_of(one) is None


async def test_two_changes_that_meet_are_both_made(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    async with workers.worker() as one, workers.worker() as two:
        await one.add("session", FACTS, None, LIMITS)
        met = False

        def subscribe(facts: SessionFacts) -> SessionFacts:
            return replace(facts, uris=(*facts.uris, "file:///a"))

        async def meet(session: bytes, record: bytes, version: int) -> bool:
            nonlocal met
            if not met:
                met = True
                await two.change("session", lambda facts: replace(facts, log_level="error"))
            return await save(session, record, version)

        save = workers.store.sessions.save_session
        monkeypatch.setattr(workers.store.sessions, "save_session", meet)
        await one.change("session", subscribe)
        assert await facts_of(two) == replace(FACTS, uris=("file:///a",), log_level="error")


async def test_a_change_of_a_session_that_has_ended_is_no_change(workers: Workers) -> None:
    async with workers.worker() as one:
        await one.change("session", lambda facts: facts)
        assert await facts_of(one) is None


@pytest.mark.long
async def test_a_worker_that_serves_the_session_is_told_of_a_change_a_cancellation_and_the_end(
    workers: Workers,
) -> None:
    async with workers.worker() as one, workers.worker() as two:
        await one.add("session", FACTS, None, LIMITS)
        part = Part()
        await one.use("session", [7], used=True, idle_seconds=1800.0)
        one.attach("session", part)
        changed = replace(FACTS, log_level="debug")
        await two.change("session", lambda _: changed)
        await eventually(lambda: part.got == [replace(changed, changes=2)])
        assert await two.is_served_by("session", one.name)
        assert not await one.is_served_by("session", one.name)
        await two.cancel("session", 7)
        await two.cancel("session", "7")  # another id
        await two.end("session", "enough")
        await eventually(lambda: part.got[1:] == [("cancelled", 7), ("ended", "enough")])


@pytest.mark.long
async def test_mail_for_a_session_that_has_nothing_under_way_here_any_more_is_dropped(workers: Workers) -> None:
    async with workers.worker(listening=True) as one, workers.worker() as two:
        await one.add("session", FACTS, None, LIMITS)
        await one.use("session", [7], used=True, idle_seconds=1800.0)
        await two.cancel("session", 7)
        two.publish({"list": "tools"})
        await eventually(lambda: workers.changes == [{"list": "tools"}])


@pytest.mark.long
async def test_a_record_that_changed_after_the_session_ended_refreshes_nothing(workers: Workers) -> None:
    async with workers.worker() as one, workers.worker() as two:
        await one.add("session", FACTS, None, LIMITS)
        part = Part()
        await one.use("session", [7], used=True, idle_seconds=1800.0)
        await two.change("session", lambda facts: replace(facts, log_level="error"))
        await two.end("session", "enough")
        one.attach("session", part)
        await eventually(lambda: part.got == [("ended", "enough")])


async def test_an_answer_reaches_the_worker_that_asked(workers: Workers) -> None:
    async with workers.worker() as one, workers.worker() as two:
        await one.add("session", FACTS, None, LIMITS)
        part = Part()
        one.attach("session", part)
        await one.open_question("session", "q-1")
        answering = asyncio.create_task(two.answer("session", Response("q-1", {"action": "accept"}, None)))
        await eventually(lambda: part.got == [Response("q-1", {"action": "accept"}, None)])
        one.close_question("session", "q-1")
        assert await answering is Delivery.SENT
        assert await two.answer("session", Response("q-1", {}, None)) is Delivery.UNKNOWN
        assert await two.answer("session", Response(1, {}, None)) is Delivery.UNKNOWN


async def test_a_worker_gives_signs_of_life_and_ends_idle_sessions(
    workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "BEAT_SECONDS", 0.01)
    ended: list[float] = []

    async def end_idle(idle_seconds: float) -> None:
        ended.append(idle_seconds)

    beats: list[bool] = []
    beat = workers.store.sessions.beat

    async def counted(worker: str, *, listening: bool) -> None:
        beats.append(listening)
        await beat(worker, listening=listening)

    monkeypatch.setattr(workers.store.sessions, "end_idle_sessions", end_idle)
    monkeypatch.setattr(workers.store.sessions, "beat", counted)
    async with workers.worker() as one:
        await one.add("session", FACTS, None, SessionLimits(10, 0.1))
        await eventually(lambda: ended and len(beats) > 2)
    assert ended[0] == 0.1


@pytest.mark.long
async def test_while_the_store_is_away_everything_says_so_and_the_worker_goes_on_after(
    workers: Workers, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("RETRY_SECONDS", "BEAT_SECONDS"):
        monkeypatch.setattr(sessions, name, 0.01)
    failed: list[str] = []

    async with workers.worker(listening=True) as one, workers.worker() as two:
        await one.add("session", FACTS, None, LIMITS)

        async def away(*_: object, **__: object) -> Any:
            failed.append("")
            raise StoreUnavailable("the store is away")

        with monkeypatch.context() as patched:
            for name in ("use_session", "receive", "beat", "end_requests", "send_to_listeners"):
                patched.setattr(workers.store.sessions, name, away)
            with pytest.raises(SessionsUnavailable, match="cannot reach the store that its workers share"):
                await facts_of(two)
            two.release("session", [1])
            two.publish({"list": "tools"})
            await eventually(lambda: len(failed) > 8)
        two.publish({"list": "prompts"})
        await eventually(lambda: workers.changes == [{"list": "prompts"}])
    assert "the store is away" in caplog.text


async def test_a_change_published_when_the_event_loop_is_closed_is_nobody_s_business(workers: Workers) -> None:
    def run() -> SessionWorker:
        async def main() -> SessionWorker:
            async with workers.worker() as one:
                return one

        return asyncio.run(main())

    worker = await asyncio.to_thread(run)
    worker.publish({"list": "tools"})


def test_a_shared_store_without_keys_is_a_warning(tmp_path: Path) -> None:
    with pytest.warns(RuntimeWarning, match="A shared store is configured, but state keys are not: each process makes"):
        MCPServer("shop", store=f"sqlite:{tmp_path / 'shop.db'}")
