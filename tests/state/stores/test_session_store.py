"""What workers share about older clients, in both stores that can be shared: sessions, requests, questions and mail."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from bespeak.protocol.session_facts import Delivery, SessionLimits, TooManyOfOne, TooManySessions
from bespeak.state.stores import redis_sessions, sqlite_sessions
from bespeak.state.stores.redis import RedisStore
from bespeak.state.stores.redis_connection import RedisConnection
from bespeak.state.stores.session_store import (
    GONE_SECONDS,
    WORKER_LEASE,
    SessionRow,
    SessionStore,
)
from bespeak.state.stores.sqlite import SQLiteStore
from bespeak.state.stores.sqlite_database import Database
from bespeak.state.stores.sqlite_sessions import SQLiteSessions
from bespeak.state.stores.store import StoreUnavailable
from tests.state.stores.claiming import Steady
from tests.state.stores.redis_servers import client

IDLE = 1000.0
RECENT = 200.0
"""Times are so long that it does not matter how busy the machine is: Redis has its own clock."""
S, T, U = b"session S", b"session T", b"session U"


class Kind:
    """The sessions of one kind of store, and how time passes and workers die there."""

    sessions: SessionStore

    def __init__(self) -> None:
        self._living: dict[str, bool] = {}

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def beat(self, worker: str, *, listening: bool = False) -> None:
        self._living[worker] = listening
        await self.sessions.beat(worker, listening=listening)

    async def die(self, worker: str) -> None:
        """Let a worker give no sign of life for so long that it counts as dead."""
        del self._living[worker]

    async def pass_time(self, seconds: float) -> None:
        """Put the clock forward that says how long sessions are idle."""
        raise NotImplementedError


class SQLite(Kind):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self._database = Database(path, create=True, durable=False)
        self.clock, self.steady = Steady(), Steady()
        self.sessions = self.booted("boot")

    def booted(self, boot: str) -> SQLiteSessions:
        return SQLiteSessions(self._database, "server", boot, self.clock, self.steady)

    async def close(self) -> None:
        await self._database.close()

    async def die(self, worker: str) -> None:
        await super().die(worker)
        self.steady.now += WORKER_LEASE
        for living, listening in self._living.items():
            await self.sessions.beat(living, listening=listening)

    async def pass_time(self, seconds: float) -> None:
        self.clock.now += seconds


class Redis(Kind):
    def __init__(self, url: str) -> None:
        super().__init__()
        self._server = str(uuid4())
        self._prefix = f"bespeak:{{{self._server}}}:"
        self._store = RedisStore(url, server=self._server)
        self._redis = client(url)
        self.sessions = self._store.sessions

    async def open(self) -> None:
        await self._store.start()

    async def close(self) -> None:
        await self._store.close()
        with self._redis:
            for key in self._keys("*"):
                self._redis.delete(key)

    def _keys(self, pattern: str) -> list[bytes]:
        return list(self._redis.scan_iter(f"{self._prefix}{pattern}", 1000))

    async def die(self, worker: str) -> None:
        await super().die(worker)
        assert self._redis.delete(f"{self._prefix}w:{worker}") == 1

    async def pass_time(self, seconds: float) -> None:
        """Redis has its own clock, so everything is put back instead."""
        ms = -round(seconds * 1000)
        for key in self._keys("s:*"):
            self._redis.hincrby(key, "last_used", ms)
        for name in ("unused", "used"):
            for session in self._redis.zrange(self._prefix + name, 0, -1):
                self._redis.zincrby(self._prefix + name, ms, session)

    def lose_sessions(self) -> None:
        """What expiry does when the server was not used for a week."""
        for key in self._keys("s:*"):
            self._redis.delete(key)


@pytest.fixture(params=["sqlite", "redis"])
async def kind(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Kind]:
    monkeypatch.setattr(redis_sessions, "BLOCK_SECONDS", 0.05)
    kind = SQLite(tmp_path / "store.db") if request.param == "sqlite" else Redis(request.getfixturevalue("redis_url"))
    await kind.open()
    yield kind
    await kind.close()


@pytest.fixture
def store(kind: Kind) -> SessionStore:
    return kind.sessions


def limits(most: int | None = 100, idle: float | None = None, *, pressure: int = 2, share: int = 10) -> SessionLimits:
    return SessionLimits(most, idle, RECENT, pressure, share)


async def add(store: SessionStore, *sessions: bytes, holder: str | None = None, most: int | None = 100) -> None:
    for session in sessions:
        await store.add_session(session, b"record", holder, limits(most))


async def use(store: SessionStore, session: bytes, *requests: str, worker: str = "w1", **options: Any) -> bool:
    """Use a session. Returns whether it is there."""
    given: dict[str, Any] = {"used": True, "idle_seconds": IDLE, **options}
    return await store.use_session(session, worker, requests, **given) is not None


async def known(store: SessionStore, *sessions: bytes) -> set[bytes]:
    """Return which sessions are there, without using them."""
    return {session for session in sessions if await use(store, session, used=False, idle_seconds=None)}


# Sessions


async def test_a_session_is_there_from_its_beginning_to_its_end(store: SessionStore) -> None:
    assert await store.use_session(S, "w1", (), used=True, idle_seconds=IDLE) is None
    await store.add_session(S, b"record \x00\xff", "holder", limits())
    for requests in ((), ("1",)):
        row = await store.use_session(S, "w1", requests, used=True, idle_seconds=IDLE)
        assert row == SessionRow(b"record \x00\xff", 1)
    await store.end_session(S)
    assert await known(store, S) == set()


async def test_what_has_ended_stays_so_whatever_comes_late(store: SessionStore) -> None:
    await store.end_requests(S, "w1", ["1"])
    assert not await use(store, S, "1")
    assert not await store.save_session(S, b"record", 1)
    assert await store.end_session(S) == []
    assert await known(store, S) == set()


async def test_a_record_is_replaced_only_by_one_who_knows_the_last_version(store: SessionStore) -> None:
    await add(store, S)
    assert await store.save_session(S, b"second", 1)
    assert not await store.save_session(S, b"another second", 1)
    assert await store.save_session(S, b"third", 2)
    assert await store.use_session(S, "w1", (), used=True, idle_seconds=IDLE) == SessionRow(b"third", 3)


# Limits


async def test_the_oldest_session_that_was_never_used_makes_room_first(kind: Kind, store: SessionStore) -> None:
    await add(store, S)
    await use(store, S)
    await kind.pass_time(2 * RECENT)
    for session in (T, U):
        await add(store, session)
        await kind.pass_time(1.0)
    await add(store, b"new", most=3)
    assert await known(store, S, T, U, b"new") == {S, U, b"new"}


async def test_a_session_that_was_used_makes_room_unless_it_was_used_lately(kind: Kind, store: SessionStore) -> None:
    await add(store, S, T)
    await use(store, S)
    await use(store, T)
    with pytest.raises(TooManySessions):
        await add(store, U, most=2)
    await kind.pass_time(2 * RECENT)
    await use(store, T)
    await add(store, U, most=2)
    assert await known(store, S, T, U) == {T, U}


@pytest.mark.parametrize("used", [True, False])
async def test_a_session_with_a_request_under_way_never_makes_room(kind: Kind, store: SessionStore, used: bool) -> None:
    await kind.beat("w1")
    await add(store, S)
    await use(store, S, "1", used=used)
    await kind.pass_time(2 * RECENT)
    with pytest.raises(TooManySessions):
        await add(store, T, most=1)
    await kind.die("w1")
    await add(store, T, most=1)
    assert await known(store, S, T) == {T}


@pytest.mark.parametrize("end", ["making room", "idle"])
async def test_the_one_idle_session_behind_many_busy_ones_is_found(kind: Kind, store: SessionStore, end: str) -> None:
    await kind.beat("w1")
    busy = [f"session {number}".encode() for number in range(120)]
    for session in busy:
        await add(store, session, most=None)
        await use(store, session, "1")
    await kind.pass_time(1.0)
    await add(store, S, most=None)
    await use(store, S)
    await kind.pass_time(2 * IDLE)
    if end == "idle":
        await store.end_idle_sessions(IDLE)
    else:
        await add(store, T, most=121)
    assert await known(store, S, *busy) == set(busy)


async def test_without_a_limit_there_may_be_any_number(store: SessionStore) -> None:
    await add(store, S, T, U, holder="somebody", most=None)
    assert await known(store, S, T, U) == {S, T, U}


async def test_under_pressure_each_holder_has_its_share(store: SessionStore) -> None:
    few = limits(8, pressure=4, share=4)
    for number in range(3):
        await store.add_session(b"s%d" % number, b"record", "greedy", few)
    with pytest.raises(TooManyOfOne) as refused:
        await store.add_session(S, b"record", "greedy", few)
    assert refused.value.args == (3,)
    await store.add_session(T, b"record", "modest", few)
    await store.add_session(U, b"record", None, few)
    for number in range(2):
        await store.end_session(b"s%d" % number)
    await store.add_session(S, b"record", "greedy", few)


async def test_one_session_is_allowed_to_each_holder_however_small_the_share(store: SessionStore) -> None:
    few = limits(4, pressure=4, share=100)
    await add(store, S, T)
    await store.add_session(U, b"record", "somebody", few)
    with pytest.raises(TooManyOfOne):
        await store.add_session(b"another", b"record", "somebody", few)


@pytest.mark.parametrize("kind", ["redis"], indirect=True)
async def test_a_session_that_expired_in_redis_gives_its_share_back(kind: Redis, store: SessionStore) -> None:
    few = limits(8, IDLE, pressure=8, share=4)
    for session in (S, T):
        await store.add_session(session, b"record", "somebody", few)
    kind.lose_sessions()
    await kind.pass_time(2 * IDLE)
    await add(store, b"one", b"another")
    for session in (S, T):
        await store.add_session(session, b"record", "somebody", few)


@pytest.mark.parametrize("kind", ["redis"], indirect=True)
async def test_a_session_that_is_added_again_because_the_answer_was_lost_counts_once(store: SessionStore) -> None:
    few = limits(8, pressure=8, share=4)
    for _ in range(3):
        await store.add_session(S, b"record", "somebody", few)
    await store.add_session(T, b"record", "somebody", few)


# Idle sessions


async def test_a_session_that_was_idle_for_too_long_has_ended(kind: Kind, store: SessionStore) -> None:
    await add(store, S)
    await kind.pass_time(IDLE - 100)
    assert await use(store, S)
    await kind.pass_time(IDLE - 100)
    assert await use(store, S, used=False)
    await kind.pass_time(200.0)
    assert not await use(store, S, "1"), "only use counts"


async def test_when_a_session_was_last_used_is_written_every_tenth_of_the_time(kind: Kind, store: SessionStore) -> None:
    await add(store, S)
    assert await use(store, S)
    await kind.pass_time(30.0)
    assert await use(store, S)  # is not written
    await kind.pass_time(IDLE - 10)
    assert not await use(store, S)
    await add(store, T)
    assert await use(store, T)
    await kind.pass_time(150.0)
    assert await use(store, T)  # is written
    await kind.pass_time(IDLE - 60)
    assert await use(store, T)


async def test_without_an_idle_time_a_session_does_not_end(kind: Kind, store: SessionStore) -> None:
    await add(store, S)
    await kind.pass_time(100 * IDLE)
    assert await use(store, S, idle_seconds=None)
    await kind.pass_time(50.0)
    assert await use(store, S, idle_seconds=None)
    await kind.pass_time(50.0)
    assert await use(store, S, idle_seconds=None)


async def test_a_session_is_not_idle_while_a_living_worker_serves_it(kind: Kind, store: SessionStore) -> None:
    for worker in ("w1", "w2"):
        await kind.beat(worker)
    await add(store, S, T, U)
    await use(store, S, "1")
    await use(store, T, "2", worker="w2")
    await use(store, U, "3")
    await kind.pass_time(2 * IDLE)
    assert await use(store, S, used=False)
    await kind.die("w2")
    assert not await use(store, T)
    await store.end_requests(U, "w1", ["3"])  # counts as use
    await store.end_idle_sessions(IDLE)
    assert await known(store, S, T, U) == {S, U}


async def test_idle_sessions_end_before_anybody_has_to_make_room(kind: Kind, store: SessionStore) -> None:
    await add(store, S, T, holder="somebody")
    await use(store, S)
    await kind.pass_time(2 * IDLE)
    await store.add_session(U, b"record", "somebody", limits(2, IDLE, pressure=2, share=2))
    assert await known(store, S, T, U) == {U}


# Requests, and the workers that serve them


async def test_the_workers_of_a_session_and_of_a_request_are_known(kind: Kind, store: SessionStore) -> None:
    for worker in ("w1", "w2:3000", "w3"):
        await kind.beat(worker)
    await add(store, S, T)
    odd = 'a:b\n"c"'
    await use(store, S, "1", odd)
    await use(store, S, "2", "", worker="w2:3000")
    await use(store, T, "1", worker="w3")
    assert set(await store.workers_of(S)) == {"w1", "w2:3000"}
    served = {request: await store.workers_of(S, request) for request in ("1", odd, "2", "", "3")}
    assert served == {"1": ["w1"], odd: ["w1"], "2": ["w2:3000"], "": ["w2:3000"], "3": []}
    await store.end_requests(S, "w1", ["1", odd])
    assert await store.workers_of(S) == ["w2:3000"]
    assert await store.workers_of(T) == ["w3"]


async def test_the_end_of_a_session_tells_which_workers_serve_it_and_forgets_its_requests(
    kind: Kind, store: SessionStore
) -> None:
    await add(store, S)
    for worker in ("w1", "w2", "w3"):
        await kind.beat(worker)
        await use(store, S, "1", "2", worker=worker)
    await store.end_requests(S, "w1", ["1", "2"])
    await kind.die("w3")
    assert await store.end_session(S) == ["w2"]
    await add(store, S)
    assert await store.workers_of(S) == []


async def test_a_worker_that_was_taken_for_dead_has_its_requests_again_when_it_comes_back(
    kind: Kind, store: SessionStore
) -> None:
    await kind.beat("w1")
    await add(store, S)
    await use(store, S, "1")
    await kind.die("w1")
    assert await store.workers_of(S) == await store.workers_of(S, "1") == []
    await kind.beat("w1")
    assert await store.workers_of(S, "1") == ["w1"]


# Questions


async def test_an_answer_is_sent_to_the_worker_that_asked_and_only_the_first_one(
    kind: Kind, store: SessionStore
) -> None:
    await kind.beat("w1")
    await store.open_question(S, "q:1", "w1")
    assert await store.is_question_open(S, "q:1")
    assert await store.answer_question(S, "q:1", b"yes") is Delivery.SENT
    assert await store.answer_question(S, "q:1", b"no") is Delivery.SENT
    assert await store.receive("w1") == [b"yes"]
    await store.close_question(S, "q:1")
    assert await store.answer_question(S, "q:1", b"late") is Delivery.UNKNOWN
    await store.open_question(S, "q:1", "w1")
    assert await store.answer_question(S, "q:1", b"again") is Delivery.SENT


@pytest.mark.parametrize("kind", ["redis"], indirect=True)
async def test_an_answer_that_is_sent_again_because_the_reply_was_lost_arrives_once(
    kind: Kind, store: SessionStore
) -> None:
    await kind.beat("w1")
    await store.open_question(S, "q", "w1")
    for _ in range(2):
        assert await store.answer_question(S, "q", b"yes") is Delivery.SENT
    assert await store.receive("w1") == [b"yes"]


async def _another_answer(store: SessionStore) -> None:
    assert await store.answer_question(S, "q", b"no") is Delivery.SENT


async def _a_sign_of_life(store: SessionStore) -> None:
    await store.retain("w1", [], [(S, "q")])


@pytest.mark.parametrize("kind", ["redis"], indirect=True)
@pytest.mark.parametrize("happens", [_another_answer, _a_sign_of_life])
async def test_an_answer_that_was_lost_on_its_way_is_sent_again(
    kind: Kind, store: SessionStore, happens: Callable[[SessionStore], Awaitable[None]]
) -> None:
    await kind.beat("w1")
    await store.open_question(S, "q", "w1")
    assert await store.answer_question(S, "q", b"yes") is Delivery.SENT
    assert await store.receive("w1") == [b"yes"]  # as if the connection had broken before the reply arrived
    for _ in range(2):
        await happens(store)
    assert await store.receive("w1") == [b"yes"]


async def _nothing(_kind: Kind) -> None: ...


async def _close(kind: Kind) -> None:
    await kind.sessions.close_question(S, "q")


async def _end_session(kind: Kind) -> None:
    await kind.sessions.end_session(S)


async def _leave(kind: Kind) -> None:
    await kind.sessions.leave("w1")


async def _idle(kind: Kind) -> None:
    await kind.pass_time(2 * IDLE)
    await kind.sessions.end_idle_sessions(IDLE)


async def _die(kind: Kind) -> None:
    await kind.die("w1")


@pytest.mark.parametrize(
    ("end", "delivery", "is_open"),
    [
        (_nothing, Delivery.SENT, True),
        (_close, Delivery.UNKNOWN, False),
        (_end_session, Delivery.UNKNOWN, False),
        (_idle, Delivery.UNKNOWN, False),
        (_leave, Delivery.UNKNOWN, False),
        (_die, Delivery.WORKER_GONE, True),
    ],
)
async def test_what_becomes_of_an_answer(
    kind: Kind, store: SessionStore, end: Callable[[Kind], Awaitable[None]], delivery: Delivery, is_open: bool
) -> None:
    await kind.beat("w1")
    await kind.beat("w2")
    await add(store, S, T)
    await store.open_question(S, "q", "w1")
    await end(kind)
    assert await store.is_question_open(S, "q") is is_open
    assert await store.answer_question(S, "q", b"yes") is delivery
    assert await store.answer_question(T, "q", b"yes") is Delivery.UNKNOWN
    assert await store.receive("w1") == ([b"yes"] if delivery is Delivery.SENT else [])
    await store.close_question(S, "q")
    assert not await store.is_question_open(S, "q")


async def test_a_worker_that_leaves_takes_along_only_its_own_questions(kind: Kind, store: SessionStore) -> None:
    await kind.beat("w1")
    await kind.beat("w2")
    await store.open_question(S, "mine", "w1")
    await store.open_question(S, "passed on", "w1")
    await store.open_question(S, "passed on", "w2")
    await store.open_question(S, "theirs", "w2")
    await store.leave("w1")
    questions = ("mine", "passed on", "theirs")
    assert [await store.is_question_open(S, question) for question in questions] == [False, True, True]


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
@pytest.mark.parametrize("rebooted", [False, True])
async def test_the_questions_of_a_worker_that_died_long_ago_are_forgotten(
    kind: SQLite, store: SessionStore, rebooted: bool
) -> None:
    await kind.beat("w1")
    await store.open_question(S, "q", "w1")
    await kind.die("w1")
    if rebooted:
        store = kind.booted("another boot")
    else:
        kind.steady.now += GONE_SECONDS + 1
    assert await store.answer_question(S, "q", b"yes") is Delivery.WORKER_GONE
    await store.beat("w2", listening=False)
    assert await store.answer_question(S, "q", b"yes") is Delivery.UNKNOWN


# Mail


async def test_mail_arrives_once_in_the_order_in_which_it_was_sent(kind: Kind, store: SessionStore) -> None:
    await kind.beat("w1")
    await kind.beat("w2")
    for number in range(5):
        await store.send(["w1", "w2"] if number < 2 else ["w1"], b"\x00%d" % number)
    await store.send([], b"nobody")
    assert await store.receive("w1") == [b"\x00%d" % number for number in range(5)]
    assert await store.receive("w1") == []
    assert await store.receive("w2") == [b"\x000", b"\x001"]


@pytest.mark.long
async def test_changes_are_sent_to_the_other_workers_that_listen(kind: Kind, store: SessionStore) -> None:
    for worker, listening in {"sender": True, "ears": True, "deaf": False, "dead": True}.items():
        await kind.beat(worker, listening=listening)
    await kind.beat("was deaf")
    await kind.beat("was deaf", listening=True)
    await kind.die("dead")
    await store.send_to_listeners("sender", b"changed")
    for worker, mail in {"sender": [], "ears": [b"changed"], "deaf": [], "dead": [], "was deaf": [b"changed"]}.items():
        assert await store.receive(worker) == mail
    await store.send_to_listeners("sender", b"again")
    assert await store.receive("ears") == [b"again"]


async def test_changes_are_dropped_for_a_worker_that_does_not_read_its_mail_and_answers_are_not(
    kind: Kind, store: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (redis_sessions, sqlite_sessions):
        monkeypatch.setattr(module, "MOST_MAIL", 3)
    for worker in ("sender", "slow"):
        await kind.beat(worker, listening=True)
    for number in range(5):
        await store.send_to_listeners("sender", b"%d" % number)
    await store.send(["slow"], b"cancelled")
    await store.open_question(b"session", "q", "slow")
    assert await store.answer_question(b"session", "q", b"answer") is Delivery.SENT
    assert await store.receive("slow") == [b"0", b"1", b"2", b"answer"]


async def test_a_worker_that_leaves_is_forgotten_with_all_it_has(kind: Kind, store: SessionStore) -> None:
    await kind.beat("w1", listening=True)
    await add(store, S)
    await use(store, S, "1")
    await store.open_question(S, "q", "w1")
    await store.send(["w1"], b"mail")
    await store.leave("w1")
    await store.send_to_listeners("w2", b"changed")
    await kind.beat("w1", listening=True)
    assert await store.workers_of(S) == []
    assert not await store.is_question_open(S, "q")
    assert await store.receive("w1") == []
    assert await known(store, S) == {S}


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
async def test_mail_for_a_worker_that_has_left_is_thrown_away(kind: Kind, store: SessionStore) -> None:
    await kind.beat("w1")
    await store.leave("w1")
    await store.send(["w1"], b"too late")
    await kind.beat("w2")
    assert await store.receive("w1") == []


async def test_a_worker_looks_for_mail_more_often_while_a_question_is_open(kind: Kind, store: SessionStore) -> None:
    pauses = store.pause(urgent=True), store.pause(urgent=False)
    assert pauses == ((0.02, 0.25) if isinstance(kind, SQLite) else (0.0, 0.0))


@pytest.mark.timing
@pytest.mark.parametrize("kind", ["redis"], indirect=True)
async def test_redis_waits_for_the_first_message(
    kind: Kind, store: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_sessions, "BLOCK_SECONDS", 3)
    receiving = asyncio.create_task(store.receive("w1"))
    await store.send(["w1"], b"mail")
    assert await asyncio.wait_for(receiving, 20) == [b"mail"]


@pytest.mark.parametrize("kind", ["redis"], indirect=True)
async def test_a_message_is_not_lost_when_redis_stops_before_the_others_are_read(
    kind: Kind, store: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = RedisConnection.command

    async def failing(self: RedisConnection, *words: object) -> object:
        if words[0] == "LPOP":
            raise StoreUnavailable("no route")
        return await command(self, *words)

    for number in range(3):
        await store.send(["w1"], b"%d" % number)
    monkeypatch.setattr(RedisConnection, "command", failing)
    assert await store.receive("w1") == [b"0"]
    monkeypatch.undo()
    assert await store.receive("w1") == [b"1", b"2"]


# The two stores


async def test_the_store_in_a_file_has_sessions_that_survive_a_restart(tmp_path: Path) -> None:
    for there in (set[bytes](), {S}):
        store = SQLiteStore(tmp_path / "store.db", server="shop")
        await store.start()
        assert await known(store.sessions, S) == there
        if not there:
            await add(store.sessions, S)
        await store.close()


async def test_servers_with_other_names_have_other_sessions(tmp_path: Path, redis_url: str) -> None:
    name = str(uuid4())
    for one, other in (
        tuple(SQLiteStore(tmp_path / "store.db", server=server) for server in (name, f"{name} 2")),
        tuple(RedisStore(redis_url, server=server) for server in (name, f"{name} 2")),
    ):
        await add(one.sessions, S)
        await one.sessions.beat("w1", listening=True)
        await other.sessions.send_to_listeners("w2", b"changed")
        assert await known(other.sessions, S) == set()
        assert await known(one.sessions, S) == {S}
        await one.sessions.end_session(S)
        await one.sessions.leave("w1")
        await one.close()
        await other.close()


async def test_what_a_worker_does_not_know_of_itself_is_forgotten(kind: Kind, store: SessionStore) -> None:
    for worker in ("w1", "w2"):
        await kind.beat(worker)
    await store.add_session(b"session", b"record", None, SessionLimits(None, None))
    for worker in ("w1", "w2"):
        await store.use_session(b"session", worker, ["1", "2"], used=True, idle_seconds=None)
        await store.open_question(b"session", f"known to {worker}", worker)
        await store.open_question(b"session", f"lost by {worker}", worker)
    await store.retain("w1", [(b"session", "2")], [(b"session", "known to w1")])
    assert await store.workers_of(b"session", "1") == ["w2"]
    assert sorted(await store.workers_of(b"session", "2")) == ["w1", "w2"]
    questions = ("known to w1", "lost by w1", "known to w2", "lost by w2")
    assert [await store.is_question_open(b"session", one) for one in questions] == [True, False, True, True]
    await store.retain("w1", [(b"session", "2")], [(b"session", "known to w1")])


async def test_a_second_answer_to_a_dead_worker_gets_what_the_first_got(kind: Kind, store: SessionStore) -> None:
    await kind.beat("w1")
    await store.open_question(b"session", "q", "w1")
    assert await store.answer_question(b"session", "q", b"first") is Delivery.SENT
    await kind.die("w1")
    for _ in range(2):
        assert await store.answer_question(b"session", "q", b"again") is Delivery.WORKER_GONE
