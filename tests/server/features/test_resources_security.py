"""Which values of a template's variables are refused: paths that lead elsewhere, however they are written."""

from typing import Any

import pytest

from bespeak import MCPError, MCPServer
from bespeak.server import ResourceSecurity

REFUSED = [
    "../etc/passwd",
    "..%2Fetc%2Fpasswd",
    "%2e%2e/etc",
    "%2E%2E%2Fetc",
    "a/../../etc",
    "a/..",
    "..",
    "..\\etc",
    "a%5C..%5Cetc",
    "/etc/passwd",
    "%2Fetc%2Fpasswd",
    "\\\\server\\share",
    "%5Cwindows",
    "C:\\windows",
    "c%3A/windows",
    "C:",
    "~root/x",
    "%7E/x",
    "a%00.txt",
    "a\0b",
]
HARMLESS = [
    "a/b.txt",
    "a..b",
    "...",
    "a/...",
    ".hidden",
    "./a",
    "1:30",
    "a~",
    "%252e%252e%252fetc",
    "ab:c",
    "a%20b",
]


def files(security: ResourceSecurity | None = None) -> MCPServer[Any]:
    mcp = MCPServer[Any]("files")

    @mcp.resource("file:///{+path}", security=security)
    def file(path: str) -> str:
        return path

    return mcp


@pytest.mark.parametrize("path", REFUSED)
async def test_a_path_that_leads_elsewhere_is_not_found(path: str) -> None:
    with pytest.raises(MCPError, match="unknown resource"):
        await files().read_resource(f"file:///{path}")


@pytest.mark.parametrize("path", HARMLESS)
async def test_a_harmless_path_is_read(path: str) -> None:
    await files().read_resource(f"file:///{path}")


@pytest.mark.parametrize("path", REFUSED)
async def test_an_exempt_variable_is_not_checked(path: str) -> None:
    await files(ResourceSecurity(exempt_params={"path"})).read_resource(f"file:///{path}")


@pytest.mark.parametrize(
    ("security", "allowed"),
    [
        (ResourceSecurity(reject_path_traversal=False), "a/../b"),
        (ResourceSecurity(reject_absolute_paths=False), "/etc"),
        (ResourceSecurity(reject_null_bytes=False), "a%00"),
    ],
)
async def test_each_check_can_be_turned_off(security: ResourceSecurity, allowed: str) -> None:
    await files(security).read_resource(f"file:///{allowed}")
    others = {"a/../b", "/etc", "a%00"} - {allowed}
    for path in others:
        with pytest.raises(MCPError, match="unknown resource"):
            await files(security).read_resource(f"file:///{path}")


def test_the_variable_that_is_refused_is_named() -> None:
    security = ResourceSecurity(exempt_params=frozenset({"a"}))
    assert security.refuses({"a": "..", "b": "x"}) is None
    assert security.refuses({"a": "..", "b": ".."}) == "b"


async def test_a_server_has_a_security_for_templates_without_their_own() -> None:
    mcp = MCPServer[Any]("files", resource_security=ResourceSecurity(reject_path_traversal=False))

    @mcp.resource("file:///{+path}")
    def file(path: str) -> str:
        return path

    @mcp.resource("strict:///{+path}", security=ResourceSecurity())
    def strict(path: str) -> str:
        return path

    await mcp.read_resource("file:///a/../b")
    with pytest.raises(MCPError, match="unknown resource"):
        await mcp.read_resource("strict:///a/../b")
