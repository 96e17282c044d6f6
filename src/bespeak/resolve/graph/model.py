"""The compiled graph of one consumer: its resolvers in order, what each needs, and in which phase it runs."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, TypeAdapter

from bespeak.resolve.markers import Question, Resolve
from bespeak.resolve.reading.callables import Kind
from bespeak.resolve.reading.returned_values import ruled_out
from bespeak.resolve.reading.signatures import EMPTY, Signature

CONSUMER = -1
"""Used in place of a node's index for the consumer itself."""


@dataclass(frozen=True, slots=True)
class FromNode:
    """A parameter filled by a resolver."""

    parameter: str
    node: int
    takes: frozenset[type[BaseModel]]
    """The outcome types taken; empty for the plain value."""
    default: Any
    takes_not_asked: bool = False
    """Whether it takes `NotAsked`."""

    @property
    def has_default(self) -> bool:
        return self.default is not EMPTY

    def accepts(self, outcome: type[BaseModel]) -> bool:
        return outcome in self.takes


@dataclass(frozen=True, slots=True)
class FromArgument:
    """A parameter filled by the consumer's own argument of the same name."""

    parameter: str


@dataclass(frozen=True, slots=True)
class FromContext:
    """A parameter filled by the call's context."""

    parameter: str


Input = FromNode | FromArgument | FromContext


@dataclass(slots=True)
class Draft:
    """A resolver before the whole graph is known."""

    fn: Callable[..., Any]
    original: Callable[..., Any]
    """The function of its marker, which an override may have replaced."""
    marker: Resolve
    signature: Signature
    trail: tuple[str, ...]
    path: str
    inputs: list[Input] = field(default_factory=list[Input])
    below: set[int] = field(default_factory=set[int])
    """Every resolver it depends on, directly or not."""
    takers: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])
    """The names and the hints of the parameters that it fills."""

    @property
    def ruled_out(self) -> frozenset[type]:
        """The types of values that it must not return."""
        returns = self.signature.returns
        hints = [hint for _, hint in self.takers] if returns is EMPTY else [returns]
        return frozenset[type]().union(*map(ruled_out, hints))


@dataclass(frozen=True, slots=True)
class Node:
    """One resolver of a graph."""

    index: int
    """Its place in graph order: depth first, dependencies before dependents."""
    key_name: str
    """The name in the keys of its questions. The rest of a key identifies the question."""
    fn: Callable[..., Any]
    path: str
    once: TypeAdapter[Any] | None
    """How to serialise the value, if it is computed once per call."""
    guard: bool
    timeout: float | None
    inputs: tuple[Input, ...]
    needs: tuple[int, ...]
    """The resolvers whose values it takes."""
    rests_on: tuple[int, ...]
    """The questions and `once` values it depends on, directly or not, in graph order."""
    name: str
    kind: Kind
    may_ask: bool
    may_wait: bool = True
    """Whether its function may wait for something while it runs."""
    at_once: bool = False
    """Whether it is run by calling it and no more: it is async, never waits and has no options."""
    asks: tuple[type[Question], ...] = ()
    """The questions that its return annotation names; empty for one that may ask if the annotation does not say what."""
    asks_for: type[Any] | None = None
    """The class that its return annotation says a form is for; `None` if it does not name one."""
    returns: Any = EMPTY
    """Its return annotation."""
    takers: tuple[tuple[str, Any], ...] = ()
    """The names and the hints of the parameters that it fills."""
    ruled_out: frozenset[type] = frozenset()
    """The types of values that it must not return."""
    overridden: bool = False
    """Whether an override stands in for it."""


@dataclass(frozen=True, slots=True)
class Use:
    """One place where a resolver's outcome is taken."""

    consumer: int
    """Index of the taking resolver, or `CONSUMER`."""
    input: FromNode


@dataclass(frozen=True, slots=True)
class Graph:
    """The resolvers that fill a consumer's marked parameters, and when each one runs."""

    consumer: Signature
    nodes: tuple[Node, ...]
    inputs: tuple[Input, ...]
    """The consumer's own parameters, in signature order."""
    wants: tuple[FromNode, ...]
    """The marked ones among them."""
    uses: tuple[tuple[Use, ...], ...]
    """For each node, the places that take its outcome, in graph order; the consumer itself comes last."""
    guards: tuple[int, ...]
    """Phase zero: guards and what they depend on. Runs in every round."""
    questions: tuple[int, ...]
    """Phase one: resolvers that may ask and what they depend on, without phase zero. Runs in every round."""
    rest: tuple[int, ...]
    """Phase two: runs once per call, when nothing is open."""
    at_once: frozenset[tuple[int, ...]]
    """The phases in which every resolver is run at once. Where questions are pushed, resolvers that ask wait all the same."""
    chains: frozenset[tuple[int, ...]]
    """The phases in which each resolver only needs the value of the one before it. They need no scheduling."""
    identities: Mapping[Hashable, int]
    signatures: Mapping[Hashable, Signature]
    """The signature of every function, so that the graph can be compiled again without the frames it was read from."""
    has_generators: bool
    may_ask: bool
    straight: bool
    """Whether nothing has to be kept for a call: no resolver may ask, opens something or is overridden."""
    uses_context: bool
    """Whether a resolver takes the context."""
    may_wait_at_last: bool = True
    """Whether a resolver of phase two may wait."""
    overridden: bool = False
    """Whether an override stands in for one of the resolvers."""
