"""MCP servers whose tools get the values a model must never invent from your own functions, and from people."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp_types import Icon as Icon

    from bespeak.client import Client as Client
    from bespeak.client import InputRequiredRoundsExceededError as InputRequiredRoundsExceededError
    from bespeak.protocol.errors import MCPError as MCPError
    from bespeak.protocol.errors import UrlElicitationRequiredError as UrlElicitationRequiredError
    from bespeak.protocol.origins import TransportSecuritySettings as TransportSecuritySettings
    from bespeak.resolve.errors import InvalidSignature as InvalidSignature
    from bespeak.resolve.errors import ToolError as ToolError
    from bespeak.resolve.markers import Complete as Complete
    from bespeak.resolve.markers import Elicit as Elicit
    from bespeak.resolve.markers import ElicitUrl as ElicitUrl
    from bespeak.resolve.markers import ListRoots as ListRoots
    from bespeak.resolve.markers import Resolve as Resolve
    from bespeak.resolve.markers import Sample as Sample
    from bespeak.resolve.outcomes import AcceptedElicitation as AcceptedElicitation
    from bespeak.resolve.outcomes import CancelledElicitation as CancelledElicitation
    from bespeak.resolve.outcomes import DeclinedElicitation as DeclinedElicitation
    from bespeak.resolve.outcomes import ElicitationResult as ElicitationResult
    from bespeak.resolve.outcomes import NotAsked as NotAsked
    from bespeak.server.context import Context as Context
    from bespeak.server.features.content import Audio as Audio
    from bespeak.server.features.content import Image as Image
    from bespeak.server.features.prompt_results import AssistantMessage as AssistantMessage
    from bespeak.server.features.prompt_results import Message as Message
    from bespeak.server.features.prompt_results import UserMessage as UserMessage
    from bespeak.server.features.resource_errors import ResourceError as ResourceError
    from bespeak.server.features.resource_errors import ResourceNotFoundError as ResourceNotFoundError
    from bespeak.server.server import MCPServer as MCPServer
    from bespeak.state.seal import RequestStateSecurity as RequestStateSecurity
    from bespeak.transports.http.custom_routes import HttpRequest as HttpRequest
    from bespeak.transports.http.custom_routes import HttpResponse as HttpResponse
    from bespeak.transports.stdio.client import StdioServerParameters as StdioServerParameters

_HOMES = {
    "AcceptedElicitation": "bespeak.resolve.outcomes",
    "AssistantMessage": "bespeak.server.features.prompt_results",
    "Audio": "bespeak.server.features.content",
    "CancelledElicitation": "bespeak.resolve.outcomes",
    "Client": "bespeak.client",
    "Complete": "bespeak.resolve.markers",
    "Context": "bespeak.server.context",
    "DeclinedElicitation": "bespeak.resolve.outcomes",
    "Elicit": "bespeak.resolve.markers",
    "ElicitUrl": "bespeak.resolve.markers",
    "ElicitationResult": "bespeak.resolve.outcomes",
    "HttpRequest": "bespeak.transports.http.custom_routes",
    "HttpResponse": "bespeak.transports.http.custom_routes",
    "Icon": "mcp_types",
    "Image": "bespeak.server.features.content",
    "InputRequiredRoundsExceededError": "bespeak.client",
    "InvalidSignature": "bespeak.resolve.errors",
    "ListRoots": "bespeak.resolve.markers",
    "MCPError": "bespeak.protocol.errors",
    "MCPServer": "bespeak.server.server",
    "Message": "bespeak.server.features.prompt_results",
    "NotAsked": "bespeak.resolve.outcomes",
    "RequestStateSecurity": "bespeak.state.seal",
    "Resolve": "bespeak.resolve.markers",
    "ResourceError": "bespeak.server.features.resource_errors",
    "ResourceNotFoundError": "bespeak.server.features.resource_errors",
    "Sample": "bespeak.resolve.markers",
    "StdioServerParameters": "bespeak.transports.stdio.client",
    "ToolError": "bespeak.resolve.errors",
    "TransportSecuritySettings": "bespeak.protocol.origins",
    "UrlElicitationRequiredError": "bespeak.protocol.errors",
    "UserMessage": "bespeak.server.features.prompt_results",
}


def __getattr__(name: str) -> Any:
    if name == "__all__":  # for `from bespeak import *`
        return sorted(_HOMES)
    if name == "__version__":
        return import_module("importlib.metadata").version("bespeak")
    home = _HOMES.get(name)
    if home is None:
        told = import_module("bespeak.absent_names").where_to_find(name, _HOMES)
        if told is not None:
            raise ImportError(f"bespeak has no {name!r}; {told}", name="bespeak")
        raise AttributeError(f"module 'bespeak' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_HOMES)
