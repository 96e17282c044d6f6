"""The HTTP sessions of older clients that several workers share: each worker has the parts that are under way on it."""

from collections.abc import Callable, Sequence
from typing import Any

from bespeak.protocol.messages import LegacyRequest, Notification, RequestId, Response, is_id
from bespeak.protocol.session_facts import Delivery, SessionFacts, SessionLimits, TooManyOfOne, TooManySessions
from bespeak.transports.http.legacy.http_sessions import HttpSession, refusal
from bespeak.transports.interfaces import OpenQuestions, SharedSessions

MakeSession = Callable[[str, SessionFacts, OpenQuestions], HttpSession]


class SharedHttpSessions:
    """The parts of shared sessions that are on this worker. A part lives while something is under way in it."""

    def __init__(self, worker: SharedSessions, limits: SessionLimits, make: MakeSession) -> None:
        self.worker = worker
        self._limits = limits
        self._make = make
        self._local: dict[str, HttpSession] = {}

    def __len__(self) -> int:
        return len(self._local)

    async def admit(self, session: HttpSession) -> None:
        """Add a new session. Raises `LegacyRefusal` if there is no room for it."""
        facts = session.peer.facts().owned_by(session.principal, session.prefix)
        try:
            await self.worker.add(session.id, facts, session.address, self._limits)
        except (TooManySessions, TooManyOfOne) as error:
            raise refusal(error) from None

    async def get(
        self, id_: str, principal: str | None, requests: Sequence[RequestId], *, used: bool
    ) -> HttpSession | None:
        """Return this worker's part of a session, and record that its requests are served here.

        `None` if it does not exist, or belongs to another principal.
        """
        facts = await self.worker.use(id_, requests, used=used, idle_seconds=self._limits.idle_seconds)
        if facts is None:
            return None
        session = self._local.get(id_)
        if facts.principal != principal:
            self._release(id_, requests, session)
            return None
        if session is None or session.closed:
            session = self._local[id_] = self._make(id_, facts, _Questions(self.worker, id_))
            self.worker.attach(id_, session)
        session.peer.restore(facts)
        session.users += 1
        return session

    def touch(self, session: HttpSession) -> None:
        """The store has recorded the use."""

    def leave(self, session: HttpSession) -> None:
        """Called when an HTTP request that used a session is answered."""
        session.users -= 1
        self._drop_idle(session)

    def over(self, session: HttpSession, requests: Sequence[RequestId]) -> None:
        """Called when requests of a session are over."""
        self._release(session.id, requests, session)
        self._drop_idle(session)

    def _release(self, id_: str, requests: Sequence[RequestId], session: HttpSession | None) -> None:
        """Release requests, but not those that are under way: another request may have used the same id."""
        over = [one for one in requests if session is None or one not in session.requests]
        if over:
            self.worker.release(id_, over)

    def _drop_idle(self, session: HttpSession) -> None:
        if not session.users and not session.busy and self._local.get(session.id) is session:
            del self._local[session.id]
            self.worker.detach(session.id)
            session.close("the session has nothing under way on this worker")

    async def changed(self, session: HttpSession, request: LegacyRequest) -> None:
        """Have all workers know what a request has changed in a session."""
        await self.worker.change(session.id, lambda facts: session.peer.applied(request, facts))

    async def answered(self, session: HttpSession, response: Response) -> Delivery:
        """Hand an answer to the question it belongs to, on whatever worker."""
        if session.peer.waits_for(response):
            session.peer.heard(response)
            return Delivery.SENT
        delivery = await self.worker.answer(session.id, response)
        if delivery is Delivery.UNKNOWN:
            session.peer.heard(response)  # which logs that nobody waits for it
        return delivery

    async def heard(self, session: HttpSession, notification: Notification) -> None:
        """Take a notification of a session's client."""
        session.heard(notification)
        id_: Any = notification.params.get("requestId")
        if notification.method == "notifications/cancelled" and is_id(id_) and id_ not in session.requests:
            await self.worker.cancel(session.id, id_)

    def stream_name(self, session: HttpSession, number: int) -> str:
        """Return the name of a stream of this worker."""
        return f"{session.prefix}/{self.worker.name}-{number}"

    async def is_written_elsewhere(self, session: HttpSession, stream: str) -> bool:
        """Return whether the worker that has opened a stream is another one, and may still write to it."""
        return await self.worker.is_served_by(session.id, stream.partition("/")[2].rpartition("-")[0])

    async def end(self, session: HttpSession, reason: str) -> None:
        """End a session on all workers."""
        try:
            await self.worker.end(session.id, reason)
        finally:
            session.close(reason)

    def end_all(self, reason: str) -> None:
        """Close all parts that are on this worker. The sessions go on elsewhere."""
        for session in list(self._local.values()):
            session.close(reason)


class _Questions:
    """The questions of one session on this worker."""

    def __init__(self, worker: SharedSessions, session: str) -> None:
        self._worker = worker
        self._session = session

    async def open(self, question: str) -> None:
        await self._worker.open_question(self._session, question)

    def close(self, question: str) -> None:
        self._worker.close_question(self._session, question)
