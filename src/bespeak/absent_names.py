"""What newcomers import from `bespeak` and do not find there: where it is, or which name they probably meant."""

import difflib
from collections.abc import Collection
from importlib import import_module
from importlib.util import find_spec

ELSEWHERE = {
    "FastMCP": "the server class is MCPServer: from bespeak import MCPServer",
    "Server": "the server class is MCPServer: from bespeak import MCPServer",
    "Depends": "the marker is Resolve: from bespeak import Resolve",
    "Resolver": "the marker is Resolve: from bespeak import Resolve",
    "MemoryStore": "stores are in bespeak.server: from bespeak.server import MemoryStore",
    "ClientSession": "the client is Client: from bespeak import Client",
    "stdio_client": "a Client takes StdioServerParameters itself: from bespeak import StdioServerParameters",
    "McpError": "the error is MCPError: from bespeak import MCPError",
    "types": "wire types have a package of their own: import mcp_types",
}
"""What has another name here, or is better not imported at all."""
_PACKAGES = ("bespeak.server", "bespeak.server.auth", "bespeak.client")
_WIRE_TYPES = "mcp_types"
_CLOSE = 0.8


def where_to_find(name: str, names: Collection[str]) -> str | None:
    """Return what to write instead of a name that `bespeak` does not have; `None` if nobody can know.

    Modules of the package are looked up here too before they are imported, so their names are never a misspelling.
    """
    if name in ELSEWHERE:
        return ELSEWHERE[name]
    if name.startswith("_") or find_spec(f"{__package__}.{name}") is not None:
        return None
    for package in _PACKAGES:
        found = import_module(package)
        if name in (getattr(found, "__all__", None) or dir(found)):
            return f"it is in {package}: from {package} import {name}"
    if hasattr(import_module(_WIRE_TYPES), name):
        return f"it is a wire type: from {_WIRE_TYPES} import {name}"
    close = difflib.get_close_matches(name, names, 1, _CLOSE)
    return f"did you mean {close[0]!r}?" if close else None
