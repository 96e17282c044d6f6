"""A SQLite file that several processes of one machine use: opening it, its tables, its thread and its transactions."""

import asyncio
import os
import sqlite3
import stat
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from logging import getLogger
from pathlib import Path
from typing import TypeVar

from bespeak.state.forks import leave_to_parent
from bespeak.state.stores.store import StoreUnavailable

logger = getLogger("bespeak.state")

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

WAIT_SECONDS = 5.0
"""How long an operation may take, waiting for other processes included."""
MODE = 0o600
_APPLICATION = 0x42535045
"""Marks a database as ours."""
_SCHEMA_VERSION = 2
_SCHEMA = """
CREATE TABLE claims (
    server TEXT NOT NULL, call BLOB NOT NULL, answers BLOB NOT NULL, request BLOB NOT NULL, owner TEXT NOT NULL,
    claimed REAL NOT NULL, kept_until REAL NOT NULL, deadline REAL NOT NULL, holder BLOB,
    boot TEXT NOT NULL, lease_until REAL NOT NULL, done INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (server, call)) WITHOUT ROWID;
CREATE INDEX claims_by_end ON claims (server, kept_until);
CREATE TABLE results (number INTEGER PRIMARY KEY, server TEXT NOT NULL, call BLOB NOT NULL, result BLOB NOT NULL);
CREATE UNIQUE INDEX results_by_call ON results (server, call);
CREATE INDEX results_by_age ON results (server, number);
CREATE TABLE holders (
    server TEXT NOT NULL, holder BLOB NOT NULL, held INTEGER NOT NULL, PRIMARY KEY (server, holder)) WITHOUT ROWID;
CREATE TABLE totals (
    server TEXT PRIMARY KEY, incarnation TEXT NOT NULL,
    claims INTEGER NOT NULL DEFAULT 0, result_bytes INTEGER NOT NULL DEFAULT 0,
    dropped_claimed REAL NOT NULL DEFAULT -9e999, dropped_deadline REAL NOT NULL DEFAULT -9e999) WITHOUT ROWID;
CREATE TABLE sessions (
    server TEXT NOT NULL, id BLOB NOT NULL, record BLOB NOT NULL, version INTEGER NOT NULL DEFAULT 1, holder BLOB,
    used INTEGER NOT NULL DEFAULT 0, last_used REAL NOT NULL, PRIMARY KEY (server, id)) WITHOUT ROWID;
CREATE INDEX sessions_by_use ON sessions (server, used, last_used);
CREATE INDEX sessions_by_holder ON sessions (server, holder);
CREATE TABLE requests (
    server TEXT NOT NULL, session BLOB NOT NULL, request TEXT NOT NULL, worker TEXT NOT NULL,
    PRIMARY KEY (server, session, request, worker)) WITHOUT ROWID;
CREATE INDEX requests_by_worker ON requests (server, worker);
CREATE TABLE questions (
    server TEXT NOT NULL, session BLOB NOT NULL, question TEXT NOT NULL, worker TEXT NOT NULL,
    answered INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (server, session, question)) WITHOUT ROWID;
CREATE INDEX questions_by_worker ON questions (server, worker);
CREATE TABLE workers (
    server TEXT NOT NULL, worker TEXT NOT NULL, boot TEXT NOT NULL, alive_until REAL NOT NULL, listening INTEGER NOT NULL,
    PRIMARY KEY (server, worker)) WITHOUT ROWID;
CREATE TABLE mail (number INTEGER PRIMARY KEY, server TEXT NOT NULL, worker TEXT NOT NULL, message BLOB NOT NULL);
CREATE INDEX mail_by_worker ON mail (server, worker);
"""


class Database:
    """One connection to the file, used by a thread of its own, so that waiting for another process blocks no event loop."""

    def __init__(self, path: Path, *, create: bool, durable: bool) -> None:
        self._path = path
        self._create = create
        self._durable = durable
        """Whether a change must survive a power failure. A change always survives the end of the process."""
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        """Which file was opened: its device and number."""
        self.begin()

    def begin(self) -> None:
        """Begin without a thread: in a forked process, the one of the parent does not exist."""
        self._lock = threading.Lock()
        self._in_use = threading.Lock()
        """Held while the connection is used."""
        self._thread: ThreadPoolExecutor | None = None
        if self._connection is not None:  # it was in use when the process was forked
            leave_to_parent(self._connection)
            self._connection = None

    def pause(self) -> None:
        """Close the connection, and keep it closed until `resume`. An operation that runs is waited for within a time limit."""
        self._paused = self._in_use.acquire(timeout=WAIT_SECONDS)
        if self._paused:
            self._disconnect()

    def resume(self) -> None:
        if self._paused:
            self._in_use.release()

    async def read(self, work: Work[T]) -> T:
        """Return what `work` reads. Raises `StoreUnavailable`."""
        return await self._run(work)

    async def write(self, work: Work[T]) -> T:
        """Run `work` in a transaction, which is undone if it raises. Raises `StoreUnavailable`."""

        def transaction(connection: sqlite3.Connection) -> T:
            connection.execute("BEGIN IMMEDIATE")
            try:
                result = work(connection)
            except BaseException:
                if connection.in_transaction:  # SQLite itself ends it if the disk is full
                    connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")
            return result

        return await self._run(transaction)

    async def _run(self, work: Work[T]) -> T:
        with self._lock:
            if self._thread is None:
                self._thread = ThreadPoolExecutor(1, "bespeak-sqlite")
            running: Future[T] = self._thread.submit(self._work, work)
        try:
            async with asyncio.timeout(WAIT_SECONDS + 1):
                return await asyncio.wrap_future(running)
        except TimeoutError:
            raise StoreUnavailable(f"{self} did not answer within {WAIT_SECONDS:g} s") from None

    def _work(self, work: Work[T]) -> T:
        with self._in_use:
            try:
                self._notice_other_file()
                if self._connection is None:
                    self._connection = self._open()
                return work(self._connection)
            except sqlite3.Error as error:
                # A new connection finds out whether the file is still there.
                self._disconnect()
                raise StoreUnavailable(f"{self} cannot be used: {error}") from error

    async def close(self) -> None:
        """Close the file. It is opened again if it is used again."""
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None:
            closing = thread.submit(self._disconnect)
            thread.shutdown(wait=False)
            await asyncio.wrap_future(closing)

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()

    def _notice_other_file(self) -> None:
        """Raises `StoreUnavailable` if the file was deleted: SQLite would go on without it, and other processes with a new one."""
        if self._file is None:
            return
        found = self._find()
        if found is None:
            self._disconnect()
            raise StoreUnavailable(
                f"{self} was deleted or moved while it was in use; put it back, or start the server again"
            )
        if found != self._file:
            logger.error("%s was replaced by another file; approvals that were spent before could be spent again", self)
            self._disconnect()
            self._file = None

    def _find(self) -> tuple[int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def _open(self) -> sqlite3.Connection:
        if self._create:
            self._make_file()
        elif not self._path.exists():
            raise StoreUnavailable(f"{self} does not exist")
        connection = sqlite3.connect(
            f"{self._path.as_uri()}?mode=rw",
            uri=True,
            timeout=WAIT_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            connection.execute("BEGIN")
            self._check_kind(connection)  # before anything is changed
            connection.execute("COMMIT")
            _use_write_ahead_log(connection)
            connection.execute(f"PRAGMA synchronous = {'FULL' if self._durable else 'NORMAL'}")
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        self._file = self._find()
        return connection

    def _make_file(self) -> None:
        """Create the file so that nobody else may read it. Raises `StoreUnavailable` if that is not possible."""
        try:
            os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, MODE))
        except FileExistsError:
            with suppress(OSError):
                if stat.S_IMODE(self._path.stat().st_mode) & ~MODE:
                    logger.warning("%s can be read or written by other users; run chmod 600 on it", self._path)
        except OSError as error:
            raise StoreUnavailable(f"{self} cannot be created: {error.strerror}") from None

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Create the tables, unless they are there."""
        connection.execute("BEGIN IMMEDIATE")
        if not self._check_kind(connection):
            for statement in _SCHEMA.split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")
        connection.execute("COMMIT")

    def _check_kind(self, connection: sqlite3.Connection) -> bool:
        """Return whether the tables are there. Raises `StoreUnavailable` for a database of another kind."""
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if application == _APPLICATION:
            if version != _SCHEMA_VERSION:
                raise StoreUnavailable(
                    f"{self} was made by another version of bespeak (format {version}, this is format {_SCHEMA_VERSION}); "
                    "use a new file"
                )
            return True
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        if tables or application:
            raise StoreUnavailable(f"{self} is a database of another program; use a new file")
        return False

    def __str__(self) -> str:
        return f"the store sqlite:{self._path}"


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Switch the log on. SQLite does not wait for another process that does the same at the same time."""
    give_up = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > give_up:
                raise
        time.sleep(0.01)


def boot_id() -> str:
    """Return a name for the time since the machine was started, because its monotonic clock begins anew with each start."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return (
        ""  # elsewhere, a lease from before a restart seems to last until the clock has caught up: nothing runs twice
    )
