"""Servers made of several: the names under which one server offers what another has registered."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bespeak.server.catalogue import Catalogue
from bespeak.server.features.registered import Additions, Registry, add_all

_PREFIX = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.\-]{0,30}[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True)
class Prefix:
    """Put before the names of an included server. Without a text, they stay as they are."""

    text: str | None

    def __post_init__(self) -> None:
        if self.text is not None and not _PREFIX.fullmatch(self.text):
            raise ValueError(
                f"prefix must be 1 to 32 of A-Z a-z 0-9 _ . - and begin and end with a letter or digit, not {self.text!r}"
            )

    def name(self, name: str) -> str:
        """Return the name of a tool or prompt: `shop_order`."""
        return f"{self.text}_{name}" if self.text is not None else name

    def uri(self, uri: str) -> str:
        """Return the URI of a resource or template: `stock://shop/today`."""
        scheme, _, rest = uri.partition(":")
        slashes = "//" if rest.startswith("//") else ""
        return f"{scheme}:{slashes}{self.text}/{rest[len(slashes) :].lstrip('/')}" if self.text is not None else uri


def include(into: Catalogue, other: Catalogue, prefix: Prefix, home: object) -> None:
    """Offer everything of one catalogue in another, now and as it changes.

    Raises `ValueError` if names are equal, and includes nothing then.
    `home` is the server that the other catalogue belongs to.
    """
    pairs: list[tuple[Registry[Any], Registry[Any], Callable[[str], str]]] = [
        (into.tools, other.tools, prefix.name),
        (into.prompts, other.prompts, prefix.name),
        (into.resources.fixed, other.resources.fixed, prefix.uri),
        (into.resources.templates, other.resources.templates, prefix.uri),
    ]
    taken = [
        f"{mine.what} {name!r}"
        for mine, theirs, rename in pairs
        for name in map(rename, theirs.names())
        if mine.get(name) is not None
    ]
    if taken:
        raise ValueError(f"both servers have {', '.join(taken)}; include one of them with a prefix, or rename one")
    ready: Additions = {}
    for mine, theirs, rename in pairs:
        for one in theirs.all():
            mine.prepare(one.renamed(rename(one.name), home), ready)
    add_all(ready)
    for mine, theirs, rename in pairs:
        theirs.followed_by(mine, rename, home)
    into.include(other, home)
    other.changes.forward(into.changes, prefix.uri)
