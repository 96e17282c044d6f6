"""A request as it reaches the server, with the way back to its client."""

from dataclasses import dataclass

from bespeak.protocol.headers import Headers
from bespeak.protocol.messages import Request
from bespeak.resolve.errors import Refusal
from bespeak.server.legacy.pushing import Asker
from bespeak.transports.interfaces import Notify


@dataclass(slots=True)
class Incoming:
    """One request, in either era. Not frozen only because that takes three times as long, for every request."""

    request: Request
    notify: Notify
    headers: Headers | None
    """`None` where there is no HTTP."""
    asker: Asker | None = None
    """How a client of an older revision is asked; `None` for a modern one."""
    raise_exceptions: bool = False
    """Whether a crash of an author's code is raised, for tests in the same process."""
    target: str | None = None
    """The URI of the resource or template that is read, as it was registered; `None` for everything else."""
    round: int = 1
    """Which round of its call it is. A call of an older client has one."""
    refusal: Refusal | None = None
    """How a person ended its call, if one did."""

    @property
    def sender(self) -> tuple[str | None, str | None]:
        """Who sends it, and from which address; `None` if that is not known."""
        headers = self.headers
        if headers is None:
            return None, None
        return headers.caller.principal if headers.caller is not None else None, headers.address

    @property
    def principal(self) -> str | None:
        """Who sends it; `None` without authentication."""
        caller = self.headers.caller if self.headers is not None else None
        return caller.principal if caller is not None else None

    @property
    def address(self) -> str | None:
        return self.headers.address if self.headers is not None else None
