"""Protocol revisions and the era each belongs to."""

from mcp_types.version import LATEST_MODERN_VERSION, MODERN_PROTOCOL_VERSIONS

from bespeak.protocol.errors import UNSUPPORTED_PROTOCOL_VERSION, MCPError

__all__ = ["LATEST_MODERN_VERSION", "MODERN_PROTOCOL_VERSIONS", "check_version", "is_modern"]


def is_modern(version: str) -> bool:
    """Whether a revision is served without a handshake, each request carrying its own metadata."""
    return version in MODERN_PROTOCOL_VERSIONS


def check_version(version: str) -> None:
    """Raises `MCPError`, saying what is spoken here, for a revision that is not."""
    if not is_modern(version):
        data = {"supported": list(MODERN_PROTOCOL_VERSIONS), "requested": version}
        raise MCPError(UNSUPPORTED_PROTOCOL_VERSION, "unsupported protocol version", data)
