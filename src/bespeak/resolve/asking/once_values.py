"""Values computed once per call: serialised from round to round, and checked to survive that unchanged."""

import logging
from collections.abc import Mapping
from typing import Any, cast

from pydantic import BaseModel, Secret, SecretBytes, SecretStr, TypeAdapter
from pydantic_core import to_json

from bespeak.resolve.errors import ResolverFailed
from bespeak.resolve.graph.model import Node
from bespeak.resolve.reading.misplaced_markers import Search, walk
from bespeak.resolve.reading.type_hints import is_class

logger = logging.getLogger("bespeak.resolve")

LOST: Any = object()
"""A value that can no longer be read."""


def kept(adapter: TypeAdapter[Any], value: Any) -> Any:
    """Return a value as JSON. Raises `ValueError` if its declared type cannot serialise it."""
    return adapter.dump_python(value, mode="json", by_alias=False, round_trip=True)


def restored(adapter: TypeAdapter[Any], json: Any) -> Any:
    """Return a value from its JSON. Raises `ValueError` if it no longer fits the declared type."""
    return adapter.validate_json(to_json(json), by_alias=False, by_name=True)


def sealed_once(node: Node, adapter: TypeAdapter[Any], value: Any) -> tuple[Any, Any]:
    """Return the value of a `once=True` resolver as JSON, and as later rounds will see it. Raises `ResolverFailed`."""
    try:
        json = kept(adapter, value)
        again = restored(adapter, json)
    except ValueError as error:
        reason = "returned a value that cannot be serialised by its return type, which once=True needs"
        raise ResolverFailed(node.name, node.path, reason) from error
    if not survives(value, again):
        reason = "returned a value that changes when it is serialised and read back, which once=True does not allow"
        raise ResolverFailed(node.name, node.path, reason)
    return json, again


def restored_once(node: Node, adapter: TypeAdapter[Any], json: Any) -> Any:
    """Return the value of a `once=True` resolver from an earlier round; `LOST` if it no longer fits the declared type."""
    try:
        return restored(adapter, json)
    except ValueError:
        logger.warning(
            "the once=True value of %r no longer matches its return type; it will be computed again", node.name
        )
        return LOST


def lost_parts(hint: Any) -> str | None:
    """Return the part of a declared type that serialising would lose, if the type shows one; otherwise `None`."""
    for found in walk(hint, Search()):
        cls = found.what
        if not is_class(cls):
            continue
        if issubclass(cls, (SecretStr, SecretBytes, Secret)):
            return f"the {cls.__name__} {found.where}".strip()
        fields = cls.model_fields.items() if issubclass(cls, BaseModel) else ()
        for name, info in fields:
            if info.exclude is True:
                return f"the excluded field {name!r} of {cls.__name__}"
    return None


def survives(value: Any, again: Any) -> bool:
    """Return whether a restored value has everything that the original had.

    A tuple may have become a list, and a subclass of the declared type may have become that type, if nothing is missing.
    """
    if _equal(value, again):
        return True
    if isinstance(value, float) and isinstance(again, float):
        return value != value and again != again  # NaN, which does not equal itself
    if isinstance(value, Mapping) and isinstance(again, Mapping):
        ours, theirs = cast("Mapping[Any, Any]", value), cast("Mapping[Any, Any]", again)
        return ours.keys() == theirs.keys() and all(survives(ours[key], theirs[key]) for key in ours)
    if isinstance(value, (list, tuple)) and isinstance(again, (list, tuple)):
        return _each_survives(list(cast("list[Any]", value)), list(cast("list[Any]", again)))
    if isinstance(value, (set, frozenset)) and isinstance(again, (set, frozenset)):
        left = list(cast("set[Any]", again))
        return len(left) == len(cast("set[Any]", value)) and all(
            any(survives(one, other) for other in left) for one in cast("set[Any]", value)
        )
    ours_: Any = cast("Any", value)
    theirs_: Any = again
    if type(theirs_) not in type(ours_).__mro__ or _judges_itself(ours_, theirs_):
        return False
    return survives(_state(ours_), _state(theirs_))


def _each_survives(values: list[Any], again: list[Any]) -> bool:
    return len(values) == len(again) and all(map(survives, values, again))


def _equal(value: Any, again: Any) -> bool:
    try:
        return bool(value == again)
    except Exception:  # noqa: BLE001 - an author's `__eq__` may raise anything, as that of an array does
        return False


def _judges_itself(value: Any, again: Any) -> bool:
    """Whether the class has an `__eq__` of its own, whose result is then final."""
    compares = type(value).__eq__ not in (object.__eq__, BaseModel.__eq__)
    return type(value) is type(again) and compares and not hasattr(value, "__dataclass_fields__")


def _state(value: Any) -> dict[str, Any]:
    extra: dict[str, Any] = getattr(value, "__pydantic_extra__", None) or {}
    slots = {name: getattr(value, name) for cls in type(value).__mro__ for name in _slots(cls) if hasattr(value, name)}
    return {**getattr(value, "__dict__", {}), **slots, **extra}


def _slots(cls: type[Any]) -> tuple[str, ...]:
    slots: Any = vars(cls).get("__slots__", ())
    own = (slots,) if isinstance(slots, str) else tuple(slots)
    return tuple(name for name in own if not name.startswith("__"))
