"""`AuthSettings`: which tokens a server accepts, and what it tells clients that have none."""

import math
from collections.abc import Sequence
from urllib.parse import urlsplit

from pydantic import AnyHttpUrl

from bespeak.server.auth.scopes import scope_names


class AuthSettings:
    """The authorization server that issues a server's tokens, the server's own URL, and the scopes that every request needs."""

    def __init__(
        self,
        *,
        issuer_url: str | AnyHttpUrl,
        resource_server_url: str | AnyHttpUrl,
        required_scopes: Sequence[str] | None = None,
        validate_token_resource: bool = True,
        service_documentation_url: str | AnyHttpUrl | None = None,
        leeway: float = 30.0,
    ) -> None:
        """Settings for `MCPServer(auth=...)`.

        `resource_server_url` is the URL under which clients reach the MCP endpoint, whatever proxies are in between. A token is
        accepted only if it was issued for that URL. `validate_token_resource=False` turns this check off: only do so if the
        token verifier makes an equivalent check. `leeway` is how many seconds clocks may differ.
        """
        self.issuer_url = checked_url("issuer_url", issuer_url)
        self.resource_server_url = checked_url("resource_server_url", resource_server_url)
        self.required_scopes = scope_names(required_scopes)
        self.validate_token_resource = validate_token_resource
        self.service_documentation_url = (
            str(service_documentation_url) if service_documentation_url is not None else None
        )
        if not 0 <= leeway < math.inf:
            raise ValueError("leeway must be a number of seconds that is not negative")
        self.leeway = leeway


def checked_url(what: str, url: str | AnyHttpUrl) -> str:
    """A URL that identifies a server. Raises `ValueError` if it cannot."""
    text = str(url)
    try:
        parts = urlsplit(text)
        valid = parts.scheme in ("http", "https") and parts.hostname and "@" not in parts.netloc
    except ValueError:
        valid = False
    if not valid or not text.isascii() or not text.isprintable() or any(mark in text for mark in ' "\\<>?#'):
        raise ValueError(
            f"{what} must be a URL such as https://example.com/mcp, without user name, query and fragment; got {text!r}"
        )
    return without_root_slash(text)


def without_root_slash(url: str) -> str:
    """A URL without the slash that is its whole path: libraries add it, and it means the same."""
    return url[:-1] if url.endswith("/") and url.count("/") == 3 else url
