"""The types of `mcp_types` that are imported late, and the constants that are written again so that it can be late."""

import mcp_types
import pytest
from mcp_types import jsonrpc, version

from bespeak.protocol import errors, reserved_meta, versions, wire_types

CODES = (
    "PARSE_ERROR",
    "INVALID_REQUEST",
    "METHOD_NOT_FOUND",
    "INVALID_PARAMS",
    "INTERNAL_ERROR",
    "HEADER_MISMATCH",
    "MISSING_REQUIRED_CLIENT_CAPABILITY",
    "UNSUPPORTED_PROTOCOL_VERSION",
    "URL_ELICITATION_REQUIRED",
)
VERSIONS = (
    "HANDSHAKE_PROTOCOL_VERSIONS",
    "LATEST_HANDSHAKE_VERSION",
    "LATEST_MODERN_VERSION",
    "MODERN_PROTOCOL_VERSIONS",
)


@pytest.mark.parametrize("name", CODES)
def test_the_error_codes_are_those_of_mcp_types(name: str) -> None:
    assert getattr(errors, name) == getattr(jsonrpc, name)


@pytest.mark.parametrize("name", VERSIONS)
def test_the_versions_are_those_of_mcp_types(name: str) -> None:
    assert getattr(versions, name) == getattr(version, name)


@pytest.mark.parametrize("name", [name for name in vars(reserved_meta) if name.endswith("_META_KEY")])
def test_the_reserved_keys_are_those_of_mcp_types(name: str) -> None:
    assert getattr(reserved_meta, name) == getattr(mcp_types, name)


def test_a_type_is_that_of_mcp_types() -> None:
    assert wire_types.in_use()
    assert wire_types.Tool is mcp_types.Tool


@pytest.mark.parametrize("name", ["Tol", "__wrapped__"])
def test_a_type_that_does_not_exist_is_an_attribute_error(name: str) -> None:
    assert not hasattr(wire_types, name)
