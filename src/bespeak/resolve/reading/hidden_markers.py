"""Find markers that a function's signature does not show, because it was wrapped, copied or overridden without them."""

import builtins
import functools
import inspect
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from pydantic import BaseModel

from bespeak.resolve.reading.callables import owner_of, peel_partial
from bespeak.resolve.reading.misplaced_markers import Search, holds, is_marker, is_reply, mentions
from bespeak.resolve.reading.name_lookup import Scope, names_in, scope_of
from bespeak.resolve.reading.type_hints import peel

_BUILTINS = set(dir(builtins))
_LAYERS = 50
"""How many functions may wrap each other. An object that has every attribute would never end."""


@dataclass(frozen=True, slots=True)
class Hidden:
    """A parameter that is marked somewhere, but not in the signature that counts."""

    parameter: str
    problem: str
    fix: str


def hidden_markers(
    fn: Any, frame: types.FrameType | None, shown: Mapping[str, inspect.Parameter], unmarked: set[str], bound: set[str]
) -> Iterator[Hidden]:
    """Return the hidden markers of a callable. `unmarked` are the parameters that a client or a default would fill."""
    told: set[str] = set()
    for one in _all(fn, frame, shown, bound):
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
    fn: Any, frame: types.FrameType | None, shown: Mapping[str, inspect.Parameter], bound: set[str]
) -> Iterator[Hidden]:
    called = peel_partial(fn)
    wrapping = (one for one in wrapping_chain(getattr(called, "__func__", called)) if not inspect.isclass(one))
    for function, name in _marked(wrapping, frame, _may_be_marked):
        # What the signature shows is read elsewhere.
        if name not in bound and (
            name not in shown or not _is_same(shown[name].annotation, function.__annotations__[name])
        ):
            yield Hidden(
                name,
                f"parameter {name!r} is marked with `Resolve`, but the function's signature hides the marker",
                "do not set __signature__, or keep the annotation in it",
            )
    for function in wrapping_chain(getattr(called, "__func__", called)):
        for name, default in _defaults(function):
            if name in shown and name not in bound and shown[name].default is not default and _counts(default):
                yield Hidden(
                    name,
                    f"parameter {name!r} has `Resolve` or a question as its default value, and the signature hides it",
                    f"write {name}: Annotated[..., Resolve(fn)]",
                )
    for owner, method in overridden_methods(called, frame):
        for _, name in _marked(wrapping_chain(method), frame, _is_marked, owner):
            if name in shown and name not in bound:
                yield Hidden(
                    name,
                    f"parameter {name!r} is marked with `Resolve` in {method.__qualname__}, but not here",
                    f"repeat the marker: {name}: Annotated[..., Resolve(fn)]",
                )
    for inner in held_functions(called):
        for function, name in _marked(wrapping_chain(inner), frame, _may_be_marked):
            if name not in shown or name in bound:
                continue
            written, scope = function.__annotations__[name], scope_of(function, frame)
            if shown[name].annotation != written:
                # An annotation that can no longer be read there says nothing about a different one here.
                if not scope.lost(written) and _is_marked(written, scope):
                    yield Hidden(
                        name,
                        f"parameter {name!r} is marked with `Resolve` in {function.__qualname__}, which this function "
                        "wraps, but not here",
                        f"use functools.wraps, or repeat the marker: {name}: Annotated[..., Resolve(fn)]",
                    )
            else:
                yield Hidden(
                    name,
                    f"the annotation of parameter {name!r} was copied from {function.__qualname__}, where it is marked with "
                    "`Resolve`; here the same text means something else",
                    "use functools.wraps in the decorator, so that annotations are read where they were written",
                )
    yield from _foreign(called, shown, bound)


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
    functions: Iterator[Any],
    frame: types.FrameType | None,
    marked: Callable[[Any, Scope], bool],
    owner: type[Any] | None = None,
) -> Iterator[tuple[Any, str]]:
    """The parameters that functions mark, each with the function."""
    for function in functions:
        if not (inspect.isroutine(function) or inspect.isclass(function)):
            continue
        scope = scope_of(function, frame, owner)
        annotations: dict[str, Any] = getattr(function, "__dict__", {}).get("__annotations__") or getattr(
            function, "__annotations__", {}
        )
        yield from ((function, name) for name, raw in annotations.items() if name != "return" and marked(raw, scope))


def _is_marked(annotation: Any, scope: Scope) -> bool:
    """Whether an annotation marks its parameter; or can no longer be read."""
    if scope.lost(annotation):
        return True
    try:
        hint = scope.evaluate(annotation)
    except Exception:  # noqa: BLE001 - a name that does not exist cannot be a marker
        return False
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
    for _ in range(_LAYERS):
        if function is None:
            return
        yield function
        function = getattr(function, "__wrapped__", None)


def overridden_methods(called: Any, frame: types.FrameType | None) -> Iterator[tuple[type[Any], Any]]:
    """The methods that this one overrides in base classes, and those that a call of a class runs as well."""
    if inspect.isclass(called):
        made = cast("type[Any]", called)
        yield from _methods(made, {"__init__", "__new__"})
        yield from ((cls, cls) for cls in made.__mro__ if issubclass(cls, BaseModel))  # its fields are its parameters
        yield from _methods(type(made), {"__call__"})
    elif inspect.ismethod(called):
        owner: Any = owner_of(called)
        yield from _methods(owner, _names_of(owner, called.__func__))
    elif not inspect.isroutine(called):
        yield from _methods(cast("type[Any]", type(called)), {"__call__"})
    elif isinstance(called, types.FunctionType):
        owner = _class_of(called, frame)
        if owner is not None:
            yield from _methods(owner, _names_of(owner, called))


def _class_of(function: types.FunctionType, frame: types.FrameType | None) -> type[Any] | None:
    """The class a static method was written in, if its qualified name leads to one."""
    qualname = function.__qualname__.rpartition(".")[0]
    local = frame.f_locals.values() if frame is not None and "<locals>" in qualname else ()
    owner: Any = next((one for one in local if isinstance(one, type) and one.__qualname__ == qualname), None)
    if owner is None and qualname and "<locals>" not in qualname:
        owner = function.__globals__.get(qualname.split(".")[0])
        for step in qualname.split(".")[1:]:
            owner = getattr(owner, "__dict__", {}).get(step)
    return cast("type[Any]", owner) if isinstance(owner, type) else None


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


def held_functions(called: Any, depth: int = 5) -> Iterator[types.FunctionType]:
    """The functions that a decorator's wrapper holds, at any depth: in its closure or as attributes of an object."""
    function = getattr(called, "__func__", called)
    kept: list[Any] = []
    for cell in (function.__closure__ or ()) if isinstance(function, types.FunctionType) else ():
        try:
            kept.append(cell.cell_contents)
        except ValueError:  # not bound yet
            continue
    if not inspect.isroutine(called) and not inspect.isclass(called):
        kept.extend(getattr(called, "__dict__", {}).values())
    for one in kept:
        inner = getattr(one, "__func__", one)
        if isinstance(inner, types.FunctionType):
            yield inner
        if depth and callable(one):
            yield from held_functions(one, depth - 1)
