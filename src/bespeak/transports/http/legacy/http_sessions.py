"""The HTTP sessions of older clients in one process, the limits on their number, and the end of idle sessions."""

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from bespeak.protocol.messages import LegacyRequest, Notification, RequestId, Response
from bespeak.protocol.session_facts import Delivery, SessionFacts, SessionLimits, TooManyOfOne, TooManySessions
from bespeak.transports.http.event_streams import EventStream
from bespeak.transports.http.legacy.post_streams import PostStream
from bespeak.transports.http.refusals import LegacyRefusal
from bespeak.transports.interfaces import SessionPeer
from bespeak.transports.requests_under_way import RequestsUnderWay

RETRY_SECONDS = 30
"""When a client that was refused may try again."""
LOOKED_AT = 100
"""How many sessions are checked to find one that can be ended, starting with the longest unused one."""


@dataclass(slots=True, eq=False)
class HttpSession:
    """The session of one older client."""

    id: str
    peer: SessionPeer
    requests: RequestsUnderWay
    address: str | None = None
    principal: str | None = None
    """Whose session it is; `None` without authentication."""
    last_used: float = 0.0
    prefix: str = field(default_factory=lambda: secrets.token_hex(8))
    """The prefix of its streams' names, which an event store can see."""
    streams: dict[str, PostStream] = field(default_factory=dict[str, PostStream])
    standing: list[EventStream] = field(default_factory=list[EventStream])
    users: int = 0
    """The HTTP requests that use it now. Counted where sessions are shared with other workers."""
    closed: bool = False

    @property
    def busy(self) -> bool:
        return bool(self.requests or self.standing or self.streams)

    def close(self, reason: str) -> None:
        """End everything that is under way in the session."""
        self.closed = True
        self.peer.close(reason)
        self.requests.cancel_all(reason)
        for stream in self.standing:
            stream.end()

    # What other workers send

    def answered(self, response: Response) -> None:
        self.peer.heard(response)

    def cancelled(self, id_: RequestId) -> None:
        self.heard(Notification("notifications/cancelled", {"requestId": id_}))

    def ended(self, reason: str) -> None:
        self.close(reason)

    def refresh(self, facts: SessionFacts) -> None:
        self.peer.restore(facts)

    def heard(self, notification: Notification) -> None:
        """Take a notification of the client."""
        self.peer.heard(notification)
        self.requests.heard(notification)


def is_use(message: object) -> bool:
    """Return whether a message counts as use of its session. The end of the handshake and `ping` do not."""
    if isinstance(message, LegacyRequest):
        return message.method != "ping"
    if isinstance(message, Notification):
        return message.method != "notifications/initialized"
    return isinstance(message, Response)


def refusal(error: TooManySessions | TooManyOfOne) -> LegacyRefusal:
    """Return how a client is told that there is no room for its session."""
    if isinstance(error, TooManyOfOne):
        reason = (
            f"your address has {error.held} sessions, which is the limit while the server has many sessions; end one, "
            "or try again later"
        )
        return LegacyRefusal(429, reason, retry_seconds=RETRY_SECONDS)
    return LegacyRefusal(
        503, "there are too many sessions, all of them in use; try again later", retry_seconds=RETRY_SECONDS
    )


class HttpSessions:
    """All sessions of one app, if no other worker has a part in them."""

    def __init__(self, limits: SessionLimits) -> None:
        self._limits = limits
        self._silent: OrderedDict[str, HttpSession] = OrderedDict()
        """The sessions that were not used since their handshake, the oldest first."""
        self._used: OrderedDict[str, HttpSession] = OrderedDict()
        """All other sessions, the longest unused one first."""
        self._of_address: dict[str, int] = {}
        self._sweeping: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._silent) + len(self._used)

    def __contains__(self, id_: str) -> bool:
        return id_ in self._used or id_ in self._silent

    def all(self) -> list[HttpSession]:
        return [*self._silent.values(), *self._used.values()]

    async def get(
        self, id_: str, principal: str | None, requests: Sequence[RequestId], *, used: bool
    ) -> HttpSession | None:
        """Return the session with an id; `None` if it does not exist, or belongs to another principal."""
        return self.find(id_, principal)

    def find(self, id_: str, principal: str | None) -> HttpSession | None:
        """Return the session with an id, as `get` does: these sessions are only here, so nothing has to be waited for."""
        session = self._used.get(id_) or self._silent.get(id_)
        return session if session is not None and session.principal == principal else None

    def leave(self, session: HttpSession) -> None:
        """Called when an HTTP request that used a session is answered."""

    def over(self, session: HttpSession, requests: Sequence[RequestId]) -> None:
        """Called when requests of a session are over."""

    async def changed(self, session: HttpSession, request: LegacyRequest) -> None:
        """Called when a request has changed what is known of a session."""

    async def answered(self, session: HttpSession, response: Response) -> Delivery:
        """Hand an answer to the question it belongs to."""
        session.peer.heard(response)
        return Delivery.SENT

    async def heard(self, session: HttpSession, notification: Notification) -> None:
        """Take a notification of a session's client."""
        session.heard(notification)

    def stream_name(self, session: HttpSession, number: int) -> str:
        """Return the name of a stream."""
        return f"{session.prefix}/{number}"

    async def is_written_elsewhere(self, session: HttpSession, stream: str) -> bool:
        """Return whether the worker that has opened a stream is another one, and may still write to it."""
        return False

    async def admit(self, session: HttpSession) -> None:
        """Add a new session. Raises `LegacyRefusal` if there is no room for it."""
        address, now = session.address, asyncio.get_running_loop().time()
        if self._limits.most is not None:
            try:
                self._make_room(self._limits.most, address, now)
            except (TooManySessions, TooManyOfOne) as error:
                raise refusal(error) from None
        session.last_used = now
        self._silent[session.id] = session
        if address is not None:
            self._of_address[address] = self._of_address.get(address, 0) + 1
        self._sweep_later()

    def _make_room(self, most: int, address: str | None, now: float) -> None:
        held = self._of_address.get(address, 0) if address is not None else 0
        if len(self) > most // self._limits.pressure and held >= max(1, most // self._limits.share):
            raise TooManyOfOne(held)
        if len(self) < most:
            return
        silent = _first_idle(self._silent)
        used = _first_idle(self._used) if silent is None else None
        if silent is not None:
            self._end(silent, "there were too many sessions, and this one was not used after its handshake")
        elif used is not None and used.last_used + self._limits.recent_seconds <= now:
            self._end(used, "there were too many sessions")
        else:
            raise TooManySessions

    def touch(self, session: HttpSession) -> None:
        """Called when a session is used."""
        if session.closed or session.id not in self:
            return
        session.last_used = asyncio.get_running_loop().time()
        self._silent.pop(session.id, None)
        self._used[session.id] = session
        self._used.move_to_end(session.id)

    async def end(self, session: HttpSession, reason: str) -> None:
        """Close a session and remove it."""
        self._end(session, reason)

    def _end(self, session: HttpSession, reason: str) -> None:
        if self._used.pop(session.id, None) is None:
            del self._silent[session.id]
        if session.address is not None:
            self._of_address[session.address] -= 1
            if not self._of_address[session.address]:
                del self._of_address[session.address]
        session.close(reason)

    def end_all(self, reason: str) -> None:
        """Close all sessions. Called when no more sessions will be added."""
        if self._sweeping is not None:
            self._sweeping.cancel()
            self._sweeping = None
        for session in self.all():
            self._end(session, reason)

    # Idle sessions

    def _sweep_later(self) -> None:
        idle = self._limits.idle_seconds
        oldest = [next(iter(some.values())).last_used for some in (self._silent, self._used) if some]
        if idle is None or self._sweeping is not None or not oldest:
            return
        self._sweeping = asyncio.get_running_loop().call_at(min(oldest) + idle, self._sweep, idle)

    def _sweep(self, idle: float) -> None:
        """End the sessions that were not used for a while."""
        self._sweeping = None
        now = asyncio.get_running_loop().time()
        for some in (self._silent, self._used):
            for _ in range(len(some)):
                session = next(iter(some.values()))  # the longest unused one: it is ended, or used from now on
                if session.last_used + idle > now:
                    break
                if session.busy:
                    self.touch(session)
                else:
                    self._end(session, "the session was idle for too long")
        self._sweep_later()


def _first_idle(sessions: OrderedDict[str, HttpSession]) -> HttpSession | None:
    for session, _ in zip(sessions.values(), range(LOOKED_AT), strict=False):
        if not session.busy:
            return session
    return None
