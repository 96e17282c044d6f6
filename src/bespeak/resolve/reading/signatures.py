"""Read the signature of a callable: its parameters with evaluated hints, its markers, and what it returns."""

import dataclasses
import inspect
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from bespeak.protocol import wire_types
from bespeak.resolve.markers import Complete, ElicitUrl, Resolve
from bespeak.resolve.outcomes import NotAsked
from bespeak.resolve.reading.callables import (
    Kind,
    bound_names,
    bound_values,
    display_name,
    kind_of,
    peel_partial,
    place_of,
    wraps_generator,
)
from bespeak.resolve.reading.completion_markers import read_completion
from bespeak.resolve.reading.hidden_markers import hidden_markers
from bespeak.resolve.reading.misplaced_markers import (
    Search,
    Test,
    holds,
    is_completion,
    is_copy,
    is_marker,
    is_reply,
    is_written,
    replies,
    strays,
    unread,
)
from bespeak.resolve.reading.name_lookup import Scope
from bespeak.resolve.reading.sources import Source
from bespeak.resolve.reading.type_hints import (
    arms,
    is_unknown,
    outcome_class,
    peel,
    question_class,
    spell,
)

EMPTY: Any = inspect.Parameter.empty
_UNFILLABLE = {
    inspect.Parameter.POSITIONAL_ONLY: "is positional-only",
    inspect.Parameter.VAR_POSITIONAL: "takes any positional arguments",
    inspect.Parameter.VAR_KEYWORD: "takes any keyword arguments",
}


_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
ORDINARY = "make it an ordinary parameter"


@dataclass(frozen=True, slots=True)
class Defect:
    """Something wrong with a function itself, wherever it is used."""

    parameter: str | None
    problem: str
    fix: str


@dataclass(frozen=True, slots=True)
class Factory:
    """A default that is created again for each call."""

    make: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter, its hint evaluated."""

    name: str
    hint: Any
    default: Any
    marker: Resolve | None = None
    takes: frozenset[type[BaseModel]] = frozenset()
    """The outcome types the consumer takes; empty when it takes the plain value."""
    takes_not_asked: bool = False
    """Whether the consumer takes `NotAsked`."""
    by_position: bool = False
    """Positional-only: it can only be left at its default."""
    exposed: tuple[str, ...] = ()
    """The outcomes and questions in the type of a parameter without a marker, each with its place."""
    unread: tuple[str, ...] = ()
    """The names in the type of a parameter without a marker that cannot be found, each with its place."""
    completion: Complete | None = None
    """How the argument is completed while it is typed."""

    @property
    def required(self) -> bool:
        if isinstance(self.default, FieldInfo):
            return self.default.is_required()
        return self.default is EMPTY


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters and the return type of a function, and what is wrong with them."""

    name: str
    place: str
    kind: Kind
    parameters: tuple[Parameter, ...]
    returns: Any
    """The evaluated hint of the value: what a generator yields or an awaitable returns; `EMPTY` if unknown."""
    defects: tuple[Defect, ...]

    @property
    def question_arms(self) -> list[Any]:
        return [] if self.returns is EMPTY else [arm for arm in arms(self.returns) if question_class(arm)]

    @property
    def may_ask(self) -> bool:
        """Whether the return annotation names a question, or does not say what is returned."""
        if self.kind is Kind.VALUE or self.kind.is_generator:
            return False
        return self.returns is EMPTY or any(is_unknown(arm) or question_class(arm) for arm in arms(self.returns))

    @property
    def returns_input_required(self) -> bool:
        return (
            self.returns is not EMPTY
            and wire_types.in_use()
            and any(
                isinstance(arm, type) and issubclass(arm, wire_types.InputRequiredResult) for arm in arms(self.returns)
            )
        )


def read(fn: Callable[..., Any], frame: types.FrameType | None = None) -> Signature:
    """Read the signature of any callable. Never raises: problems are listed in `defects`."""
    source = Source(fn, frame)
    fn = get_origin(fn) or fn  # Repo[int] is made by Repo
    target = source.target
    place, defects = place_of(fn, target), list[Defect]()
    try:
        raw = inspect.signature(fn)
    except (TypeError, ValueError, NameError) as error:
        defects.append(Defect(None, f"its signature cannot be read: {error}", "wrap it in a function with parameters"))
        raw = inspect.Signature()
    bound = bound_names(fn)
    for name, value in bound_values(fn):
        if any(holds(value, test) for test in (is_marker, is_completion, is_reply)):
            defects.append(
                Defect(
                    None,
                    f"a partial binds {name} to a marker or a question, which the function would receive as its value",
                    "mark the parameter of the function instead: Annotated[..., Resolve(fn)]",
                )
            )
    parameters = tuple(_parameter(one, source, defects) for one in raw.parameters.values() if one.name not in bound)
    kind = kind_of(fn)
    unmarked = {one.name for one in parameters if one.marker is None}
    hidden = hidden_markers(fn, frame, raw.parameters, unmarked, source.variables)
    defects.extend(Defect(one.parameter, one.problem, one.fix) for one in hidden)
    made = peel_partial(fn)
    if isinstance(getattr(made, "registry", None), types.MappingProxyType) and hasattr(made, "dispatch"):
        defects.append(
            Defect(
                None,
                "it is a singledispatch function, which needs a positional argument",
                "wrap it in a plain function",
            )
        )
    if kind in (Kind.SYNC, Kind.ASYNC) and wraps_generator(target):
        defects.append(
            Defect(
                None,
                "it is a generator behind a decorator, so the parameter would get what the decorator returns",
                "remove the decorator: Bespeak opens and closes a plain generator itself",
            )
        )
    returns = made if inspect.isclass(made) else _value_hint(_returns(raw, source.scope, defects), kind)
    signature = Signature(display_name(fn), place, kind, parameters, returns, ())
    return dataclasses.replace(signature, defects=(*defects, *_return_defects(signature)))


def _unreadable(where: str, error: Exception) -> tuple[str, str]:
    if isinstance(error, NameError):
        name = error.name or str(error)
        return (
            f"{where} names {name!r}, which does not exist at run time",
            f"import {name} outside `if TYPE_CHECKING:`, or define it before the function is registered",
        )
    return f"{where} cannot be evaluated: {error}", "write a hint that Python can evaluate at run time"


def _parameter(raw: inspect.Parameter, source: Source, defects: list[Defect]) -> Parameter:
    """One parameter. Problems with it are added to the defects."""
    found: list[Defect] = []
    try:
        parameter = _read_parameter(raw, source, found)
    except Exception as error:  # noqa: BLE001 - a hint is any object, and looking into it may raise anything
        parameter = Parameter(raw.name, Any, raw.default)
        found = [Defect(raw.name, *_unreadable(f"the hint of parameter {raw.name!r}", error))]
    defects.extend(found)
    return parameter


def _read_parameter(raw: inspect.Parameter, source: Source, defects: list[Defect]) -> Parameter:
    name = raw.name
    scope = source.scope_of(name)

    def defect(problem: str, fix: str) -> None:
        defects.append(Defect(name, problem, fix))

    hint = Any if raw.annotation is EMPTY else scope.evaluate(raw.annotation)
    peeled = peel(hint)
    markers = peeled.markers
    marker = markers[0] if markers else None
    lost = set[str]() if raw.annotation is EMPTY or marker else scope.lost(raw.annotation)
    if lost:
        gone = sorted(lost)[0]
        defect(
            f"the hint of parameter {name!r} names {gone!r}, which was local to a function that has returned",
            f"register the function where {gone} is defined, or define {gone} in the module",
        )
    variable = None if marker else source.unread_variable(name, hint)
    if variable is not None:
        defect(
            f"parameter {name!r} takes {variable}, a type variable of its class, and what it stands for cannot be read here",
            "write the type in the method, or give it to a base class, class Desk(Base[...]), and register a method of Desk()",
        )
    if is_completion(peeled.core):
        defect(f"parameter {name!r} has `Complete` as its annotation", f"write {name}: Annotated[str, Complete(fn)]")
        return Parameter(name, Any, raw.default)
    if is_marker(peeled.core):
        defect(f"parameter {name!r} has `Resolve` as its annotation", f"write {name}: Annotated[..., Resolve(fn)]")
        return Parameter(name, Any, raw.default)
    for item in peeled.metadata:
        if inspect.isfunction(item) or inspect.ismethod(item):
            defect(
                f"parameter {name!r} has the bare function {item.__name__!r} in its annotation",
                f"write Resolve({item.__name__}) to have it fill the parameter",
            )
    foreign = [item for item in (*peeled.metadata, peeled.core) if is_marker(item) and not _is_ours(item)]
    if foreign:
        of = "another copy of bespeak" if _is_copied(foreign[0]) else "the official SDK"
        defect(
            f"parameter {name!r} is marked with the `Resolve` of {of}, which has no effect here",
            f"import Resolve from bespeak: {name}: Annotated[..., Resolve(fn)]",
        )
        return Parameter(name, Any, raw.default)
    if any(is_marker(item) and item not in markers for item in peeled.metadata):
        defect(f"parameter {name!r} is marked with `Resolve` without a call", "write Resolve(fn), naming the function")
    if any(is_written(item) for item in peeled.metadata):
        defect(
            f"parameter {name!r} has a marker or a question written as text in its annotation",
            f"write it without quotation marks: {name}: Annotated[{spell(hint)}, Resolve(fn)]",
        )
    inner = [item for item in peeled.metadata if not is_marker(item)]
    if _hides(raw.default, is_marker) or any(holds(item, is_marker) for item in inner):
        defect(
            f"parameter {name!r} has `Resolve` as a default value"
            if _hides(raw.default, is_marker) or any(isinstance(item, FieldInfo) for item in inner)
            else f"parameter {name!r} has `Resolve` inside another object in its annotation",
            f"write {name}: Annotated[{spell(hint)}, Resolve(fn)]",
        )
    elif _hides(raw.default, is_reply):
        defect(
            f"parameter {name!r} has a question or an outcome as its default, so nobody would be asked",
            f"return the question from a resolver: {name}: Annotated[{spell(hint)}, Resolve(ask)]",
        )
    if len(markers) > 1:
        defect(f"parameter {name!r} is marked with `Resolve` {len(markers)} times", "keep one of them")
    # A client does not fill the fields of a value that a resolver returns.
    for where in dict.fromkeys(strays(hint, Search(fields=marker is None, names=scope.names))):
        defect(
            f"parameter {name!r} has a `Resolve` {where}, where it has no effect",
            f"mark the parameter itself: {name}: Annotated[..., Resolve(fn)]",
        )
    exposed = tuple(dict.fromkeys(replies(hint, Search(names=scope.names)))) if marker is None else ()
    unknown = tuple(dict.fromkeys(unread(hint, Search(names=scope.names)))) if marker is None else ()
    if raw.kind in _UNFILLABLE and (marker or raw.default is EMPTY):
        wrapped = "; if a decorator made this function, let it use functools.wraps"
        defect(unfillable(name, raw.kind), ORDINARY + (wrapped if raw.kind in _VARIADIC else ""))
    wanted = [arm for arm in arms(peeled.core) if arm is not NotAsked]
    takes = frozenset(cls for arm in wanted if (cls := outcome_class(arm))) if marker else frozenset[Any]()
    if takes and any(arm is not type(None) and not outcome_class(arm) for arm in wanted):
        defect(
            f"parameter {name!r} takes both a plain value and outcomes",
            "use ElicitationResult[...]; a plain value then arrives as AcceptedElicitation",
        )
    default = raw.default
    if marker and isinstance(default, FieldInfo):
        made: Any = default.default_factory
        default = EMPTY if default.is_required() else default.default if made is None else Factory(made)
    search = Search(fields=marker is None, names=scope.names)
    completion, misplaced = read_completion(name, hint, raw.default, search, resolved=marker is not None)
    for problem, fix in misplaced:
        defect(problem, fix)
    takes_not_asked = marker is not None and NotAsked in arms(peeled.core)
    by_position = raw.kind is inspect.Parameter.POSITIONAL_ONLY
    return Parameter(name, hint, default, marker, takes, takes_not_asked, by_position, exposed, unknown, completion)


def _is_ours(marker: Any) -> bool:
    return isinstance(marker, Resolve) or (isinstance(marker, type) and issubclass(marker, Resolve))


def _is_copied(marker: Any) -> bool:
    return is_copy(marker if isinstance(marker, type) else type(marker))


def _hides(default: Any, wanted: Test) -> bool:
    """Whether a parameter's default is, contains or creates what is wanted."""
    return default is not EMPTY and holds(default, wanted)


def unfillable(name: str, kind: Any = inspect.Parameter.POSITIONAL_ONLY) -> str:
    return f"parameter {name!r} {_UNFILLABLE[kind]}, so it cannot be filled by name"


def _returns(raw: inspect.Signature, scope: Scope, defects: list[Defect]) -> Any:
    if raw.return_annotation is EMPTY:
        return EMPTY
    try:
        hint = scope.evaluate(raw.return_annotation)
        arms(hint)
        return hint
    except Exception as error:  # noqa: BLE001 - a hint is any expression and may raise anything
        defects.append(Defect(None, *_unreadable("the return type", error)))
        return EMPTY


_GENERATORS = {
    typing.get_origin(alias)
    for alias in (
        typing.Iterator[Any],
        typing.Iterable[Any],
        typing.Generator[Any, Any, Any],
        typing.AsyncIterator[Any],
        typing.AsyncIterable[Any],
        typing.AsyncGenerator[Any, Any],
    )
}
_AWAITABLES = {typing.get_origin(alias) for alias in (typing.Awaitable[Any], typing.Coroutine[Any, Any, Any])}


def _value_hint(hint: Any, kind: Kind) -> Any:
    """The hint of what the consumer gets: what a generator yields or an awaitable returns."""
    core = peel(hint).core
    inner = get_args(core)
    if kind.is_generator:
        return inner[0] if get_origin(core) in _GENERATORS and inner else EMPTY
    if get_origin(core) in _AWAITABLES and inner:
        return inner[-1]
    return hint


def _return_defects(signature: Signature) -> list[Defect]:
    asking = signature.question_arms
    if asking and signature.kind.is_generator:
        return [
            Defect(
                None, "it is a generator, and a generator cannot ask", "ask in a resolver that the generator depends on"
            )
        ]
    if len(asking) > 1:
        spelled = " | ".join(spell(arm) for arm in asking)
        return [
            Defect(
                None,
                f"its return type names more than one question: {spelled}",
                "ask one question per resolver, and chain the resolvers",
            )
        ]
    if asking and question_class(asking[0]) is ElicitUrl and len(arms(signature.returns)) == 1:
        return [
            Defect(
                None,
                "it returns only ElicitUrl, which settles nothing: opening a page gives no value",
                "name the value that it returns afterwards too: -> Account | ElicitUrl",
            )
        ]
    return []
