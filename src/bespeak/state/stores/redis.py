"""The ledger in Redis: for workers on several machines."""

import asyncio
from collections.abc import Sequence
from hashlib import blake2b
from logging import getLogger
from typing import Any

from bespeak.state.stores import redis_claim_scripts as scripts
from bespeak.state.stores.redis_connection import OutOfMemory, RedisConnection
from bespeak.state.stores.redis_sessions import RedisSessions
from bespeak.state.stores.store import (
    CLOCK_DIFFERENCE,
    PURGED_AT_ONCE,
    Claim,
    ClaimLimits,
    Entry,
    Forgotten,
    ShareTaken,
    StoreFull,
    key_of,
    new_incarnation,
)

logger = getLogger("bespeak.state")

POLL_SECONDS = (0.02, 0.25)
"""The first and the longest pause between two looks at a claim that is waited for."""


class RedisStore:
    """Keeps the claims of one server in Redis. Each operation is one script, which Redis runs as one step."""

    shared = True
    may_wait = True

    def __init__(self, url: str, *, server: str = "bespeak", limits: ClaimLimits | None = None) -> None:
        self._limits = limits or ClaimLimits()
        self._redis = RedisConnection(url, server)
        self.sessions = RedisSessions(self._redis)

    async def start(self) -> None:
        await self._redis.start()

    async def close(self) -> None:
        await self._redis.close()

    def __str__(self) -> str:
        return str(self._redis)

    async def claim(self, call: str, entry: Entry, lease: float) -> Claim | None:
        return _claim(await self._add(scripts.CLAIM, *self._admission(entry), _key(call), round(lease * 1000)))

    async def take_try(self, tries: Sequence[str], entry: Entry) -> int | None:
        reply = await self._add(scripts.TAKE_TRY, *self._admission(entry), *map(_key, tries))
        _claim(reply)
        return int(reply[1]) or None

    def _admission(self, entry: Entry) -> tuple[Any, ...]:
        """What a script needs to know to make a new claim, or to refuse it."""
        limits = self._limits
        return (
            entry.answers,
            entry.request,
            entry.owner,
            entry.issued,
            entry.claimed,
            entry.kept_until,
            entry.deadline,
            _holder(entry.holder),
            limits.max_claims,
            limits.most_without_shares,
            limits.most_of_one,
            PURGED_AT_ONCE,
            CLOCK_DIFFERENCE,
            entry.incarnation or "",
        )

    async def take_over(self, call: str, lapsed_owner: str, entry: Entry, lease: float) -> bool:
        taken = await self._redis.run(
            scripts.TAKE_OVER,
            _key(call),
            lapsed_owner,
            entry.answers,
            entry.request,
            entry.owner,
            entry.claimed,
            entry.kept_until,
            round(lease * 1000),
        )
        return bool(taken)

    async def withdraw(self, call: str, owner: str) -> None:
        await self._redis.run(scripts.WITHDRAW, _key(call), owner)

    async def renew(self, call: str, owner: str, lease: float) -> bool:
        return bool(await self._redis.run(scripts.RENEW, _key(call), owner, round(lease * 1000)))

    async def finish(self, call: str, owner: str, result: bytes) -> bool:
        return bool(await self._add(scripts.FINISH, _key(call), owner, result, self._limits.max_result_bytes))

    async def read(self, call: str, issued: float, deadline: float, incarnation: str | None) -> Claim | None:
        return _claim(
            await self._redis.run(scripts.READ, _key(call), issued, deadline, CLOCK_DIFFERENCE, incarnation or "")
        )

    async def changed(self, call: str, timeout: float) -> None:
        name = f"{self._redis.prefix}c:{_key(call)}"
        give_up, (pause, longest) = asyncio.get_running_loop().time() + timeout, POLL_SECONDS
        while True:
            owner, done = await self._redis.command("HMGET", name, "owner", "done")
            left = give_up - asyncio.get_running_loop().time()
            if owner is None or done is not None or left <= 0:
                return
            await asyncio.sleep(min(pause, left))
            pause = min(pause * 2, longest)

    async def check_room(self, holder: str | None, now: float) -> str:
        limits = self._limits
        reply = await self._redis.run(
            scripts.CHECK_ROOM,
            _holder(holder),
            now,
            limits.most_for_questions,
            limits.most_without_shares,
            limits.most_of_one,
            PURGED_AT_ONCE,
            CLOCK_DIFFERENCE,
            new_incarnation(),
        )
        _claim(reply)
        return reply[1].decode()

    async def _add(self, script: str, *values: Any) -> Any:
        """Run a script that adds something. Raises `StoreFull` if Redis has no memory left for it."""
        try:
            return await self._redis.run(script, *values)
        except OutOfMemory as error:
            logger.error("%s", error)
            raise StoreFull(str(error)) from None


def _claim(reply: list[Any]) -> Claim | None:
    """Return the claim in a script's reply; `None` if there is none, or it is ours. Raises what the reply says."""
    said = reply[0]
    if said == b"there":
        _, answers, request, owner, left, done, result = reply
        return Claim(answers, request, owner.decode(), float(left), bool(done), result)
    if said == b"full":
        raise StoreFull
    if said == b"share":
        raise ShareTaken
    if said == b"forgotten":
        raise Forgotten
    return None


def _key(call: str) -> str:
    return key_of(call).hex()


def _holder(holder: str | None) -> str:
    """A digest, because a holder may be the name of a person."""
    return blake2b(holder.encode(), digest_size=16).hexdigest() if holder is not None else ""
