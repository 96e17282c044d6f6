"""The URLs of questions that send people to a page: whether everybody would read one in the same way."""

import re

WEB = ("http", "https")
HIGHEST_PORT = 65535

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")
# Not `urlsplit`, which remembers the last URLs it was given: there may be a token in one.
_HOST = re.compile(r"//(?:[^/?#]*@)?(?:\[[0-9A-Fa-f:.]+\]|[^/?#@:\[\]]+)(?::([0-9]{0,5}))?(?:[/?#].*)?")


def is_scheme(name: str) -> bool:
    """Return whether a name can be the scheme of a URL."""
    return _SCHEME.fullmatch(name) is not None


def scheme_of(url: str) -> str:
    """Return the scheme of a URL, in lower case."""
    return url.partition(":")[0].lower()


def url_problem(url: str) -> str | None:
    """Return what is wrong with a URL, without repeating it; `None` if it is valid.

    A URL with characters that browsers and other readers interpret differently (a backslash), or that nobody can see (a
    control character), is not valid. The host is checked for web addresses only.
    """
    if not url.isprintable() or not {*' "<>\\'}.isdisjoint(url):
        return "contains characters that are not allowed in a URL"
    name, colon, rest = url.partition(":")
    if not colon or not is_scheme(name):
        return "has no scheme"
    if name.lower() not in WEB:
        return None
    found = _HOST.fullmatch(rest)
    return "has no valid host" if found is None or int(found.group(1) or 0) > HIGHEST_PORT else None
