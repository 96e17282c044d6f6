"""The server side: `MCPServer`, its registries, and how a call is run."""

from bespeak.server.context import Context
from bespeak.server.server import MCPServer

__all__ = ["Context", "MCPServer"]
