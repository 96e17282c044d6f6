"""The errors that a resource may raise for its client to read."""

from typing import Any

from bespeak.protocol.errors import INTERNAL_ERROR, INVALID_PARAMS, MCPError


class ResourceError(MCPError):
    """A resource cannot be read, and the client may know why. Raise it in a resource with a text for the client."""

    code_sent = INTERNAL_ERROR

    def __init__(self, message: str, data: Any = None) -> None:
        super().__init__(self.code_sent, message, data)

    def at(self, uri: str) -> "ResourceError":
        """Return the error with the URI that was read, unless it says something else."""
        return self if self.data is not None else type(self)(self.message, {"uri": uri})


class ResourceNotFoundError(ResourceError):
    """There is no resource at a URI. Raise it in a resource template for values that name nothing."""

    code_sent = INVALID_PARAMS
