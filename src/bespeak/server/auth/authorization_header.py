"""The `Authorization` header of a request, and the bearer token in it."""

import re

from bespeak.protocol.errors import MCPError
from bespeak.protocol.headers import Headers

_BEARER = re.compile(rb"bearer +([A-Za-z0-9._~+/-]+=*)", re.IGNORECASE)
"""RFC 6750, section 2.1."""
_SCHEME = re.compile(rb"bearer(?![^ \t])", re.IGNORECASE)


class RepeatedHeader(Exception):
    """There is more than one `Authorization` header."""


class MalformedToken(Exception):
    """What was sent as a bearer token cannot be one."""


def bearer_token(headers: Headers) -> str | None:
    """The bearer token of a request; `None` if it has none. Raises `RepeatedHeader` or `MalformedToken`."""
    try:
        value = headers.only("Authorization")
    except MCPError:
        raise RepeatedHeader from None
    if value is None or not _SCHEME.match(value):
        return None
    found = _BEARER.fullmatch(value)
    if found is None:
        raise MalformedToken
    return found[1].decode("ascii")
