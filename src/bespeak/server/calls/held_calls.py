"""Calls that are held because a person has opened the page of a URL question: how many there may be."""

from collections.abc import Generator
from contextlib import contextmanager

from bespeak.resolve.errors import NotAnswered
from bespeak.server.legacy.waiting_calls import WaitingCalls, WaitingLimits

MOST_HELD = 1024


class HeldCalls:
    """The held calls of one server, of clients of any revision. Above half of the bound, one holder has a tenth of it."""

    def __init__(self) -> None:
        self._calls = WaitingCalls(WaitingLimits(server=MOST_HELD))

    @contextmanager
    def hold(self, holder: str | None) -> Generator[bool]:
        """Count a call while the block is open, for a principal or an address. Gives whether there is room for it."""
        try:
            self._calls.enter(_no_weight, holder)
        except NotAnswered:
            yield False
            return
        try:
            yield True
        finally:
            self._calls.leave(0, holder)


def _no_weight(_most: int) -> int:
    """What a held call keeps, its client has sent anew: it is not counted in bytes."""
    return 0
