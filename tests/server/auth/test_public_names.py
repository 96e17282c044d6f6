"""What `bespeak.server.auth` offers, and that a server without authentication does not load it."""

import subprocess
import sys

import pytest

from bespeak.server import auth


def test_every_name_can_be_imported() -> None:
    names = ["AccessToken", "AuthSettings", "JWTVerifier", "TokenVerifier", "TokensUnverifiable", "get_access_token"]
    assert dir(auth) == sorted(names)
    assert all(getattr(auth, name) is not None for name in names)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"module 'bespeak.server.auth' has no attribute 'Nonsense'"):
        _ = auth.Nonsense  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]


@pytest.mark.long
def test_a_server_without_authentication_loads_none_of_it() -> None:
    code = "import sys; from bespeak import MCPServer; MCPServer('x').streamable_http_app(); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {name for name in loaded if name.startswith("bespeak.server.auth.")} == {"bespeak.server.auth.scopes"}
    assert not {"joserfc", "bespeak.protocol.callers"} & set(loaded)
