"""JSON-RPC errors: their codes, their HTTP statuses, and the exceptions that carry them."""

from typing import TYPE_CHECKING, Any

from bespeak.protocol import wire_types

if TYPE_CHECKING:
    from mcp_types import ElicitRequestURLParams, ErrorData

# `mcp_types` has these codes too, but importing it is slow; see wire_types.py. A test compares them.
PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
HEADER_MISMATCH = -32020
MISSING_REQUIRED_CLIENT_CAPABILITY = -32021
UNSUPPORTED_PROTOCOL_VERSION = -32022

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
    """Return the HTTP status for an error code. An author's own codes are not HTTP failures: 200."""
    return _HTTP_STATUSES.get(code, 200)


class ClientVisibleError(Exception):
    """An exception whose text the client may read. The text of any other exception stays in the server's log."""


class MCPError(ClientVisibleError):
    """A JSON-RPC error. Raise it on the server to send one; the client raises it when it receives one."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        self.code = code
        self.message = message
        self.data = data
        super().__init__(message)

    @property
    def error(self) -> "ErrorData":
        """The error as an `mcp_types.ErrorData`."""
        return wire_types.ErrorData(code=self.code, message=self.message, data=self.data)

    def body(self) -> dict[str, Any]:
        """Return the error object as it is sent."""
        body: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.data is not None:
            body["data"] = self.data
        return body


URL_ELICITATION_REQUIRED = -32042
"""An error of 2025-11-25: the call needs a page to be opened first. Later revisions do not have it."""


class UrlElicitationRequiredError(MCPError):
    """Raise it to have a client of 2025-11-25 open pages and call again. At later revisions, ask with `ElicitUrl`."""

    def __init__(self, elicitations: "list[ElicitRequestURLParams]", message: str | None = None) -> None:
        self.elicitations = elicitations
        words = message or f"URL elicitation{'s' if len(elicitations) > 1 else ''} required"
        dumped = [one.model_dump(mode="json", by_alias=True, exclude_none=True) for one in elicitations]
        super().__init__(URL_ELICITATION_REQUIRED, words, {"elicitations": dumped})
