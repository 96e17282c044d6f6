"""Parameters of tools that the model fills, though a resolver fills others like them: a marker that was probably forgotten.

Registration cannot refuse such a parameter, because its type is an ordinary one, and a model may be meant to choose it.
"""

import dataclasses
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from pydantic import BaseModel

from bespeak.resolve.graph.model import FromArgument, FromNode, Graph, Input
from bespeak.resolve.graph.replacements import identity
from bespeak.resolve.reading.signatures import Signature
from bespeak.resolve.reading.type_hints import arms, can_agree, spell, value_classes
from bespeak.server.features.registered import Registered

_OTHERS = {"bespeak", "mcp_types", "pydantic", *sys.stdlib_module_names}
"""Packages whose classes are not the author's."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A parameter that a resolver fills."""

    where: str
    """What it belongs to: something registered, or the resolver of it."""
    resolver: str | None
    """The name of the resolver that has the parameter; `None` if it is that of the registered function itself."""
    parameter: str
    hint: Any
    filler: str
    """The name of the resolver that fills it."""
    rests_on: frozenset[str]
    """The arguments that this resolver is computed from, directly or not."""

    def taker(self, tool: str) -> str:
        """Return who has the parameter, for a message about a tool."""
        if self.resolver is None:
            return "it" if self.where == tool else self.where
        return f"its resolver {self.resolver}" if self.where == tool else f"resolver {self.resolver} of {self.where}"


@dataclass(frozen=True, slots=True)
class Unmarked:
    """A parameter that comes from the model, and another like it that does not."""

    tool: str
    parameter: str
    hint: Any
    taken: Taken

    def __str__(self) -> str:
        taken, ours = self.taken, self.hint
        shared = _own_classes(ours) & _own_classes(taken.hint)
        what = "it"
        if taken.parameter != self.parameter:
            what = f"{taken.parameter!r}, of the same type {_first(shared)},"
        wanted = _first(shared) if shared else spell(ours if can_agree(taken.hint, ours) else taken.hint)
        return (
            f"{self.tool}: {self.parameter!r} comes from the model, but {taken.taker(self.tool)} takes {what} from resolver "
            f"{taken.filler}; mark it too if a model must not choose it: Annotated[{wanted}, Resolve({taken.filler})]"
        )


def unmarked_parameters(registered: Sequence[Registered]) -> list[Unmarked]:
    """Return the parameters of tools that come from the model, although, on the same server, a resolver fills a parameter of
    the same name, or one of the same model, dataclass or enum of the author.
    """
    taken = [one for each in registered for one in _taken(each)]
    found: list[Unmarked] = []
    for tool in registered:
        if tool.what != "tool":
            continue
        own_first = sorted(taken, key=lambda one: one.where != tool.name)
        for name, hint in _hints(tool.graph.consumer, tool.graph.inputs, FromArgument):
            classes = _own_classes(hint)
            alike = (
                one
                for one in own_first
                if name not in one.rests_on and (one.parameter == name or classes & _own_classes(one.hint))
            )
            if (first := next(alike, None)) is not None:
                found.append(Unmarked(tool.name, name, hint, first))
    return found


def _taken(one: Registered) -> Iterator[Taken]:
    """What resolvers fill: parameters of the function itself, and of its resolvers."""
    graph, rests_on = one.graph, _arguments(one.graph)
    places: list[tuple[str | None, Signature | None, tuple[Input, ...]]] = [(None, graph.consumer, graph.inputs)]
    places += [(node.name, graph.signatures.get(identity(node.fn)), node.inputs) for node in graph.nodes]
    for resolver, signature, inputs in places:
        if signature is None:  # of an override
            continue
        hints = dict(_hints(signature, inputs, FromNode))
        for each in inputs:
            if isinstance(each, FromNode):
                filler = graph.nodes[each.node].name
                yield Taken(one.name, resolver, each.parameter, hints[each.parameter], filler, rests_on[each.node])


def _hints(signature: Signature, inputs: Iterable[Input], kind: type[Input]) -> Iterator[tuple[str, Any]]:
    """The parameters that are filled in one way, with their hints."""
    wanted = {one.parameter for one in inputs if isinstance(one, kind)}
    return ((one.name, one.hint) for one in signature.parameters if one.name in wanted)


def _arguments(graph: Graph) -> list[frozenset[str]]:
    """For each resolver, the arguments that it is computed from, directly or not."""
    found: list[frozenset[str]] = []
    for node in graph.nodes:  # dependencies come before their dependents
        direct = frozenset(one.parameter for one in node.inputs if isinstance(one, FromArgument))
        found.append(direct.union(*(found[below] for below in node.needs)))
    return found


def _own_classes(hint: Any) -> set[type[Any]]:
    """The models, dataclasses and enums of the author that a value of this hint can be."""
    return {one for arm in arms(hint) for one in value_classes(arm) or () if _is_own(one)}


def _is_own(cls: type[Any]) -> bool:
    made = issubclass(cls, BaseModel | Enum) or dataclasses.is_dataclass(cls)
    return made and cls.__module__.partition(".")[0] not in _OTHERS


def _first(classes: Iterable[type[Any]]) -> str:
    return min(spell(one) for one in classes)
