"""What a ledger needs of a store: an atomic claim, a lease, a result, and a way to wait."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Claim:
    """One call's entry. It is running until `done`; a done claim without a result has had it evicted."""

    digest: str
    """Of the answers it was made with."""
    sent: str
    """Of the request that made it."""
    owner: str
    lease_until: float
    deadline: float
    done: bool = False
    result: bytes | None = None


class Store(Protocol):
    """Each method is atomic. Claims are kept until their deadline; results may go earlier."""

    async def claim(self, call: str, claim: Claim, now: float) -> Claim | None:
        """Enter a claim. `None` if it is ours now, else the claim that was there first.

        Raises `StoreFull`, and `Forgotten` for a claim whose like may have been here and is not known any more.
        """
        ...

    async def take_over(self, call: str, lapsed_owner: str, claim: Claim) -> bool:
        """Replace a running claim of another owner; false if it has changed meanwhile."""
        ...

    async def renew(self, call: str, owner: str, lease_until: float) -> None:
        """Prolong our lease."""
        ...

    async def finish(self, call: str, owner: str, result: bytes) -> None:
        """Mark our claim done and keep its result."""
        ...

    async def read(self, call: str) -> Claim | None:
        """The claim on a call, if there is one."""
        ...

    async def changed(self, call: str, timeout: float) -> None:
        """Return when the claim may have changed, or after the timeout at the latest."""
        ...

    async def has_room(self, now: float) -> bool:
        """Whether one more claim could be entered."""
        ...


class Forgotten(Exception):
    """The claim's deadline lies before what the store has already forgotten: a clock has gone backwards."""


class StoreFull(Exception):
    """No more claims fit, and none may be dropped before its deadline."""
