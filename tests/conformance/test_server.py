"""The server under test has what the suite calls, and its messages fit the schema of their revision.

The suite passes some scenarios without their tools, and looks only at the messages of its own scenarios.
"""

import ast
from pathlib import Path
from typing import Any

import pytest
from conformance.client import EXAMPLES, accept_defaults, arguments_for, no_roots, sample
from conformance.server import mcp
from mcp_types import ElicitRequestFormParams, ElicitRequestParams, ElicitResult, Tool
from mcp_types.methods import validate_server_result

from bespeak import MCPError
from tests.conftest import Connect

TOOLS = [
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_tool_with_logging",
    "test_error_handling",
    "test_tool_with_progress",
    "test_sampling",
    "test_elicitation",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "json_schema_2020_12_tool",
    "test_reconnection",
    "test_x_mcp_header",
    "test_missing_capability",
    "test_streaming_elicitation",
    "test_logging_tool",
    "test_trigger_tool_change",
    "test_trigger_prompt_change",
    "test_input_required_result_elicitation",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
    "test_input_required_result_request_state",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_multi_round",
    "test_input_required_result_tampered_state",
    "test_input_required_result_capabilities",
]
PUSHING = {"test_sampling", "test_elicitation", "test_elicitation_sep1034_defaults"}
"""Tools that ask in mid-call, which only older clients can be."""
PROMPTS = [
    "test_simple_prompt",
    "test_prompt_with_arguments",
    "test_prompt_with_embedded_resource",
    "test_prompt_with_image",
    "test_input_required_result_prompt",
]
RESOURCES = ["test://static-text", "test://static-binary", "test://watched-resource"]
PUBLIC = {"bespeak", "bespeak.server", "bespeak.client"}


async def fill_in(context: Any, params: ElicitRequestParams) -> ElicitResult:
    """Accept a form with an example in each required field."""
    assert isinstance(params, ElicitRequestFormParams)
    fields: dict[str, Any] = params.requested_schema["properties"]
    required: list[str] = params.requested_schema.get("required", [])
    content = (await accept_defaults(context, params)).content or {}
    return ElicitResult(action="accept", content={name: EXAMPLES[fields[name]["type"]] for name in required} | content)


CALLBACKS: dict[str, Any] = {
    "elicitation_callback": fill_in,
    "sampling_callback": sample,
    "list_roots_callback": no_roots,
}


@pytest.mark.parametrize("file", ["server", "client", "plain_tools", "asking_tools"])
def test_the_programs_under_test_use_public_modules_only(file: str) -> None:
    source = (Path(__file__).parent.parent.parent / "conformance" / f"{file}.py").read_text()
    imported = {node.module for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)}
    assert {module for module in imported if module and module.split(".")[0] == "bespeak"} <= PUBLIC


async def test_the_server_has_every_tool_prompt_and_resource_that_the_suite_names() -> None:
    tools = await mcp.list_tools()
    assert sorted(tool.name for tool in tools) == sorted(TOOLS)
    assert tools[0].name == "test_simple_text", "the suite calls the first one without arguments"
    assert all(tool.description for tool in tools)
    assert [prompt.name for prompt in await mcp.list_prompts()] == PROMPTS
    assert [str(resource.uri) for resource in await mcp.list_resources()] == RESOURCES
    assert [one.uri_template for one in await mcp.list_resource_templates()] == ["test://template/{id}/data"]


@pytest.mark.asking_revisions
@pytest.mark.parametrize("name", ["test_no_such_tool", "test_simple_tex", ""])
async def test_an_unknown_tool_is_an_error_and_not_a_result(connect: Connect, name: str) -> None:
    async with connect(mcp) as client:
        with pytest.raises(MCPError) as raised:
            await client.session.request("tools/call", {"name": name, "arguments": {}})
    assert raised.value.code == -32602


@pytest.mark.asking_revisions
async def test_an_unknown_prompt_is_an_error(connect: Connect) -> None:
    async with connect(mcp) as client:
        with pytest.raises(MCPError) as raised:
            await client.session.request("prompts/get", {"name": "test_no_such_prompt"})
    assert raised.value.code == -32602


@pytest.mark.asking_revisions
@pytest.mark.parametrize("uri", ["test://no-such-resource", "test://template/123", "test://static-text/"])
async def test_an_unknown_resource_is_an_error_that_names_it(connect: Connect, uri: str) -> None:
    async with connect(mcp) as client:
        with pytest.raises(MCPError) as raised:
            await client.session.request("resources/read", {"uri": uri})
        modern = client.protocol_version == "2026-07-28"
    assert (raised.value.code, raised.value.data) == (-32602 if modern else -32002, {"uri": uri})


@pytest.mark.asking_revisions
async def test_listings_fit_the_schema_of_their_revision(in_memory: Connect) -> None:
    async with in_memory(mcp) as client:
        for method in ("tools/list", "prompts/list", "resources/list", "resources/templates/list"):
            result = await client.session.request(method, {})
            validate_server_result(method, client.protocol_version, result)


@pytest.mark.asking_revisions
async def test_resources_fit_the_schema_of_their_revision(in_memory: Connect) -> None:
    async with in_memory(mcp) as client:
        for uri in (*RESOURCES, "test://template/123/data"):
            result = await client.session.request("resources/read", {"uri": uri})
            validate_server_result("resources/read", client.protocol_version, result)


@pytest.mark.asking_revisions
async def test_prompts_fit_the_schema_of_their_revision(in_memory: Connect) -> None:
    async with in_memory(mcp, **CALLBACKS) as client:
        for prompt in await mcp.list_prompts():
            given = {argument.name: "test://example" for argument in prompt.arguments or []}
            result = await client.session.request("prompts/get", {"name": prompt.name, "arguments": given})
            validate_server_result("prompts/get", client.protocol_version, result)


@pytest.mark.asking_revisions
async def test_a_completion_has_values_and_fits_the_schema_of_its_revision(in_memory: Connect) -> None:
    """The suite accepts an empty list."""
    params = {
        "ref": {"type": "ref/prompt", "name": "test_prompt_with_arguments"},
        "argument": {"name": "arg1", "value": "par"},
    }
    async with in_memory(mcp) as client:
        result = await client.session.request("completion/complete", params)
        validate_server_result("completion/complete", client.protocol_version, result)
    assert result["completion"]["values"] == ["paris", "park", "party"]


@pytest.mark.asking_revisions
@pytest.mark.parametrize("name", TOOLS)
async def test_the_rounds_of_a_tool_fit_the_schema_of_their_revision(in_memory: Connect, name: str) -> None:
    (tool,) = [one for one in await mcp.list_tools() if one.name == name]
    async with in_memory(mcp, **CALLBACKS) as client:
        if name == "test_elicitation_sep1330_enums" and client.protocol_version == "2025-06-18":
            pytest.skip("that revision has no lists of choices")
        first = await client.session.request("tools/call", {"name": name, "arguments": example(tool)})
        validate_server_result("tools/call", client.protocol_version, first)
        modern = client.protocol_version == "2026-07-28"
        assert first.get("isError", False) == (name == "test_error_handling" or (modern and name in PUSHING))
        assert (await client.call_tool(name, example(tool))).is_error == first.get("isError", False)


def example(tool: Tool) -> dict[str, Any]:
    """Return arguments for a tool. One has a condition that a list of required arguments cannot say."""
    return {"email": "a@example.com"} if tool.name == "json_schema_2020_12_tool" else arguments_for(tool)
