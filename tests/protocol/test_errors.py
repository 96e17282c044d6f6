"""Codes of protocol errors, their HTTP statuses, and `MCPError`."""

import pytest
from mcp_types.jsonrpc import ErrorData

from bespeak.protocol.errors import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    PARSE_ERROR,
    UNSUPPORTED_PROTOCOL_VERSION,
    MCPError,
    http_status,
)


@pytest.mark.parametrize(
    ("code", "number", "status"),
    [
        (PARSE_ERROR, -32700, 400),
        (INVALID_REQUEST, -32600, 400),
        (METHOD_NOT_FOUND, -32601, 404),
        (INVALID_PARAMS, -32602, 400),
        (HEADER_MISMATCH, -32020, 400),
        (MISSING_REQUIRED_CLIENT_CAPABILITY, -32021, 400),
        (UNSUPPORTED_PROTOCOL_VERSION, -32022, 400),
    ],
)
def test_an_error_of_the_protocol_has_its_status(code: int, number: int, status: int) -> None:
    assert code == number
    assert http_status(code) == status


@pytest.mark.parametrize("code", [INTERNAL_ERROR, 0, 404, -32000, -32042])
def test_an_internal_error_and_an_authors_own_code_are_not_http_failures(code: int) -> None:
    assert http_status(code) == 200


def test_an_error_is_also_a_wire_type() -> None:
    assert MCPError(7, "no", {"a": 1}).error == ErrorData(code=7, message="no", data={"a": 1})
