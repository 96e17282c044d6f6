"""Find the functions that a decorator's wrapper holds, and those of them that it may pass its own parameters on to."""

import functools
import inspect
import types
import weakref
from collections import deque
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any, cast

from bespeak.resolve.reading.misplaced_markers import attributes

_DEEP = 16
"""How many objects a function may be held in, one in the other."""
_MOST = 2000
"""How many items of a container are looked at, and how many objects in all."""
_CONTAINERS = (Mapping, list, tuple, Set, deque)
_NOTHING = (type(None), str, bytes, bytearray, int, float, complex, types.ModuleType, types.CodeType)


@dataclass(frozen=True, slots=True)
class Held:
    """A function, method or class that is held."""

    what: Any
    surely: bool
    """In the closure, or an attribute of a callable object: what a decorator does. Otherwise it may have another purpose."""


def held_functions(called: Any) -> Iterator[Held]:
    """Return what a wrapper holds, at any depth: in its closure, defaults and attributes, and in containers there."""
    seen: dict[int, Any] = {id(called): called}
    waiting: deque[tuple[Any, bool, int, bool]] = deque((one, surely, _DEEP, True) for one, surely in _kept(called))
    while waiting and len(seen) < _MOST:
        one, surely, depth, may_open = waiting.popleft()
        if id(one) in seen or isinstance(one, _NOTHING):
            continue
        seen[id(one)] = one
        is_class, calls = inspect.isclass(one), callable(one)
        if is_class or inspect.isfunction(one) or inspect.ismethod(one):
            yield Held(one, surely)
        elif calls and inspect.isfunction(
            by_class := inspect.getattr_static(cast("type[Any]", type(one)), "__call__", None)
        ):
            yield Held(types.MethodType(by_class, one), surely)
        # An object that is not callable is opened, with the containers in it; not the objects that are kept there.
        opens = isinstance(one, (*_CONTAINERS, weakref.ReferenceType)) or calls
        if depth and not is_class and (opens or may_open):
            waiting.extend(
                (inner, surely and sure, depth - 1, calls or (may_open and opens)) for inner, sure in _kept(one)
            )


def passes_on(shown: Mapping[str, inspect.Parameter], inner: Any) -> bool:
    """Return whether a wrapper may pass its parameters on: all of them, or all that the function needs."""
    try:
        taken = dict(inspect.signature(inner).parameters)
    except (TypeError, ValueError, NameError):
        return True
    for name in ("self", "cls"):  # of a method that is called with its object
        taken.pop(name, None)
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in taken.values()):
        return True
    needed = {name for name, one in taken.items() if one.default is one.empty and one.kind is not one.VAR_POSITIONAL}
    options = {name for name, one in shown.items() if one.default is not one.empty}  # of the wrapper itself
    return needed <= shown.keys() or shown.keys() - options <= taken.keys()


def _kept(holder: Any) -> Iterator[tuple[Any, bool]]:
    """What an object keeps, and whether a decorator would keep there what it wraps."""
    if inspect.ismethod(holder):
        yield from _kept(holder.__func__)
        if not inspect.isclass(holder.__self__):
            yield from ((one, False) for one in _attributes(holder.__self__))
    elif isinstance(holder, types.FunctionType):
        for cell in holder.__closure__ or ():
            try:
                yield cell.cell_contents, True
            except ValueError:  # not bound yet
                continue
        yield from ((one, False) for one in (*(holder.__defaults__ or ()), *(holder.__kwdefaults__ or {}).values()))
        yield from ((one, False) for name, one in vars(holder).items() if name != "__wrapped__")
    elif isinstance(holder, functools.partial):
        part = cast("functools.partial[Any]", holder)
        yield part.func, True
        yield from ((one, False) for one in (*part.args, *part.keywords.values()))
    elif isinstance(holder, weakref.ReferenceType):
        yield cast("weakref.ReferenceType[Any]", holder)(), False
    elif isinstance(holder, _CONTAINERS):
        items = cast("Any", holder.values() if isinstance(holder, Mapping) else holder)
        yield from ((one, False) for one in [*islice(items, _MOST)])
    elif not inspect.isclass(holder):
        own: dict[str, Any] = getattr(holder, "__dict__", {})
        yield from ((one, callable(holder)) for one in [*own.values()])
        yield from ((one, False) for one in _attributes(holder))


def _attributes(holder: Any) -> Iterator[Any]:
    """The attributes of an object, and functions that its class has from elsewhere."""
    yield from attributes(holder)
    yield from _functions_from_elsewhere(cast("type[Any]", type(holder)))


@lru_cache(512)
def _functions_from_elsewhere(owner: type[Any]) -> tuple[types.FunctionType, ...]:
    """The functions of a class that were not written in it."""
    found = ((cls, getattr(one, "__func__", one)) for cls in owner.__mro__ for one in [*vars(cls).values()])
    return tuple(
        one
        for cls, one in found
        if isinstance(one, types.FunctionType) and not one.__qualname__.startswith(f"{cls.__qualname__}.")
    )
