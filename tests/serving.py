"""One message to a server without a client: its raw response."""

from collections.abc import Callable
from typing import Any

from bespeak import MCPServer
from bespeak.transports.interfaces import Notify
from bespeak.transports.memory import MemoryTransport


class OneWay:
    """Notifications arrive, and nothing can be asked."""

    has_reader = True

    def __init__(self, notify: Notify) -> None:
        self.notify = notify

    def push(self, message: bytes) -> None:
        raise AssertionError(f"there is no client to answer {message!r}")

    def pause(self) -> None:
        raise AssertionError("there is no connection to let go of")

    def when_gone(self, callback: Callable[[], object]) -> None:
        raise AssertionError("nothing can be asked")


async def serve(mcp: MCPServer[Any], message: bytes, notify: Notify = lambda _: None) -> bytes | None:
    """What the server answers; `None` if the message wants no answer."""
    async with MemoryTransport(mcp) as transport:
        return await transport.serve(message, OneWay(notify))
