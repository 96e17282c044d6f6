"""Protocol revisions and the era each belongs to."""

from mcp_types.version import (
    HANDSHAKE_PROTOCOL_VERSIONS,
    LATEST_HANDSHAKE_VERSION,
    LATEST_MODERN_VERSION,
    MODERN_PROTOCOL_VERSIONS,
)

from bespeak.protocol.errors import UNSUPPORTED_PROTOCOL_VERSION, MCPError

__all__ = [
    "ASSUMED_VERSION",
    "HANDSHAKE_PROTOCOL_VERSIONS",
    "LATEST_HANDSHAKE_VERSION",
    "LATEST_MODERN_VERSION",
    "MODERN_PROTOCOL_VERSIONS",
    "SPOKEN",
    "check_version",
    "is_modern",
]

SPOKEN = (*reversed(MODERN_PROTOCOL_VERSIONS), *reversed(HANDSHAKE_PROTOCOL_VERSIONS))
"""Every revision, newest first. Those of the older era are reached by `initialize`."""
ASSUMED_VERSION = "2025-03-26"
"""What an HTTP client speaks that does not say: the header came with the next revision."""


def is_modern(version: str) -> bool:
    """Whether a revision is served without a handshake, each request carrying its own metadata."""
    return version in MODERN_PROTOCOL_VERSIONS


def check_version(version: str) -> None:
    """Raises `MCPError`, saying what is spoken here, for a revision that no request can name."""
    if not is_modern(version):
        data = {"supported": list(SPOKEN), "requested": version}
        raise MCPError(UNSUPPORTED_PROTOCOL_VERSION, "unsupported protocol version", data)
