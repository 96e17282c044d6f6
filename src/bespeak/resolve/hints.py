"""Looking into a type hint: aliases, `Annotated`, unions, markers that strayed, and whether two hints can agree."""

import builtins
import dataclasses
import functools
import inspect
import sys
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeGuard, TypeVar, Union, cast, get_args, get_origin

import typing_extensions
from mcp_types import CreateMessageResult, CreateMessageResultWithTools, ListRootsResult
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from bespeak.resolve.markers import Elicit, ListRoots, Question, Resolve, Sample
from bespeak.resolve.outcomes import AcceptedElicitation, CancelledElicitation, DeclinedElicitation, NotAsked

# Python 3.12 has a type of its own for `type X = ...`; before that there is only the backport's.
_ALIAS_TYPES = (typing_extensions.TypeAliasType, getattr(typing, "TypeAliasType", typing_extensions.TypeAliasType))
OUTCOMES: tuple[type[BaseModel], ...] = (AcceptedElicitation, DeclinedElicitation, CancelledElicitation)
_MOST = 20_000
"""How many hints one search looks into; a recursive generic alias has no end."""
_PROMOTED: dict[type, tuple[type, ...]] = {float: (int,), complex: (int, float)}


@dataclass(frozen=True, slots=True)
class Peeled:
    """A hint without its outer aliases and `Annotated` layers."""

    core: Any
    metadata: tuple[Any, ...]

    @property
    def markers(self) -> list[Resolve]:
        return [item for item in self.metadata if isinstance(item, Resolve)]


def peel(hint: Any) -> Peeled:
    """Look through type aliases, new types and `Annotated` at the top of a hint."""
    metadata: tuple[Any, ...] = ()
    while True:
        if get_origin(hint) is Annotated:
            metadata = (*hint.__metadata__, *metadata)
            hint = hint.__origin__
        elif (value := alias_value(hint)) is not None:
            hint = value
        elif isinstance(hint, typing.NewType):
            hint = hint.__supertype__
        else:
            return Peeled(hint, metadata)


def alias_value(hint: Any) -> Any | None:
    """What a `type X = ...` alias stands for, its parameters filled in; `None` for anything else."""
    if isinstance(hint, _ALIAS_TYPES):
        return _spelled_out(hint)
    origin = get_origin(hint)
    if isinstance(origin, _ALIAS_TYPES):
        value = _spelled_out(origin)
        return _fill(value, list(zip(origin.__type_params__, get_args(hint), strict=False)))
    return None


@functools.lru_cache(maxsize=1024)
def _spelled_out(alias: Any) -> Any:
    """What an alias stands for. It may be text, which means what it means in the module of the alias."""
    return evaluate(alias.__value__, vars(sys.modules[alias.__module__]), {})


def evaluate(hint: Any, globals_: dict[str, Any], locals_: dict[str, Any]) -> Any:
    """A hint with all text in it evaluated. Raises whatever that raises."""
    holder = types.SimpleNamespace(__annotations__={"hint": hint})
    return typing.get_type_hints(holder, globals_, locals_, include_extras=True)["hint"]


def _fill(hint: Any, filled: list[tuple[Any, Any]]) -> Any:
    """A hint with type variables replaced, in generic models and unions of them too."""
    for variable, value in filled:
        if hint is variable:
            return value
    if get_origin(hint) in (Union, types.UnionType):
        return Union[tuple(_fill(arm, filled) for arm in get_args(hint))]  # noqa: UP007 - built at run time
    generic: dict[str, Any] = getattr(hint, "__pydantic_generic_metadata__", {})
    parameters = generic.get("parameters") or getattr(hint, "__parameters__", ())
    return hint[tuple(_fill(parameter, filled) for parameter in parameters)] if parameters else hint


def arms(hint: Any) -> list[Any]:
    """The members of a union, looked through aliases and `Annotated`; any other hint alone."""
    core = peel(hint).core
    if get_origin(core) in (Union, types.UnionType):
        return [arm for member in get_args(core) for arm in arms(member)]
    return [core]


def owners(hint: Any, seen: set[str] | None = None) -> Iterator[Any]:
    """The classes and generics a hint is made of, unions and containers taken apart; a recursive one only once."""
    seen = set() if seen is None else seen
    for arm in arms(hint):
        if repr(arm) in seen:
            continue
        seen.add(repr(arm))
        yield get_origin(arm) or arm
        for part in get_args(arm):
            yield from owners(part, seen)


def is_class(hint: Any) -> TypeGuard[type[Any]]:
    """A real class, and not a parametrised generic posing as one."""
    return isinstance(hint, type) and get_origin(hint) is None


def outcome_class(hint: Any) -> type[BaseModel] | None:
    """The outcome type a hint names, its parameter aside: `AcceptedElicitation[Confirm]` is `AcceptedElicitation`."""
    if is_class(hint):
        return next((outcome for outcome in OUTCOMES if issubclass(hint, outcome)), None)
    return None


def question_class(hint: Any) -> type[Question] | None:
    """The question a hint names: `Elicit[Confirm]` is `Elicit`."""
    origin = get_origin(hint) or hint
    return origin if is_class(origin) and issubclass(origin, Question) else None


def is_unknown(hint: Any) -> bool:
    """Says nothing about the value, so it may be a question too."""
    return hint is Any or hint is object or isinstance(hint, TypeVar)


def is_marker(value: Any) -> bool:
    """A `Resolve(fn)`, or the class itself where the call was forgotten."""
    return value is Resolve or isinstance(value, Resolve)


def hides_marker(value: Any) -> bool:
    """Whether a default or a piece of metadata is a marker, or holds one: in a `Field`, or in a list by mistake."""
    if isinstance(value, FieldInfo):
        return is_marker(value.default) or is_marker(value.default_factory)
    if isinstance(value, Mapping):
        value = list(cast("Mapping[Any, Any]", value).values())
    if isinstance(value, (list, tuple, set, frozenset)):
        return any(is_marker(item) for item in cast("list[Any]", value))
    if isinstance(value, functools.partial):
        return cast("functools.partial[Any]", value).func is Resolve
    return is_marker(value)


Seen = dict[tuple[int, bool], Any]
"""What a search has looked into, kept so that no id is used twice."""


def strays(hint: Any, seen: Seen | None = None, *, fields: bool = True, inside: bool = False) -> Iterator[str]:
    """Where markers sit that cannot be honoured: in unions, containers, and fields of structured types."""
    seen = {} if seen is None else seen
    peeled = peel(hint)
    if inside and any(hides_marker(item) for item in peeled.metadata):
        yield "inside a union or container"
    core = peeled.core
    if (id(core), inside) in seen or len(seen) > _MOST:
        return
    seen[id(core), inside] = core
    for part in _parts(core):
        yield from strays(part, seen, fields=fields, inside=True)
    owner: Any = get_origin(core) or core
    if fields and isinstance(owner, type):
        for base in vars(owner).get("__orig_bases__", ()):
            for part in get_args(base):
                yield from strays(part, seen, inside=True)
        for name, field, extras in fields_of(owner):
            if any(hides_marker(extra) for extra in extras):
                yield f"on field {name!r} of {owner.__name__}"
            yield from strays(field, seen, inside=True)


def _parts(core: Any) -> Sequence[Any]:
    """The hints a hint is made of."""
    if isinstance(core, TypeVar):
        return [*core.__constraints__, core.__bound__, getattr(core, "__default__", None)]
    if isinstance(core, dataclasses.InitVar):
        return [cast("Any", core).type]
    if isinstance(core, list):  # the parameter list of a Callable
        return cast("list[Any]", core)
    return get_args(core)


def fields_of(owner: type[Any]) -> Iterator[tuple[str, Any, tuple[Any, ...]]]:
    """Name, hint, and metadata with defaults, of the fields of a model, dataclass, TypedDict or named tuple."""
    if issubclass(owner, BaseModel) and owner.__pydantic_complete__:
        for name, info in owner.model_fields.items():
            yield name, info.annotation, (*info.metadata, info.default, info.default_factory)
        extra = _own_hints(owner).get("__pydantic_extra__")
        if extra is not None:
            yield "__pydantic_extra__", extra, ()
        return
    defaults: dict[str, tuple[Any, ...]] = {}
    if dataclasses.is_dataclass(owner):
        defaults = {one.name: (one.default, one.default_factory) for one in dataclasses.fields(owner)}
    elif hasattr(owner, "_field_defaults"):
        defaults = {name: (default,) for name, default in owner._field_defaults.items()}
    elif not (issubclass(owner, BaseModel) or typing_extensions.is_typeddict(owner)):
        return
    for name, hint in _own_hints(owner).items():
        peeled = peel(hint)
        yield name, peeled.core, (*peeled.metadata, *defaults.get(name, (vars(owner).get(name),)))


def _own_hints(owner: type[Any]) -> dict[str, Any]:
    """The hints of a class one by one, so that one that cannot be evaluated yet does not hide the others."""
    hints: dict[str, Any] = {}
    for cls in reversed(owner.__mro__):
        module = vars(sys.modules.get(cls.__module__, builtins))
        for name, hint in vars(cls).get("__annotations__", {}).items():
            try:
                hints[name] = evaluate(hint, module, dict(vars(cls)))
            except Exception:  # noqa: BLE001 - a hint is any expression and may raise anything
                # Not to be read now, but perhaps later, by whoever builds the value: better refused than lost.
                hints[name] = Annotated[Any, Resolve] if isinstance(hint, str) and "Resolve" in hint else hint
    return hints


def is_concrete(hint: Any) -> TypeGuard[type[Any]]:
    """A class whose instances say what they are: no protocol, no abstract class, no description of a dict."""
    if not is_class(hint) or getattr(hint, "_is_protocol", False):
        return False
    if hint.__module__ in ("typing", "pydantic.types", "pydantic.networks"):
        return False  # names for values of other classes: FutureDate, TextIO
    return not (inspect.isabstract(hint) or typing_extensions.is_typeddict(hint))


def value_classes(hint: Any) -> set[type[Any]] | None:
    """The concrete classes a value of this hint can have; `None` when that is not certain."""
    found: set[type[Any]] = set()
    for arm in arms(hint):
        if is_unknown(arm):
            return None
        outcome = outcome_class(arm)
        question = question_class(arm)
        if question is Elicit or outcome is AcceptedElicitation:
            inner = get_args(arm) if question else arm.__pydantic_generic_metadata__["args"]
            classes = value_classes(inner[0]) if inner else None
        elif question is Sample:
            classes = {CreateMessageResult, CreateMessageResultWithTools}
        elif question is ListRoots:
            classes = {ListRootsResult}
        elif outcome is not None or arm is NotAsked:
            classes = set[type[Any]]()
        elif is_concrete(arm):
            classes = {arm}
        else:
            classes = None
        if classes is None:
            return None
        found |= classes
    return found or None


def can_agree(given: Any, wanted: Any) -> bool:
    """Whether a value declared one way may be what is declared the other way; false only when that is certain."""
    ours, theirs = value_classes(given), value_classes(wanted)
    if ours is None or theirs is None:
        return True
    return any(_related(a, b) for a in ours for b in theirs)


def _related(given: type[Any], wanted: type[Any]) -> bool:
    return (
        issubclass(given, wanted)
        or issubclass(wanted, given)
        or any(issubclass(given, narrower) for narrower in _PROMOTED.get(wanted, ()))
    )


def spell(hint: Any) -> str:
    """A hint as an author would write it, for messages."""
    if is_class(hint):
        return hint.__name__
    if get_origin(hint) is Annotated:
        return spell(hint.__origin__)
    return str(hint).replace("typing.", "")
