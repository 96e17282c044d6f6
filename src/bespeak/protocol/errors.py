"""Protocol errors: their codes, and the exception that carries one."""

from typing import Any

from mcp_types.jsonrpc import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    PARSE_ERROR,
    UNSUPPORTED_PROTOCOL_VERSION,
    ErrorData,
)

__all__ = [
    "HEADER_MISMATCH",
    "INTERNAL_ERROR",
    "INVALID_PARAMS",
    "INVALID_REQUEST",
    "METHOD_NOT_FOUND",
    "MISSING_REQUIRED_CLIENT_CAPABILITY",
    "PARSE_ERROR",
    "UNSUPPORTED_PROTOCOL_VERSION",
    "MCPError",
    "Meant",
]

_HTTP_STATUSES = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    MISSING_REQUIRED_CLIENT_CAPABILITY: 400,
    UNSUPPORTED_PROTOCOL_VERSION: 400,
    METHOD_NOT_FOUND: 404,
}


def http_status(code: int) -> int:
    """The status of an HTTP response that carries an error of this code; an author's own codes are no failure of HTTP."""
    return _HTTP_STATUSES.get(code, 200)


class Meant(Exception):
    """An exception its author means the other side to see, as it is."""


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
