"""The interface through which workers share the sessions of older clients: their records, requests, questions and mail.

A session is known to all workers. Its requests and questions each belong to one worker, which holds the connection to the client.
Whatever concerns them may arrive at another worker, and is sent on by mail. Records and mail are sealed: a store cannot read them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from bespeak.protocol.session_facts import Delivery, SessionLimits

WORKER_LEASE = 15.0
"""How many seconds after its last sign of life a worker counts as dead."""
BEAT_SECONDS = 5.0
"""How often a worker gives a sign of life."""
GONE_SECONDS = 600.0
"""How long the questions of a dead worker are remembered, to tell clients that answers to them are of no use."""
MOST_MAIL = 10_000
"""How many messages may wait for one worker. Changes beyond that are dropped."""


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session as a store has it."""

    record: bytes
    version: int
    """Counts the changes of the record."""


class SessionStore(Protocol):
    """What workers share about older clients. Every method is atomic, and may raise `StoreUnavailable`."""

    # Workers

    async def beat(self, worker: str, *, listening: bool) -> None:
        """Say that a worker is alive, and whether it has clients that want to be told of changes."""
        ...

    async def retain(
        self, worker: str, requests: Sequence[tuple[bytes, str]], questions: Sequence[tuple[bytes, str]]
    ) -> None:
        """Forget all other requests and questions of a worker, each given with its session, and send it the answers it has missed.

        Both happen when a reply of the store was lost.
        """
        ...

    async def leave(self, worker: str) -> None:
        """Forget a worker with all its requests, questions and mail."""
        ...

    # Sessions

    async def add_session(self, session: bytes, record: bytes, holder: str | None, limits: SessionLimits) -> None:
        """Add a session, and end another one to make room if necessary. Raises `TooManySessions` or `TooManyOfOne`."""
        ...

    async def use_session(
        self, session: bytes, worker: str, requests: Sequence[str], *, used: bool, idle_seconds: float | None
    ) -> SessionRow | None:
        """Return a session, and record that a worker serves requests of it. `None` if it does not exist or was idle for too long.

        When it was last used is written at most every tenth of `idle_seconds`, and only if it is `used`.
        """
        ...

    async def end_requests(self, session: bytes, worker: str, requests: Sequence[str]) -> None:
        """Record that requests are over. Counts as use of the session."""
        ...

    async def save_session(self, session: bytes, record: bytes, version: int) -> bool:
        """Replace the record of a session. False if its version is another one by now, or it has ended."""
        ...

    async def end_session(self, session: bytes) -> list[str]:
        """Remove a session. Returns the workers that serve requests of it."""
        ...

    async def end_idle_sessions(self, idle_seconds: float) -> None:
        """Remove the sessions that were not used for so long and have no request under way."""
        ...

    async def workers_of(self, session: bytes, request: str | None = None) -> list[str]:
        """Return the living workers that serve requests of a session, or one certain request of it."""
        ...

    # Questions

    async def open_question(self, session: bytes, question: str, worker: str) -> None:
        """Record which worker waits for the answer to a question."""
        ...

    async def close_question(self, session: bytes, question: str) -> None:
        """Record that nobody waits for the answer any more."""
        ...

    async def answer_question(self, session: bytes, question: str, mail: bytes) -> Delivery:
        """Send an answer to the worker that asked.

        Only the first answer counts. A later one makes sure that it arrives.
        """
        ...

    async def is_question_open(self, session: bytes, question: str) -> bool:
        """Return whether the worker that asked is still waiting."""
        ...

    # Mail

    async def send(self, workers: Sequence[str], mail: bytes) -> None:
        """Send a message to workers."""
        ...

    async def send_to_listeners(self, sender: str, mail: bytes) -> None:
        """Send a message to all other living workers whose clients want to be told of changes."""
        ...

    async def receive(self, worker: str) -> list[bytes]:
        """Return the messages for a worker, and remove them."""
        ...

    def pause(self, *, urgent: bool) -> float:
        """Return how many seconds a worker sleeps before it looks for mail; zero if `receive` itself waits for the first message.

        It is urgent while a question is open.
        """
        ...
