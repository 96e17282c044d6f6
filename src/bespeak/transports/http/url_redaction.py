"""URLs without their secrets, for error messages and for the log of the HTTP library."""

import logging
import re
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from urllib.parse import urlsplit

# Not `urlsplit`, which remembers the last URLs it was given, tokens included.
_URL = re.compile(
    r"(https?)://(?:[^/?#\\\x00-\x1f\x7f]*@)?"  # who asks
    r"(\[[0-9a-f:.]+\]|[^/?#\\@:\[\]\s\x00-\x1f\x7f]+)(?::([0-9]{0,5}))?"
    r"(/[^?#\x00-\x1f\x7f]*)?([?#][^\x00-\x1f\x7f]*)?",
    re.IGNORECASE,
)
HIGHEST_PORT = 65535


def public(url: str) -> str | None:
    """Return a URL without the parts that may be secret; `None` if it is not a valid HTTP URL."""
    found = _URL.fullmatch(url)
    if found is None:
        return None
    scheme, host, port, path = found.group(1, 2, 3, 4)
    if port and int(port) > HIGHEST_PORT:
        return None
    return f"{scheme.lower()}://{host.lower()}{f':{port}' if port else ''}{path or ''}"


@contextmanager
def hiding() -> Generator[None]:
    """Keep secrets in URLs out of the HTTP library's log, for requests that are sent inside the block."""
    log = logging.getLogger("httpx2")
    if not any(isinstance(one, _Hiding) for one in log.filters):
        log.addFilter(_Hiding())
    before = _ours.set(True)
    try:
        yield
    finally:
        _ours.reset(before)


_ours: ContextVar[bool] = ContextVar("bespeak_hides_urls", default=False)
"""Whether a request is ours: others in the process may use the library too."""


def forget() -> None:
    """Clear the cache of `urlsplit`, which keeps the last URLs that were parsed, such as those of redirects."""
    getattr(urlsplit, "cache_clear", lambda: None)()


class _Hiding(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        if _ours.get() and isinstance(record.args, tuple):
            record.args = tuple(
                public(str(one)) or "a URL" if type(one).__name__ == "URL" else one for one in record.args
            )
        return True
