"""Protocol versions: which are supported, and which era each belongs to."""

from bespeak.protocol.errors import UNSUPPORTED_PROTOCOL_VERSION, MCPError

# `mcp_types` has these too, but importing it is slow; see wire_types.py. A test compares them.
HANDSHAKE_PROTOCOL_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""The versions that are agreed on by `initialize`, oldest first."""
MODERN_PROTOCOL_VERSIONS = ("2026-07-28",)
"""The versions whose requests carry their own metadata, oldest first."""
LATEST_HANDSHAKE_VERSION = HANDSHAKE_PROTOCOL_VERSIONS[-1]
LATEST_MODERN_VERSION = MODERN_PROTOCOL_VERSIONS[-1]
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
