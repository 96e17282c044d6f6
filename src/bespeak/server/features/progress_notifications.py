"""The progress notifications of one request: what its author reports, and heartbeats while a person is asked.

The protocol requires that the values increase. Both kinds share one last value, so that each is higher than all before
it.
"""

import math
import time
from collections.abc import Callable
from typing import Any

from bespeak.protocol.legacy import MARCH
from bespeak.protocol.messages import Meta, write_notification

STEP = 0.000001
"""How much a heartbeat raises the value: enough to count as an increase, too little to look like progress."""
WAITING = "Waiting for an answer"


class ProgressNotifications:
    """Writes the notifications of one request."""

    def __init__(self, meta: Meta, clock: Callable[[], float] = time.monotonic) -> None:
        self._token = meta.progress_token
        self._has_messages = meta.protocol_version >= MARCH
        self._clock = clock
        self._reported = -math.inf
        """The highest value the author has reported."""
        self._last = -math.inf
        """The last value that was written."""
        self._heartbeat_since = False
        """Whether a heartbeat was written after the author's last value."""
        self._spoke = clock()

    @property
    def wanted(self) -> bool:
        """Whether the client asked for progress."""
        return self._token is not None

    def silence(self) -> float:
        """Return the seconds since the last notification was sent or, before the first, since the request arrived."""
        return self._clock() - self._spoke

    def report(self, progress: float, total: float | None = None, message: str | None = None) -> bytes | None:
        """Return the notification for a value that the author reports; `None` if it must not be sent.

        A value that does not increase is not sent, except directly after a heartbeat. A value that is not above the
        last one that was sent is raised to just above it.
        """
        if not self.wanted or not math.isfinite(progress):
            return None
        if progress <= self._reported and not self._heartbeat_since:
            return None
        self._reported = max(self._reported, progress)
        value = progress if progress > self._last else _above(self._last)
        if total is not None and progress <= total < value:
            total = None  # the author never said that there is more than all of it
        self._heartbeat_since = False
        return self._write(value, total, message)

    def heartbeat(self) -> bytes | None:
        """Return a notification that only says that the call is alive; `None` if the client did not ask for any."""
        if not self.wanted:
            return None
        self._heartbeat_since = True
        return self._write(_above(self._last), None, WAITING)

    def _write(self, progress: float, total: float | None, message: str | None) -> bytes | None:
        if not math.isfinite(progress):
            return None  # there is nothing above the largest number
        self._last, self._spoke = progress, self._clock()
        params: dict[str, Any] = {"progressToken": self._token, "progress": progress}
        if total is not None:
            params["total"] = total
        if message is not None and self._has_messages:
            params["message"] = message
        return write_notification("notifications/progress", params)


def _above(last: float) -> float:
    """The next value after the last: a millionth more or, where numbers are too large for that, the next number."""
    if last == -math.inf:
        return STEP
    return max(last + STEP, math.nextafter(last, math.inf))
