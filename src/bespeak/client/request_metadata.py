"""What each request carries beside its params: `_meta` in the modern era, and headers over HTTP in both."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bespeak.client.tool_headers import ToolHeaders
from bespeak.client.trace_context import TRACEPARENT, current_trace_context, is_tracing
from bespeak.protocol.headers import routing_headers
from bespeak.protocol.legacy import JUNE
from bespeak.protocol.reserved_meta import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    LOG_LEVEL_META_KEY,
    PROTOCOL_VERSION_META_KEY,
)
from bespeak.protocol.versions import LATEST_MODERN_VERSION

if TYPE_CHECKING:
    from mcp_types import LoggingLevel


class RequestMetadata:
    """The metadata of one client's requests, in the protocol version that it uses with its server."""

    def __init__(
        self,
        capabilities: dict[str, Any],
        client_info: dict[str, Any],
        log_level: "LoggingLevel | None",
        *,
        sends_headers: bool,
    ) -> None:
        self._capabilities = capabilities
        self._client_info = client_info
        self._log_level = log_level
        self._sends_headers = sends_headers
        self._legacy = False
        self.version = LATEST_MODERN_VERSION
        self.meta: dict[str, Any] = {}
        """The members of `_meta` in every request."""
        self.tool_headers = ToolHeaders()

    def use_modern(self, version: str) -> None:
        """Use a modern version from now on."""
        self.version, self._legacy = version, False
        self.meta = {
            PROTOCOL_VERSION_META_KEY: version,
            CLIENT_CAPABILITIES_META_KEY: self._capabilities,
            CLIENT_INFO_META_KEY: self._client_info,
        }
        if self._log_level is not None:
            self.meta[LOG_LEVEL_META_KEY] = self._log_level

    def use_legacy(self, version: str) -> None:
        """Use a version of the legacy era from now on."""
        self.version, self._legacy, self.meta = version, True, {}

    def stamped(self, meta: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return `_meta` of one request: what the caller gives, the trace context, and the members of every request."""
        if not meta and (self._legacy or not is_tracing()):
            return dict(self.meta)
        given = dict(meta or {})
        traced = {} if self._legacy or TRACEPARENT in given else current_trace_context()
        return {**traced, **given, **self.meta}

    @property
    def repeats_arguments(self) -> bool:
        """Whether calls of tools repeat some arguments in headers."""
        return self._sends_headers and not self._legacy

    def headers(self, method: str, params: dict[str, Any]) -> dict[str, str]:
        """Return the headers of one request; none if the transport does not send headers."""
        if not self._sends_headers:
            return {}
        if self._legacy:
            return self.message_headers()
        headers = routing_headers(self.version, method, params)
        if method == "tools/call":
            headers |= self.tool_headers.headers(params)
        return headers

    def message_headers(self) -> dict[str, str]:
        """Return the headers of a message that is not a request. Only the legacy era has such messages."""
        return {"MCP-Protocol-Version": self.version} if self._sends_headers and self.version >= JUNE else {}
