"""What a `Client` is given as its server: the transport that reaches it, and its name in a cache."""

import hashlib
import secrets
from typing import Any

from bespeak.transports.http.client import HttpTransport
from bespeak.transports.interfaces import Transport
from bespeak.transports.memory import MemoryTransport
from bespeak.transports.stdio.client import StdioServerParameters, StdioTransport


def transport_to(server: Any, raise_exceptions: bool) -> Transport:
    """Return the transport to a server. Raises `TypeError` or `ValueError` if `server` does not name one."""
    if isinstance(server, str):
        if server.endswith(".py"):
            raise ValueError(
                f"{server!r} is a file; to start it as a server, pass StdioServerParameters('bespeak', ['run', {server!r}])"
            )
        return HttpTransport(server)
    if isinstance(server, StdioServerParameters):
        return StdioTransport(server)
    if not isinstance(server, type):
        if hasattr(server, "answer") and hasattr(server, "running"):
            return MemoryTransport(server, raise_exceptions=raise_exceptions)
        if hasattr(server, "exchange"):
            return server
    given = f"the class {server.__name__}" if isinstance(server, type) else type(server).__name__
    raise TypeError(f"a client connects to a URL, StdioServerParameters, an MCPServer or a transport, not to {given}")


def cache_target(server: Any) -> str:
    """Return a name for a server in the keys of a cache. Only a URL means the same server in another client."""
    return hashlib.sha256(server.encode()).hexdigest() if isinstance(server, str) else secrets.token_hex(16)
