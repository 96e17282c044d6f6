"""Our client for the conformance suite: python -m conformance.client URL

The suite starts it once for each scenario, and names the scenario and the revision in the environment.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from mcp_types import (
    CreateMessageResult,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitResult,
    ListRootsResult,
    TextContent,
    Tool,
)

from bespeak import Client
from conformance.expected import LEGACY, MODERN

Connect = Callable[..., AbstractAsyncContextManager[Client]]


# Answers to the questions of the mock servers


async def accept_defaults(context: Any, params: ElicitRequestParams) -> ElicitResult:
    """Accept a form as it is shown: each field with its default."""
    assert isinstance(params, ElicitRequestFormParams), "the suite asks with forms only"
    fields: dict[str, Any] = params.requested_schema["properties"]
    content = {name: field["default"] for name, field in fields.items() if "default" in field}
    return ElicitResult(action="accept", content=content)


async def accept_confirmed(context: Any, params: ElicitRequestParams) -> ElicitResult:
    return ElicitResult(action="accept", content={"confirmed": True})


async def sample(context: Any, params: Any) -> CreateMessageResult:
    return CreateMessageResult(role="assistant", content=TextContent(text="Paris"), model="none")


async def no_roots(context: Any) -> ListRootsResult:
    return ListRootsResult(roots=[])


# Scenarios


async def list_tools(connect: Connect) -> None:
    async with connect() as client:
        await client.list_tools()


async def call_add_numbers(connect: Connect) -> None:
    async with connect() as client:
        await client.list_tools()
        await client.call_tool("add_numbers", {"a": 5, "b": 3})


async def accept_pushed_defaults(connect: Connect) -> None:
    async with connect(elicitation_callback=accept_defaults) as client:
        await client.list_tools()
        await client.call_tool("test_client_elicitation_defaults")


async def come_back_to_a_stream(connect: Connect) -> None:
    async with connect() as client:
        await client.list_tools()
        await client.call_tool("test_reconnection")


async def declare_everything(connect: Connect) -> None:
    async with connect(
        elicitation_callback=accept_defaults, sampling_callback=sample, list_roots_callback=no_roots
    ) as client:
        for tool in (await client.list_tools()).tools:
            await client.call_tool(tool.name, arguments_for(tool))


async def answer_rounds(connect: Connect) -> None:
    async with connect(elicitation_callback=accept_confirmed) as client:
        for name in ("echo_state", "unrelated", "no_state", "no_result_type"):
            await client.call_tool(f"test_mrtr_{name}")


async def use_every_listing(connect: Connect) -> None:
    """Call every tool, read every resource and get every prompt that the server lists."""
    async with connect() as client:
        for tool in (await client.list_tools()).tools:
            await client.call_tool(tool.name, arguments_for(tool))
        for resource in (await client.list_resources()).resources:
            await client.read_resource(resource.uri)
        for prompt in (await client.list_prompts()).prompts:
            await client.get_prompt(prompt.name)


async def call_as_told(connect: Connect) -> None:
    context = json.loads(os.environ["MCP_CONFORMANCE_CONTEXT"])
    async with connect() as client:
        await client.list_tools()
        for call in context["toolCalls"]:
            await client.call_tool(call["name"], call["arguments"])


async def call_what_is_valid(connect: Connect) -> None:
    async with connect() as client:
        for tool in (await client.list_tools()).tools:
            await client.call_tool(tool.name, arguments_for(tool))


async def echo_a_schema(connect: Connect) -> None:
    async with connect() as client:
        tools = (await client.list_tools()).tools
        schema = next(tool.input_schema for tool in tools if tool.name == "json_schema_2020_12_tool")
        await client.call_tool("json_schema_echo", {"schema": schema})


SCENARIOS: dict[str, Callable[[Connect], Coroutine[Any, Any, None]]] = {
    "initialize": list_tools,
    "tools_call": call_add_numbers,
    "elicitation-sep1034-client-defaults": accept_pushed_defaults,
    "sse-retry": come_back_to_a_stream,
    "request-metadata": declare_everything,
    "sep-2322-client-request-state": answer_rounds,
    "http-standard-headers": use_every_listing,
    "http-custom-headers": call_as_told,
    "http-invalid-tool-headers": call_what_is_valid,
    "json-schema-ref-no-deref": list_tools,
    "json-schema-2020-12-preservation": echo_a_schema,
}
"""What is done in each scenario that needs no OAuth."""
LEGACY_MOCKS = {"json-schema-ref-no-deref"}
"""Scenarios of 2026-07-28 whose mock server knows the older handshake only."""
EXAMPLES: dict[str, Any] = {"string": "text", "integer": 1, "number": 1.5, "boolean": True, "array": [], "object": {}}


def arguments_for(tool: Tool) -> dict[str, Any]:
    """Return a value for each argument that a tool requires."""
    fields: dict[str, Any] = tool.input_schema.get("properties", {})
    required: list[str] = tool.input_schema.get("required", [])
    return {name: EXAMPLES[fields[name]["type"]] for name in required}


def main() -> None:
    scenario, revision = os.environ["MCP_CONFORMANCE_SCENARIO"], os.environ["MCP_CONFORMANCE_PROTOCOL_VERSION"]
    if scenario not in SCENARIOS:
        sys.exit(f"{scenario} is not a scenario of this client: {', '.join(SCENARIOS)}")
    if scenario in LEGACY_MOCKS:
        revision = LEGACY

    @asynccontextmanager
    async def connect(**callbacks: Any) -> AsyncGenerator[Client]:
        # Only with "auto" does a client look for another revision when its first choice is refused.
        mode = "auto" if revision == MODERN else revision
        async with Client(sys.argv[-1], mode=mode, read_timeout_seconds=20, **callbacks) as client:
            if client.protocol_version != revision:
                sys.exit(f"the scenario is about {revision}, but {client.protocol_version} was agreed on")
            yield client

    asyncio.run(SCENARIOS[scenario](connect))


if __name__ == "__main__":
    main()
