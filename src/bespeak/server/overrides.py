"""Replaces resolvers on one server for a while, for every transport: for tests and experiments."""

import types
from collections.abc import Callable, Hashable
from typing import Any

from bespeak.resolve.graph.model import Graph
from bespeak.resolve.graph.replacements import Replacement, constant, identity
from bespeak.resolve.reading.signatures import read
from bespeak.server.catalogue import Catalogue
from bespeak.server.features.registered import Resolving

UNSET: Any = object()


class Overrides:
    """The replacements that are open, the innermost last."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._open: list[tuple[object, Hashable, Replacement]] = []
        self._followers: list[Overrides] = []
        """Those of servers that include this one."""
        self._included: list[Overrides] = []

    def follow(self, other: "Overrides") -> None:
        """Have the replacements of an included server in force here too."""
        self._included.append(other)
        other._followers.append(self)
        self._apply()

    def open(
        self, fn: Callable[..., Any], replacement: Callable[..., Any] | None, value: Any, frame: types.FrameType | None
    ) -> object:
        """Start using a replacement, and return a ticket to close it with.

        Raises `InvalidSignature` if it does not fit.
        """
        if (replacement is None) == (value is UNSET):
            raise TypeError("call override(fn, replacement) or override(fn, value=...), not both")
        stand_in = constant(fn, value) if replacement is None else Replacement(replacement, read(replacement, frame))
        who = identity(fn)
        if not any(one.has_resolver(who) for one in self._catalogue.resolving()):
            raise ValueError(f"{getattr(fn, '__name__', fn)!r} is not a resolver of anything on this server")
        ticket = object()
        self._open.append((ticket, who, stand_in))
        try:
            for graph in self._apply(frame):
                stand_in.below.update(graph.signatures)
        except BaseException:
            self.close(ticket)
            raise
        return ticket

    def close(self, ticket: object) -> None:
        """Stop using a replacement. Replacements may be closed in any order."""
        self._open = [one for one in self._open if one[0] is not ticket]
        self._apply()

    def adopt(self, one: Resolving) -> None:
        """Apply the open replacements to something that is registered while they are open."""
        in_force = self._in_force()
        graphs = [(part, part.overridden(in_force, None)) for part in one.parts]
        for part, graph in graphs:
            part.graph = graph

    def _in_force(self) -> dict[Hashable, Replacement]:
        found: dict[Hashable, Replacement] = {}
        for other in self._included:
            found |= other._in_force()
        return found | {who: stand_in for _, who, stand_in in self._open}

    def _apply(self, frame: types.FrameType | None = None) -> list[Graph]:
        in_force = self._in_force()
        everything = self._catalogue.resolving()
        graphs = [one.overridden(in_force, frame) for one in everything]
        for one, graph in zip(everything, graphs, strict=True):
            one.graph = graph
        for follower in self._followers:
            follower._apply(frame)
        return graphs
