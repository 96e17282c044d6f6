"""Looking into a type hint: aliases, `Annotated`, unions, markers that strayed, and whether two hints can agree."""

import dataclasses
import types
import typing
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeGuard, TypeVar, Union, cast, get_args, get_origin

import typing_extensions
from mcp_types import CreateMessageResult, CreateMessageResultWithTools, ListRootsResult
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from bespeak.resolve.markers import Elicit, ListRoots, Question, Resolve, Sample
from bespeak.resolve.outcomes import AcceptedElicitation, CancelledElicitation, DeclinedElicitation

# Python 3.12 has a type of its own for `type X = ...`; before that there is only the backport's.
_ALIAS_TYPES = (typing_extensions.TypeAliasType, getattr(typing, "TypeAliasType", typing_extensions.TypeAliasType))
OUTCOMES: tuple[type[BaseModel], ...] = (AcceptedElicitation, DeclinedElicitation, CancelledElicitation)
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
        return hint.__value__
    origin = get_origin(hint)
    if isinstance(origin, _ALIAS_TYPES):
        return _fill(origin.__value__, dict(zip(origin.__type_params__, get_args(hint), strict=False)))
    return None


def _fill(hint: Any, filled: dict[Any, Any]) -> Any:
    """A hint with type variables replaced, in generic models and unions of them too."""
    if hint in filled:
        return filled[hint]
    if get_origin(hint) in (Union, types.UnionType):
        return Union[tuple(_fill(arm, filled) for arm in get_args(hint))]  # noqa: UP007 - built at run time
    generic: dict[str, Any] = getattr(hint, "__pydantic_generic_metadata__", {})
    parameters = generic.get("parameters") or getattr(hint, "__parameters__", ())
    return hint[tuple(filled.get(parameter, parameter) for parameter in parameters)] if parameters else hint


def arms(hint: Any) -> list[Any]:
    """The members of a union, looked through aliases and `Annotated`; any other hint alone."""
    core = peel(hint).core
    if get_origin(core) in (Union, types.UnionType):
        return [arm for member in get_args(core) for arm in arms(member)]
    return [core]


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


def strays(hint: Any, seen: frozenset[int] = frozenset(), *, inside: bool = False) -> Iterator[str]:
    """Where markers sit that cannot be honoured: in unions, containers, and fields of structured types."""
    peeled = peel(hint)
    if inside and any(is_marker(item) for item in peeled.metadata):
        yield "inside a union or container"
    core = peeled.core
    if id(core) in seen:
        return
    seen |= {id(core)}
    inner: Sequence[Any]
    if isinstance(core, TypeVar):
        inner = [*core.__constraints__, *([core.__bound__] if core.__bound__ is not None else [])]
    elif isinstance(core, list):  # the parameter list of a Callable
        inner = cast("list[Any]", core)
    else:
        inner = get_args(core)
    for part in inner:
        yield from strays(part, seen, inside=True)
    owner = cast("Any", get_origin(core) or core)
    if isinstance(owner, type):
        for name, field, extras in fields_of(cast("type[Any]", owner)):
            if any(is_marker(extra) for extra in extras):
                yield f"on field {name!r} of {owner.__name__}"
            yield from strays(field, seen, inside=True)


def fields_of(owner: type[Any]) -> Iterator[tuple[str, Any, tuple[Any, ...]]]:
    """Name, hint and metadata of the fields of a model, dataclass, TypedDict or named tuple."""
    if issubclass(owner, BaseModel):
        for name, info in owner.model_fields.items():
            defaults = (info.default, info.default_factory)
            yield name, info.annotation, (*info.metadata, *defaults)
    elif dataclasses.is_dataclass(owner) or typing_extensions.is_typeddict(owner) or hasattr(owner, "_field_defaults"):
        try:
            hints = typing_extensions.get_type_hints(owner, include_extras=True)
        except Exception:  # noqa: BLE001 - whatever a hint raises; building the argument model reports it
            hints = {}
        for name, field in hints.items():
            peeled = peel(field)
            default = getattr(owner, "_field_defaults", {}).get(name, getattr(owner, name, None))
            yield name, peeled.core, (*peeled.metadata, default)


def hidden_default(default: Any, metadata: Sequence[Any]) -> bool:
    """Whether a marker is used as a default value, alone or in a `Field`."""
    values = [
        default,
        *(d for info in (default, *metadata) if isinstance(info, FieldInfo) for d in _field_defaults(info)),
    ]
    return any(is_marker(value) for value in values)


def _field_defaults(info: FieldInfo) -> tuple[Any, Any]:
    return info.default, info.default_factory


def value_classes(hint: Any) -> set[type[Any]] | None:
    """The concrete classes a value of this hint can have; `None` when that is not certain."""
    found: set[type[Any]] = set()
    for arm in arms(hint):
        outcome = outcome_class(arm)
        question = question_class(arm)
        if question is Elicit or outcome is AcceptedElicitation:
            inner = get_args(arm) if question else arm.__pydantic_generic_metadata__["args"]
            classes = value_classes(inner[0]) if inner else None
        elif question is Sample:
            classes = {CreateMessageResult, CreateMessageResultWithTools}
        elif question is ListRoots:
            classes = {ListRootsResult}
        elif outcome is not None:
            classes = set[type[Any]]()
        elif is_class(arm) and not getattr(arm, "_is_protocol", False) and not typing_extensions.is_typeddict(arm):
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
