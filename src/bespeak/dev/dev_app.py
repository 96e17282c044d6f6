"""The app of `bespeak dev`: the page below its own path, and the server at all others."""

from collections.abc import Callable

from bespeak.dev.page_api import PageApi
from bespeak.dev.page_gate import PREFIX, PageGate, Refused
from bespeak.dev.page_responses import send_refusal
from bespeak.transports.http.asgi import ASGIApp, Message, Receive, Scope, Send
from bespeak.transports.http.refusals import refuse

NOT_LOADED = "the server's file cannot be loaded; see the terminal of bespeak dev"


class DevApp:
    """An ASGI app with a page beside a server."""

    def __init__(
        self, served: ASGIApp, gate: PageGate, page: PageApi, started: Callable[[], object] = lambda: None
    ) -> None:
        self._served = served
        self._gate = gate
        self._page = page
        self._started = started
        """Called when the server's lifespan has started."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self._lifespan(scope, receive, send)
        if scope["type"] != "http" or not scope["path"].startswith(PREFIX):
            return await self._served(scope, receive, send)
        admitted = self._gate.admit(scope)
        if isinstance(admitted, Refused):
            return await send_refusal(send, admitted.status, admitted.reason)
        return await self._page.serve(admitted, scope, receive, send)

    async def _lifespan(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def watched(message: Message) -> None:
            await send(message)
            if message["type"] == "lifespan.startup.complete":
                self._started()

        await self._served(scope, receive, watched)


async def no_server(scope: Scope, receive: Receive, send: Send) -> None:
    """Stand in for a server whose file cannot be loaded."""
    if scope["type"] == "lifespan":
        for done in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{done}.complete"})
    elif scope["type"] == "http":
        await refuse(send, 503, NOT_LOADED)
    else:
        await send({"type": "websocket.close", "code": 1000})
