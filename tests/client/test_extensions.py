"""Extensions that a client declares: in every request, and in the handshake of the legacy era."""

from typing import Any

import pytest
from mcp_types import CLIENT_CAPABILITIES_META_KEY

from bespeak import Client
from bespeak.client import ClientExtension, advertise
from tests.client.older_server import OldServer
from tests.client.scripted_transport import COMPLETE, Fake


class Themes(ClientExtension):
    identifier = "com.example/themes"

    def settings(self) -> dict[str, Any]:
        return {"dark": True}


class Bare(ClientExtension):
    identifier = "com.example/bare"


DECLARED = {"com.example/themes": {"dark": True}, "com.example/bare": {}, "io.a-b.c1/x.y_z-1": {"a": 1}, "c/x": {}}


def declaring() -> list[ClientExtension]:
    return [Themes(), Bare(), advertise("io.a-b.c1/x.y_z-1", {"a": 1}), advertise("c/x")]


async def test_every_request_declares_the_extensions() -> None:
    fake = Fake(COMPLETE)
    async with Client(fake, extensions=declaring()) as client:
        await client.call_tool("tool")
        await client.call_tool("tool")
    for params in fake.params:
        assert params["_meta"][CLIENT_CAPABILITIES_META_KEY] == {"extensions": DECLARED}


async def test_the_handshake_declares_the_extensions() -> None:
    server = OldServer()
    async with Client(server, mode="legacy", extensions=declaring()):
        (initialize,) = server.told("initialize")
    assert initialize["params"]["capabilities"] == {"extensions": DECLARED}


@pytest.mark.parametrize(
    "identifier", ["themes", "/themes", "com.example/", "1com/x", "com-/x", "a..b/x", "a/-x", "a/b/c"]
)
def test_an_identifier_must_have_a_prefix_and_a_name(identifier: str) -> None:
    with pytest.raises(ValueError, match="is not the identifier of an extension; write one with a prefix") as refused:
        Client(Fake(), extensions=[advertise(identifier)])
    assert repr(identifier) in str(refused.value)


def test_an_extension_is_given_once() -> None:
    with pytest.raises(ValueError, match=r"the extension 'com\.example/bare' is given twice"):
        Client(Fake(), extensions=[Bare(), Bare()])


@pytest.mark.parametrize("extension", ["com.example/bare", ClientExtension()])
def test_an_extension_is_an_object_with_an_identifier(extension: Any) -> None:
    with pytest.raises(TypeError, match=r"extensions must contain ClientExtension objects, such as advertise\('com"):
        Client(Fake(), extensions=[extension])
