"""Extensions of the protocol that a client declares in its capabilities."""

from collections.abc import Sequence
from typing import Any

from bespeak.protocol.extension_identifiers import check_identifier


class ClientExtension:
    """An extension that a client supports. Subclass it and set `identifier`, or use `advertise`."""

    identifier: str

    def settings(self) -> dict[str, Any]:
        """Return the settings to declare. Called once, when the client is made."""
        return {}


class _Advertised(ClientExtension):
    def __init__(self, identifier: str, settings: dict[str, Any]) -> None:
        self.identifier = identifier
        self._settings = settings

    def settings(self) -> dict[str, Any]:
        return dict(self._settings)


def advertise(identifier: str, settings: dict[str, Any] | None = None) -> ClientExtension:
    """Return an extension that is only declared. Whoever uses the client has to implement it."""
    return _Advertised(identifier, settings or {})


def declared_extensions(extensions: Sequence[ClientExtension]) -> dict[str, dict[str, Any]]:
    """Return the settings of each extension by its identifier. Raises `ValueError` or `TypeError`."""
    declared: dict[str, dict[str, Any]] = {}
    for extension in extensions:
        identifier: Any = getattr(extension, "identifier", None)
        if not isinstance(identifier, str):
            raise TypeError(
                f"extensions must contain ClientExtension objects, such as advertise('com.example/name'), not {extension!r}"
            )
        check_identifier(identifier)
        if identifier in declared:
            raise ValueError(f"the extension {identifier!r} is given twice")
        declared[identifier] = extension.settings()
    return declared
