"""`AuthSettings`: which URLs identify a server, and what else is refused."""

from typing import Any

import pytest
from pydantic import AnyHttpUrl

from tests.server.auth.issuers import settings


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("https://mcp.example.com/mcp", "https://mcp.example.com/mcp"),
        ("https://mcp.example.com/mcp/", "https://mcp.example.com/mcp/"),
        ("https://mcp.example.com", "https://mcp.example.com"),
        ("https://mcp.example.com/", "https://mcp.example.com"),
        (AnyHttpUrl("https://mcp.example.com"), "https://mcp.example.com"),
        ("http://127.0.0.1:8000/mcp", "http://127.0.0.1:8000/mcp"),
    ],
)
def test_urls_are_kept_without_the_slash_that_libraries_add(given: Any, kept: str) -> None:
    assert settings(resource_server_url=given).resource_server_url == kept
    assert settings(issuer_url=given).issuer_url == kept


@pytest.mark.parametrize(
    "url",
    [
        "mcp.example.com",
        "ftp://mcp.example.com",
        "https://",
        "https://user@mcp.example.com",
        "https://mcp.example.com/?a=b",
        "https://mcp.example.com/#a",
        'https://mcp.example.com/"',
        "https://mcp.example.com/a b",
        "https://mcp.example.com/\r\nx: y",
        "https://mcp.exämple.com",
        "https://[::1",
        "",
    ],
)
@pytest.mark.parametrize("name", ["issuer_url", "resource_server_url"])
def test_a_url_that_identifies_no_server_is_refused(name: str, url: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be a URL such as https://example.com/mcp"):
        settings(**{name: url})


@pytest.mark.parametrize("leeway", [-1, float("inf"), float("nan")])
def test_a_leeway_is_a_number_of_seconds(leeway: float) -> None:
    with pytest.raises(ValueError, match="leeway must be a number of seconds that is not negative"):
        settings(leeway=leeway)


def test_required_scopes_are_names() -> None:
    assert settings(required_scopes=["a", "b", "a"]).required_scopes == ("a", "b")
    with pytest.raises(TypeError, match="scopes must be a list of scope names"):
        settings(required_scopes="a b")
