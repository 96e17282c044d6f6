"""An older client of a server on a pair of pipes."""

from typing import Any

from tests.transports.http.legacy.older_client import (
    NOVEMBER,
    Json,
    hello,
    notification,
    request,
)
from tests.transports.stdio.wire import Wire


class Older(Wire):
    """A raw client that can shake hands."""

    async def __aenter__(self) -> "Older":
        await super().__aenter__()
        return self

    async def greet(self, version: str = NOVEMBER, capabilities: Any = None) -> Json:
        answer = await self.ask(hello(version, capabilities))
        self.send(notification("notifications/initialized"))
        return answer

    async def before(self) -> list[Any]:
        """Everything sent up to now: what comes before the answer to a ping."""
        found: list[Any] = []
        self.send(request("ping", id_="the last"))
        while (message := await self.next()).get("id") != "the last":
            found.append(message)
        return found

    async def asked(self) -> Json:
        message = await self.next()
        assert message["method"] == "elicitation/create", message
        return message
