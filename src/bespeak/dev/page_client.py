"""The page's client: it reaches the endpoint over HTTP, as any other client does."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx2

from bespeak.conversation.connection import Connection
from bespeak.conversation.connection_settings import EVERYTHING
from bespeak.dev.wire_record import Record, RecordedTransport
from bespeak.transports.http.client import CONNECT_SECONDS, SILENCE_SECONDS

UNAUTHORIZED = "the server needs an access token: enter one at the top of the page"
"""What to do about HTTP status 401."""
CALL_SECONDS = 300.0
"""How long a request may take; time that a person takes to answer does not count."""


@asynccontextmanager
async def connected(url: str, era: str, authorization: str, record: Record) -> AsyncGenerator[Connection]:
    """Open a connection of a client that can answer every kind of question.

    Raises `OSError`, `ValueError`, `MCPError` or `InvalidServerResponse` if it cannot be opened.
    """
    # Never through a proxy of the environment: the endpoint is on this machine. There is no TLS to verify.
    timeout = httpx2.Timeout(CONNECT_SECONDS, read=SILENCE_SECONDS)
    async with httpx2.AsyncClient(trust_env=False, verify=False, timeout=timeout) as http:
        headers = {"Authorization": f"Bearer {authorization}"} if authorization else {}
        transport = RecordedTransport(url, record, headers=headers, http_client=http, unauthorized=UNAUTHORIZED)
        async with Connection(transport, era, EVERYTHING, CALL_SECONDS) as connection:
            yield connection
