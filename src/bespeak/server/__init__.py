"""The server side: `MCPServer`, its registries, and how a call is run."""

from bespeak.server.context import Context
from bespeak.server.decisions import Decision
from bespeak.server.features.listings import CacheHint
from bespeak.server.features.prompts import Prompt
from bespeak.server.features.resource_results import ReadResourceContents
from bespeak.server.features.resource_types import (
    BinaryResource,
    DirectoryResource,
    FileResource,
    FunctionResource,
    TextResource,
)
from bespeak.server.features.resources import ResourceSecurity
from bespeak.server.features.tools import Tool
from bespeak.server.middleware import CallEnd, CallInfo, RequestEnd, RequestInfo
from bespeak.server.server import MCPServer
from bespeak.server.server_extensions import require_client_extension
from bespeak.state.stores.memory import MemoryStore
from bespeak.transports.http.legacy.event_store import EventMessage, EventStore, MemoryEventStore

__all__ = [
    "BinaryResource",
    "CacheHint",
    "CallEnd",
    "CallInfo",
    "Context",
    "Decision",
    "DirectoryResource",
    "EventMessage",
    "EventStore",
    "FileResource",
    "FunctionResource",
    "MCPServer",
    "MemoryEventStore",
    "MemoryStore",
    "Prompt",
    "ReadResourceContents",
    "RequestEnd",
    "RequestInfo",
    "ResourceSecurity",
    "TextResource",
    "Tool",
    "require_client_extension",
]
