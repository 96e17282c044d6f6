"""The files of the page: they are in the package, and the browser loads nothing else."""

from functools import cache
from importlib.resources import files

KINDS = {
    "page.html": b"text/html; charset=utf-8",
    "page.css": b"text/css; charset=utf-8",
    "icon.svg": b"image/svg+xml",
    "page.js": b"text/javascript; charset=utf-8",
    "call_view.js": b"text/javascript; charset=utf-8",
    "elements.js": b"text/javascript; charset=utf-8",
    "fields.js": b"text/javascript; charset=utf-8",
    "item_view.js": b"text/javascript; charset=utf-8",
    "question_view.js": b"text/javascript; charset=utf-8",
    "requests.js": b"text/javascript; charset=utf-8",
    "timeline_view.js": b"text/javascript; charset=utf-8",
}
"""By name: the type of each file. No other file is served."""
FIRST = "page.html"


@cache
def page_file(name: str) -> bytes:
    """Return the contents of a file of the page."""
    return (files("bespeak.dev") / "static" / name).read_bytes()
