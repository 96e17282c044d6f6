"""The protected-resource metadata: its content, and where it is."""

import json

import pytest

from bespeak.server.auth.resource_metadata import metadata_document, metadata_url
from tests.server.auth.issuers import settings

ROOT = "/.well-known/oauth-protected-resource"


@pytest.mark.parametrize(
    ("resource", "url"),
    [
        ("https://mcp.example.com/mcp", f"https://mcp.example.com{ROOT}/mcp"),
        ("https://example.com:8443/a/b/mcp", f"https://example.com:8443{ROOT}/a/b/mcp"),
        ("https://mcp.example.com/", f"https://mcp.example.com{ROOT}"),
    ],
)
def test_the_well_known_path_stands_between_host_and_path(resource: str, url: str) -> None:
    chosen = settings(resource_server_url=resource)
    assert metadata_url(chosen) == url
    document = metadata_document(chosen, "Shop")
    assert document.paths == {ROOT, url.partition("//")[2].partition("/")[1] + url.split("/", 3)[3]}
    assert json.loads(document.body)["resource"] == resource.removesuffix("/")


def test_the_document_names_the_issuer_and_the_scopes_that_every_request_needs() -> None:
    chosen = settings(required_scopes=["orders"], service_documentation_url="https://docs.example.com/?q=1")
    assert json.loads(metadata_document(chosen, "Shop").body) == {
        "resource": "https://mcp.example.com/mcp",
        "authorization_servers": ["https://login.example.com"],
        "bearer_methods_supported": ["header"],
        "resource_name": "Shop",
        "scopes_supported": ["orders"],
        "resource_documentation": "https://docs.example.com/?q=1",
    }


def test_what_is_not_set_is_left_out() -> None:
    content = json.loads(metadata_document(settings(), "Shop").body)
    assert content.keys() == {"resource", "authorization_servers", "bearer_methods_supported", "resource_name"}
