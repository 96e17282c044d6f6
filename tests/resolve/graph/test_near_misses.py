"""A resolver's parameter with a default whose name is nearly an argument's is refused: it would never be filled (design 4)."""

import keyword
import string
import warnings
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bespeak import Context, InvalidSignature, MCPServer, Resolve


def named(parameter: str, default: str = "0") -> Callable[..., Any]:
    """A resolver with one parameter of this name, which has a default."""
    namespace: dict[str, Any] = {}
    exec(f"def limit({parameter}: int = {default}) -> int:\n    return {parameter}", namespace)
    return namespace["limit"]


def taking(*arguments: str, resolver: Callable[..., Any]) -> Callable[..., Any]:
    """A tool with arguments of these names, and a resolver."""
    namespace: dict[str, Any] = {"Limit": Annotated[int, Resolve(resolver)]}
    listed = ", ".join(f"{argument}: int" for argument in arguments)
    exec(f"async def tool({listed}, *, found_by_it: Limit) -> int:\n    return found_by_it", namespace)
    return namespace["tool"]


def faults(parameter: str, *arguments: str) -> list[tuple[str, str]]:
    """What is told of the parameter, and how to fix it. Warnings are errors in these tests."""
    try:
        MCPServer("shop").add_tool(taking(*arguments, resolver=named(parameter)))
    except InvalidSignature as error:
        return [(fault.problem, fault.fix) for fault in error.faults]
    return []


def warned(parameter: str, *arguments: str) -> list[str]:
    """The warnings of a registration that passes."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        MCPServer("shop").add_tool(taking(*arguments, resolver=named(parameter)))
    assert all(issubclass(one.category, UserWarning) for one in caught)
    return [str(one.message) for one in caught]


NEAR = {
    "case": ("userid", "userId"),
    "case and underscore": ("order_number", "orderNumber"),
    "trailing underscore": ("type", "type_"),
    "short, but for an underscore": ("id", "_id"),
    "letter in the middle changed": ("quantity", "quanpity"),
    "five letters, one changed": ("title", "titli"),
    "last two swapped": ("title", "titel"),
}


@pytest.mark.parametrize(("argument", "parameter"), NEAR.values(), ids=NEAR)
def test_a_defaulted_parameter_that_is_nearly_an_argument_is_refused(argument: str, parameter: str) -> None:
    ((problem, fix),) = faults(parameter, argument)

    assert f"parameter {parameter!r} of resolver 'limit'" in problem
    assert repr(argument) in fix


MORE_OR_FEWER = {
    "one more at the end": ("title", "titles"),
    "one fewer at the end": ("titles", "title"),
    "one more in front": ("order", "border"),
}


@pytest.mark.parametrize(("argument", "parameter"), MORE_OR_FEWER.values(), ids=MORE_OR_FEWER)
def test_one_letter_more_or_fewer_is_a_warning(argument: str, parameter: str) -> None:
    (said,) = warned(parameter, argument)

    assert f"{parameter!r}" in said
    assert f"{argument!r}" in said
    assert "limit" in said


FAR = {
    "another word": ("title", "limit"),
    "two letters changed": ("quantity", "kwantity"),
    "two letters more": ("order", "orderly"),
    "short, one letter changed": ("sku", "sky"),
    "four letters, one changed": ("name", "fame"),
    "four letters, two swapped": ("name", "nmae"),
}


@pytest.mark.parametrize(("argument", "parameter"), FAR.values(), ids=FAR)
def test_a_parameter_of_another_name_is_left_to_its_default(argument: str, parameter: str) -> None:
    assert warned(parameter, argument) == []


def test_a_near_miss_of_one_of_several_arguments_names_that_one() -> None:
    ((_, fix),) = faults("titel", "order", "title", "quantity")

    assert "'title'" in fix
    assert "'order'" not in fix


def test_a_parameter_named_like_an_argument_is_given_it_whatever_others_are_near() -> None:
    assert warned("titel", "title", "titel") == []


def test_every_near_miss_is_reported_at_once() -> None:
    def limit(titel: str = "", orderId: str = "", most: int = 3) -> int:
        return most

    async def tool(title: str, order_id: str, copies: Annotated[int, Resolve(limit)]) -> None: ...

    with pytest.raises(InvalidSignature) as caught:
        MCPServer("shop").add_tool(tool)

    first, second = caught.value.faults
    assert "'title'" in first.fix
    assert "'order_id'" in second.fix


def test_a_resolved_parameter_or_the_context_is_not_a_near_miss() -> None:
    async def count() -> int:
        return 3

    async def limit(context: Context, titel: Annotated[int, Resolve(count)]) -> int:
        return titel

    async def tool(title: str, contexts: str, copies: Annotated[int, Resolve(limit)]) -> None: ...

    MCPServer("shop").add_tool(tool)


# The same for names that nobody thought of

words = st.text(string.ascii_lowercase, min_size=5, max_size=9)


def usable(*names: str) -> bool:
    return not any(keyword.iskeyword(name) for name in names)


@given(words, st.data())
def test_any_name_with_one_letter_changed_is_refused(word: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(word) - 1))
    letter = data.draw(st.sampled_from([one for one in string.ascii_lowercase if one != word[place]]))
    missed = f"{word[:place]}{letter}{word[place + 1 :]}"
    assume(usable(word, missed))
    ((_, fix),) = faults(missed, word)
    assert repr(word) in fix


@given(st.lists(st.sampled_from(string.ascii_lowercase), min_size=5, max_size=9, unique=True), st.data())
def test_any_name_with_two_neighbours_swapped_is_refused(letters: list[str], data: st.DataObject) -> None:
    word = "".join(letters)
    place = data.draw(st.integers(0, len(word) - 2))
    missed = f"{word[:place]}{word[place + 1]}{word[place]}{word[place + 2 :]}"
    assume(usable(word, missed))
    ((_, fix),) = faults(missed, word)
    assert repr(word) in fix


@given(st.text(string.ascii_lowercase, min_size=1, max_size=9), st.data())
def test_any_name_in_other_case_and_with_other_underscores_is_refused(word: str, data: st.DataObject) -> None:
    letters = [data.draw(st.sampled_from([one, one.upper(), f"{one}_"])) for one in word]
    missed = "".join(letters)
    assume(missed != word and usable(word, missed))
    ((_, fix),) = faults(missed, word)
    assert repr(word) in fix


@given(words, st.data())
@pytest.mark.long
def test_any_name_with_one_letter_more_is_a_warning(word: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(word)))
    missed = f"{word[:place]}{data.draw(st.sampled_from(string.ascii_lowercase))}{word[place:]}"
    assume(usable(word, missed))
    assert len(warned(missed, word)) == 1
    assert len(warned(word, missed)) == 1


@given(words, st.sampled_from(["", "xy", "xyz"]), st.data())
def test_names_that_differ_in_more_than_a_slip_pass(word: str, more: str, data: st.DataObject) -> None:
    places = data.draw(st.sets(st.integers(0, len(word) - 1), min_size=3))
    changed = (chr((ord(one) - 96) % 26 + 97) if place in places else one for place, one in enumerate(word))
    other = "".join(changed) + more
    assume(usable(word, other))
    assert warned(other, word) == []


def test_a_name_like_an_argument_that_the_resolver_takes_anyway_is_let_pass() -> None:
    async def diff(file1: str, file2: str = "HEAD") -> str:
        return file1 + file2

    async def show(file1: str, changed: Annotated[str, Resolve(diff)]) -> str:
        return changed

    MCPServer("files").add_tool(show)
