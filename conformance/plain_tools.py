"""The tools of the suite that ask nothing. Names, arguments and texts are those that the suite expects."""

import asyncio
from base64 import b64decode
from typing import Annotated, Any

from mcp_types import EmbeddedResource, TextResourceContents
from pydantic import Field

from bespeak import Audio, Context, Image, ToolError
from bespeak.server import Tool

PNG = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==")
"""One red pixel."""
WAV = b64decode("UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=") + bytes(2)
"""One sample of silence."""
STEP_SECONDS = 0.05
"""The suite expects this time between notifications, so that they arrive one by one."""

ADDRESS_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


def embedded(uri: str, mime_type: str, text: str) -> EmbeddedResource:
    """Return a text resource as a content block."""
    return EmbeddedResource(type="resource", resource=TextResourceContents(uri=uri, mime_type=mime_type, text=text))


# Content


def test_simple_text() -> str:
    """Return a text."""
    return "This is a simple text response for testing."


def test_image_content() -> Image:
    """Return an image."""
    return Image(data=PNG, format="png")


def test_audio_content() -> Audio:
    """Return audio."""
    return Audio(data=WAV, format="wav")


def test_embedded_resource() -> EmbeddedResource:
    """Return a resource as content."""
    return embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")


def test_multiple_content_types() -> list[str | Image | EmbeddedResource]:
    """Return a text, an image and a resource."""
    data = embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}')
    return ["Multiple content types test:", Image(data=PNG, format="png"), data]


def test_error_handling() -> str:
    """Fail with a text that the model may read."""
    raise ToolError("This tool intentionally returns an error for testing")


# Notifications and streams


async def test_tool_with_logging(ctx: Context) -> str:
    """Send three log entries."""
    await ctx.info("Tool execution started")
    await asyncio.sleep(STEP_SECONDS)
    await ctx.info("Tool processing data")
    await asyncio.sleep(STEP_SECONDS)
    await ctx.info("Tool execution completed")
    return "Tool with logging executed successfully"


async def test_logging_tool(ctx: Context) -> str:
    """Send one log entry, if the request asked for entries."""
    await ctx.info("Tool execution started")
    return "Logged once"


async def test_tool_with_progress(ctx: Context) -> str:
    """Report progress three times."""
    await ctx.report_progress(0, 100)
    await asyncio.sleep(STEP_SECONDS)
    await ctx.report_progress(50, 100)
    await asyncio.sleep(STEP_SECONDS)
    await ctx.report_progress(100, 100)
    return "Tool with progress executed successfully"


async def test_reconnection(ctx: Context) -> str:
    """Close the stream in mid-call; the client comes back for the result."""
    await ctx.close_sse_stream()
    await asyncio.sleep(STEP_SECONDS)
    return "Reconnection test completed successfully"


# Arguments


def json_schema_2020_12_tool(
    name: str | None = None,
    address: dict[str, Any] | None = None,
    contact_method: Annotated[str | None, Field(alias="contactMethod")] = None,
    phone: str | None = None,
    email: str | None = None,
) -> str:
    """Take arguments that are described by a schema with references, composition and conditions."""
    return f"{name} at {address} by {contact_method}: {phone or email}"


def test_x_mcp_header(
    region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})] = "",
) -> str:
    """Take an argument that HTTP requests repeat in a header."""
    return f"Region: {region}"


# Changes of the lists


def test_trigger_tool_change(ctx: Context) -> str:
    """Add a tool and take it away again."""
    ctx.mcp_server.add_tool(test_simple_text, "test_added_tool")
    ctx.mcp_server.remove_tool("test_added_tool")
    return "The list of tools has changed"


def test_trigger_prompt_change(ctx: Context) -> str:
    """Add a prompt and take it away again."""
    ctx.mcp_server.prompt("test_added_prompt")(test_simple_text)
    ctx.mcp_server.remove_prompt("test_added_prompt")
    return "The list of prompts has changed"


PLAIN_TOOLS = [
    # The suite calls the first tool that is listed without arguments, and it must succeed.
    Tool.from_function(test_simple_text),
    Tool.from_function(test_image_content),
    Tool.from_function(test_audio_content),
    Tool.from_function(test_embedded_resource),
    Tool.from_function(test_multiple_content_types),
    Tool.from_function(test_error_handling),
    Tool.from_function(test_tool_with_logging),
    Tool.from_function(test_logging_tool),
    Tool.from_function(test_tool_with_progress),
    Tool.from_function(test_reconnection),
    Tool.from_function(json_schema_2020_12_tool, input_schema=ADDRESS_SCHEMA),
    Tool.from_function(test_x_mcp_header),
    Tool.from_function(test_trigger_tool_change),
    Tool.from_function(test_trigger_prompt_change),
]
