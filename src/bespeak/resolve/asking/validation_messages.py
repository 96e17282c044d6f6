"""Validation errors as messages for a person, without pydantic's internals and without the values sent."""

from typing import Any, cast

from pydantic import ValidationError


def refusals(error: ValidationError, given: Any) -> list[str]:
    """Return one line for each error, without repetitions."""
    return list(dict.fromkeys(_words(detail, given) for detail in error.errors(include_url=False)))


def _words(detail: Any, given: Any) -> str:
    message: str = detail["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
    where = ".".join(_place(detail["loc"], given, missing=detail["type"] == "missing"))
    return f"{where}: {message}" if where else message


def _place(loc: tuple[Any, ...], given: Any, *, missing: bool) -> list[str]:
    """The part of an error's location that can be found in the input; the rest names pydantic's own branches."""
    place: list[str] = []
    here = given
    for number, part in enumerate(loc, 1):
        if isinstance(here, dict) and part in here:
            here = cast("dict[Any, Any]", here)[part]
        elif isinstance(here, list) and isinstance(part, int) and part < len(cast("list[Any]", here)):
            here = cast("list[Any]", here)[part]
        elif not (missing and number == len(loc)):
            continue
        place.append(str(part))
    return place
