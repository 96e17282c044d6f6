"""Protocol versions: which are supported, and which era each belongs to."""

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
"""Every supported version, newest first. Those of the legacy era are agreed on by `initialize`."""
ASSUMED_VERSION = "2025-03-26"
"""The version of an HTTP client that does not name one: the header came with the next revision."""


def is_modern(version: str) -> bool:
    """Return whether a version works without a handshake: each request carries its own metadata."""
    return version in MODERN_PROTOCOL_VERSIONS


def check_version(version: str) -> None:
    """Raises `MCPError`, which lists the supported versions, if a modern request cannot use this version."""
    if not is_modern(version):
        data = {"supported": list(SPOKEN), "requested": version}
        raise MCPError(UNSUPPORTED_PROTOCOL_VERSION, "unsupported protocol version", data)
