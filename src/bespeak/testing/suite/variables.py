"""`${...}` in a suite: values of the environment, values that earlier tests captured, and a free port."""

import json
import os
import re
import socket
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, cast

from bespeak.conversation.answers import Value

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


def environment(names: AbstractSet[str]) -> dict[str, str]:
    """Their values. Raises `Unknown` for those that are not set."""
    missing = sorted(names - os.environ.keys())
    if missing:
        raise Unknown(f"the environment has no {', '.join(missing)}; set it before the run")
    return {name: os.environ[name] for name in names}


def lookup(secrets: Mapping[str, str], captured: Mapping[str, Any]) -> Callable[[str], Any]:
    """What a name stands for."""

    def find(name: str) -> Any:
        if name.startswith(_ENV):
            if name.removeprefix(_ENV) not in secrets:
                raise Unknown(f"${{{name}}} stands for nothing here")
            return secrets[name.removeprefix(_ENV)]
        if name not in captured:
            raise Unknown(f"${{{name}}} stands for nothing; a test before this one would have to capture it")
        return captured[name]

    return find


def text_filler(find: Callable[[str], Any], *, port: bool) -> Callable[[str], str]:
    """What fills the texts of a server; with `port`, `${port}` in them is a free port, the same one in all of them."""
    known = _with_port(find) if port else find
    return lambda text: str(fill(text, known))


def _with_port(find: Callable[[str], Any]) -> Callable[[str], Any]:
    port: list[int] = []

    def found(name: str) -> Any:
        if name != "port":
            return find(name)
        if not port:
            with socket.socket() as taken:
                taken.bind(("127.0.0.1", 0))
                port.append(taken.getsockname()[1])
        return port[0]

    return found


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
    return _HOLE.sub(lambda found: "${" if found[2] is None else _in_text(find(found[2])), text)


def _in_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def fill_answers(written: Any, find: Callable[[str], Any]) -> Any:
    """Answers with their holes filled. What fills a whole answer is the value to answer with, and no word of the suite's."""
    if isinstance(written, dict):
        members = cast("dict[str, Any]", written).items()
        return {str(_fill_text(key, find)): _fill_answer(one, find) for key, one in members}
    if isinstance(written, list):
        rules = (cast("dict[str, Any]", rule) for rule in cast("list[Any]", written))
        return [
            {
                name: _fill_answer(one, find) if name in _ANSWERS else fill_expected(one, find)
                for name, one in rule.items()
            }
            for rule in rules
        ]
    return written


_ANSWERS = ("value", "answer", "otherwise")


def _fill_answer(written: Any, find: Callable[[str], Any]) -> Any:
    whole = _HOLE.fullmatch(written) if isinstance(written, str) else None
    return Value(find(whole[2])) if whole is not None and whole[2] is not None else fill(written, find)


def fill_expected(written: Any, find: Callable[[str], Any]) -> Any:
    """Return an expectation with its variables filled in. The values are compared as they are; matchers in them have no effect."""

    if isinstance(written, dict):
        members = cast("dict[str, Any]", written).items()
        return {
            str(_fill_text(key, find)): fill(one, find) if key == "equals" else fill_expected(one, find)
            for key, one in members
        }
    if isinstance(written, list):
        return [fill_expected(one, find) for one in cast("list[Any]", written)]
    value = fill(written, find)
    return {"equals": cast("Any", value)} if isinstance(value, dict | list) else value


def has_holes(value: Any) -> bool:
    """Whether there is anything in a value to be filled, or only to be written plainly."""
    if isinstance(value, dict):
        return any(has_holes(key) or has_holes(one) for key, one in cast("dict[str, Any]", value).items())
    if isinstance(value, list):
        return any(map(has_holes, cast("list[Any]", value)))
    return isinstance(value, str) and "${" in value
