"""Checks the URLs in a server's questions before they reach a callback, which may open them."""

import re
from collections.abc import Collection
from typing import Any

WEB = ("http", "https")
HIGHEST_PORT = 65535

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")
# Not `urlsplit`, which remembers the last URLs it was given: there may be a token in one.
_HOST = re.compile(r"//(?:[^/?#]*@)?(?:\[[0-9A-Fa-f:.]+\]|[^/?#@:\[\]]+)(?::([0-9]{0,5}))?(?:[/?#].*)?")


def read_schemes(schemes: Collection[Any]) -> tuple[str, ...]:
    """Return the allowed schemes in lower case. Raises `ValueError`."""
    names: list[Any] = [""] if isinstance(schemes, str) else list(schemes)
    if not all(isinstance(name, str) and _SCHEME.fullmatch(name) for name in names):
        raise ValueError(
            f'elicitation_url_schemes must be a collection of URL schemes, such as ("https",), not {schemes!r}'
        )
    return tuple(name.lower() for name in names)


def check_url(key: str, url: str, schemes: Collection[str]) -> str | None:
    """Return why the URL of the question `key` must not be opened; `None` if it may be.

    The text does not repeat the URL. A URL with characters that browsers and other readers interpret differently (a
    backslash), or that nobody can see (a control character), is not valid.
    """
    asks = f"the question {key!r:.200} sends people to a URL"
    if not url.isprintable() or not {*' "<>\\'}.isdisjoint(url):
        return f"{asks} that is not valid: it contains characters that are not allowed in a URL"
    name, colon, rest = url.partition(":")
    if not colon or not _SCHEME.fullmatch(name):
        return f"{asks} that is not valid: it has no scheme"
    scheme = name.lower()
    if scheme not in schemes:
        return (
            f"{asks} with the scheme {scheme[:40]!r}; this client allows {', '.join(schemes)} (elicitation_url_schemes)"
        )
    if scheme not in WEB:
        return None
    found = _HOST.fullmatch(rest)
    if found is None or int(found.group(1) or 0) > HIGHEST_PORT:
        return f"{asks} that is not valid: it has no valid host"
    return None
