"""Find markers that a function's signature does not show, because it was wrapped, copied or overridden without them."""

import builtins
import functools
import inspect
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast, get_origin, get_overloads

from bespeak.resolve.reading.callables import LAYERS, bound_names, class_of, own_annotations, owner_of, peel_partial
from bespeak.resolve.reading.class_fields import field_notes
from bespeak.resolve.reading.held_functions import held_functions, passes_on
from bespeak.resolve.reading.misplaced_markers import MARKS, Search, holds, is_marker, is_reply, makes, mentions
from bespeak.resolve.reading.name_lookup import Scope, names_in, scope_of
from bespeak.resolve.reading.sources import Source
from bespeak.resolve.reading.type_hints import peel
from bespeak.resolve.reading.type_variables import NO_VARIABLES, Variables

_BUILTINS = set(dir(builtins))


@dataclass(frozen=True, slots=True)
class Hidden:
    """A parameter that is marked somewhere, but not in the signature that counts."""

    parameter: str
    problem: str
    fix: str


def hidden_markers(
    fn: Any,
    frame: types.FrameType | None,
    shown: Mapping[str, inspect.Parameter],
    unmarked: set[str],
    variables: Variables,
) -> Iterator[Hidden]:
    """Return the hidden markers of a callable. `unmarked` are the parameters that a client or a default would fill.

    `variables` says what the type variables of its class stand for.
    """
    told: set[str] = set()
    for one in _all(fn, frame, shown, bound_names(fn), variables):
        if one.parameter not in told and (one.parameter in unmarked or one.parameter not in shown):
            told.add(one.parameter)
            yield one


def _is_same(shown: Any, written: Any) -> bool:
    """Return whether two annotations are the same. Those of unions are compared by hash, which not all have."""
    try:
        return shown is written or bool(shown == written)
    except TypeError:
        return False


def _all(
    fn: Any,
    frame: types.FrameType | None,
    shown: Mapping[str, inspect.Parameter],
    bound: set[str],
    variables: Variables,
) -> Iterator[Hidden]:
    called = peel_partial(fn)
    called = get_origin(called) or called
    free = {name: one for name, one in shown.items() if name not in bound}
    yield from _in_callable(called, frame, free, bound, variables)
    for held in held_functions(called):
        if held.surely or passes_on(free, held.what):
            yield from _in_held(held.what, frame, free)
    yield from _foreign(called, shown, bound)


def _in_callable(
    called: Any,
    frame: types.FrameType | None,
    free: Mapping[str, inspect.Parameter],
    bound: set[str],
    variables: Variables,
) -> Iterator[Hidden]:
    """The markers of a callable that its own signature does not show."""
    yield from _in_itself(getattr(called, "__func__", called), frame, free, bound)
    for owner, method in overridden_methods(called, frame):
        for marked, written in _marked(_with_overloads(method), frame, _is_marked, owner, variables):
            name = _now_called(marked, written, free, bound)
            if name is not None:
                yield Hidden(
                    name,
                    f"parameter {name!r} is marked with `Resolve` in {method.__qualname__}, but not here",
                    f"repeat the marker: {name}: Annotated[..., Resolve(fn)]",
                )
    if inspect.isclass(called):
        yield from _in_fields(cast("type[Any]", called), frame, free, variables)


def _now_called(marked: Any, name: str, free: Mapping[str, inspect.Parameter], bound: set[str]) -> str | None:
    """Return the parameter in the place of a marked one, under its name or another; `None` if there is none."""
    if name in free or name in bound:
        return name if name in free else None
    code = getattr(marked, "__code__", None)
    if not isinstance(code, types.CodeType):
        return None
    written = [
        one for one in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if one not in ("self", "cls")
    ]
    place, here = written.index(name) if name in written else len(free), [*free]
    other = here[place] if place < len(here) else None
    return other if other is not None and other not in written else None


def _in_itself(
    function: Any, frame: types.FrameType | None, free: Mapping[str, inspect.Parameter], bound: set[str]
) -> Iterator[Hidden]:
    """The markers of a function, its overloads and what it wraps, that its signature does not show."""
    wrapping = [one for one in wrapping_chain(function) if not inspect.isclass(one)]
    for marked, name in _marked(wrapping, frame, _may_be_marked):
        # What the signature shows is read elsewhere.
        if name not in bound and (
            name not in free or not _is_same(free[name].annotation, marked.__annotations__[name])
        ):
            yield Hidden(
                name,
                f"parameter {name!r} is marked with `Resolve`, but the function's signature hides the marker",
                "do not set __signature__, or keep the annotation in it",
            )
    for marked, written in _marked((stub for one in wrapping for stub in _overloads(one)), frame, _may_be_marked):
        name = _now_called(marked, written, free, bound)
        if name is not None:
            yield Hidden(
                name,
                f"parameter {name!r} is marked with `Resolve` in an overload, but not in the function itself",
                f"repeat the marker in the function: {name}: Annotated[..., Resolve(fn)]",
            )
    for one in wrapping_chain(function):
        for name, default in _defaults(one):
            if name in free and free[name].default is not default and _counts(default):
                yield Hidden(
                    name,
                    f"parameter {name!r} has `Resolve` or a question as its default value, and the signature hides it",
                    f"write {name}: Annotated[..., Resolve(fn)]",
                )


def _in_fields(
    made: type[Any], frame: types.FrameType | None, free: Mapping[str, inspect.Parameter], variables: Variables
) -> Iterator[Hidden]:
    """The markers of a class's fields that its `__init__` does not show."""
    for one in field_notes(made):
        if one.parameter not in free:
            continue
        scope = scope_of(one.owner, frame, one.owner, variables.of(one.owner))
        if _is_marked(one.hint, scope):
            yield Hidden(
                one.parameter,
                f"parameter {one.parameter!r} is marked with `Resolve` on the field of {made.__name__}, but not in its `__init__`",
                "write an `__init__` that repeats the marker, or remove the converter",
            )
        elif any(_counts(extra) or makes(extra, is_marker) for extra in one.extras):
            yield Hidden(
                one.parameter,
                f"the field of parameter {one.parameter!r} has a `Resolve` in its default or its metadata, where it has no effect",
                f"write {one.parameter}: Annotated[..., Resolve(fn)]",
            )


def _in_held(held: Any, frame: types.FrameType | None, free: Mapping[str, inspect.Parameter]) -> Iterator[Hidden]:
    """The markers of a function that a wrapper holds and passes its parameters on to."""
    source = Source(held, frame)
    for function in (source.target, *_with_overloads(held)):
        if not inspect.isroutine(function):
            continue
        annotations: dict[str, Any] = getattr(function, "__annotations__", {})
        for name in annotations.keys() & free.keys():
            written, shown = annotations[name], free[name].annotation
            scope = source.scope_of(name) if function is source.target else scope_of(function, frame)
            if not _may_be_marked(written, scope):
                continue
            if not _is_same(shown, written):
                # An annotation that can no longer be read there says nothing about a different one here.
                if not scope.lost(written) and _is_marked(written, scope):
                    yield _wrapped(name, function)
            else:
                yield Hidden(
                    name,
                    f"the annotation of parameter {name!r} was copied from {function.__qualname__}, where it is marked with "
                    "`Resolve`; here the same text means something else",
                    "use functools.wraps in the decorator, so that annotations are read where they were written",
                )
    try:
        taken = inspect.signature(held).parameters
    except (TypeError, ValueError, NameError):
        return
    for one in _in_callable(held, frame, taken, set(), source.variables):
        if one.parameter in free:
            yield _wrapped(one.parameter, held)


def _wrapped(name: str, function: Any) -> Hidden:
    return Hidden(
        name,
        f"parameter {name!r} is marked with `Resolve` in {function.__qualname__}, which this function wraps, but not here",
        f"use functools.wraps, or repeat the marker: {name}: Annotated[..., Resolve(fn)]",
    )


def _foreign(called: Any, shown: Mapping[str, inspect.Parameter], bound: set[str]) -> Iterator[Hidden]:
    """Annotations that are text and were written elsewhere: the function itself does not have these parameters."""
    function = getattr(called, "__func__", called)
    code = getattr(function, "__code__", None)
    if not isinstance(function, types.FunctionType) or code is None or hasattr(function, "__wrapped__"):
        return
    many = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    own = set(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + many])
    elsewhere = function.__module__ != function.__globals__.get("__name__")
    for name, parameter in shown.items():
        used = names_in(parameter.annotation) - _BUILTINS
        if name in bound or not used:
            continue
        if name not in own or (elsewhere and _differs(function, parameter.annotation)):
            yield Hidden(
                name,
                f"the annotation of parameter {name!r} is text copied from another function and cannot be evaluated here",
                "use functools.wraps in the decorator, so that annotations are read where they were written",
            )


def _differs(function: types.FunctionType, annotation: Any) -> bool:
    """Whether text means a marker in the module a function names as its own, but not in the one it was compiled in."""
    module = sys.modules.get(function.__module__)
    return module is not None and _may_be_marked(annotation, Scope(vars(module), {}))


def _marked(
    functions: Iterable[Any],
    frame: types.FrameType | None,
    marked: Callable[[Any, Scope], bool],
    owner: type[Any] | None = None,
    variables: Variables = NO_VARIABLES,
) -> Iterator[tuple[Any, str]]:
    """The parameters that functions mark, each with the function."""
    for function in functions:
        if not (inspect.isroutine(function) or inspect.isclass(function)):
            continue
        scope = scope_of(function, frame, owner, variables.of(owner))
        annotations: dict[str, Any] = (
            own_annotations(cast("type[Any]", function))
            if inspect.isclass(function)
            else getattr(function, "__annotations__", {})
        )
        yield from ((function, name) for name, raw in annotations.items() if name != "return" and marked(raw, scope))


def _is_marked(annotation: Any, scope: Scope) -> bool:
    """Whether an annotation marks its parameter; or can no longer be read."""
    if scope.lost(annotation):
        return True
    try:
        hint = scope.evaluate(annotation)
    except Exception:  # noqa: BLE001 - a name that does not exist cannot be a marker, but text in a type argument can
        return any(MARKS.search(repr(one)) for one in scope.meanings.values())
    try:
        return bool(peel(hint).markers)
    except Exception:  # noqa: BLE001 - an alias whose value cannot be read
        return True


def _may_be_marked(annotation: Any, scope: Scope) -> bool:
    """Whether an annotation has a marker, or something like it, anywhere; or can no longer be read."""
    if _is_marked(annotation, scope):
        return True
    try:
        return mentions(scope.evaluate(annotation), Search(names=scope.names), completions=False)
    except Exception:  # noqa: BLE001 - reported when the signature is read, if it matters
        return False


def wrapping_chain(function: Any) -> Iterator[Any]:
    """A function and those it wraps."""
    for _ in range(LAYERS):
        if function is None:
            return
        yield function
        function = getattr(function, "__wrapped__", None)


def _overloads(function: Any) -> Iterator[Any]:
    """The stubs that describe the ways to call a function."""
    function = getattr(function, "__func__", function)
    if isinstance(function, types.FunctionType):
        yield from get_overloads(function)


def _with_overloads(function: Any) -> Iterator[Any]:
    for one in wrapping_chain(getattr(function, "__func__", function)):
        yield one
        yield from _overloads(one)


def overridden_methods(called: Any, frame: types.FrameType | None) -> Iterator[tuple[type[Any], Any]]:
    """The methods that this one overrides in base classes, and those that a call of a class runs as well."""
    if inspect.isclass(called):
        made = cast("type[Any]", called)
        yield from _methods(made, {"__init__", "__new__"})
        yield from ((cls, cls) for cls in made.__mro__)  # its fields are its parameters
        yield from _methods(type(made), {"__call__"})
    elif inspect.ismethod(called):
        owner = owner_of(called)
        if owner is not None:  # a method may be bound to a function
            yield from _methods(owner, _names_of(owner, called.__func__))
    elif not inspect.isroutine(called):
        yield from _methods(cast("type[Any]", type(called)), {"__call__"})
    elif isinstance(called, types.FunctionType):
        owner = class_of(called, called.__qualname__.rpartition(".")[0], frame)
        if owner is not None:
            yield from _methods(owner, _names_of(owner, called))


def _methods(owner: type[Any], names: set[str]) -> Iterator[tuple[type[Any], Any]]:
    for cls in owner.__mro__:
        for name in names:
            method = _plain(vars(cls).get(name))
            if inspect.isroutine(method):
                yield cls, method


def _names_of(owner: type[Any], function: Callable[..., Any]) -> set[str]:
    """The names under which a class has a function; its own, however it was decorated."""
    found = {name for cls in owner.__mro__ for name, one in vars(cls).items() if _plain(one) is function}
    return found | {function.__name__}


def _plain(method: Any) -> Any:
    if isinstance(method, functools.partialmethod):
        method = method.func
    return getattr(method, "__func__", method)


def _defaults(function: Any) -> Iterator[tuple[str, Any]]:
    code = getattr(function, "__code__", None)
    if isinstance(code, types.CodeType):
        positional: tuple[Any, ...] = function.__defaults__ or ()
        yield from zip(code.co_varnames[code.co_argcount - len(positional) :], positional, strict=False)
        yield from (function.__kwdefaults__ or {}).items()


def _counts(default: Any) -> bool:
    return holds(default, is_marker) or holds(default, is_reply)
