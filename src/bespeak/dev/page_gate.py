"""Which requests reach the page: those with the token in their path, for a name of this machine, and not from another page.

The token keeps other users and programs of the machine out, and pages that guess the port. `Host` is checked because a foreign
page can have its own name resolve to this machine, and `Origin` because a page may send requests without reading the responses.
"""

import hmac
from dataclasses import dataclass

from bespeak.protocol.headers import Headers
from bespeak.protocol.origins import Gate, TransportSecuritySettings
from bespeak.transports.http.asgi import Scope

PREFIX = "/bespeak-dev/"
"""The paths of the page begin with this; the token follows."""
DEFAULT_PORT = 80
WRONG_TOKEN = "there is no page at this URL; open the URL that bespeak dev printed in the terminal, with its token"
WRONG_HOST = "the page is served to this machine only; open the URL that bespeak dev printed in the terminal"
WRONG_ORIGIN = "this request comes from another page; open the URL that bespeak dev printed in the terminal"


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a request does not reach the page."""

    status: int
    reason: str


class PageGate:
    """Checks every request to the page, whatever it asks for."""

    def __init__(self, token: str, port: int) -> None:
        names = [f"{name}:{port}" for name in ("127.0.0.1", "localhost")]
        if port == DEFAULT_PORT:  # which browsers leave out
            names += ["127.0.0.1", "localhost"]
        origins = [f"http://{name}" for name in names]
        self._hosts = Gate("127.0.0.1", TransportSecuritySettings(allowed_hosts=names, allowed_origins=["*"]))
        self._origins = Gate("127.0.0.1", TransportSecuritySettings(allowed_hosts=["*"], allowed_origins=origins))
        self._token = token.encode()

    def admit(self, scope: Scope) -> "str | Refused":
        """Return the path below the token, or why the request is refused."""
        headers = Headers(scope["headers"])
        if self._hosts.refusal(headers) is not None:
            return Refused(403, WRONG_HOST)
        if self._origins.refusal(headers) is not None:
            return Refused(403, WRONG_ORIGIN)
        token, slash, path = str(scope["path"]).removeprefix(PREFIX).partition("/")
        if not hmac.compare_digest(token.encode(), self._token) or not slash:
            return Refused(404, WRONG_TOKEN)
        return path
