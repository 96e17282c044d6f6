"""Inspect a type hint: aliases, `Annotated`, unions, and whether two hints can agree."""

import functools
import inspect
import re
import sys
import types
import typing
from collections.abc import Awaitable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeGuard, TypeVar, Union, cast, get_args, get_origin

import typing_extensions
from pydantic import BaseModel
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError, PydanticUserError
from pydantic_core import SchemaError

from bespeak.protocol import wire_types
from bespeak.resolve.markers import Elicit, ElicitUrl, ListRoots, Question, Resolve, Sample
from bespeak.resolve.outcomes import AcceptedElicitation, CancelledElicitation, DeclinedElicitation, NotAsked

# Python 3.12 has a type of its own for `type X = ...`; before that there is only the backport's.
_ALIAS_TYPES = (typing_extensions.TypeAliasType, getattr(typing, "TypeAliasType", typing_extensions.TypeAliasType))
OUTCOMES: tuple[type[BaseModel], ...] = (AcceptedElicitation, DeclinedElicitation, CancelledElicitation)
_LAYERS = 1000
"""How many aliases one hint may be wrapped in. An alias of itself has no end."""
NO_SCHEMA = (
    PydanticSchemaGenerationError,
    PydanticInvalidForJsonSchema,
    PydanticUserError,
    SchemaError,  # for an invalid pattern or bound
    ValueError,  # for an alias with a TypeVarTuple
    NameError,  # for text in an alias
    AttributeError,  # for an object in place of a type
    TypeError,  # for an invalid discriminator
    AssertionError,  # for a literal without values
    RecursionError,  # for hundreds of nested models
)
"""What pydantic raises for a type that it cannot handle."""
CONTAINERS: frozenset[type] = frozenset({list, dict, tuple, set, frozenset})
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
    for _ in range(_LAYERS):
        if get_origin(hint) is Annotated:
            metadata = (*hint.__metadata__, *metadata)
            hint = hint.__origin__
        elif (value := alias_value(hint)) is not None:
            hint = value
        elif isinstance(hint, typing.NewType):
            hint = _supertype(hint)
        else:
            return Peeled(hint, metadata)
    raise ValueError("the alias refers to itself")


def alias_value(hint: Any) -> Any | None:
    """Return the value of a `type X = ...` alias, with its parameters filled in; `None` for anything else."""
    if isinstance(hint, _ALIAS_TYPES):
        return _spelled_out(hint)
    origin = get_origin(hint)
    if isinstance(origin, _ALIAS_TYPES):
        return fill(_spelled_out(origin), pair_up(origin.__type_params__, get_args(hint)))
    return None


def alias_layers(hint: Any) -> Iterator[tuple[Any, tuple[Any, ...], Any]]:
    """Return the generic aliases at the top of a hint, each with its type arguments and the resulting hint."""
    for _ in range(_LAYERS):
        if get_origin(hint) is Annotated:
            hint = hint.__origin__
            continue
        if isinstance(hint, typing.NewType):
            hint = _supertype(hint)
            continue
        value = alias_value(hint)
        if value is None:
            return
        if get_args(hint):
            yield get_origin(hint), get_args(hint), value
        hint = value


def pair_up(parameters: Sequence[Any], given: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Return each type parameter with its argument; a TypeVarTuple gets all that the others leave, as a tuple."""
    many = next((place for place, one in enumerate(parameters) if isinstance(one, typing.TypeVarTuple)), None)
    if many is None:
        return list(zip(parameters, given, strict=False))
    after = len(parameters) - many - 1
    end = len(given) - after
    return [
        *zip(parameters[:many], given[:many], strict=False),
        (parameters[many], tuple(given[many:end])),
        *zip(parameters[many + 1 :], given[end:], strict=False),
    ]


@functools.lru_cache(maxsize=1024)
def _spelled_out(alias: Any) -> Any:
    """The value of an alias. If it is text, it is evaluated in the module of the alias."""
    return evaluate(alias.__value__, vars(sys.modules[alias.__module__]), {})


def _supertype(new: Any) -> Any:
    """The supertype of a new type. If it is text, it is evaluated in the module of the new type."""
    return evaluate(new.__supertype__, vars(sys.modules[new.__module__]), {})


def evaluate(hint: Any, globals_: dict[str, Any], locals_: dict[str, Any]) -> Any:
    """Return a hint with all text in it evaluated. Raises whatever that raises."""
    holder = types.SimpleNamespace(__annotations__={"hint": hint})
    return typing.get_type_hints(holder, globals_, locals_, include_extras=True)["hint"]


def fill(hint: Any, filled: list[tuple[Any, Any]]) -> Any:
    """Return a hint with type variables replaced, in generic models and unions of them too."""
    for variable, value in filled:
        if hint is variable:
            return value
    if get_origin(hint) in (Union, types.UnionType):
        return Union[tuple(fill(arm, filled) for arm in get_args(hint))]  # noqa: UP007 - built at run time
    generic: dict[str, Any] = getattr(hint, "__pydantic_generic_metadata__", {})
    parameters = generic.get("parameters") or getattr(hint, "__parameters__", ())
    if not parameters:
        return hint
    values: list[Any] = []
    for parameter in parameters:
        value = fill(parameter, filled)
        if isinstance(parameter, typing.TypeVarTuple) and isinstance(value, tuple):
            values.extend(cast("tuple[Any, ...]", value))
        else:
            values.append(value)
    return hint[tuple(values)]


def arms(hint: Any) -> list[Any]:
    """Return the members of a union, without aliases and `Annotated`; for any other hint, the hint alone."""
    core = peel(hint).core
    if get_origin(core) in (Union, types.UnionType):
        return [arm for member in get_args(core) for arm in arms(member)]
    return [core]


def owners(hint: Any, seen: set[str] | None = None) -> Iterator[Any]:
    """Return the classes and generics in a hint, also inside unions and containers; a recursive one only once."""
    seen = set() if seen is None else seen
    for arm in arms(hint):
        if repr(arm) in seen:
            continue
        seen.add(repr(arm))
        yield get_origin(arm) or arm
        for part in get_args(arm):
            yield from owners(part, seen)


def is_class(hint: Any) -> TypeGuard[type[Any]]:
    """Return whether a hint is a real class, and not a parametrised generic that looks like one."""
    return isinstance(hint, type) and get_origin(hint) is None


def outcome_class(hint: Any) -> type[BaseModel] | None:
    """Return the outcome type a hint names, without its parameter: `AcceptedElicitation[Confirm]` is
    `AcceptedElicitation`.
    """
    if is_class(hint):
        return next((outcome for outcome in OUTCOMES if issubclass(hint, outcome)), None)
    return None


def question_class(hint: Any) -> type[Question] | None:
    """Return the question a hint names: `Elicit[Confirm]` is `Elicit`."""
    origin = get_origin(hint) or hint
    return origin if is_class(origin) and issubclass(origin, Question) else None


def is_unknown(hint: Any) -> bool:
    """Return whether a hint says nothing about the value, which may then be a question too."""
    return hint is Any or hint is object or isinstance(hint, TypeVar)


def is_concrete(hint: Any) -> TypeGuard[type[Any]]:
    """Return whether a hint is a class with certain instances: not a protocol, an abstract class or a TypedDict."""
    if not is_class(hint) or getattr(hint, "_is_protocol", False):
        return False
    if hint.__module__ in ("typing", "pydantic.types", "pydantic.networks"):
        return False  # names for values of other classes: FutureDate, TextIO
    return not (inspect.isabstract(hint) or typing_extensions.is_typeddict(hint))


def value_classes(hint: Any) -> set[type[Any]] | None:
    """Return the concrete classes a value of this hint can have; `None` when that is not certain.

    `list[int]` counts as `list`, and so does any other generic alias. What is awaited is not the value, and a `type[...]`
    may be called to make it.
    """
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
            classes = {wire_types.CreateMessageResult, wire_types.CreateMessageResultWithTools}
        elif question is ListRoots:
            classes = {wire_types.ListRootsResult}
        elif outcome is not None or arm is NotAsked or question is ElicitUrl:
            classes = set[type[Any]]()
        elif is_concrete(arm):
            classes = {arm}
        elif is_concrete(origin := get_origin(arm)) and origin is not type and not issubclass(origin, Awaitable):
            classes = {origin}
        else:
            classes = None
        if classes is None:
            return None
        found |= classes
    return found or None


def can_agree(given: Any, wanted: Any) -> bool:
    """Return whether a value of one hint may be valid for the other. False only if that is certain to be impossible."""
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


_MODULES = re.compile(r"\b(?:typing|bespeak\.resolve\.markers|bespeak\.resolve\.outcomes)\.")
"""The modules whose names authors import, and do not write in a hint."""


def spell(hint: Any) -> str:
    """Return a hint as an author would write it, for messages."""
    if is_class(hint):
        return "None" if hint is types.NoneType else hint.__name__
    if get_origin(hint) is Annotated:
        return spell(hint.__origin__)
    return _MODULES.sub("", str(hint))
