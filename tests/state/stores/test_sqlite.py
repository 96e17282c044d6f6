"""The SQLite store: its file, several processes, restarts, and a file that is locked, full, gone or another program's."""
# ruff: noqa: ASYNC220, ASYNC240 - nothing else runs in the loop of a test

import asyncio
import logging
import os
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import AsyncGenerator, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from bespeak.state.stores import sqlite as store_module
from bespeak.state.stores import sqlite_database
from bespeak.state.stores.sqlite import SQLiteStore
from bespeak.state.stores.sqlite_database import Database, boot_id
from bespeak.state.stores.store import ClaimLimits, ShareTaken, StoreFull, StoreUnavailable
from tests.state.stores.claiming import LEASE, KnownSQLiteStore, Steady, claim, done, entry, found, is_running, read

SECONDS = 20


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
async def store(path: Path) -> AsyncGenerator[SQLiteStore]:
    store = KnownSQLiteStore(path)
    await store.start()
    yield store
    await store.close()


@contextmanager
def other_program(path: Path) -> Generator[sqlite3.Connection]:
    """Another program that uses the file."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


async def start(path: Path, *, create: bool = True) -> None:
    store = KnownSQLiteStore(path, create=create)
    try:
        await store.start()
    finally:
        await store.close()


# The file


async def test_nobody_else_may_read_the_file_or_its_logs(path: Path) -> None:
    before = os.umask(0)
    try:
        store = KnownSQLiteStore(path)
        await done(store, "call")
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
        await store.close()
    finally:
        os.umask(before)
    assert modes == {"store.db": 0o600, "store.db-wal": 0o600, "store.db-shm": 0o600}


@pytest.mark.parametrize(("mode", "warned"), [(0o644, True), (0o600, False)])
async def test_a_file_that_others_may_read_is_a_warning(
    path: Path, caplog: pytest.LogCaptureFixture, mode: int, warned: bool
) -> None:
    path.touch()
    path.chmod(mode)
    store = KnownSQLiteStore(path)
    await claim(store, "call")
    await store.close()
    assert (f"{path} can be read or written by other users; run chmod 600 on it" in caplog.text) == warned


@pytest.mark.parametrize("mark", ["CREATE TABLE books (title TEXT)", "PRAGMA application_id = 7"])
async def test_the_database_of_another_program_is_refused_and_left_as_it_is(path: Path, mark: str) -> None:
    with other_program(path) as theirs:
        theirs.execute(mark)
    before = path.read_bytes()
    with pytest.raises(StoreUnavailable) as refused:
        await start(path)
    assert str(refused.value) == f"the store sqlite:{path} is a database of another program; use a new file"
    assert path.read_bytes() == before


async def test_another_format_is_refused(path: Path) -> None:
    await start(path)
    with other_program(path) as newer:
        newer.execute("PRAGMA user_version = 99")
    with pytest.raises(StoreUnavailable) as refused:
        await start(path)
    assert str(refused.value) == (
        f"the store sqlite:{path} was made by another version of bespeak (format 99, this is format 2); use a new file"
    )


async def test_a_file_that_is_not_a_database_is_refused(path: Path) -> None:
    path.write_text("Dear diary, " * 100)
    with pytest.raises(StoreUnavailable, match="cannot be used: file is not a database"):
        await start(path)


async def test_a_file_that_must_exist_is_not_created(path: Path) -> None:
    with pytest.raises(StoreUnavailable) as refused:
        await start(path, create=False)
    assert str(refused.value) == f"the store sqlite:{path} does not exist"
    assert not path.exists()
    await start(path)
    await start(path, create=False)


async def test_a_file_whose_directory_is_missing_cannot_be_created(path: Path) -> None:
    path = path.parent / "missing" / "store.db"
    with pytest.raises(StoreUnavailable) as refused:
        await start(path)
    assert str(refused.value) == f"the store sqlite:{path} cannot be created: No such file or directory"


async def test_a_name_may_contain_what_has_a_meaning_in_a_url(tmp_path: Path) -> None:
    await start(tmp_path / "a store?mode=ro#100%.db")
    assert [file.name for file in tmp_path.iterdir()] == ["a store?mode=ro#100%.db"]


@pytest.mark.timing
@pytest.mark.long
def test_many_who_create_the_file_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    together = threading.Barrier(6)

    def begin(path: Path) -> None:
        together.wait(SECONDS)
        asyncio.run(start(path))

    with ThreadPoolExecutor(6) as threads:
        for turn in range(10):
            list(threads.map(begin, [tmp_path / f"{turn}.db"] * 6))


# Several processes, and restarts

PROGRAM = """
import asyncio, random, sys
from tests.state.stores.claiming import KnownSQLiteStore
from bespeak.state.stores.store import Entry

async def main(path, owner):
    store = KnownSQLiteStore(path)
    calls = list(range(200))
    random.Random(owner).shuffle(calls)
    won = []
    for call in calls:
        if await store.claim(str(call), Entry(b"answers.", b"request.", owner, 0.0, 0.0, 100.0, 1000.0), 1500.0) is None:
            won.append(call)
            await store.finish(str(call), owner, owner.encode())
    await store.close()
    print(*won)

print("ready", flush=True)
sys.stdin.readline()
asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.long
@pytest.mark.timing
async def test_of_several_processes_that_claim_the_same_calls_one_gets_each(path: Path) -> None:
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(path), f"worker {number}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    try:
        for worker in workers:
            assert worker.stdout is not None
            assert await asyncio.to_thread(worker.stdout.readline) == "ready\n"
        going = [asyncio.to_thread(worker.communicate, "go\n", 50) for worker in workers]
        outputs = [output for output, _ in await asyncio.gather(*going)]
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    assert [worker.returncode for worker in workers] == [0] * 4
    won = {f"worker {number}": [int(call) for call in output.split()] for number, output in enumerate(outputs)}
    assert sorted(call for calls in won.values() for call in calls) == list(range(200))
    store = KnownSQLiteStore(path)
    for owner, calls in won.items():
        for call in calls:
            there = await found(store, str(call))
            assert (there.owner, there.result) == (owner, owner.encode())
    await store.close()


async def test_claims_survive_a_restart(path: Path) -> None:
    steady = Steady()
    first = KnownSQLiteStore(path, steady=steady)
    await claim(first, "running")
    await done(first, "done")
    await first.close()
    steady.now += 1000.0
    second = KnownSQLiteStore(path, create=False, steady=steady)
    assert is_running(await read(second, "running"), left=LEASE - 1000)
    assert (await found(second, "done")).result == b"result"
    await second.close()


async def test_a_lease_from_before_the_machine_was_started_has_lapsed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "boot_id", lambda: "earlier")
    earlier = KnownSQLiteStore(path, steady=Steady())
    await claim(earlier, "call")
    assert is_running(await read(earlier, "call"))
    await earlier.close()
    monkeypatch.setattr(store_module, "boot_id", lambda: "later")
    later = KnownSQLiteStore(path, steady=Steady())
    assert (await found(later, "call")).lease_left == 0
    assert await later.take_over("call", "me", entry("another"), LEASE)
    assert is_running(await read(later, "call"), "another")
    await later.close()


def test_the_name_of_a_boot_is_empty_where_the_system_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: Path) -> str:
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", missing)
    assert boot_id() == ""


async def test_two_servers_with_one_file_have_their_own_claims_and_limits(path: Path) -> None:
    limits = ClaimLimits(max_claims=2, pressure=0, share=0.5, max_result_bytes=6)
    one, other = (KnownSQLiteStore(path, server=name, limits=limits) for name in ("one", "other"))
    for store in (one, other):
        await done(store, "call", holder="somebody")
        with pytest.raises(ShareTaken):
            await store.claim("another", entry(holder="somebody"), LEASE)
        await claim(store, "another")
        with pytest.raises(StoreFull):
            await store.claim("third", entry(), LEASE)
    assert (await found(one, "call")).result == (await found(other, "call")).result == b"result"
    await one.close()
    await other.close()


# When it cannot be used


async def test_a_locked_file_is_unavailable_after_a_bounded_time_and_works_when_it_is_free(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_database, "WAIT_SECONDS", 0.1)
    store = KnownSQLiteStore(path)
    await claim(store, "before")
    with other_program(path) as theirs:
        theirs.execute("BEGIN IMMEDIATE")
        before = time.monotonic()
        with pytest.raises(StoreUnavailable) as locked:
            await store.claim("call", entry(), LEASE)
        assert str(locked.value) == f"the store sqlite:{path} cannot be used: database is locked"
        assert 0.05 < time.monotonic() - before < 10
    await claim(store, "call")
    assert is_running(await read(store, "before"))
    await store.close()


@pytest.mark.timing
async def test_a_file_that_is_locked_while_it_is_opened_is_unavailable_after_a_bounded_time(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_database, "WAIT_SECONDS", 0.1)
    path.touch(mode=0o600)
    with other_program(path) as theirs:
        theirs.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="database is locked"):
            await asyncio.wait_for(start(path), SECONDS)
    await start(path)


@pytest.mark.timing
async def test_who_waits_behind_others_for_a_locked_file_waits_no_longer_than_they(
    path: Path, store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with other_program(path) as theirs:
        theirs.execute("BEGIN IMMEDIATE")
        monkeypatch.setattr(sqlite_database, "WAIT_SECONDS", -0.9)  # while the connection itself waits for longer
        waiting = [store.claim(f"call {number}", entry(), LEASE) for number in range(5)]
        outcomes = await asyncio.gather(*waiting, return_exceptions=True)
        monkeypatch.undo()
    assert {type(outcome) for outcome in outcomes} == {StoreUnavailable}
    assert {str(outcome) for outcome in outcomes} == {f"the store sqlite:{path} did not answer within -0.9 s"}
    await claim(store, "later")


async def test_a_full_disk_is_said_to_be_full_and_what_was_there_stays(path: Path) -> None:
    database = Database(path, create=True, durable=False)
    await database.write(lambda db: db.execute("INSERT INTO totals (server, incarnation) VALUES ('one', 'i')"))
    await database.read(lambda db: db.execute("PRAGMA max_page_count = 1").fetchone())

    def fill(db: sqlite3.Connection) -> None:
        db.execute("UPDATE totals SET claims = 9")
        for number in range(1000):
            db.execute("INSERT INTO mail (server, worker, message) VALUES ('one', ?, ?)", (number, bytes(5000)))

    with pytest.raises(StoreUnavailable, match="database or disk is full"):
        await database.write(fill)
    assert await database.read(lambda db: db.execute("SELECT server, claims FROM totals").fetchall()) == [("one", 0)]
    await database.close()


@pytest.mark.parametrize("create", [True, False])
async def test_a_file_that_is_deleted_in_use_is_unavailable_and_not_begun_anew(path: Path, create: bool) -> None:
    await start(path)
    store = KnownSQLiteStore(path, create=create)
    await store.start()
    await done(store, "call")
    kept = path.rename(path.with_suffix(".kept"))
    for name in ("-wal", "-shm"):
        Path(f"{path}{name}").rename(f"{kept}{name}")
    for _ in range(2):
        with pytest.raises(StoreUnavailable) as gone:
            await store.claim("call", entry("another"), LEASE)
        assert str(gone.value) == (
            f"the store sqlite:{path} was deleted or moved while it was in use; put it back, or start the server again"
        )
    with pytest.raises(StoreUnavailable):
        await store.sessions.beat("worker", listening=False)
    assert not path.exists()
    for name in ("-wal", "-shm", ""):
        if Path(f"{kept}{name}").exists():
            Path(f"{kept}{name}").rename(f"{path}{name}")
    assert (await found(store, "call")).result == b"result"
    await store.close()


async def test_a_file_that_was_replaced_is_used_from_then_on_and_that_is_an_error_in_the_log(
    path: Path, store: SQLiteStore, caplog: pytest.LogCaptureFixture
) -> None:
    await claim(store, "call")
    for file in path.parent.iterdir():
        file.rename(path.parent / f"old {file.name}")
    other = KnownSQLiteStore(path)
    await claim(other, "new", "other")
    assert is_running(await read(store, "new"), "other")
    text = (
        f"the store sqlite:{path} was replaced by another file; approvals that were spent before could be spent again"
    )
    assert [(record.levelno, record.message) for record in caplog.records] == [(logging.ERROR, text)]
    await other.close()


async def test_a_store_that_was_closed_opens_its_file_again(store: SQLiteStore) -> None:
    await claim(store, "call")
    await store.close()
    assert is_running(await read(store, "call"))
    await store.close()
    await store.close()


async def test_a_store_names_its_file_in_messages(path: Path, store: SQLiteStore) -> None:
    assert str(store) == f"the store sqlite:{path}"
    assert store.shared
