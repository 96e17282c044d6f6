"""What a round reports of its questions while it runs, for the record of who decided what."""

from typing import Protocol


class RoundWatcher(Protocol):
    """Told of the questions of a round. `key` is the name of a question, `pin` identifies exactly what was asked."""

    def asked(self, key: str, pin: str, *, again: bool) -> None:
        """A question is put to the client. `again` if the client was asked it before, and the answer was a slip or missing."""
        ...

    def drifted(self, key: str, pin: str) -> None:
        """A question is another one than the client was shown, though nothing that it depends on has changed."""
        ...

    def answered(self, key: str, pin: str, action: str) -> None:
        """The client has accepted, declined or cancelled a question."""
        ...

    def unanswered(self, key: str, pin: str, reason: str) -> None:
        """Nobody answered a question, and nobody will."""
        ...

    def not_asked(self, key: str, *, default: bool) -> None:
        """The client cannot be asked, and the call goes on: with a default, or told so."""
        ...

    def overridden(self, key: str) -> None:
        """An override stands in for a resolver."""
        ...
