"""What a client is told whose access token is missing, is not valid, or does not suffice: status and `WWW-Authenticate`."""

from collections.abc import Iterable

from bespeak.transports.interfaces import Challenge

NO_TOKEN = "this server requires an access token: send it in the header 'Authorization: Bearer ...'"
INVALID_TOKEN = "the access token is not valid or has expired; get a new one"
REPEATED = "the header Authorization occurs more than once"
UNVERIFIABLE = "access tokens cannot be verified at the moment; try again later"
CRASHED = "the access token could not be verified"


class Challenges:
    """The challenges of one server."""

    def __init__(self, metadata_url: str, required_scopes: tuple[str, ...]) -> None:
        self._metadata_url = metadata_url
        self._required = required_scopes
        self.no_token = Challenge(401, NO_TOKEN, self._header(None, required_scopes))
        self.invalid_token = Challenge(401, INVALID_TOKEN, self._header("invalid_token", required_scopes))
        self.repeated_header = Challenge(400, REPEATED, self._header("invalid_request", required_scopes))
        self.unverifiable = Challenge(503, UNVERIFIABLE)
        self.crashed = Challenge(500, CRASHED)

    def insufficient_scope(self, more: Iterable[str] = ()) -> Challenge:
        """For a valid token without all the scopes that a request needs. All of them are named, not only those missing."""
        needed = tuple(dict.fromkeys([*self._required, *more]))
        reason = f"the access token lacks a scope; this request needs: {' '.join(needed)}"
        return Challenge(403, reason, self._header("insufficient_scope", needed))

    def _header(self, error: str | None, scopes: tuple[str, ...]) -> bytes:
        parameters = {"error": error, "scope": " ".join(scopes) or None, "resource_metadata": self._metadata_url}
        said = ", ".join(f'{name}="{value}"' for name, value in parameters.items() if value is not None)
        return f"Bearer {said}".encode("ascii")
