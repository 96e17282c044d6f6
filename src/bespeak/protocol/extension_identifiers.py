"""Extensions of the protocol: their identifiers, which both sides declare in their capabilities."""

import re

_LABEL = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_IDENTIFIER = re.compile(rf"{_LABEL}(?:\.{_LABEL})*/[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")


def check_identifier(identifier: str) -> None:
    """Raise `ValueError` if this is not the identifier of an extension."""
    if not _IDENTIFIER.fullmatch(identifier):
        raise ValueError(
            f"{identifier!r} is not the identifier of an extension; write one with a prefix, such as 'com.example/name'"
        )
