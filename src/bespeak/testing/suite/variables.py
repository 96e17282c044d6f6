"""Variables, `${...}` in a suite: values of the environment, values that earlier tests captured, and a free port."""

import json
import os
import re
import socket
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, cast

from pydantic import ValidationError

from bespeak.conversation.answers import Value
from bespeak.conversation.fixtures import InputResponseFixture
from bespeak.conversation.matchers import parse_matcher
from bespeak.testing.suite.suite_file import Test

_HOLE = re.compile(r"\$(\$\{|\{([^{}]*)\})")
_ENV = "env:"
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


class Unknown(Exception):
    """A name has no value. Says what to do."""


class DoesNotFit(Exception):
    """The value of a name does not fit where the name is used."""


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
        one = len(missing) == 1
        said = (
            f"variable {missing[0]} is not set; set it"
            if one
            else f"variables {', '.join(missing)} are not set; set them"
        )
        raise Unknown(f"the environment {said} before the run")
    return {name: os.environ[name] for name in names}


def lookup(secrets: Mapping[str, str], captured: Mapping[str, Any]) -> Callable[[str], Any]:
    """What a name stands for."""

    def find(name: str) -> Any:
        if name.startswith(_ENV):
            if name.removeprefix(_ENV) not in secrets:
                raise Unknown(f"${{{name}}} has no value here")
            return secrets[name.removeprefix(_ENV)]
        if name not in captured:
            raise Unknown(f"${{{name}}} has no value; an earlier test must capture it")
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
    """Return a value with its placeholders filled. A text that is only a placeholder becomes the value itself; `$${` is `${`."""
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
    """Return answers with their placeholders filled. What fills a whole answer is a value, never a keyword of the suite."""
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


# A whole test


def _filled(written: dict[str, Any], find: Callable[[str], Any]) -> dict[str, Any]:
    """Fill in the values. How a value is filled in depends on the key."""
    ways: dict[str, Callable[[Any, Callable[[str], Any]], Any]] = {
        "inputResponses": fill_answers,
        "expect": fill_expected,
    }
    told = {
        name: ways.get(name, fill)(value, find) for name, value in written.items() if name not in ("rounds", "verify")
    }
    for name, inner in (("rounds", {"answer": fill_answers, "expect": fill_expected}), ("verify", ways)):
        if name in written and written[name] is not None:
            told[name] = [
                {key: inner.get(key, fill)(value, find) for key, value in one.items()} for one in written[name]
            ]
    return told


def _check_filled(test: Test) -> None:
    """Raises `ValueError` for answers and expectations that the values have made invalid."""
    rounds, verify = test.rounds or (), test.verify or ()
    answered = (test.inputResponses, *(one.answer for one in rounds), *(one.inputResponses for one in verify))
    for answers in answered:
        InputResponseFixture(answers)
    for expect in (test.expect, *(one.expect for one in verify)):
        for name in expect.model_fields_set - {"error", "isError"}:
            parse_matcher(getattr(expect, name))
        for name in expect.error.model_fields_set if expect.error is not None else ():
            parse_matcher(getattr(expect.error, name))
    for one in rounds:
        for written in (*one.expect.messages.values(), *one.expect.schemas.values(), *one.expect.methods.values()):
            parse_matcher(written)


def filled(test: Test, find: Callable[[str], Any]) -> Test:
    """Return the test with its values filled in. Raises `Unknown` and `DoesNotFit`."""
    written = test.model_dump(by_alias=True, exclude_unset=True, exclude={"cases"})
    if not has_holes(written):
        return test
    names = sorted(set(names_in(written)))
    try:
        complete = Test.model_validate(_filled(written, find))
        _check_filled(complete)
    except (ValueError, TypeError) as error:
        places = ""
        if isinstance(error, ValidationError):
            found = {".".join(map(str, detail["loc"])) for detail in error.errors()}
            places = f" at {', '.join(sorted(found)[:5])}"
        holes = ", ".join(f"${{{name}}}" for name in names)
        raise DoesNotFit(f"the value of {holes} does not fit where it is used{places}") from None
    return complete
