"""JSON values of unknown type: which type each has, and the members of an object or the entries of an array, if it is one."""

from typing import Any, TypeGuard, cast


def as_object(value: Any) -> dict[str, Any]:
    """Return a JSON object, or an empty one for anything else."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def as_array(value: Any) -> list[Any]:
    """Return a JSON array, or an empty one for anything else."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def is_number(value: Any) -> TypeGuard[int | float]:
    """Return whether it is a number; `true` does not count as one."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_whole(value: Any) -> bool:
    """Return whether it is a whole number. JSON does not tell 1 from 1.0."""
    return is_number(value) and (isinstance(value, int) or value.is_integer())


def kind_of(value: Any) -> str:
    """Return the JSON type of a value, with its article."""
    if value is None:
        return "null"
    return next(name for kind, name in _KINDS if isinstance(value, kind))


_KINDS = (
    (bool, "a boolean"),
    ((int, float), "a number"),
    (str, "a string"),
    (list, "an array"),
    (dict, "an object"),
)
