"""How many calls may run at the same time, in all and for one caller. A call that waits for a person does not count."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock

from bespeak.resolve.errors import ToolError


class TooManyCalls(ToolError):
    """No more calls may run now."""


@dataclass(frozen=True, slots=True)
class CallLimits:
    """Bounds of calls that run at the same time; `None` for no bound."""

    server: int | None = None
    caller: int | None = None
    """For one principal, or one address if there is no principal."""


class RunningCalls:
    """Those of one server, which may be served by several event loops."""

    def __init__(self, limits: CallLimits) -> None:
        self._limits = limits
        self.bounded = limits.server is not None or limits.caller is not None
        self._lock = Lock()
        self.calls = 0
        self._of_caller: dict[str, int] = {}

    @contextmanager
    def running(self, caller: str | None) -> Generator["Slot"]:
        """Count a call while the block is open. Raises `TooManyCalls`."""
        slot = Slot(self, caller)
        with self._lock:
            self._check(caller)
            self._count(caller, 1)
        try:
            yield slot
        finally:
            slot.resume()
            self.change(caller, -1)

    def _check(self, caller: str | None) -> None:
        limits = self._limits
        if limits.server is not None and self.calls >= limits.server:
            raise TooManyCalls(f"{self.calls} calls are running, which is the limit of this server; try again later")
        held = self._of_caller.get(caller, 0) if caller is not None else 0
        if limits.caller is not None and held >= limits.caller:
            raise TooManyCalls(f"{held} of your calls are running, which is the limit; try again later")

    def change(self, caller: str | None, calls: int) -> None:
        """Count more calls, or fewer, without a bound."""
        with self._lock:
            self._count(caller, calls)

    def _count(self, caller: str | None, calls: int) -> None:
        self.calls += calls
        if caller is not None:
            held = self._of_caller.get(caller, 0) + calls
            if held:
                self._of_caller[caller] = held
            else:
                del self._of_caller[caller]


class Slot:
    """The place of one running call."""

    def __init__(self, calls: RunningCalls, caller: str | None) -> None:
        self._calls = calls
        self._caller = caller
        self._waiting = False

    def pause(self) -> None:
        """Called when the call begins to wait for a person."""
        if not self._waiting:
            self._waiting = True
            self._calls.change(self._caller, -1)

    def resume(self) -> None:
        """Called when the call continues. It is never refused then: a person has answered."""
        if self._waiting:
            self._waiting = False
            self._calls.change(self._caller, 1)
