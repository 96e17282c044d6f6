"""Replace the `${...}` of a test by their values, and check the test again."""

from collections.abc import Callable
from typing import Any

from pydantic import ValidationError

from bespeak.conversation.fixtures import InputResponseFixture
from bespeak.conversation.matchers import parse_matcher
from bespeak.testing.suite.suite_file import Test
from bespeak.testing.suite.variables import fill, fill_answers, fill_expected, has_holes, names_in


class DoesNotFit(Exception):
    """The value of a name does not fit where the name is used."""


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
    written = test.model_dump(by_alias=True, exclude_unset=True)
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
