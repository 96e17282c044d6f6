"""URLs as they may be shown: without what may be secret in them, in errors and in the log of the library that uses them."""

import logging
from urllib.parse import urlsplit


def public(url: str) -> str | None:
    """A URL without what may be secret in it; `None` if it is none that can be used."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not host:
        return None
    name = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{name}{f':{port}' if port else ''}{parts.path}"


def hide(url: str, where: str) -> None:
    """Keep what may be secret in a URL out of the log of the library that sends it."""
    log = logging.getLogger("httpx2")
    if not any(isinstance(one, _Hiding) for one in log.filters):
        log.addFilter(_Hiding())
    _HIDDEN[url] = where


class _Hiding(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(
                _HIDDEN.get(str(one), one) if type(one).__name__ == "URL" else one for one in record.args
            )
        return True


_HIDDEN: dict[str, str] = {}
