"""Extensions of the protocol that a server declares, and requires of a client."""

from collections.abc import Mapping
from typing import Any, cast

from bespeak.protocol.errors import MISSING_REQUIRED_CLIENT_CAPABILITY, MCPError
from bespeak.protocol.extension_identifiers import check_identifier
from bespeak.server.context import Context, request_of


def declared_extensions(extensions: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the settings of each extension by its identifier. Raises `ValueError` or `TypeError`."""
    for identifier, settings in extensions.items():
        check_identifier(identifier)
        if not isinstance(cast("Any", settings), Mapping):
            raise TypeError(f"the settings of the extension {identifier!r} must be a dict, not {settings!r}")
    return {identifier: dict(settings) for identifier, settings in extensions.items()}


def require_client_extension(ctx: Context[Any, Any], identifier: str) -> None:
    """Raise `MCPError` (-32021) if the client has not declared an extension. Without a client, do nothing."""
    request = request_of(ctx)
    if request is None:
        return
    declared: Any = request.meta.capabilities.get("extensions")
    if not isinstance(declared, Mapping) or identifier not in declared:
        required: dict[str, Any] = {"extensions": {identifier: {}}}
        raise MCPError(
            MISSING_REQUIRED_CLIENT_CAPABILITY,
            f"the client has not declared the extension {identifier}",
            {"requiredCapabilities": required},
        )
