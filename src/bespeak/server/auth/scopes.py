"""Scopes: their names, and whether a caller may use something that requires some."""

import re
from collections.abc import Iterable
from typing import Any, Protocol, cast

from bespeak.protocol.headers import Headers

_NAME = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")
"""RFC 6749, section 3.3."""


class Scoped(Protocol):
    """A tool, prompt or resource that may require scopes."""

    @property
    def scopes(self) -> tuple[str, ...]: ...


def scope_names(scopes: Any) -> tuple[str, ...]:
    """Scopes as an author wrote them, each once. Raises `TypeError` or `ValueError` if they are not a list of names."""
    if scopes is None:
        return ()
    if isinstance(scopes, (str, bytes)) or not isinstance(scopes, Iterable):
        raise TypeError("scopes must be a list of scope names, such as scopes=['orders:read']")
    names: dict[Any, None] = dict.fromkeys(cast("Iterable[Any]", scopes))
    for name in names:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ValueError(
                f"{name!r} is not a scope name: use printable ASCII without spaces, double quotes and backslashes"
            )
    return tuple(names)


def may_use(one: Scoped, headers: Headers | None) -> bool:
    """Whether the sender of a request may use something. `headers` is `None` where there is no HTTP, and no authentication.

    Over HTTP, what requires scopes is closed to a request without a verified token.
    """
    if not one.scopes:
        return True
    scopes = scopes_of(headers)
    return scopes is None or scopes.issuperset(one.scopes)


def scopes_of(headers: Headers | None) -> frozenset[str] | None:
    """The scopes that the sender of a request has; `None` for all, where there is no HTTP, and no authentication."""
    if headers is None:
        return None
    return headers.caller.scopes if headers.caller is not None else frozenset()
