"""The client side: `Client`, its session, and the driver that answers a server's questions."""

from bespeak.client.callbacks import CallbackContext
from bespeak.client.client import Client
from bespeak.client.errors import CallbackFailed, InputRequiredRoundsExceededError, InvalidServerResponse
from bespeak.client.session import ClientSession

__all__ = [
    "CallbackContext",
    "CallbackFailed",
    "Client",
    "ClientSession",
    "InputRequiredRoundsExceededError",
    "InvalidServerResponse",
]
