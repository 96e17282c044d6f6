"""The interface of a store: atomic claims with leases and results, waiting for changes, and dropping old claims."""

from dataclasses import dataclass
from typing import Protocol

CLOCK_DIFFERENCE = 60.0
"""How many seconds the clocks of two workers may differ."""
DIGEST_BYTES = 8
"""The length of each digest in an entry."""


@dataclass(frozen=True, slots=True)
class Entry:
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
    holder: str | None = None
    """The principal or address for which it is counted; `None` if it is not counted."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The current state of a claim. It is running until `done`. If `done` has no `result`, the result was evicted."""

    answers: bytes
    request: bytes
    owner: str
    lease_left: float
    """Seconds until the lease lapses; zero or negative if it has lapsed. Has no meaning once the claim is done."""
    done: bool = False
    result: bytes | None = None


class Store(Protocol):
    """Keeps the claims of a ledger. Each method is atomic, whatever process, thread or event loop calls it.

    A store measures leases with a monotonic clock. It keeps a claim until `kept_until`, and longer while its lease is
    renewed; results may be dropped earlier. It remembers up to which time it has dropped claims, and refuses a state
    that could belong to a dropped claim: see `Horizon`.
    """

    async def claim(self, call: str, entry: Entry, lease: float) -> Claim | None:
        """Add a claim. Returns `None` if the call is ours now, otherwise the claim that came first.

        Raises `StoreFull`, `ShareTaken` or `Forgotten`.
        """
        ...

    async def take_over(self, call: str, lapsed_owner: str, entry: Entry, lease: float) -> bool:
        """Replace a running claim of another owner. Returns false if the claim has changed in the meantime."""
        ...

    async def renew(self, call: str, owner: str, lease: float) -> None:
        """Extend our lease to this many seconds from now."""
        ...

    async def finish(self, call: str, owner: str, result: bytes) -> None:
        """Mark our claim done and keep its result."""
        ...

    async def read(self, call: str, issued: float, deadline: float) -> Claim | None:
        """Return the claim on a call; `None` if there is none. Raises `Forgotten`."""
        ...

    async def changed(self, call: str, timeout: float) -> None:
        """Return when the claim may have changed, or after the timeout at the latest."""
        ...

    async def check_room(self, holder: str | None, now: float) -> None:
        """Raises `StoreFull` or `ShareTaken` if there is no room for more calls that ask questions."""
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
        if issued <= self.claimed + CLOCK_DIFFERENCE or deadline <= self.deadline:
            raise Forgotten


class Forgotten(Exception):
    """A state could belong to a claim that the store has dropped."""


class StoreFull(Exception):
    """No more claims fit, and none may be dropped yet."""


class ShareTaken(Exception):
    """The store is nearly full, and this principal or address already has its share of the claims."""
