"""Extensions of the protocol: declared by a server, and required of a client."""

from typing import Any

import pytest

from bespeak import Client, Context, MCPError, MCPServer
from bespeak.client.extensions import advertise
from bespeak.server import require_client_extension
from tests.conftest import Connect

AUDIT = "com.example/audit"


def shop() -> MCPServer[Any]:
    mcp = MCPServer[Any]("shop", extensions={AUDIT: {"level": 2}})

    @mcp.tool()
    async def audit(ctx: Context[Any, Any]) -> str:
        require_client_extension(ctx, AUDIT)
        return "audited"

    return mcp


@pytest.mark.asking_revisions
async def test_a_server_declares_its_extensions(in_memory: Connect) -> None:
    async with in_memory(shop()) as client:
        extra: dict[str, Any] = client.server_capabilities.model_dump(by_alias=True, exclude_none=True)
    assert extra["extensions"] == {AUDIT: {"level": 2}}


async def test_a_client_that_has_not_declared_a_required_extension_is_told_which() -> None:
    async with Client(shop()) as client:
        with pytest.raises(MCPError, match=r"the client has not declared the extension com\.example/audit") as refused:
            await client.call_tool("audit")
    assert refused.value.code == -32021
    assert refused.value.data == {"requiredCapabilities": {"extensions": {AUDIT: {}}}}


async def test_a_client_that_has_declared_it_is_served_and_without_a_client_nothing_is_required() -> None:
    async with Client(shop(), extensions=[advertise(AUDIT)]) as client:
        assert not (await client.call_tool("audit")).is_error
    assert not (await shop().call_tool("audit")).is_error


@pytest.mark.parametrize("identifier", ["audit", "com.example/", "/audit", "com.example/a b"])
def test_an_identifier_needs_a_prefix(identifier: str) -> None:
    with pytest.raises(ValueError, match="is not the identifier of an extension; write one with a prefix"):
        MCPServer("shop", extensions={identifier: {}})


def test_settings_are_a_dict() -> None:
    wrong: Any = {AUDIT: True}
    with pytest.raises(TypeError, match=r"the settings of the extension 'com\.example/audit' must be a dict, not True"):
        MCPServer("shop", extensions=wrong)
