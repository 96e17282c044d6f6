"""The responses of the page: each has the headers that keep scripts, frames, caches and other pages out."""

from typing import Any

from pydantic_core import to_json

from bespeak.transports.http.asgi import Send, respond

POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    b"frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
PICTURE_POLICY = b"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox"
"""For a drawing, which has its styles in itself, and which the page shows as an image: nothing in it can run."""
_ALWAYS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
_TEXT = b"text/plain; charset=utf-8"


def page_headers(kind: bytes, policy: bytes = POLICY) -> list[tuple[bytes, bytes]]:
    """Return the headers of a response whose content is of a kind."""
    return [(b"content-type", kind), (b"content-security-policy", policy), *_ALWAYS]


async def send_bytes(send: Send, body: bytes, kind: bytes, policy: bytes = POLICY) -> None:
    """Send a file or a drawing."""
    await respond(send, 200, body, *page_headers(kind, policy))


async def send_json(send: Send, value: Any, status: int = 200) -> None:
    """Send a value as JSON."""
    await respond(send, status, to_json(value), *page_headers(b"application/json"))


async def send_refusal(send: Send, status: int, reason: str) -> None:
    """Send the reason why a request is refused, as plain text."""
    await respond(send, status, reason.encode(), *page_headers(_TEXT))
