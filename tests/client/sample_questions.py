"""One question of each kind, and callbacks that answer them."""

from typing import Any

from mcp_types import (
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitResult,
    ListRootsResult,
    Root,
    TextContent,
)

from bespeak.client import ClientRequestContext
from tests.answering import accept

FORM: dict[str, Any] = {
    "method": "elicitation/create",
    "params": {
        "mode": "form",
        "message": "Sure?",
        "requestedSchema": {
            "type": "object",
            "properties": {"sure": {"type": "boolean"}},
            "required": ["sure"],
        },
    },
}


URL: dict[str, Any] = {
    "method": "elicitation/create",
    "params": {"mode": "url", "message": "Pay", "url": "https://example.com/pay", "elicitationId": "e"},
}


SAMPLE: dict[str, Any] = {
    "method": "sampling/createMessage",
    "params": {"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 9},
}


SAMPLE_WITH_TOOLS: dict[str, Any] = {**SAMPLE, "params": {**SAMPLE["params"], "tools": []}}


ROOTS: dict[str, Any] = {"method": "roots/list"}


async def say_yes(context: ClientRequestContext, params: Any) -> ElicitResult:
    return accept(sure=True)


async def write(context: ClientRequestContext, params: CreateMessageRequestParams) -> CreateMessageResult:
    return CreateMessageResult(role="assistant", content=TextContent(type="text", text="ho"), model="m")


async def list_roots(context: ClientRequestContext) -> ListRootsResult:
    return ListRootsResult(roots=[Root(uri="file:///a", name="a")])  # pyright: ignore[reportArgumentType] - read as a URL
