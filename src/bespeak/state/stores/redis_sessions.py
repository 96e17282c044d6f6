"""The sessions of older clients in Redis, and the mail between the workers that serve them."""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

from bespeak.protocol.session_facts import Delivery, SessionLimits, TooManyOfOne, TooManySessions
from bespeak.state.stores import redis_session_scripts as scripts
from bespeak.state.stores.redis_connection import RedisConnection
from bespeak.state.stores.session_store import (
    MOST_MAIL,
    SessionRow,
)
from bespeak.state.stores.store import StoreUnavailable

BLOCK_SECONDS = 2
"""How long one look for mail waits. It is shorter than an operation may take."""


class RedisSessions:
    """What the workers of one server share about older clients."""

    def __init__(self, redis: RedisConnection) -> None:
        self._redis = redis

    # Workers

    async def beat(self, worker: str, *, listening: bool) -> None:
        await self._redis.run(scripts.BEAT, worker, int(listening))

    async def retain(
        self, worker: str, requests: Sequence[tuple[bytes, str]], questions: Sequence[tuple[bytes, str]]
    ) -> None:
        known = [f"{session.hex()}\n{name}" for session, name in (*requests, *questions)]
        await self._redis.run(scripts.RETAIN, worker, len(requests), *known)

    async def leave(self, worker: str) -> None:
        await self._redis.run(scripts.LEAVE, worker)

    # Sessions

    async def add_session(self, session: bytes, record: bytes, holder: str | None, limits: SessionLimits) -> None:
        who = blake2b(holder.encode(), digest_size=16).hexdigest() if holder is not None else ""
        said, *more = await self._redis.run(
            scripts.ADD_SESSION,
            session.hex(),
            record,
            who,
            limits.most if limits.most is not None else "",
            _ms(limits.idle_seconds),
            _ms(limits.recent_seconds),
            limits.pressure,
            limits.share,
        )
        if said == b"share":
            raise TooManyOfOne(int(more[0]))
        if said == b"full":
            raise TooManySessions

    async def use_session(
        self, session: bytes, worker: str, requests: Sequence[str], *, used: bool, idle_seconds: float | None
    ) -> SessionRow | None:
        found = await self._redis.run(
            scripts.USE_SESSION, session.hex(), worker, int(used), _ms(idle_seconds), *requests
        )
        return SessionRow(found[0], int(found[1])) if found else None

    async def end_requests(self, session: bytes, worker: str, requests: Sequence[str]) -> None:
        await self._redis.run(scripts.END_REQUESTS, session.hex(), worker, *requests)

    async def save_session(self, session: bytes, record: bytes, version: int) -> bool:
        return bool(await self._redis.run(scripts.SAVE_SESSION, session.hex(), record, version))

    async def end_session(self, session: bytes) -> list[str]:
        return _names(await self._redis.run(scripts.END_SESSION, session.hex()))

    async def end_idle_sessions(self, idle_seconds: float) -> None:
        await self._redis.run(scripts.END_IDLE, _ms(idle_seconds))

    async def workers_of(self, session: bytes, request: str | None = None) -> list[str]:
        which = [request] if request is not None else []
        return _names(await self._redis.run(scripts.WORKERS_OF, session.hex(), *which))

    # Questions

    async def open_question(self, session: bytes, question: str, worker: str) -> None:
        await self._redis.run(scripts.OPEN_QUESTION, session.hex(), question, worker)

    async def close_question(self, session: bytes, question: str) -> None:
        await self._redis.run(scripts.CLOSE_QUESTION, session.hex(), question)

    async def answer_question(self, session: bytes, question: str, mail: bytes) -> Delivery:
        said = await self._redis.run(scripts.ANSWER_QUESTION, session.hex(), question, mail)
        return Delivery(said.decode())

    async def is_question_open(self, session: bytes, question: str) -> bool:
        return bool(await self._redis.command("HEXISTS", f"{self._redis.prefix}q:{session.hex()}", question))

    # Mail

    async def send(self, workers: Sequence[str], mail: bytes) -> None:
        if workers:
            await self._redis.run(scripts.SEND, mail, MOST_MAIL, *workers)

    async def send_to_listeners(self, sender: str, mail: bytes) -> None:
        await self._redis.run(scripts.SEND_TO_LISTENERS, sender, mail, MOST_MAIL)

    async def receive(self, worker: str) -> list[bytes]:
        name = f"{self._redis.prefix}m:{worker}"
        first = await self._redis.command("BLPOP", name, BLOCK_SECONDS)
        if not first:
            return []
        try:
            more = await self._redis.command("LPOP", name, 1000)
        except StoreUnavailable:  # the first message must not be lost
            more = None
        return [first[1], *(more or ())]

    def pause(self, *, urgent: bool) -> float:
        return 0.0


def _ms(seconds: float | None) -> int | str:
    return round(seconds * 1000) if seconds is not None else ""


def _names(workers: list[Any]) -> list[str]:
    return [worker.decode() for worker in workers]
