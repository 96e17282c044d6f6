"""The client: `Client`, its session, and the driver that answers a server's questions."""

from bespeak.client.callbacks import ClientRequestContext
from bespeak.client.client import Client
from bespeak.client.errors import (
    CallbackFailed,
    InputRequiredQuestionsExceededError,
    InputRequiredRoundsExceededError,
    InvalidServerResponse,
)
from bespeak.client.session import ClientSession
from bespeak.transports.http.client import HttpStatusError
from bespeak.transports.http.client import HttpTransport as streamable_http_client
from bespeak.transports.interfaces import Lost
from bespeak.transports.stdio.client import StdioServerParameters
from bespeak.transports.stdio.client import StdioTransport as stdio_client

__all__ = [
    "CallbackFailed",
    "Client",
    "ClientRequestContext",
    "ClientSession",
    "HttpStatusError",
    "InputRequiredQuestionsExceededError",
    "InputRequiredRoundsExceededError",
    "InvalidServerResponse",
    "Lost",
    "StdioServerParameters",
    "stdio_client",
    "streamable_http_client",
]
