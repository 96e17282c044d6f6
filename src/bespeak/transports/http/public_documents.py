"""JSON documents that every program and every web page may read: no check of `Host` or `Origin`, and no authentication."""

from bespeak.transports.http.asgi import JSON, Scope, Send, respond
from bespeak.transports.interfaces import PublicDocument

_ANY_ORIGIN = (b"access-control-allow-origin", b"*")


def is_at(document: PublicDocument, path: str, scope: Scope) -> bool:
    """Whether a request is for a document: by its path below where the app is mounted, or by its whole path."""
    if path in document.paths:
        return True
    root: str = scope.get("root_path", "").rstrip("/")
    return scope["path"] in document.paths or (bool(root) and root + path in document.paths)


async def serve_document(document: PublicDocument, method: str, send: Send) -> None:
    """Answer a request for a document, also the one that browsers send first."""
    if method in ("GET", "HEAD"):
        return await respond(send, 200, document.body, JSON, _ANY_ORIGIN, (b"cache-control", b"public, max-age=3600"))
    allowed = (b"allow", b"GET, HEAD, OPTIONS")
    if method == "OPTIONS":
        # The header is one that clients in browsers add to every request.
        named = [
            (b"access-control-allow-methods", b"GET"),
            (b"access-control-allow-headers", b"mcp-protocol-version"),
        ]
        return await respond(send, 204, b"", allowed, _ANY_ORIGIN, *named)
    return await respond(send, 405, b"", allowed)
