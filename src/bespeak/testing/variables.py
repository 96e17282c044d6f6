"""`${...}` in a suite: values of the environment, values that earlier tests captured, and a free port."""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

_HOLE = re.compile(r"\$(\$\{|\{([^{}]*)\})")
_ENV = "env:"
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


class Unknown(Exception):
    """A name that stands for nothing. Says what to do."""


def names_in(value: Any) -> Iterator[str]:
    """What stands between `${` and `}` in the texts of a value."""
    if isinstance(value, str):
        yield from (found[2] for found in _HOLE.finditer(value) if found[2] is not None)
    elif isinstance(value, dict):
        for key, member in cast("dict[str, Any]", value).items():
            yield from names_in(key)
            yield from names_in(member)
    elif isinstance(value, list):
        for member in cast("list[Any]", value):
            yield from names_in(member)


def environment_names(value: Any) -> set[str]:
    """The variables of the environment that a value needs."""
    return {name.removeprefix(_ENV) for name in names_in(value) if name.startswith(_ENV)}


def environment(names: set[str]) -> dict[str, str]:
    """Their values. Raises `Unknown` for those that are not set."""
    missing = sorted(names - os.environ.keys())
    if missing:
        raise Unknown(f"the environment has no {', '.join(missing)}; set it before the run")
    return {name: os.environ[name] for name in names}


def lookup(secrets: Mapping[str, str], captured: Mapping[str, Any]) -> Callable[[str], Any]:
    """What a name stands for."""

    def find(name: str) -> Any:
        if name.startswith(_ENV):
            return secrets[name.removeprefix(_ENV)]
        if name not in captured:
            raise Unknown(f"${{{name}}} stands for nothing; a test before this one would have to capture it")
        return captured[name]

    return find


def fill(value: Any, find: Callable[[str], Any]) -> Any:
    """A value with its holes filled. A text that is one hole becomes what fills it, whatever that is; `$${` is `${`."""
    if isinstance(value, str):
        return _fill_text(value, find)
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value).items()
        return {str(_fill_text(key, find)): fill(member, find) for key, member in members}
    if isinstance(value, list):
        return [fill(member, find) for member in cast("list[Any]", value)]
    return value


def _fill_text(text: str, find: Callable[[str], Any]) -> Any:
    whole = _HOLE.fullmatch(text)
    if whole is not None and whole[2] is not None:
        return find(whole[2])
    return _HOLE.sub(lambda found: "${" if found[2] is None else str(find(found[2])), text)
