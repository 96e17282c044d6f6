"""The sessions of older clients in a SQLite file, and the mail between the workers that serve them."""

import sqlite3
import time
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import cast

from bespeak.protocol.session_facts import Delivery, SessionLimits, TooManyOfOne, TooManySessions
from bespeak.state.stores.session_store import (
    GONE_SECONDS,
    MOST_MAIL,
    WORKER_LEASE,
    SessionRow,
)
from bespeak.state.stores.sqlite_database import Database

QUICK_SECONDS = 0.02
"""How often a worker looks for mail while it waits for the answer to a question."""
SLOW_SECONDS = 0.25
"""How often it does otherwise."""


class SQLiteSessions:
    """What the workers of one server share about older clients."""

    def __init__(
        self,
        database: Database,
        server: str,
        boot: str,
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._server = server
        self._boot = boot
        self._clock = clock
        self._steady = steady

    # Workers

    async def beat(self, worker: str, *, listening: bool) -> None:
        def work(db: sqlite3.Connection) -> None:
            db.execute(
                "INSERT INTO workers VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET boot = excluded.boot, "
                "alive_until = excluded.alive_until, listening = excluded.listening",
                (self._server, worker, self._boot, self._steady() + WORKER_LEASE, listening),
            )
            long_dead = db.execute(
                "SELECT worker FROM workers WHERE server = ? AND (boot != ? OR alive_until < ?)",
                (self._server, self._boot, self._steady() - GONE_SECONDS),
            ).fetchall()
            for (one,) in long_dead:
                self._forget(db, one)
            db.execute(  # for workers that had left
                "DELETE FROM mail WHERE server = ? AND worker NOT IN (SELECT worker FROM workers WHERE server = ?)",
                (self._server, self._server),
            )

        await self._database.write(work)

    async def retain(
        self, worker: str, requests: Sequence[tuple[bytes, str]], questions: Sequence[tuple[bytes, str]]
    ) -> None:
        known = {"request": set(requests), "question": set(questions)}

        def look(db: sqlite3.Connection) -> list[tuple[str, bytes, str]]:
            return [
                (one, session, name)
                for one in known
                for session, name in db.execute(
                    f"SELECT session, {one} FROM {one}s WHERE server = ? AND worker = ?", (self._server, worker)
                )
                if (session, name) not in known[one]
            ]

        def forget(db: sqlite3.Connection) -> None:
            for one, session, name in left:
                db.execute(
                    f"DELETE FROM {one}s WHERE server = ? AND session = ? AND {one} = ? AND worker = ?",
                    (self._server, session, name, worker),
                )

        left = await self._database.read(look)
        if left:
            await self._database.write(forget)

    async def leave(self, worker: str) -> None:
        await self._database.write(lambda db: self._forget(db, worker))

    def _forget(self, db: sqlite3.Connection, worker: str) -> None:
        for table in ("workers", "requests", "questions", "mail"):
            db.execute(f"DELETE FROM {table} WHERE server = ? AND worker = ?", (self._server, worker))

    # Sessions

    async def add_session(self, session: bytes, record: bytes, holder: str | None, limits: SessionLimits) -> None:
        who = blake2b(holder.encode(), digest_size=16).digest() if holder is not None else None

        def work(db: sqlite3.Connection) -> None:
            if limits.idle_seconds is not None:
                self._end_idle(db, limits.idle_seconds)
            if limits.most is not None:
                self._make_room(db, who, limits, limits.most)
            db.execute(
                "INSERT INTO sessions (server, id, record, holder, last_used) VALUES (?, ?, ?, ?, ?)",
                (self._server, session, record, who, self._clock()),
            )

        await self._database.write(work)

    def _make_room(self, db: sqlite3.Connection, holder: bytes | None, limits: SessionLimits, most: int) -> None:
        there = self._count(db, "SELECT count(*) FROM sessions WHERE server = ?", self._server)
        held = self._count(db, "SELECT count(*) FROM sessions WHERE server = ? AND holder = ?", self._server, holder)
        if there > most // limits.pressure and held >= max(1, most // limits.share):
            raise TooManyOfOne(held)
        if there < most:
            return
        for used, before in ((0, self._clock()), (1, self._clock() - limits.recent_seconds)):
            row = db.execute(
                f"SELECT id FROM sessions WHERE server = ? AND used = ? AND last_used <= ? AND NOT {_BUSY} "
                "ORDER BY last_used LIMIT 1",
                (self._server, used, before, self._boot, self._steady()),
            ).fetchone()
            if row is not None:
                self._delete(db, row[0])
                return
        raise TooManySessions

    async def use_session(
        self, session: bytes, worker: str, requests: Sequence[str], *, used: bool, idle_seconds: float | None
    ) -> SessionRow | None:
        now = self._clock()

        def look(db: sqlite3.Connection) -> tuple[SessionRow, bool] | None:
            row = db.execute(
                f"SELECT record, version, used, last_used, {_BUSY} FROM sessions WHERE server = ? AND id = ?",
                (self._boot, self._steady(), self._server, session),
            ).fetchone()
            if row is None:
                return None
            record, version, used_before, last_used, busy = row
            if idle_seconds is not None and not busy and last_used + idle_seconds < now:
                return None
            step = idle_seconds / 10 if idle_seconds is not None else 60.0
            return SessionRow(record, version), used and (not used_before or last_used + step < now)

        def use(db: sqlite3.Connection) -> SessionRow | None:
            found = look(db)
            if found is None:
                return None
            row, due = found
            if due:
                self._touch(db, session, now)
            db.executemany(
                "INSERT OR REPLACE INTO requests VALUES (?, ?, ?, ?)",
                [(self._server, session, request, worker) for request in requests],
            )
            return row

        if not requests:
            found = await self._database.read(look)
            if found is None or not found[1]:
                return found[0] if found is not None else None
        return await self._database.write(use)

    def _touch(self, db: sqlite3.Connection, session: bytes, now: float) -> None:
        db.execute(
            "UPDATE sessions SET used = 1, last_used = ? WHERE server = ? AND id = ?", (now, self._server, session)
        )

    async def end_requests(self, session: bytes, worker: str, requests: Sequence[str]) -> None:
        def work(db: sqlite3.Connection) -> None:
            db.executemany(
                "DELETE FROM requests WHERE server = ? AND session = ? AND request = ? AND worker = ?",
                [(self._server, session, request, worker) for request in requests],
            )
            self._touch(db, session, self._clock())

        await self._database.write(work)

    async def save_session(self, session: bytes, record: bytes, version: int) -> bool:
        def work(db: sqlite3.Connection) -> bool:
            changed = db.execute(
                "UPDATE sessions SET record = ?, version = version + 1 WHERE server = ? AND id = ? AND version = ?",
                (record, self._server, session, version),
            )
            return bool(changed.rowcount)

        return await self._database.write(work)

    async def end_session(self, session: bytes) -> list[str]:
        def work(db: sqlite3.Connection) -> list[str]:
            workers = self._workers_of(db, session, None)
            self._delete(db, session)
            return workers

        return await self._database.write(work)

    def _delete(self, db: sqlite3.Connection, session: bytes) -> None:
        db.execute("DELETE FROM sessions WHERE server = ? AND id = ?", (self._server, session))
        for table in ("requests", "questions"):
            db.execute(f"DELETE FROM {table} WHERE server = ? AND session = ?", (self._server, session))

    async def end_idle_sessions(self, idle_seconds: float) -> None:
        await self._database.write(lambda db: self._end_idle(db, idle_seconds))

    def _end_idle(self, db: sqlite3.Connection, idle_seconds: float) -> None:
        rows = db.execute(
            f"SELECT id FROM sessions WHERE server = ? AND used IN (0, 1) AND last_used < ? AND NOT {_BUSY}",
            (self._server, self._clock() - idle_seconds, self._boot, self._steady()),
        ).fetchall()
        for (session,) in rows:
            self._delete(db, session)

    async def workers_of(self, session: bytes, request: str | None = None) -> list[str]:
        return await self._database.read(lambda db: self._workers_of(db, session, request))

    def _workers_of(self, db: sqlite3.Connection, session: bytes, request: str | None) -> list[str]:
        rows = db.execute(
            "SELECT DISTINCT worker FROM requests JOIN workers USING (server, worker) "
            "WHERE server = ? AND session = ? AND (? IS NULL OR request = ?) AND boot = ? AND alive_until > ?",
            (self._server, session, request, request, self._boot, self._steady()),
        )
        return [worker for (worker,) in rows.fetchall()]

    # Questions

    async def open_question(self, session: bytes, question: str, worker: str) -> None:
        def work(db: sqlite3.Connection) -> None:
            db.execute(
                "INSERT OR REPLACE INTO questions (server, session, question, worker) VALUES (?, ?, ?, ?)",
                (self._server, session, question, worker),
            )

        await self._database.write(work)

    async def close_question(self, session: bytes, question: str) -> None:
        def work(db: sqlite3.Connection) -> None:
            db.execute(
                "DELETE FROM questions WHERE server = ? AND session = ? AND question = ?",
                (self._server, session, question),
            )

        await self._database.write(work)

    async def answer_question(self, session: bytes, question: str, mail: bytes) -> Delivery:
        def work(db: sqlite3.Connection) -> Delivery:
            row = db.execute(
                "SELECT worker, answered, boot = ? AND alive_until > ? FROM questions LEFT JOIN workers USING (server, worker) "
                "WHERE server = ? AND session = ? AND question = ?",
                (self._boot, self._steady(), self._server, session, question),
            ).fetchone()
            if row is None:
                return Delivery.UNKNOWN
            worker, answered, alive = row
            if not alive:
                return Delivery.WORKER_GONE
            if answered:
                return Delivery.SENT  # mail in a file is not lost
            db.execute(
                "UPDATE questions SET answered = 1 WHERE server = ? AND session = ? AND question = ?",
                (self._server, session, question),
            )
            self._post(db, worker, mail)
            return Delivery.SENT

        return await self._database.write(work)

    async def is_question_open(self, session: bytes, question: str) -> bool:
        def work(db: sqlite3.Connection) -> bool:
            row = db.execute(
                "SELECT 1 FROM questions WHERE server = ? AND session = ? AND question = ?",
                (self._server, session, question),
            )
            return row.fetchone() is not None

        return await self._database.read(work)

    # Mail

    async def send(self, workers: Sequence[str], mail: bytes) -> None:
        def work(db: sqlite3.Connection) -> None:
            for worker in workers:
                waiting = "SELECT count(*) FROM mail WHERE server = ? AND worker = ?"
                if self._count(db, waiting, self._server, worker) < MOST_MAIL:
                    self._post(db, worker, mail)

        if workers:
            await self._database.write(work)

    async def send_to_listeners(self, sender: str, mail: bytes) -> None:
        def listeners(db: sqlite3.Connection) -> list[str]:
            rows = db.execute(
                "SELECT worker FROM workers WHERE server = ? AND worker != ? AND listening AND boot = ? AND alive_until > ? "
                "AND (SELECT count(*) FROM mail WHERE mail.server = workers.server AND mail.worker = workers.worker) < ?",
                (self._server, sender, self._boot, self._steady(), MOST_MAIL),
            )
            return [worker for (worker,) in rows.fetchall()]

        await self.send(await self._database.read(listeners), mail)

    def _post(self, db: sqlite3.Connection, worker: str, mail: bytes) -> None:
        db.execute("INSERT INTO mail (server, worker, message) VALUES (?, ?, ?)", (self._server, worker, mail))

    async def receive(self, worker: str) -> list[bytes]:
        def look(db: sqlite3.Connection) -> list[tuple[int, bytes]]:
            rows = db.execute(
                "SELECT number, message FROM mail WHERE server = ? AND worker = ? ORDER BY number",
                (self._server, worker),
            )
            return cast("list[tuple[int, bytes]]", rows.fetchall())

        rows = await self._database.read(look)
        if rows:
            last = rows[-1][0]
            await self._database.write(
                lambda db: db.execute(
                    "DELETE FROM mail WHERE server = ? AND worker = ? AND number <= ?", (self._server, worker, last)
                )
            )
        return [message for _, message in rows]

    def pause(self, *, urgent: bool) -> float:
        return QUICK_SECONDS if urgent else SLOW_SECONDS

    @staticmethod
    def _count(db: sqlite3.Connection, query: str, *values: object) -> int:
        return db.execute(query, values).fetchone()[0]


_BUSY = (
    "EXISTS (SELECT 1 FROM requests JOIN workers USING (server, worker) WHERE requests.server = sessions.server "
    "AND requests.session = sessions.id AND boot = ? AND alive_until > ?)"
)
"""Whether a living worker serves requests of a session. Takes the boot and the time."""
