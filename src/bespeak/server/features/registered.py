"""A function that clients reach by a name: what tools, prompts and resources have in common when they are registered."""

import copy
import inspect
import logging
import types
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Generic, Self, TypeVar

from bespeak.protocol.errors import INTERNAL_ERROR, INVALID_PARAMS, MCPError
from bespeak.resolve.errors import BadAnswer, Fault, InvalidSignature, ResolverFailed, ToolError
from bespeak.resolve.graph.checks import CONTEXT_NAMES, is_context
from bespeak.resolve.graph.compiler import compile_graph
from bespeak.resolve.graph.drawing import draw_path
from bespeak.resolve.graph.faults import warn_at
from bespeak.resolve.graph.model import Graph
from bespeak.resolve.graph.replacements import Replacement
from bespeak.resolve.reading.callables import Kind, may_wait, peel_partial
from bespeak.resolve.reading.completion_markers import hidden_completions
from bespeak.resolve.reading.signatures import EMPTY, Parameter, Signature, read
from bespeak.resolve.reading.type_hints import arms, is_unknown, peel, spell
from bespeak.server.calls.arguments import Arguments, InvalidArguments, Unschemable
from bespeak.server.context import Context
from bespeak.state.ledger_errors import SettledOtherwise

logger = logging.getLogger("bespeak.server")


class Registering:
    """Reads a function that is being registered, and gathers all its faults, so that they are reported at once."""

    def __init__(
        self, fn: Callable[..., Any], what: str, frame: types.FrameType | None, *, completes: bool = False
    ) -> None:
        """Read the function. `completes` says whether a person may type its arguments, so that they can be completed."""
        self.frame = frame
        self.signature = signature = read(fn, frame)
        self.trail = (f"{signature.name}   {signature.place}",)
        self._faults: list[Fault] = []
        self._lost: dict[str, str] = {}
        """The parameters that have something else in place of a marker, each with what it is."""
        self.context_parameters = tuple(
            one.name for one in signature.parameters if not one.marker and is_context(one.hint, Context)
        )
        if signature.kind.is_generator:
            self.fault(
                f"{signature.name} is a generator, but a {what} must return its result", "return instead of yielding"
            )
        if signature.question_arms:
            self.fault(
                f"{signature.name} returns {spell(signature.question_arms[0])}, which only a resolver may return",
                "ask in a resolver, and take the answer as a parameter: Annotated[..., Resolve(ask)]",
            )
        first = signature.parameters[0] if signature.parameters else None
        if first is not None and first.name in ("self", "cls") and first.hint is Any:
            self.fault(
                f"parameter {first.name!r} would become an argument of the {what}",
                f"register the bound method of an object: mcp.add_{what}(thing.method)"
                if what == "tool"
                else "register the bound method of an object",
                first.name,
            )
        self.graph: Graph | None = None
        try:
            self.graph = compile_graph(signature, context_type=Context, frame=frame)
        except InvalidSignature as invalid:
            self.add_faults(invalid.faults)
        self._lost = {one.name: lost for one in self.plain if (lost := _lost_marker(one)) is not None}
        for one in signature.parameters:
            if one.name in self._lost:
                self.fault(
                    f"parameter {one.name!r} has {self._lost[one.name]}, which has no effect here: a client would supply the value",
                    f"mark the parameter: {one.name}: Annotated[{spell(one.hint)}, Resolve(fn)]",
                    one.name,
                )
        for name in (one.name for one in self.plain if one.name in CONTEXT_NAMES and one.hint is Any):
            warn_at(
                signature,
                f"parameter {name!r} of {signature.name} has no annotation, so it is an argument that the client fills; to get "
                f"the context, write {name}: Context",
            )
        if completes:
            uncompleted = {one.name for one in self.plain if one.completion is None}
            for hidden in hidden_completions(fn, frame, uncompleted):
                self.fault(hidden.problem, hidden.fix, hidden.parameter)
        else:
            self._refuse_completions(what)

    def fault(self, problem: str, fix: str, *below: str) -> None:
        """Note a fault, with the parameter or path below the function where it lies."""
        self._faults.append(Fault(problem, fix, self.signature.place, draw_path((*self.trail, *below))))

    def add_faults(self, faults: Iterable[Fault]) -> None:
        """Note faults that were found elsewhere."""
        self._faults.extend(faults)

    def _refuse_completions(self, what: str) -> None:
        for one in self.signature.parameters:
            if one.completion and not one.marker:
                self.fault(
                    f"parameter {one.name!r} is marked with `Complete`, but the arguments of a {what} are not completed",
                    "remove it; it has an effect only on parameters of prompts and resource templates",
                    one.name,
                )

    @property
    def marked(self) -> list[str]:
        """The names of the parameters that are resolved."""
        return sorted(one.name for one in self.signature.parameters if one.marker)

    @property
    def plain(self) -> list[Parameter]:
        """The parameters that a client fills."""
        told = {defect.parameter for defect in self.signature.defects}
        return [
            one
            for one in self.signature.parameters
            if not (
                one.marker
                or one.by_position
                or one.exposed
                or one.name in told
                or one.name in self.context_parameters
                or one.name in self._lost
            )
        ]

    def arguments(self, schema: dict[str, Any] | None = None) -> Arguments | None:
        """Return how the client's arguments are read; `None`, and faults, if they cannot be."""
        try:
            arguments = Arguments(self.short_name, self.plain, schema)
        except Unschemable as error:
            for name, problem in error.problems.items():
                self.fault(problem, "use a type that JSON can represent, or fill it with Resolve(fn)", name)
            return None
        for name in self.marked:
            if name in arguments.wire_names:
                self.fault(
                    f"an argument can be sent as {name!r}, which is a resolved parameter",
                    f"give it an alias other than {name!r}",
                    name,
                )
        return arguments

    @property
    def short_name(self) -> str:
        return self.signature.name.rpartition(".")[2]

    def check(self, name: str) -> None:
        """Raise `InvalidSignature` if there are faults."""
        if self._faults:
            raise InvalidSignature(name, tuple(self._faults))


class Resolving:
    """A function whose marked parameters are filled by resolvers, which may be replaced for a while."""

    def __init__(self, graph: Graph) -> None:
        self.graph = self._compiled = graph

    @property
    def parts(self) -> "Sequence[Resolving]":
        """Itself, and the functions registered with it that have resolvers of their own."""
        return [self]

    def has_resolver(self, who: Hashable) -> bool:
        """Whether a function is one of its resolvers: as it was registered, or with the overrides that are open."""
        return who in self._compiled.identities or who in self.graph.identities

    def overridden(self, overrides: Mapping[Hashable, Replacement], frame: types.FrameType | None) -> Graph:
        """Return the graph with some resolvers replaced. Raises `InvalidSignature` if a replacement does not fit."""
        if not any(who in self._compiled.identities for who in overrides):
            return self._compiled
        return self._recompiled(overrides, frame)

    def _recompiled(self, overrides: Mapping[Hashable, Replacement], frame: types.FrameType | None) -> Graph:
        compiled = self._compiled
        return compile_graph(compiled.consumer, context_type=Context, frame=frame, overrides=overrides, like=compiled)


class Registered(Resolving):
    """A registered function: its graph of resolvers, and what its call needs to know."""

    method: ClassVar[str]
    what: ClassVar[str]
    """What it is called in messages."""
    idempotent = False
    scopes: tuple[str, ...] = ()
    """What a caller's access token must allow, where there is authentication."""
    name: str
    wire: dict[str, Any]
    """How it is listed."""
    listed_by: ClassVar[str] = "name"
    """The member of that which is its name."""
    home: Any = None
    """The server it was registered on, if that is included in the one that serves it."""
    name_at_home: str | None = None
    """Its name there."""
    arguments: Arguments

    def __init__(self, fn: Callable[..., Any], name: str, read: Registering, arguments: Arguments | None) -> None:
        read.check(name)
        assert read.graph is not None, "a graph that cannot be compiled has faults"
        assert arguments is not None, "arguments that cannot be read have faults"
        super().__init__(read.graph)
        self.fn = fn
        self.name = name
        self.arguments = arguments
        self.kind: Kind = read.signature.kind
        self.may_wait = may_wait(fn)
        self.at_once = self.kind is Kind.ASYNC and not self.may_wait
        self.context_parameters = read.context_parameters
        signature = read.signature
        returns = signature.returns
        self._asks_by_hand = returns is EMPTY or signature.returns_input_required or any(map(is_unknown, arms(returns)))
        self.plain = not (self.graph.nodes or self.context_parameters or self._asks_by_hand)
        """Whether a call only has to call the function."""

    @property
    def may_ask(self) -> bool:
        """Whether a call may ask something."""
        return self.graph.may_ask or self._asks_by_hand

    def renamed(self, name: str, home: Any) -> Self:
        """Return the same function under another name, for a server that includes its home."""
        other = self.copied()
        other.home = self.home or home
        other.name_at_home = self.name_at_home or self.name
        other.name = name
        other.wire = {**self.wire, self.listed_by: name}
        return other

    def comes_from(self, other: "Registered", home: Any) -> bool:
        """Whether it is another one renamed, for a server that includes `home`."""
        return (self.home, self.name_at_home) == (other.home or home, other.name_at_home or other.name)

    def copied(self) -> Self:
        """Return a copy for another server, so that an override on one does not reach the other."""
        return copy.copy(self)


def _lost_marker(parameter: Parameter) -> str | None:
    """What an argument has in place of a marker, if it has a function as its default or the marker of another framework."""
    if inspect.isroutine(parameter.default):
        return f"the function {getattr(parameter.default, '__name__', 'fn')!r} as its default"
    found = (parameter.default, *peel(parameter.hint).metadata)
    foreign = any(type(one).__name__.lstrip("_") == "Depends" for one in found)
    return "the `Depends` of another framework" if foreign else None


def described(fn: Callable[..., Any], description: str | None) -> str:
    """The description that a list shows: the author's, or the function's docstring."""
    return description if description is not None else inspect.getdoc(peel_partial(fn)) or ""


def name_of(fn: Callable[..., Any], signature: Signature, how: str) -> str:
    """The name of a function that was registered without one. `how` shows how to give one."""
    name: str = getattr(peel_partial(fn), "__name__", signature.name)
    if name == "<lambda>":
        raise ValueError(f"a lambda has no name; pass one: {how}")
    return name


def failure_text(prefix: str, error: Exception, what: str) -> str:
    """What the client may read of a failure: the author's own words, or only what failed. The rest is logged."""
    if isinstance(error, ToolError):
        return f"{prefix}: {error}"
    logger.error("%s failed", what, exc_info=error)
    return f"{prefix}: {error}" if isinstance(error, ResolverFailed) else prefix


_FROM_THE_CLIENT = (InvalidArguments, BadAnswer, SettledOtherwise)
"""Failures that follow from a client's mistake: its arguments, its answers, or a state that is used up."""


def protocol_error(prefix: str, error: Exception, what: str) -> MCPError:
    """A failed prompt or resource as a JSON-RPC error."""
    if isinstance(error, MCPError):
        return error
    code = INVALID_PARAMS if isinstance(error, _FROM_THE_CLIENT) else INTERNAL_ERROR
    return MCPError(code, failure_text(prefix, error, what))


RegisteredT = TypeVar("RegisteredT", bound=Registered)


class Registry(Generic[RegisteredT]):
    """The tools, prompts or resources of a server, in the order they were registered."""

    def __init__(self, what: str, changed: Callable[[], object] = lambda: None) -> None:
        self.what = what
        self._changed = changed
        self.adopt: Callable[[RegisteredT], object] = lambda one: None
        """Called with everything that is added: it may have to be changed first."""
        self._all: dict[str, RegisteredT] = {}
        self._followers: list[tuple[Registry[RegisteredT], Callable[[str], str], Any]] = []
        """Registries of servers that include this one, each with the names it gives, and the server of this one."""

    def add(self, one: RegisteredT) -> None:
        """Add one, here and wherever this is included. Raises `ValueError` if there is one of that name, and adds nothing then."""
        ready: Additions = {}
        self.prepare(one, ready)
        add_all(ready)

    def prepare(self, one: RegisteredT, ready: "Additions") -> None:
        """Note what has to be added for one, here and wherever this is included. Raises `ValueError` as `add` does."""
        if one.name in self._all or (self, one.name) in ready:
            raise ValueError(
                f"{self.what} {one.name!r} is already registered; call remove_{self.what}({one.name!r}) first, or rename one"
            )
        self.adopt(one)
        ready[self, one.name] = one
        for registry, rename, home in self._followers:
            registry.prepare(one.renamed(rename(one.name), home), ready)

    def put(self, one: RegisteredT) -> None:
        """Add what was prepared."""
        self._all[one.name] = one
        self._changed()

    def remove(self, name: str) -> None:
        """Remove one. Raises `ToolError` if there is none of that name."""
        if name not in self._all:
            raise ToolError(f"there is no {self.what} {name!r} to remove")
        one = self._all.pop(name)
        for registry, rename, home in self._followers:
            held = registry.get(rename(name))
            if held is not None and held.comes_from(one, home):  # that server may have removed or replaced it
                registry.remove(held.name)
        self._changed()

    def followed_by(self, other: "Registry[RegisteredT]", rename: Callable[[str], str], home: Any) -> None:
        """Add to the registry of another server, under other names, what is added here from now on."""
        self._followers.append((other, rename, home))

    def names(self) -> Sequence[str]:
        return list(self._all)

    def get(self, name: str) -> RegisteredT | None:
        return self._all.get(name)

    def all(self) -> Sequence[RegisteredT]:
        return list(self._all.values())


Additions = dict[tuple[Registry[Any], str], Registered]
"""What is about to be added, each under its registry and its name there."""


def add_all(ready: Additions) -> None:
    """Add what was prepared, in that order."""
    for (registry, _), one in ready.items():
        registry.put(one)
