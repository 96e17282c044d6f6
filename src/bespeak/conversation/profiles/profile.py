"""`Profile`: how a client behaves during one call. The base class does what the protocol asks of a client."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, ClassVar

from bespeak.conversation.connection import Received
from bespeak.conversation.protocol_rules import Finding
from bespeak.conversation.responses import Question, Reading

Ask = Callable[[], Awaitable[dict[str, Any]]]
"""Returns the answers of the test, or of the person at the terminal, by key."""
Send = Callable[[], Awaitable[Received]]
"""Sends the request, and returns its response. Each copy has an id of its own."""


class StartOver(Exception):
    """Raised by `Profile.answers`: the client drops the call and its state, and makes the call again from its start."""


class Profile:
    """A client during one call. A profile is a subclass that overrides what its client does differently."""

    declares: ClassVar[Mapping[str, Any] | None] = None
    """The capabilities that the client declares; `None` for those of the suite."""
    answers_itself: ClassVar[bool] = False
    """Whether it answers questions without asking anybody. The expectations of a test do not apply then."""
    repeats: ClassVar[bool] = False
    """Whether it may send a request more than once."""
    needs_rounds: ClassVar[bool] = False
    """Whether it only plays at revisions whose questions come in results, which is 2026-07-28 and later."""

    async def answers(self, questions: Sequence[Question], ask: Ask) -> dict[str, Any]:
        """Return what the client sends for the questions of a round, by key. Raises `StartOver`."""
        return await ask()

    async def send(self, send: Send) -> Received:
        """Send one request, and return the response that reaches the client."""
        return await send()

    def judge(self, response: Any, read: Reading) -> Sequence[Finding]:
        """Return the faults that this client sees in a response, besides those that every client sees."""
        return ()
