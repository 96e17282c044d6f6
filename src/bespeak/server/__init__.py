"""The server side: `MCPServer`, its registries, and how a call is run."""

from bespeak.server.context import Context
from bespeak.server.features.listings import CacheHint
from bespeak.server.features.tools import Tool
from bespeak.server.server import MCPServer
from bespeak.state.stores.memory import MemoryStore
from bespeak.transports.http.legacy.event_store import EventMessage, EventStore, MemoryEventStore

__all__ = [
    "CacheHint",
    "Context",
    "EventMessage",
    "EventStore",
    "MCPServer",
    "MemoryEventStore",
    "MemoryStore",
    "Tool",
]
