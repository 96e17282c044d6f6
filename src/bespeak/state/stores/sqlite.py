"""The ledger in a SQLite file: for several processes on one machine, and for claims that survive a restart."""

import asyncio
import math
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import TypeVar

from bespeak.state.forks import OfOneProcess
from bespeak.state.stores.sqlite_database import Database, Work, boot_id
from bespeak.state.stores.sqlite_sessions import SQLiteSessions
from bespeak.state.stores.store import (
    PURGED_AT_ONCE,
    Claim,
    ClaimLimits,
    Entry,
    Forgotten,
    Horizon,
    ShareTaken,
    StoreFull,
    StoreUnavailable,
    key_of,
    new_incarnation,
)

T = TypeVar("T")

POLL_SECONDS = (0.02, 0.25)
"""The first and the longest pause between two looks at a claim that is waited for."""


class SQLiteStore(OfOneProcess):
    """Keeps claims in a SQLite file, for one server. All processes of a machine may use the file at the same time.

    No connection is open while the process is forked. SQLite knows which files a process has open, and a child that inherited one
    would not take the locks that keep the log from being deleted under it.

    With `durable`, a claim is written to the disk before its call is run, so that it survives a power failure. Without `create`,
    the file must exist.
    """

    shared = True
    may_wait = True

    def __init__(
        self,
        path: str | Path,
        *,
        server: str = "bespeak",
        limits: ClaimLimits | None = None,
        create: bool = True,
        durable: bool = True,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        path = Path(path).absolute()
        self._server = server
        self._limits = limits or ClaimLimits()
        self._steady = steady
        self._boot = boot_id()
        self._claims = Database(path, create=create, durable=durable)
        # What older clients need is worth nothing after a power failure, and does not wait for claims to be on the disk.
        self._others = Database(path, create=create, durable=False)
        self.sessions = SQLiteSessions(self._others, server, self._boot)
        self._users = 0
        super().__init__()

    def before_fork(self) -> None:
        for database in (self._claims, self._others):
            database.pause()

    def after_fork(self) -> None:
        for database in (self._claims, self._others):
            database.resume()

    def begin_anew(self) -> None:
        self._users = 0
        for database in (self._claims, self._others):
            database.begin()

    async def start(self) -> None:
        for database in (self._claims, self._others):
            await database.read(lambda connection: connection.execute("SELECT 1 FROM totals").fetchone())
        self._users += 1

    async def close(self) -> None:
        self._users -= 1
        if self._users <= 0:
            await self._claims.close()
            await self._others.close()

    def __str__(self) -> str:
        return str(self._claims)

    # Claims

    async def claim(self, call: str, entry: Entry, lease: float) -> Claim | None:
        key = key_of(call)

        def work(db: sqlite3.Connection) -> Claim | None:
            there = self._read(db, key)
            if there is None:
                self._add(db, key, entry, lease_until=self._steady() + lease)
            elif there.owner != entry.owner:
                return there
            return None  # ours now, or already if the answer was lost

        return await self._write_after_purge(work, entry.claimed)

    async def take_try(self, tries: Sequence[str], entry: Entry) -> int | None:
        keys = [key_of(one) for one in tries]

        def work(db: sqlite3.Connection) -> int | None:
            for number, key in enumerate(keys, 1):
                there = self._read(db, key)
                if there is None:
                    self._add(db, key, entry, done=True)
                elif there.answers != entry.answers:
                    continue
                return number
            return None

        return await self._write_after_purge(work, entry.claimed)

    async def _write_after_purge(self, work: Work[T], now: float) -> T:
        def after_purge(db: sqlite3.Connection) -> T | StoreFull | ShareTaken | Forgotten:
            self._purge(db, now)
            try:
                return work(db)
            except (StoreFull, ShareTaken, Forgotten) as refused:
                return refused  # raised here, it would undo the purge

        found = await self._claims.write(after_purge)
        if isinstance(found, (StoreFull, ShareTaken, Forgotten)):
            raise found
        return found

    def _add(
        self, db: sqlite3.Connection, key: bytes, entry: Entry, *, lease_until: float = 0.0, done: bool = False
    ) -> None:
        """Add a claim. Raises `StoreFull`, `ShareTaken` or `Forgotten`."""
        holder = _holder(entry.holder)
        self._known(db, entry.incarnation).check(entry.issued, entry.deadline)
        taken = self._taken(db, entry.claimed)
        if taken >= self._limits.max_claims:
            raise StoreFull
        self._check_share(db, holder, taken)
        db.execute(
            "INSERT INTO claims (server, call, answers, request, owner, claimed, kept_until, deadline, holder, boot, "
            "lease_until, done) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                self._server,
                key,
                entry.answers,
                entry.request,
                entry.owner,
                entry.claimed,
                entry.kept_until,
                entry.deadline,
                holder,
                self._boot,
                lease_until,
                done,
            ),
        )
        db.execute("UPDATE totals SET claims = claims + 1 WHERE server = ?", (self._server,))
        if holder is not None:
            db.execute(
                "INSERT INTO holders VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET held = held + 1", (self._server, holder)
            )

    async def take_over(self, call: str, lapsed_owner: str, entry: Entry, lease: float) -> bool:
        key = key_of(call)

        def work(db: sqlite3.Connection) -> bool:
            there = self._read(db, key)
            if there is not None and there.owner == entry.owner:
                return True
            if there is None or there.done or there.owner != lapsed_owner:
                return False
            db.execute(
                "UPDATE claims SET answers = ?, request = ?, owner = ?, claimed = max(claimed, ?), "
                "kept_until = max(kept_until, ?), boot = ?, lease_until = ? WHERE server = ? AND call = ?",
                (
                    entry.answers,
                    entry.request,
                    entry.owner,
                    entry.claimed,
                    entry.kept_until,
                    self._boot,
                    self._steady() + lease,
                    self._server,
                    key,
                ),
            )
            return True

        return await self._claims.write(work)

    async def withdraw(self, call: str, owner: str) -> None:
        key = key_of(call)

        def work(db: sqlite3.Connection) -> None:
            row = db.execute(
                "SELECT holder FROM claims WHERE server = ? AND call = ? AND owner = ? AND NOT done",
                (self._server, key, owner),
            ).fetchone()
            if row is not None:
                self._delete(db, key, row[0])

        await self._claims.write(work)

    async def renew(self, call: str, owner: str, lease: float) -> bool:
        key = key_of(call)

        def work(db: sqlite3.Connection) -> bool:
            changed = db.execute(
                "UPDATE claims SET boot = ?, lease_until = ? WHERE server = ? AND call = ? AND owner = ?",
                (self._boot, self._steady() + lease, self._server, key, owner),
            )
            return bool(changed.rowcount)

        return await self._claims.write(work)

    async def finish(self, call: str, owner: str, result: bytes) -> bool:
        key = key_of(call)

        def work(db: sqlite3.Connection) -> bool:
            changed = db.execute(
                "UPDATE claims SET done = 1 WHERE server = ? AND call = ? AND owner = ? AND NOT done",
                (self._server, key, owner),
            )
            if changed.rowcount:
                db.execute("INSERT INTO results (server, call, result) VALUES (?, ?, ?)", (self._server, key, result))
                self._count_bytes(db, len(result))
                self._evict(db)
                return True
            there = self._read(db, key)
            return there is not None and there.owner == owner

        return await self._claims.write(work)

    async def read(self, call: str, issued: float, deadline: float, incarnation: str | None) -> Claim | None:
        key = key_of(call)

        def work(db: sqlite3.Connection) -> Claim | None:
            there = self._read(db, key)
            if there is None:
                self._known(db, incarnation).check(issued, deadline)
            return there

        there = await self._claims.read(work)
        if there is not None and not there.done and there.lease_left <= 0:
            await self._claims.write(lambda db: self._rewrite(db, key))
        return there

    async def changed(self, call: str, timeout: float) -> None:
        key = key_of(call)
        give_up, (pause, longest) = asyncio.get_running_loop().time() + timeout, POLL_SECONDS
        while True:
            there = await self._claims.read(lambda db: self._read(db, key))
            left = give_up - asyncio.get_running_loop().time()
            if there is None or there.done or left <= 0:
                return
            await asyncio.sleep(min(pause, left))
            pause = min(pause * 2, longest)

    async def check_room(self, holder: str | None, now: float) -> str:
        def work(db: sqlite3.Connection) -> str | None:
            found = self._found(db)
            if found is None:
                return None
            incarnation, horizon = found
            horizon.check_asking(now)
            taken = self._taken(db, now)
            if taken >= self._limits.most_for_questions:
                raise StoreFull
            self._check_share(db, _holder(holder), taken)
            return incarnation

        incarnation: str | None = None
        with suppress(ShareTaken):  # perhaps by claims that need not be kept any longer
            incarnation = await self._claims.read(work)
        if incarnation is None:
            await self._claims.write(lambda db: self._purge(db, now))
            incarnation = await self._claims.read(work)
        if incarnation is None:
            raise StoreUnavailable(f"{self} was replaced while it was used")
        return incarnation

    # Rows

    def _read(self, db: sqlite3.Connection, key: bytes) -> Claim | None:
        row = db.execute(
            "SELECT answers, request, owner, boot, lease_until, done, result FROM claims LEFT JOIN results USING (server, call) "
            "WHERE server = ? AND call = ?",
            (self._server, key),
        ).fetchone()
        if row is None:
            return None
        answers, request, owner, boot, lease_until, done, result = row
        left = lease_until - self._steady() if boot == self._boot else 0.0
        return Claim(answers, request, owner, left, bool(done), result)

    def _rewrite(self, db: sqlite3.Connection, key: bytes) -> None:
        """Write to a claim that has lapsed. This fails if the disk is full, as renewing it does.

        SQLite would not write what is there already, so it lapses a millisecond earlier.
        """
        db.execute(
            "UPDATE claims SET lease_until = lease_until - 0.001 WHERE server = ? AND call = ?", (self._server, key)
        )

    def _found(self, db: sqlite3.Connection) -> tuple[str, Horizon] | None:
        """Return the incarnation, and up to when claims have been dropped; `None` if nothing is known of this server yet."""
        row = db.execute(
            "SELECT incarnation, dropped_claimed, dropped_deadline FROM totals WHERE server = ?", (self._server,)
        ).fetchone()
        return (row[0], Horizon(*row[1:])) if row is not None else None

    def _known(self, db: sqlite3.Connection, incarnation: str | None) -> Horizon:
        """Return up to when claims have been dropped. Raises `Forgotten` for a state from another incarnation."""
        found = self._found(db)
        if found is None or found[0] != incarnation:
            raise Forgotten
        return found[1]

    def _taken(self, db: sqlite3.Connection, now: float) -> int:
        """Return how many claims there are, without those that wait to be dropped."""
        row = db.execute("SELECT claims FROM totals WHERE server = ?", (self._server,)).fetchone()
        if row is None or not row[0]:
            return 0
        (due,) = db.execute(
            "SELECT count(*) FROM claims WHERE server = ? AND kept_until <= ?", (self._server, now)
        ).fetchone()
        return row[0] - due

    def _check_share(self, db: sqlite3.Connection, holder: bytes | None, taken: int) -> None:
        if holder is None or taken <= self._limits.most_without_shares:
            return
        row = db.execute("SELECT held FROM holders WHERE server = ? AND holder = ?", (self._server, holder)).fetchone()
        if row is not None and row[0] >= self._limits.most_of_one:
            raise ShareTaken

    # Making room

    def _purge(self, db: sqlite3.Connection, now: float) -> None:
        """Drop some of what need not be kept any longer. A claim whose lease is renewed is kept a little longer."""
        db.execute(
            "INSERT OR IGNORE INTO totals (server, incarnation) VALUES (?, ?)", (self._server, new_incarnation())
        )
        due = db.execute(
            "SELECT call, holder, claimed, kept_until, deadline, boot, lease_until, done, length(result) FROM claims "
            "LEFT JOIN results USING (server, call) WHERE server = ? AND kept_until <= ? ORDER BY kept_until LIMIT ?",
            (self._server, now, PURGED_AT_ONCE),
        ).fetchall()
        if not due:
            return
        horizon = Horizon(
            *db.execute(
                "SELECT dropped_claimed, dropped_deadline FROM totals WHERE server = ?", (self._server,)
            ).fetchone()
        )
        for call, holder, claimed, kept_until, deadline, boot, lease_until, done, size in due:
            left = lease_until - self._steady() if boot == self._boot else 0.0
            if not done and left > 0:
                db.execute(
                    "UPDATE claims SET kept_until = ? WHERE server = ? AND call = ?",
                    (now + max(1.0, left), self._server, call),
                )
                continue
            at_deadline = kept_until >= deadline
            horizon.move(-math.inf if at_deadline else claimed, deadline if at_deadline else -math.inf)
            if size is not None:
                db.execute("DELETE FROM results WHERE server = ? AND call = ?", (self._server, call))
                self._count_bytes(db, -size)
            self._delete(db, call, holder)
        db.execute(
            "UPDATE totals SET dropped_claimed = ?, dropped_deadline = ? WHERE server = ?",
            (horizon.claimed, horizon.deadline, self._server),
        )

    def _delete(self, db: sqlite3.Connection, call: bytes, holder: bytes | None) -> None:
        db.execute("DELETE FROM claims WHERE server = ? AND call = ?", (self._server, call))
        db.execute("UPDATE totals SET claims = claims - 1 WHERE server = ?", (self._server,))
        if holder is not None:
            db.execute("UPDATE holders SET held = held - 1 WHERE server = ? AND holder = ?", (self._server, holder))
            db.execute("DELETE FROM holders WHERE server = ? AND holder = ? AND held <= 0", (self._server, holder))

    def _evict(self, db: sqlite3.Connection) -> None:
        """Drop the oldest results, while all of them together are too large."""
        while self._bytes(db) > self._limits.max_result_bytes:
            number, size = db.execute(
                "SELECT number, length(result) FROM results WHERE server = ? ORDER BY number LIMIT 1", (self._server,)
            ).fetchone()
            db.execute("DELETE FROM results WHERE number = ?", (number,))
            self._count_bytes(db, -size)

    def _bytes(self, db: sqlite3.Connection) -> int:
        return db.execute("SELECT result_bytes FROM totals WHERE server = ?", (self._server,)).fetchone()[0]

    def _count_bytes(self, db: sqlite3.Connection, size: int) -> None:
        db.execute("UPDATE totals SET result_bytes = result_bytes + ? WHERE server = ?", (size, self._server))


def _holder(holder: str | None) -> bytes | None:
    """A digest, because a holder may be the name of a person."""
    return blake2b(holder.encode(), digest_size=16).digest() if holder is not None else None
