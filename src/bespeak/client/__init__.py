"""The client side: `Client`, its session, and the driver that answers a server's questions."""

from bespeak.client.callbacks import CallbackContext
from bespeak.client.client import Client
from bespeak.client.errors import (
    CallbackFailed,
    InputRequiredQuestionsExceededError,
    InputRequiredRoundsExceededError,
    InvalidServerResponse,
)
from bespeak.client.session import ClientSession
from bespeak.transports.http_client import HttpStatusError
from bespeak.transports.http_client import HttpTransport as streamable_http_client
from bespeak.transports.stdio_client import StdioServerParameters
from bespeak.transports.stdio_client import StdioTransport as stdio_client
from bespeak.transports.transport import Lost

__all__ = [
    "CallbackContext",
    "CallbackFailed",
    "Client",
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
