"""The types of `mcp_types`, imported when the first of them is used.

Importing `mcp_types` builds two hundred models, which takes longer than importing Bespeak. A client needs them for its results; a
server needs them only for what its author writes with them and for a few rare requests.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp_types import Annotations as Annotations
    from mcp_types import AudioContent as AudioContent
    from mcp_types import BlobResourceContents as BlobResourceContents
    from mcp_types import CacheableResult as CacheableResult
    from mcp_types import CallToolResult as CallToolResult
    from mcp_types import ClientCapabilities as ClientCapabilities
    from mcp_types import CompleteResult as CompleteResult
    from mcp_types import Completion as Completion
    from mcp_types import CompletionArgument as CompletionArgument
    from mcp_types import CompletionContext as CompletionContext
    from mcp_types import CreateMessageRequestParams as CreateMessageRequestParams
    from mcp_types import CreateMessageResult as CreateMessageResult
    from mcp_types import CreateMessageResultWithTools as CreateMessageResultWithTools
    from mcp_types import DiscoverResult as DiscoverResult
    from mcp_types import ElicitRequestFormParams as ElicitRequestFormParams
    from mcp_types import ElicitRequestURLParams as ElicitRequestURLParams
    from mcp_types import ElicitResult as ElicitResult
    from mcp_types import EmbeddedResource as EmbeddedResource
    from mcp_types import EmptyResult as EmptyResult
    from mcp_types import ErrorData as ErrorData
    from mcp_types import GetPromptResult as GetPromptResult
    from mcp_types import Icon as Icon
    from mcp_types import ImageContent as ImageContent
    from mcp_types import Implementation as Implementation
    from mcp_types import InitializeResult as InitializeResult
    from mcp_types import InputRequiredResult as InputRequiredResult
    from mcp_types import ListPromptsResult as ListPromptsResult
    from mcp_types import ListResourcesResult as ListResourcesResult
    from mcp_types import ListResourceTemplatesResult as ListResourceTemplatesResult
    from mcp_types import ListRootsResult as ListRootsResult
    from mcp_types import ListToolsResult as ListToolsResult
    from mcp_types import LoggingMessageNotificationParams as LoggingMessageNotificationParams
    from mcp_types import Prompt as Prompt
    from mcp_types import PromptArgument as PromptArgument
    from mcp_types import PromptReference as PromptReference
    from mcp_types import ReadResourceResult as ReadResourceResult
    from mcp_types import Resource as Resource
    from mcp_types import ResourceLink as ResourceLink
    from mcp_types import ResourceTemplate as ResourceTemplate
    from mcp_types import ResourceTemplateReference as ResourceTemplateReference
    from mcp_types import SamplingCapability as SamplingCapability
    from mcp_types import SubscriptionFilter as SubscriptionFilter
    from mcp_types import SubscriptionsAcknowledgedNotificationParams as SubscriptionsAcknowledgedNotificationParams
    from mcp_types import TextContent as TextContent
    from mcp_types import TextResourceContents as TextResourceContents
    from mcp_types import Tool as Tool
    from mcp_types import ToolAnnotations as ToolAnnotations


def in_use() -> bool:
    """Return whether anything has imported `mcp_types`. Until then, no value and no annotation is one of its types."""
    return "mcp_types" in sys.modules


def __getattr__(name: str) -> Any:
    if name.startswith("_"):  # Python and debuggers look for such names; none of them is a type
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module("mcp_types"), name)
    globals()[name] = value
    return value
