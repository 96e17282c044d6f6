"""Protocol revisions and the era each belongs to."""

from mcp_types.version import LATEST_MODERN_VERSION, MODERN_PROTOCOL_VERSIONS

__all__ = ["LATEST_MODERN_VERSION", "MODERN_PROTOCOL_VERSIONS", "is_modern"]


def is_modern(version: str) -> bool:
    """Whether a revision is served without a handshake, each request carrying its own metadata."""
    return version in MODERN_PROTOCOL_VERSIONS
