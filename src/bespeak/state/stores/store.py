"""What a ledger needs of a store: an atomic claim, a lease, a result, a way to wait, and an end to what is remembered."""

from dataclasses import dataclass
from typing import Protocol

CLOCK_DIFFERENCE = 60.0
"""By how many seconds the clocks of two workers may differ."""
DIGEST_BYTES = 8
"""Of each digest in an entry."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What is entered for a claim."""

    answers: bytes
    """A digest of the answers it is made with, of `DIGEST_BYTES`."""
    request: bytes
    """A digest of the request that makes it."""
    owner: str
    issued: float
    """When the state it is made with was issued."""
    claimed: float
    kept_until: float
    deadline: float
    holder: str | None = None
    """The principal or address it counts for; `None` counts for nobody."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim as it stands. It is running until `done`; a done claim without a result has had it evicted."""

    answers: bytes
    request: bytes
    owner: str
    lease_left: float
    """Seconds until the lease lapses; not positive if it has. Nobody asks once the claim is done."""
    done: bool = False
    result: bytes | None = None


class Store(Protocol):
    """Each method is atomic, whatever process, thread or event loop calls it.

    A store measures leases by a clock that nobody sets. It keeps a claim until `kept_until`, and longer while its lease is
    renewed; results may go earlier. It remembers up to when it has forgotten claims, and refuses a state that could belong to
    one of those: see `Horizon`.
    """

    async def claim(self, call: str, entry: Entry, lease: float) -> Claim | None:
        """Enter a claim. `None` if it is ours now, else the claim that was there first.

        Raises `StoreFull`, `ShareTaken` or `Forgotten`.
        """
        ...

    async def take_over(self, call: str, lapsed_owner: str, entry: Entry, lease: float) -> bool:
        """Replace a running claim of another owner; false if it has changed meanwhile."""
        ...

    async def renew(self, call: str, owner: str, lease: float) -> None:
        """Have our lease last this many seconds from now."""
        ...

    async def finish(self, call: str, owner: str, result: bytes) -> None:
        """Mark our claim done and keep its result."""
        ...

    async def read(self, call: str, issued: float, deadline: float) -> Claim | None:
        """The claim on a call, if there is one. Raises `Forgotten`."""
        ...

    async def changed(self, call: str, timeout: float) -> None:
        """Return when the claim may have changed, or after the timeout at the latest."""
        ...

    async def check_room(self, holder: str | None, now: float) -> None:
        """Raise `StoreFull` or `ShareTaken` if nobody should be asked what would have to be claimed later."""
        ...


@dataclass(slots=True)
class Horizon:
    """Up to when claims have been forgotten.

    A forgotten claim was kept for as long as its states live, and a little longer; so a state that still opens is younger.
    It is not if a clock was set back, or if the lifetime of states differs between workers: then it is refused, since it
    could be spent already.
    """

    claimed: float = float("-inf")
    """When the youngest of them was claimed. A state issued later belongs to another call: a claimed call asks nothing more."""
    deadline: float = float("-inf")
    """The latest deadline of those that were kept until it."""

    def move(self, claimed: float, deadline: float) -> None:
        """Claims of up to these times are forgotten."""
        self.claimed = max(self.claimed, claimed)
        self.deadline = max(self.deadline, deadline)

    def check(self, issued: float, deadline: float) -> None:
        """Raise `Forgotten` for a state that could belong to a forgotten claim."""
        if issued <= self.claimed + CLOCK_DIFFERENCE or deadline <= self.deadline:
            raise Forgotten


class Forgotten(Exception):
    """A state could belong to a claim that the store has forgotten."""


class StoreFull(Exception):
    """No more claims fit, and none may be dropped yet."""


class ShareTaken(Exception):
    """The store is under pressure, and this principal or address has as many claims as one may have then."""
