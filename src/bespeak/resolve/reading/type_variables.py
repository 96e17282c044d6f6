"""What the type variables of generic classes stand for: in a subclass, an object or an alias of the class."""

import inspect
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar, TypeVarTuple, cast, get_args, get_origin

from pydantic import BaseModel

from bespeak.resolve.reading.misplaced_markers import Search, mentions, walk
from bespeak.resolve.reading.name_lookup import names_in, scope_of, type_parameters
from bespeak.resolve.reading.type_hints import fill, pair_up

Meanings = Mapping[Any, Any]


@dataclass(frozen=True, slots=True)
class Variables:
    """What type variables stand for, class by class. One that is not in a mapping stands for itself."""

    classes: Mapping[type[Any], Meanings] = field(default_factory=dict[type[Any], Meanings])
    unknown: frozenset[Any] = frozenset()
    """New type variables, each in place of something that cannot be found."""

    def of(self, written: type[Any] | None) -> Meanings:
        """Return what the type variables stand for in the body of one of the classes."""
        return {} if written is None else self.classes.get(written, {})

    def unread(self, hint: Any, written: type[Any] | None, names: Mapping[str, Any]) -> str | None:
        """Return the name of a type variable in a hint in whose place a marker could stand that cannot be read."""
        left = {one for one, meaning in self.of(written).items() if self._matters(meaning)}
        if not (left or self.unknown):
            return None
        return next((one.__name__ for one in _variables_in(hint, names) if one in left | self.unknown), None)

    def _matters(self, meaning: Any) -> bool:
        return any(one in self.unknown for one in _parts(meaning) if _is_variable(one)) or _has_marker(meaning)


def _variables_in(hint: Any, names: Mapping[str, Any]) -> Iterator[Any]:
    """The type variables in a hint, also in `*Ts` and in the type arguments of an alias that does not use them."""
    for one in walk(hint, Search(names=names)):
        yield from filter(_is_variable, (one.what, *get_args(one.what)))
    yield from filter(_is_variable, getattr(hint, "__parameters__", ()))


def _parts(meaning: Any) -> Sequence[Any]:
    """What a type variable stands for: several types for `*Ts`."""
    return cast("tuple[Any, ...]", meaning) if isinstance(meaning, tuple) else (meaning,)


def _has_marker(meaning: Any) -> bool:
    try:
        return any(mentions(one, Search()) for one in _parts(meaning))
    except Exception:  # noqa: BLE001 - what cannot be read is reported where it is used
        return True


def _stand_in(name: str) -> Any:
    made: Any = TypeVar
    return made(name)


_UNREADABLE = _stand_in("T")
"""In place of a type argument that cannot be read."""
NO_VARIABLES = Variables()


def variables_of(holder: Any, frame: types.FrameType | None) -> Variables:
    """Return what the type variables stand for in what is called: a class, an alias of one, a bound method or an object."""
    made: Any = holder.__self__ if inspect.ismethod(holder) else holder
    if isinstance(get_origin(made), type):
        return _variables(get_origin(made), get_args(made), frame)
    if isinstance(made, type):
        # Of `Crud[int].make`, a class method, nothing is left but `Crud`.
        return _variables(cast("type[Any]", made), None if inspect.ismethod(holder) else (), frame)
    if inspect.isroutine(made):
        return NO_VARIABLES
    cls = cast("type[Any]", type(made))
    alias: Any = getattr(made, "__dict__", {}).get("__orig_class__")
    if get_origin(alias) is cls:
        return _variables(cls, get_args(alias), frame)
    # The arguments of a generic model are in its class. Other objects only have them once they are made, and not with slots.
    return _variables(cls, () if issubclass(cls, BaseModel) else None, frame)


def variables_of_static(owner: type[Any] | None, frame: types.FrameType | None) -> Variables:
    """Return what the type variables stand for in a static method, which does not know through which class it was reached."""
    return NO_VARIABLES if owner is None else _variables(owner, None, frame)


def foreign_variable(hint: Any, function: Any) -> str | None:
    """Return the name of a type variable in a hint of a static method, which may be that of a class that cannot be found."""
    own = set(type_parameters(function))
    return next(
        (one.what.__name__ for one in walk(hint, Search()) if _is_variable(one.what) and one.what not in own), None
    )


def _variables(cls: type[Any], given: Sequence[Any] | None, frame: types.FrameType | None) -> Variables:
    """Those of a class that was given these type arguments, or unknown ones."""
    parameters = [one for one in _parameters(cls) if not isinstance(one, ParamSpec)]
    unknown: dict[Any, Any] = {}
    if given is None:
        unknown = {one: _stand_in(one.__name__) for one in parameters}
        given = [unknown.get(one, one) for one in _parameters(cls)]
    found: dict[type[Any], Meanings] = {}
    _collect(cls, given, found, frame)
    return Variables(found, frozenset([*unknown.values(), _UNREADABLE]))


def _collect(
    cls: type[Any],
    given: Sequence[Any],
    found: dict[type[Any], Meanings],
    frame: types.FrameType | None,
    child: type[Any] | None = None,
) -> None:
    """Note what the type variables of a class stand for, and of its bases. `child` is the class that has it as a base."""
    meanings = dict(pair_up(_parameters(cls), given)) if given else {}
    if _weight(meanings) > _weight(found.get(cls, {})) or cls not in found:
        found[cls] = meanings
    filled = [*meanings.items()]
    model = _generic_model(cls)
    if model.get("origin"):  # a class that pydantic made for type arguments
        arguments = [_filled(_read(one, child or cls, frame), filled) for one in model["args"]]
        _collect(model["origin"], arguments, found, frame)
        return
    for base in vars(cls).get("__orig_bases__", cls.__bases__):
        origin: Any = get_origin(base) or base
        if isinstance(origin, type):
            arguments = [_read(one, cls, frame) for one in get_args(base)]
            if _generic_model(origin).get("origin"):
                arguments = [*_parameters(origin)]
            _collect(origin, [_filled(one, filled) for one in arguments], found, frame, cls)


def _filled(argument: Any, meanings: Sequence[Any]) -> Any:
    try:
        return fill(argument, [*meanings])
    except Exception:  # noqa: BLE001 - a type argument is any object
        return _UNREADABLE


def _generic_model(cls: type[Any]) -> dict[str, Any]:
    return vars(cls).get("__pydantic_generic_metadata__") or {}


def _weight(meanings: Meanings) -> int:
    """How much would be lost with it, if a class is reached on two ways with different type arguments."""
    return len(meanings) + sum(100 for one in meanings.values() if _has_marker(one))


def _read(argument: Any, cls: type[Any], frame: types.FrameType | None) -> Any:
    """A type argument of a base class. Text that cannot be read stays, and is reported where it is used."""
    if not names_in(argument):
        return argument
    scope = scope_of(cls, frame)
    try:
        return argument if scope.lost(argument) else scope.evaluate(argument)
    except Exception:  # noqa: BLE001 - a hint is any expression and may raise anything
        return argument


def _parameters(cls: type[Any]) -> Sequence[Any]:
    """The type variables of a generic class."""
    found: Any = _generic_model(cls).get("parameters") or getattr(cls, "__parameters__", ())
    return cast("tuple[Any, ...]", found) if isinstance(found, tuple) else ()


def _is_variable(what: Any) -> bool:
    return isinstance(what, (TypeVar, TypeVarTuple))
