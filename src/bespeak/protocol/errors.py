"""Protocol errors: their codes, and the exception that carries one."""

from typing import Any

from mcp_types.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    PARSE_ERROR,
    UNSUPPORTED_PROTOCOL_VERSION,
    ErrorData,
)

from bespeak.resolve.errors import Meant

__all__ = [
    "INTERNAL_ERROR",
    "INVALID_PARAMS",
    "INVALID_REQUEST",
    "METHOD_NOT_FOUND",
    "MISSING_REQUIRED_CLIENT_CAPABILITY",
    "PARSE_ERROR",
    "UNSUPPORTED_PROTOCOL_VERSION",
    "MCPError",
]


class MCPError(Meant):
    """A JSON-RPC error: raised by an author to send one, and by the client when it receives one."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        self.code = code
        self.message = message
        self.data = data
        super().__init__(message)

    @property
    def error(self) -> ErrorData:
        """The error as a wire type."""
        return ErrorData(code=self.code, message=self.message, data=self.data)

    def body(self) -> dict[str, Any]:
        """The error object as it travels."""
        body: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.data is not None:
            body["data"] = self.data
        return body
