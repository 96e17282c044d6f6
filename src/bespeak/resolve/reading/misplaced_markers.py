"""Find markers, outcomes and questions in places where they have no effect: inside types, metadata and defaults."""

import builtins
import dataclasses
import functools
import re
import sys
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import islice
from types import MappingProxyType
from typing import Annotated, Any, ForwardRef, TypeVar, cast, get_args, get_origin

import typing_extensions
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from bespeak.protocol import wire_types
from bespeak.resolve.markers import Complete, Question, Resolve
from bespeak.resolve.outcomes import NotAsked
from bespeak.resolve.reading.type_hints import OUTCOMES, alias_layers, arms, evaluate, peel, spell

_MOST = 20_000
"""How many hints one search inspects. A recursive generic alias has no end."""
_YIELDS = "__is_annotated_types_grouped_metadata__"
"""What `annotated_types.GroupedMetadata` is known by: metadata that stands for what it yields."""
_DEEP = 4
"""How many levels of nested metadata are inspected, and how many levels of functions that a factory calls."""
_WRITTEN = re.compile(r"\s*(?:\w+\.)*(?:Resolve|Elicit|ElicitUrl|Sample|ListRoots)\(.*\)\s*", re.DOTALL)
"""A marker or a question that was written as text by mistake."""
MARKS = re.compile(r"\b(?:Resolve|Elicit\w*|ListRoots|(?:Accepted|Declined|Cancelled)Elicitation|NotAsked)\b")
_COMPLETES = re.compile(r"\s*(?:\w+\.)*Complete\(.*\)\s*", re.DOTALL)
_CONTAINER = "inside a union or container"
_OPTIONS = {"fn", "key", "once", "guard"}
"""The options by which the `Resolve` of another copy is known."""

Test = Callable[[Any], bool]


_OFFICIAL = {
    "Elicit",
    "Sample",
    "ListRoots",
    "AcceptedElicitation",
    "DeclinedElicitation",
    "CancelledElicitation",
    "Context",
}
"""Names of the official SDK that have no effect here: an import that was not changed."""


def is_marker(value: Any) -> bool:
    """Return whether a value is a `Resolve(fn)`, or the class itself without a call.

    Includes the official SDK's `Resolve`, and that of another copy of this package.
    """
    return _is_marker_class(cast("type[Any]", value if isinstance(value, type) else type(value)))


@functools.lru_cache(maxsize=1024)
def _is_marker_class(cls: type[Any]) -> bool:
    return issubclass(cls, Resolve) or is_official(cls, {"Resolve"}) or is_copy(cls)


def is_copy(cls: type[Any]) -> bool:
    """Return whether a class is the `Resolve` of another copy of this package: reloaded, vendored or on two paths."""
    return not issubclass(cls, Resolve) and any(
        base.__name__ == Resolve.__name__ and vars(base).get("__dataclass_fields__", {}).keys() >= _OPTIONS
        for base in cls.__mro__
    )


def is_completion(value: Any) -> bool:
    """Whether a value is a `Complete(fn)`, the class itself without a call, or one of the two written as text."""
    if isinstance(value, str):
        return _COMPLETES.fullmatch(value) is not None
    return isinstance(value, Complete) or (isinstance(value, type) and issubclass(value, Complete))


def is_official(cls: type[Any], names: set[str]) -> bool:
    """Return whether a class is one of these classes of the official SDK."""
    return any(base.__module__.partition(".")[0] == "mcp" and base.__name__ in names for base in cls.__mro__)


def is_official_question(cls: type[Any]) -> bool:
    """Return whether a class is a question of the official SDK, which would otherwise pass as a plain value."""
    return is_official(cls, {"Elicit", "Sample", "ListRoots"})


def is_reply(value: Any) -> bool:
    """Return whether a value is an outcome or a question, or the type of one: a client must not supply these."""
    return isinstance(value, (Question, NotAsked, *OUTCOMES)) or any(map(_is_reply_class, arms(value)))


def _is_reply_class(hint: Any) -> bool:
    cls: Any = get_origin(hint) or hint
    if not isinstance(cls, type):
        return False
    return issubclass(cls, (NotAsked, Question, *OUTCOMES, *_wire_answers())) or is_official(
        cast("type[Any]", cls), _OFFICIAL
    )


def _wire_answers() -> tuple[type[Any], ...]:
    """The answers to questions, as wire types."""
    if not wire_types.in_use():
        return ()
    return (
        wire_types.ElicitResult,
        wire_types.CreateMessageResult,
        wire_types.CreateMessageResultWithTools,
        wire_types.ListRootsResult,
    )


def holds(value: Any, wanted: Test, depth: int = _DEEP) -> bool:
    """Return whether a default or a piece of metadata is what is wanted, or contains it, in a `Field` or wrongly in a
    list.
    """
    if wanted(value) or depth == 0:
        return wanted(value)
    if isinstance(value, FieldInfo):
        parts = [value.default, *value.metadata]
        return makes(value.default_factory, wanted) or any(holds(one, wanted, depth - 1) for one in parts)
    if isinstance(value, Mapping):
        value = list(cast("Mapping[Any, Any]", value).values())
    if isinstance(value, (list, tuple, Set, deque)) or getattr(value, _YIELDS, False) is True:
        return any(holds(one, wanted, depth - 1) for one in islice(cast("Iterable[Any]", value), _MOST))
    if isinstance(value, functools.partial):
        part = cast("functools.partial[Any]", value)
        return any(holds(one, wanted, depth - 1) for one in (part.func, *part.args, *part.keywords.values()))
    if get_origin(value) is not None:  # an annotation where a value belongs
        return any(holds(one, wanted, depth - 1) for one in get_args(value))
    if isinstance(value, (type, types.FunctionType, types.ModuleType)):
        return False
    inside = 1 if depth > 1 else 0
    return any(holds(one, wanted, inside) for one in attributes(value))


def attributes(value: Any) -> Iterator[Any]:
    """Return what an object keeps, in its attributes and in slots."""
    yield from [*getattr(value, "__dict__", {}).values()]
    for slot in _slots(cast("type[Any]", type(value))):
        try:
            yield slot.__get__(value)
        except AttributeError:  # not set
            continue


@functools.lru_cache(maxsize=1024)
def _slots(cls: type[Any]) -> tuple[types.MemberDescriptorType, ...]:
    found = [one for base in cls.__mro__ for one in vars(base).values()]
    return tuple(one for one in found if isinstance(one, types.MemberDescriptorType))


def is_written(item: Any, depth: int = _DEEP) -> bool:
    """Return whether a piece of metadata is text that was meant to be a marker or a question."""
    if isinstance(item, (list, tuple)) and depth:
        return any(is_written(one, depth - 1) for one in cast("list[Any]", item))
    return isinstance(item, str) and _WRITTEN.fullmatch(item) is not None


def makes(factory: Any, wanted: Test, depth: int = _DEEP) -> bool:
    """Return whether the code of a default factory names what is wanted.

    It is not called: that could have side effects.
    """
    if factory is None or depth == 0:
        return False
    if isinstance(factory, functools.partial):
        return holds(cast("functools.partial[Any]", factory), wanted)
    factory = getattr(factory, "__func__", factory)
    if not isinstance(factory, types.FunctionType):
        return wanted(factory)
    # A function it calls may return a marker. A mention of a question proves nothing: resolvers mention them too.
    return any(
        holds(value, wanted)
        or (isinstance(value, types.FunctionType) and wanted is is_marker and makes(value, wanted, depth - 1))
        for value in _named(factory)
    )


def _named(fn: types.FunctionType) -> Iterator[Any]:
    """The values of the names in a function's code."""
    cells = zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True)
    known: dict[str, Any] = {**fn.__globals__}
    for name, cell in cells:
        try:
            known[name] = cell.cell_contents
        except ValueError:  # not bound yet
            continue
    names = list(_code_names(fn.__code__))
    for name in names:
        value = known.get(name)
        if isinstance(value, types.ModuleType):
            yield from (getattr(value, other) for other in names if hasattr(value, other))
        else:
            yield value


def _code_names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    yield from code.co_freevars
    for one in code.co_consts:
        if isinstance(one, types.CodeType):
            yield from _code_names(one)


@dataclass(frozen=True, slots=True)
class Found:
    """A hint, a piece of metadata or a default somewhere in a hint."""

    where: str
    """In words; empty at the top of the hint."""
    what: Any


@dataclass(frozen=True, slots=True)
class Search:
    """One search through all parts of a hint."""

    fields: bool = True
    """Whether the fields of structured types are searched too."""
    names: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The local names where the hint was found, for classes that were defined there."""
    seen: dict[tuple[int, bool], Any] = field(default_factory=dict[tuple[int, bool], Any])
    """What was inspected, kept alive so that no id is reused."""


def walk(hint: Any, search: Search, where: str = "") -> Iterator[Found]:
    """Yield every part of a hint, with its metadata."""
    seen = search.seen
    for alias, parameters, value in alias_layers(hint):
        yield from _unused(alias, parameters, value, search.names)
    peeled = peel(hint)
    for item in peeled.metadata:
        yield Found(where, item)
    core = peeled.core
    if (id(core), bool(where)) in seen:
        return
    if len(seen) > _MOST:
        raise ValueError("the type is too large to inspect")
    seen[id(core), bool(where)] = core
    yield Found(where, core)
    for part in _parts(core, search.names):
        yield from walk(part, search, where or _CONTAINER)
    owner: Any = get_origin(core) or core
    if search.fields and isinstance(owner, type):
        for base in vars(owner).get("__orig_bases__", ()):
            for part in get_args(base):
                yield from walk(part, search, where or _CONTAINER)
        for name, inner, extras in fields_of(owner, search.names):
            place = f"on field {name!r} of {owner.__name__}"
            for extra in extras:
                yield Found(place, extra)
            yield from walk(inner, search, place)
        for base, name, inner in _overridden_fields(cast("type[Any]", owner), search.names):
            yield from walk(inner, search, f"on field {name!r} of {base.__name__}")
    generic: dict[str, Any] = getattr(core, "__pydantic_generic_metadata__", None) or {}
    for part in generic.get("args", ()):
        yield from walk(part, search, where or _CONTAINER)


def _overridden_fields(owner: type[Any], names: Mapping[str, Any]) -> Iterator[tuple[type[Any], str, Any]]:
    """The fields of base classes that a structured type annotates anew: base, name and hint. A marker there would be lost."""
    if not (issubclass(owner, BaseModel) or dataclasses.is_dataclass(owner)):
        return
    seen: set[str] = set()
    for cls in owner.__mro__:
        written: dict[str, Any] = vars(cls).get("__annotations__", {})
        if cls is BaseModel or not isinstance(cast("Any", written), dict):
            continue
        for name in written.keys() & seen:
            yield cls, name, _read(written[name], cls.__module__, names)
        seen |= written.keys()


def _unused(alias: Any, parameters: Sequence[Any], value: Any, names: Mapping[str, Any]) -> Iterator[Found]:
    """The type arguments of an alias that its value does not use."""
    given = [one for part in parameters for one in walk(part, Search(names=names)) if _counts(one.what)]
    if given:
        used = {id(one.what) for one in walk(value, Search(names=names))}
        place = f"in a type argument that the alias {alias.__name__} does not use"
        yield from (Found(place, one.what) for one in given if id(one.what) not in used)


def _counts(what: Any) -> bool:
    return _concerns_clients(what) or holds(what, is_completion)


def _concerns_clients(what: Any) -> bool:
    """Whether a client could supply it, if it has no effect."""
    return _is_stray(what) or _is_exposed(what)


def _is_stray(what: Any) -> bool:
    made = isinstance(what, types.FunctionType) and makes(what, is_marker)
    return made or holds(what, is_marker) or is_written(what)


def _is_exposed(what: Any) -> bool:
    if get_origin(what) is not None:  # its parts are looked at one by one
        return is_reply(what)
    return holds(what, is_reply) or (isinstance(what, types.FunctionType) and makes(what, is_reply))


def strays(hint: Any, search: Search | None = None) -> Iterator[str]:
    """Return the places of markers that have no effect: in unions, containers, and fields of structured types."""
    told: set[int] = set()
    for found in walk(hint, search or Search()):
        if not found.where or id(found.what) in told:
            continue
        if _is_stray(found.what):
            told.add(id(found.what))
            yield found.where


def stray_completions(hint: Any, search: Search) -> Iterator[str]:
    """The places of `Complete` markers that have no effect."""
    for found in walk(hint, search):
        made = isinstance(found.what, types.FunctionType) and makes(found.what, is_completion)
        if found.where and (made or holds(found.what, is_completion)):
            yield found.where


def replies(hint: Any, search: Search) -> Iterator[str]:
    """Return the outcomes and questions in a hint that a client fills, each with its place."""
    for found in walk(hint, search):
        if _is_exposed(found.what):
            types_ = [spell(arm) for arm in arms(found.what) if _is_reply_class(arm)]
            yield f"{types_[0] if types_ else 'a question or an outcome'} {found.where}".strip()


def mentions(hint: Any, search: Search, *, completions: bool = True) -> bool:
    """Whether a hint has a marker, an outcome or a question anywhere. Without `completions`, a `Complete` does not count."""
    counts = _counts if completions else _concerns_clients
    return any(counts(found.what) for found in walk(hint, search))


def _parts(core: Any, names: Mapping[str, Any]) -> Sequence[Any]:
    """The hints a hint is made of."""
    if isinstance(core, TypeVar):
        limits = [*core.__constraints__, core.__bound__, getattr(core, "__default__", None)]
        return [_read(limit, core.__module__, names) for limit in limits]
    if isinstance(core, dataclasses.InitVar):
        return [_read(cast("Any", core).type, "builtins", names)]
    if isinstance(core, list):  # the parameter list of a Callable
        return cast("list[Any]", core)
    return get_args(core)


def _read(hint: Any, module: str, names: Mapping[str, Any]) -> Any:
    """Evaluate a hint that may be text outside an annotation. If that fails and it looks like a marker, it counts as one."""
    try:
        return evaluate(hint, vars(sys.modules.get(module, builtins)), dict(names))
    except Exception:  # noqa: BLE001 - a hint is any expression and may raise anything
        return _unread(hint)


def _unread(hint: Any) -> Any:
    """A hint that cannot be evaluated yet. If it looks like a marker it counts as one, so that no marker is lost."""
    text = getattr(hint, "__forward_arg__", hint)
    if not isinstance(text, str):
        return hint
    if MARKS.search(text):
        return Annotated[Any, Resolve]
    if "Complete(" in text:
        return Annotated[Any, Complete]
    try:
        return ForwardRef(text)
    except SyntaxError:
        return hint


def unread(hint: Any, search: Search) -> Iterator[str]:
    """Return the names in a hint that cannot be found, each with its place: whatever they stand for is not checked."""
    for found in walk(hint, search):
        if found.where and isinstance(found.what, ForwardRef):
            yield f"{found.what.__forward_arg__!r} {found.where}"


def fields_of(
    owner: type[Any], names: Mapping[str, Any] = MappingProxyType({})
) -> Iterator[tuple[str, Any, tuple[Any, ...]]]:
    """Name, hint and extras (metadata and defaults) of each field of a model, dataclass, TypedDict or named tuple."""
    if issubclass(owner, BaseModel) and owner.__pydantic_complete__:
        for name, info in owner.model_fields.items():
            yield name, info.annotation, (*info.metadata, info.default, info.default_factory)
        extra = _own_hints(owner, names).get("__pydantic_extra__")
        if extra is not None:
            yield "__pydantic_extra__", extra, ()
        return
    defaults: dict[str, tuple[Any, ...]] = {}
    if dataclasses.is_dataclass(owner):
        defaults = {one.name: (one.default, one.default_factory, one.metadata) for one in dataclasses.fields(owner)}
    elif hasattr(owner, "_field_defaults"):
        defaults = {name: (default,) for name, default in owner._field_defaults.items()}
    elif not (issubclass(owner, BaseModel) or typing_extensions.is_typeddict(owner)):
        return
    hints = _own_hints(owner, names)
    for number, others in enumerate(_extra_items(owner)):
        hints[f"extra_items {number}" if number else "extra_items"] = _read(others, owner.__module__, names)
    for name, hint in hints.items():
        yield name, hint, defaults.get(name, (vars(owner).get(name),))


def _extra_items(owner: type[Any]) -> Iterator[Any]:
    """The type of all other items of a TypedDict and of its bases, which are not base classes at run time."""
    others: Any = vars(owner).get("__extra_items__")
    if others is not None:
        yield others
    for base in vars(owner).get("__orig_bases__", ()):
        origin: Any = get_origin(base) or base
        if isinstance(origin, type):
            yield from _extra_items(origin)


def _own_hints(owner: type[Any], names: Mapping[str, Any]) -> dict[str, Any]:
    """The hints of a class one by one, so that one that cannot be evaluated yet does not hide the others."""
    hints: dict[str, Any] = {}
    for cls in reversed(owner.__mro__):
        module = vars(sys.modules.get(cls.__module__, builtins))
        local = {name: value for name, value in names.items() if name not in module} | dict(vars(cls))
        for name, hint in vars(cls).get("__annotations__", {}).items():
            try:
                hints[name] = evaluate(hint, module, local)
            except Exception:  # noqa: BLE001 - a hint is any expression and may raise anything
                hints[name] = _unread(hint)
    return hints
