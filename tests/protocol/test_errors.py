"""Errors of the protocol as authors raise them."""

from bespeak import MCPError


def test_an_error_is_a_wire_type_too() -> None:
    assert MCPError(7, "no", {"why": 1}).error.model_dump() == {"code": 7, "message": "no", "data": {"why": 1}}
