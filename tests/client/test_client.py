"""`Client`: connecting, what is known of the server, and use outside its block."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp_types import CLIENT_INFO_META_KEY

from bespeak import Client, MCPError, MCPServer, StdioServerParameters
from tests.answering import text
from tests.client.scripted_transport import COMPLETE, DISCOVERED, Fake
from tests.conftest import Connect
from tests.wires import Listening

# Connecting


async def test_a_client_knows_its_server(connect: Connect) -> None:
    mcp = MCPServer("shop", title="The shop", version="1.2", instructions="Ask first.")
    async with connect(mcp) as client:
        assert client.server_info is not None
        assert (client.server_info.name, client.server_info.version) == ("shop", "1.2")
        assert client.server_capabilities.tools is not None
        assert client.server_capabilities.completions is None
        assert client.instructions == "Ask first."
        assert client.protocol_version == "2026-07-28"


async def test_a_server_need_not_say_who_it_is() -> None:
    async with Client(Fake(COMPLETE)) as client:
        assert client.server_info is None
        assert client.instructions is None


async def test_a_client_names_itself_bespeak_by_default() -> None:
    fake = Fake(COMPLETE)
    async with Client(fake) as client:
        await client.call_tool("tool")
    assert fake.params[0]["_meta"][CLIENT_INFO_META_KEY]["name"] == "bespeak"


@pytest.mark.parametrize("mode", ["", "modern", "2031-01-01", "AUTO"])
def test_an_unknown_mode_is_refused_with_the_known_ones(mode: str) -> None:
    known = "'auto', 'legacy', '2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'"
    with pytest.raises(ValueError, match=f"^mode must be one of {known}, not {mode!r}$"):
        Client(Fake(COMPLETE), mode=mode)


@pytest.mark.parametrize("option", ["input_required_max_rounds", "input_required_max_questions"])
def test_a_limit_cannot_be_negative(option: str) -> None:
    options: dict[str, Any] = {option: -1}
    with pytest.raises(ValueError, match=f"{option} cannot be negative"):
        Client(Fake(COMPLETE), **options)


SCRIPT = """
from bespeak import MCPServer
mcp = MCPServer("child")

@mcp.tool()
def hello() -> str:
    return "hello"

mcp.run()
"""


@pytest.mark.timing
@pytest.mark.parametrize("what", ["a URL", "a server", "a command"])
@pytest.mark.long
async def test_a_client_connects_to_a_url_a_server_and_a_command(what: str, tmp_path: Path) -> None:
    mcp = MCPServer("here")

    @mcp.tool()
    def hello() -> str:
        return "hello"

    (tmp_path / "child.py").write_text(SCRIPT)
    async with Listening(mcp.streamable_http_app()) as listening:
        server = {
            "a URL": listening.url,
            "a server": mcp,
            "a command": StdioServerParameters(sys.executable, [str(tmp_path / "child.py")]),
        }[what]
        async with Client(server) as client:
            assert text(await client.call_tool("hello")) == "hello"


@pytest.mark.parametrize(
    ("server", "given"),
    [
        *((one, type(one).__name__) for one in (5, None, object(), b"http://127.0.0.1/mcp", ["python", "server.py"])),
        (Fake, "the class Fake"),
    ],
)
def test_a_client_says_what_it_connects_to(server: Any, given: str) -> None:
    told = "a client connects to a URL, StdioServerParameters, an MCPServer or a transport, not to "
    with pytest.raises(TypeError, match=told + given):
        Client(server)


def test_a_client_is_not_given_a_file() -> None:
    told = "'server.py' is a file; to start it as a server, pass StdioServerParameters('bespeak', ['run', 'server.py'])"
    with pytest.raises(ValueError, match=re.escape(told)):
        Client("server.py")


async def test_a_client_over_http_without_httpx2_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx2", None)
    with pytest.raises(ImportError, match=r"a client over HTTP needs httpx2: pip install 'bespeak\[http\]'"):
        await Client("http://127.0.0.1:1/mcp").__aenter__()


def no_such_method(request: Any, notify: Any) -> bytes:
    error = {"code": -32601, "message": f"no such method: {request['method']}"}
    return json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": error}).encode()


@pytest.mark.parametrize(
    ("mode", "last"),
    [
        ("auto", "initialize"),
        ("legacy", "initialize"),
        ("2026-07-28", "server/discover"),
        ("2025-11-25", "initialize"),
    ],
)
async def test_the_transport_is_left_when_no_revision_can_be_agreed_on(mode: str, last: str) -> None:
    fake = Fake(no_such_method, discovered=no_such_method)
    with pytest.raises(MCPError, match=f"no such method: {last}"):
        await Client(fake, mode=mode).__aenter__()
    assert fake.entered == 0


async def test_malformed_server_info_is_ignored() -> None:
    # it is for display only
    discovered = {**DISCOVERED, "_meta": {"io.modelcontextprotocol/serverInfo": {"name": 5}}}
    async with Client(Fake(COMPLETE, discovered=discovered)) as client:
        assert client.server_info is None


async def test_a_client_may_connect_again() -> None:
    fake = Fake(COMPLETE)
    client = Client(fake)
    for _ in range(2):
        async with client:
            assert text(await client.call_tool("tool")) == "done"
    assert fake.entered == 0


# Outside the block


async def use(client: Client, how: str) -> Any:
    match how:
        case "call_tool":
            return await client.call_tool("tool")
        case "list_tools":
            return await client.list_tools()
        case _:
            return getattr(client, how)


USES = ["call_tool", "list_tools", "session", "server_info", "server_capabilities", "instructions"]


@pytest.mark.parametrize("how", USES)
async def test_use_before_or_after_the_block_is_a_clear_error(how: str) -> None:
    client = Client(Fake(COMPLETE))
    with pytest.raises(RuntimeError, match=r"the client is not connected; use it as `async with Client\(\.\.\.\)"):
        await use(client, how)
    async with client:
        pass
    with pytest.raises(RuntimeError, match="the client is not connected"):
        await use(client, how)


async def test_an_exception_in_the_block_goes_through_and_the_transport_is_left() -> None:
    fake = Fake(COMPLETE)
    with pytest.raises(KeyError, match="mine"):
        async with Client(fake):
            raise KeyError("mine")
    assert fake.entered == 0
