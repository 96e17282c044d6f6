"""Facts about a callable: its name, its place, how it is run, and the function whose annotations it shows."""

import dis
import functools
import inspect
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, cast, get_origin

LAYERS = 50
"""How many functions may wrap each other. An object that has every attribute would never end."""


class Kind(Enum):
    """How a function is run."""

    VALUE = "a constant"
    ASYNC = "an async function"
    SYNC = "a function"
    GENERATOR = "a generator"
    ASYNC_GENERATOR = "an async generator"

    @property
    def is_generator(self) -> bool:
        return self in (Kind.GENERATOR, Kind.ASYNC_GENERATOR)


def calling_frame() -> types.FrameType | None:
    """Return the frame that called the caller: where a function is being registered."""
    frame = inspect.currentframe()
    caller = frame.f_back if frame else None
    return caller.f_back if caller else None


def wraps_generator(target: Any) -> bool:
    """Return whether the function whose annotations are shown is a generator, whatever it is wrapped in."""
    return inspect.isgeneratorfunction(target) or inspect.isasyncgenfunction(target)


def kind_of(fn: Callable[..., Any]) -> Kind:
    """Return how to run a callable: decided by the outermost function that is called."""
    called = peel_partial(fn)
    if not (inspect.isroutine(called) or inspect.isclass(called)):
        called = type(called).__call__
    if inspect.isasyncgenfunction(called):
        return Kind.ASYNC_GENERATOR
    if inspect.isgeneratorfunction(called):
        return Kind.GENERATOR
    return Kind.ASYNC if inspect.iscoroutinefunction(called) else Kind.SYNC


def may_wait(fn: Callable[..., Any]) -> bool:
    """Return whether a call of a function may wait. An async function in whose code nothing is awaited runs to its end at once."""
    called = peel_partial(fn)
    code: Any = getattr(getattr(called, "__func__", called), "__code__", None)
    return not (inspect.iscoroutinefunction(called) and code is not None and _SEND not in code.co_code[::2])


_SEND = dis.opmap["SEND"]
"""Every `await`, `async for` and `async with` is compiled to this instruction. Instructions take two bytes each."""


def display_name(fn: Callable[..., Any]) -> str:
    """Return the short name used in messages."""
    return base_key(fn).partition(":")[2].rpartition("<locals>.")[2]


def base_key(fn: Callable[..., Any]) -> str:
    """`module:qualname`, the same in every process: `__main__` is replaced by the module's real name."""
    named: Any = peel_partial(fn)
    if not isinstance(getattr(named, "__qualname__", None), str):
        named = cast("Any", type(named))
    module: str = getattr(named, "__module__", None) or "builtins"
    return f"{main_module() if module == '__main__' else module}:{named.__qualname__}"


def main_module() -> str:
    """Return the importable name of the program's main module."""
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None and spec.name != "__main__":
        return spec.name
    file = getattr(main, "__file__", None)
    if not file:
        return "__main__"
    return Path(file).parent.name if Path(file).stem == "__main__" else Path(file).stem


def bound_names(fn: Any) -> set[str]:
    """Return the names that a partial binds by keyword. The author has set their values, so no client may."""
    return {name for part in _partials(fn) for name in part.keywords}


def bound_values(fn: Any) -> Iterator[tuple[str, Any]]:
    """Return the values that a partial binds, each with its keyword or position."""
    for part in _partials(fn):
        yield from ((repr(name), value) for name, value in part.keywords.items())
        yield from ((f"position {number}", value) for number, value in enumerate(part.args, 1))


def _partials(fn: Any) -> Iterator[functools.partial[Any]]:
    """The partials that a function is, or that it says it wraps."""
    for _ in range(LAYERS):
        if isinstance(fn, functools.partial):
            yield (part := cast("functools.partial[Any]", fn))
            fn = part.func
        elif (fn := getattr(fn, "__dict__", {}).get("__wrapped__")) is None:
            return


def peel_partial(fn: Any) -> Any:
    """Return the function inside a partial, however deep."""
    while isinstance(fn, functools.partial):
        fn = cast("functools.partial[Any]", fn).func
    return fn


def annotated_function(fn: Any) -> Any:
    """Return the function whose annotations `inspect.signature` reports."""
    for _ in range(LAYERS):
        found = peel_partial(fn)
        found = get_origin(found) or found  # Repo[int] is made by Repo
        if inspect.isclass(found):
            found = _maker(cast("type[Any]", found))
        elif not inspect.isroutine(found):
            # A decorator that is a class says on its instance what it wraps, and `inspect.signature` goes by that.
            found = getattr(found, "__dict__", {}).get("__wrapped__", type(found).__call__)
        try:
            found = peel_partial(inspect.unwrap(getattr(found, "__func__", found)))
        except ValueError:  # it wraps itself; reading its signature reports that
            return found
        plain = isinstance(found, types.FunctionType) and "__wrapped__" not in vars(found)
        if found is fn or plain or not callable(found):
            return found
        fn = found  # a method, a class or an object that is wrapped
    return fn


def holder_of(fn: Any) -> Any:
    """Return what is called below partials and wrappers: a bound method, a class or an alias of one, an object or a function."""
    method: Any = None
    for _ in range(LAYERS):
        fn = peel_partial(fn)
        if inspect.isclass(fn) or get_origin(fn) is not None:
            return fn
        if inspect.ismethod(fn):
            method, fn = fn, fn.__func__
        wrapped = getattr(fn, "__dict__", {}).get("__wrapped__")
        if wrapped is None:
            return method if method is not None and inspect.isroutine(fn) else fn
        fn = wrapped
    return fn


def _maker(cls: type[Any]) -> Any:
    """The method that receives the arguments of a call of the class; the class itself if that is not written in Python."""
    calling: Any = next((vars(meta)["__call__"] for meta in metaclasses(cls) if "__call__" in vars(meta)), None)
    if hasattr(calling, "__code__"):
        return calling
    for base in cls.__mro__:
        for name in ("__new__", "__init__"):
            method: Any = vars(base).get(name)
            method = getattr(method, "__func__", method)
            if hasattr(inspect.unwrap(method) if callable(method) else method, "__code__"):
                return method
    return cls


def metaclasses(cls: type[Any]) -> tuple[type[Any], ...]:
    """Return the class of a class, and its bases."""
    return cast("tuple[type[Any], ...]", type.mro(type(cls)))


def place_of(fn: Any, target: Any) -> str:
    """`file:line` of the code that an author would look at."""
    made = peel_partial(fn)
    if inspect.isclass(made):
        try:
            return f"{inspect.getsourcefile(made)}:{inspect.getsourcelines(made)[1]}"
        except (OSError, TypeError):
            return f"<{made.__name__}>"
    code = getattr(target, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else f"<{getattr(target, '__name__', target)}>"


def owner_of(called: Any) -> type[Any] | None:
    """Return the class where a method, a callable object or a class looks up its code; `None` for other functions."""
    holder: Any = getattr(called, "__self__", None) if inspect.ismethod(called) else called
    holder = get_origin(holder) or holder
    if isinstance(holder, type):
        return cast("type[Any]", holder)
    return None if inspect.isroutine(holder) else cast("type[Any]", type(holder))


def written_in(fn: Any, target: Any, frame: types.FrameType | None = None) -> type[Any] | None:
    """Return the class in whose body a method was written; `None` for other functions."""
    owner, name = owner_of(holder_of(fn)), getattr(target, "__name__", "")
    if owner is None:  # a function, and perhaps a static method
        owner = class_of(target, class_path(target), frame)
    for cls in (*owner.__mro__, *metaclasses(owner)) if owner else ():
        if _is_of(cls, name, target):
            return cls
    # One that the class has under another name: a partial method, or one that a descriptor keeps.
    path = getattr(target, "__qualname__", "").rpartition(".")[0]
    return next((cls for cls in owner.__mro__ if cls.__qualname__ == path), None) if owner else None


def _is_of(cls: type[Any], name: str, target: Any) -> bool:
    method: Any = vars(cls).get(name)
    method = getattr(method, "__func__", method)
    return callable(method) and inspect.unwrap(method) is target


def class_of(function: Any, qualname: str, frame: types.FrameType | None) -> type[Any] | None:
    """Return the class of a qualified name, found from a function that is written in it."""
    known, _, inside = qualname.rpartition("<locals>.")
    names: Any = (
        getattr(function, "__globals__", {}) if not known else _locals_of(known.removesuffix("."), function, frame)
    )
    owner: Any = names.get(inside.split(".")[0])
    for step in inside.split(".")[1:]:
        owner = getattr(owner, "__dict__", {}).get(step)
    return cast("type[Any]", owner) if isinstance(owner, type) else None


def _locals_of(qualname: str, function: Any, frame: types.FrameType | None) -> Mapping[str, Any]:
    """The local names of a function that is running, found by its qualified name."""
    while frame is not None:
        if frame.f_code.co_qualname == qualname and frame.f_globals is function.__globals__:
            return frame.f_locals
        frame = frame.f_back
    return {}


def own_annotations(cls: type[Any]) -> dict[str, Any]:
    """Return the annotations in the body of a class; `type` has an attribute of another kind under that name."""
    found: Any = vars(cls).get("__annotations__")
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def class_path(function: Any) -> str:
    """Return the qualified name of the class that a function was written in; empty if it was not."""
    code = getattr(function, "__code__", None)
    written: str = code.co_qualname if isinstance(code, types.CodeType) else ""
    path = written.rpartition(".")[0]
    return "" if path.endswith("<locals>") else path
