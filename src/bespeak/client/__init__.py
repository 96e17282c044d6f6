"""The client: `Client`, its session, its cache, and the driver that answers a server's questions."""

from bespeak.client.cache import CacheConfig, CacheMode
from bespeak.client.cache_store import CacheEntry, CacheKey, InMemoryResponseCacheStore, ResponseCacheStore
from bespeak.client.callbacks import ClientRequestContext
from bespeak.client.client import Client
from bespeak.client.errors import (
    CallbackFailed,
    InputRequiredQuestionsExceededError,
    InputRequiredRoundsExceededError,
    InvalidServerResponse,
    NotAtThisVersion,
)
from bespeak.client.extensions import ClientExtension, advertise
from bespeak.client.session import ClientSession
from bespeak.client.subscriptions import ListenNotSupportedError, Subscription, SubscriptionLost
from bespeak.transports.http.client import HttpStatusError
from bespeak.transports.http.client import HttpTransport as streamable_http_client
from bespeak.transports.interfaces import Lost
from bespeak.transports.stdio.client import StdioServerParameters
from bespeak.transports.stdio.client import StdioTransport as stdio_client

__all__ = [
    "CacheConfig",
    "CacheEntry",
    "CacheKey",
    "CacheMode",
    "CallbackFailed",
    "Client",
    "ClientExtension",
    "ClientRequestContext",
    "ClientSession",
    "HttpStatusError",
    "InMemoryResponseCacheStore",
    "InputRequiredQuestionsExceededError",
    "InputRequiredRoundsExceededError",
    "InvalidServerResponse",
    "ListenNotSupportedError",
    "Lost",
    "NotAtThisVersion",
    "ResponseCacheStore",
    "StdioServerParameters",
    "Subscription",
    "SubscriptionLost",
    "advertise",
    "stdio_client",
    "streamable_http_client",
]
