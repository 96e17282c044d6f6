"""The interface of a store: atomic claims with leases and results, waiting for changes, and dropping old claims."""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple, Protocol

from bespeak.state.stores.session_store import SessionStore

CLOCK_DIFFERENCE = 60.0
"""How many seconds the clocks of two workers may differ."""
DIGEST_BYTES = 8
"""The length of each digest in an entry."""
KEY_BYTES = 16
"""The length of the digest under which a store keeps a call."""
MAX_CLAIMS = 1_000_000
MAX_RESULT_BYTES = 64 * 1024 * 1024
PURGED_AT_ONCE = 256
"""How many old claims are dropped at most for each new one, so that no request waits long for it."""


class Entry(NamedTuple):
    """A new claim, as it is given to a store."""

    answers: bytes
    """A digest of its answers, of `DIGEST_BYTES`."""
    request: bytes
    """A digest of its request."""
    owner: str
    issued: float
    """When its state was issued."""
    claimed: float
    kept_until: float
    deadline: float
    incarnation: str | None = None
    """The incarnation of the store under which its call began; `None` for a store that has none."""
    holder: str | None = None
    """The principal or address for which it is counted; `None` if it is not counted."""


class Claim(NamedTuple):
    """The current state of a claim. It is running until `done`. If `done` has no `result`, the result was evicted."""

    answers: bytes
    request: bytes
    owner: str
    lease_left: float
    """Seconds until the lease lapses; zero or negative if it has lapsed. Has no meaning once the claim is done."""
    done: bool = False
    result: bytes | None = None


@dataclass(frozen=True, slots=True)
class ClaimLimits:
    """How many claims a store keeps for one server, and how many bytes of results.

    The other options are fractions of `max_claims`: above `question_limit`, new questions are refused, but claims only when
    the store is full; above `pressure`, each principal (or each address, without a principal) may hold at most `share`.
    """

    max_claims: int = MAX_CLAIMS
    max_result_bytes: int = MAX_RESULT_BYTES
    question_limit: float = 0.8
    pressure: float = 0.5
    share: float = 0.1

    def __post_init__(self) -> None:
        if self.max_claims < 1:
            raise ValueError("max_claims must be at least 1")
        if self.max_result_bytes < 0:
            raise ValueError("max_result_bytes must not be negative")
        if not (0 < self.question_limit <= 1 and 0 <= self.pressure <= 1 and 0 < self.share <= 1):
            raise ValueError("question_limit, pressure and share must be fractions of max_claims, between 0 and 1")

    @property
    def most_for_questions(self) -> int:
        """The number of claims from which on no questions are asked."""
        return max(1, math.floor(self.max_claims * self.question_limit))

    @property
    def most_without_shares(self) -> float:
        """The number of claims above which each holder is limited to its share."""
        return self.max_claims * self.pressure

    @property
    def most_of_one(self) -> int:
        """The share of one holder."""
        return max(1, math.floor(self.max_claims * self.share))


class Store(Protocol):
    """Keeps the claims of a ledger. Each method is atomic, whatever process, thread or event loop calls it.

    A store measures leases with a monotonic clock. It keeps a claim until `kept_until`, and longer while its lease is
    renewed; results may be dropped earlier. It remembers up to which time it has dropped claims, and refuses a state
    that could belong to a dropped claim: see `Horizon`.

    A shared store has a random incarnation for each server, made when it is first used. If it has lost what it knew (a Redis
    server was restarted without its data, a file was deleted), it has another incarnation, and refuses all states of calls that
    began under the one before. No times are compared for that.

    Every method may raise `StoreUnavailable`. A store that several processes share waits for an answer only for a bounded time.
    A method whose answer was lost can be called again with the same arguments.
    """

    @property
    def shared(self) -> bool:
        """Whether other processes can use the same claims."""
        ...

    @property
    def may_wait(self) -> bool:
        """Whether methods other than `changed` may wait for something."""
        ...

    @property
    def sessions(self) -> SessionStore | None:
        """What workers share about older clients; `None` if the store serves one process."""
        ...

    async def start(self) -> None:
        """Check that the store can be used. Called in each event loop before the first claim there."""
        ...

    async def close(self) -> None:
        """Close what `start` opened in this event loop."""
        ...

    async def claim(self, call: str, entry: Entry, lease: float) -> Claim | None:
        """Add a claim. Returns `None` if the call is ours now, otherwise the claim that came first.

        Raises `StoreFull`, `ShareTaken` or `Forgotten`.
        """
        ...

    async def take_try(self, tries: Sequence[str], entry: Entry) -> int | None:
        """Take the first of some tries that is free, for the answers of an entry. Returns its number, from 1.

        Answers that have a try already get its number again. `None` if all are taken for other answers. A try is a claim that is
        done at once and has no result. Raises `StoreFull`, `ShareTaken` or `Forgotten`.
        """
        ...

    async def take_over(self, call: str, lapsed_owner: str, entry: Entry, lease: float) -> bool:
        """Replace a running claim of another owner. Returns false if the claim has changed in the meantime."""
        ...

    async def withdraw(self, call: str, owner: str) -> None:
        """Remove our claim, which may or may not have been added, because nothing has been run for it and nothing will be."""
        ...

    async def renew(self, call: str, owner: str, lease: float) -> bool:
        """Extend our lease to this many seconds from now. False if the claim is not ours, or not there any more."""
        ...

    async def finish(self, call: str, owner: str, result: bytes) -> bool:
        """Mark our claim done and keep its result. False if the claim is not ours, or not there any more."""
        ...

    async def read(self, call: str, issued: float, deadline: float, incarnation: str | None) -> Claim | None:
        """Return the claim on a call; `None` if there is none. Raises `Forgotten`.

        A claim is returned as lapsed only if the store can be written to: its owner may only be unable to renew it.
        """
        ...

    async def changed(self, call: str, timeout: float) -> None:
        """Return when the claim may have changed, or after the timeout at the latest."""
        ...

    async def check_room(self, holder: str | None, now: float) -> str | None:
        """Return the incarnation of the store. Raises `StoreFull` or `ShareTaken` if there is no room for more calls that ask."""
        ...


@dataclass(slots=True)
class Horizon:
    """The time up to which claims have been dropped.

    A claim is kept a little longer than its states are valid, so a valid state is newer than all dropped claims. That
    may be wrong if a clock was set back, or if workers use different lifetimes. Then the state is refused, because its
    approval could already be spent.
    """

    claimed: float = float("-inf")
    """When the newest of them was claimed. A state issued later belongs to another call: a claimed call asks nothing
    more."""
    deadline: float = float("-inf")
    """The latest deadline of the claims that were kept until their deadline."""

    def move(self, claimed: float, deadline: float) -> None:
        """Record that claims up to these times have been dropped."""
        self.claimed = max(self.claimed, claimed)
        self.deadline = max(self.deadline, deadline)

    def check(self, issued: float, deadline: float) -> None:
        """Raises `Forgotten` for a state that could belong to a dropped claim."""
        if deadline <= self.deadline or issued <= self.claimed + CLOCK_DIFFERENCE:
            raise Forgotten

    def check_asking(self, now: float) -> None:
        """Raises `Forgotten` if a state that is issued now could seem to belong to a dropped claim."""
        if now <= self.claimed + CLOCK_DIFFERENCE:
            raise Forgotten


def new_incarnation() -> str:
    """Return a random name for the time from now until a store may lose what it knows."""
    return os.urandom(8).hex()


@lru_cache(1024)
def key_of(call: str) -> bytes:
    """Return the digest under which a store keeps a call. A request needs it several times."""
    return blake2b(call.encode(), digest_size=KEY_BYTES).digest()


class BadStore(ValueError):
    """The URL of a store cannot be used. The message says what is wrong with it, without its password."""


class StoreUnavailable(Exception):
    """The store cannot be reached, or does not answer in time. The message says which store, and why, without its password."""


class Forgotten(Exception):
    """A state could belong to a claim that the store has dropped or lost."""


class StoreFull(Exception):
    """No more claims fit, and none may be dropped yet."""


class ShareTaken(Exception):
    """The store is nearly full, and this principal or address already has its share of the claims."""
