"""The compatibility dialect: an array of fields with a state, and no resultType."""

from typing import Any

import pytest

from bespeak.testing import Dialect, Verdict, read_envelope, recognize_input_required
from tests.conversation.envelopes import TOKEN, enveloped, field, form, listing


def test_a_whole_array_asks_in_the_compatibility_dialect_and_costs_a_finding() -> None:
    read = read_envelope(listing(field(), field("units", required=False)))
    assert (read.verdict, read.dialect, read.state) == (Verdict.ASKING, Dialect.LIST, TOKEN)
    assert [(one.key, one.method, one.required) for one in read.questions] == [
        ("city", None, True),
        ("units", None, False),
    ]
    (found,) = read.findings
    assert found.rule == "dialect"
    assert "a compatibility dialect" in str(found)
    assert "the MCP shape" in str(found)


HALF: dict[str, Any] = {
    "an empty array with a state": listing(),
    "an array with an empty state": listing(field(), state=""),
    "an array with a null state": listing(field(), state=None),
    "an array with a state that is a number": listing(field(), state=5),
    "an array without a state": enveloped({"inputRequests": [field()]}),
    "an entry that is null": listing(field(), None),
    "an entry without an id": listing({"kind": "string", "description": "What city?"}),
    "an id that is a number": listing({**field(), "id": 5}),
    "a kind that is a number": listing(field(kind=5)),
    "a description that is an array": listing(field(description=["What city?"])),
    "required as a text": listing(field(required="yes")),
    "a map without a resultType": enveloped({"inputRequests": {"city": form()}, "requestState": TOKEN}),
    "a number": enveloped({"inputRequests": 5, "requestState": TOKEN}),
}


@pytest.mark.parametrize("shape", HALF)
def test_an_incomplete_shape_is_a_normal_result_with_a_finding(shape: str) -> None:
    read = read_envelope(HALF[shape])
    assert (read.verdict, read.questions, read.state, read.dialect) == (Verdict.COMPLETE, (), None, None)
    assert recognize_input_required(HALF[shape]) is None
    (found,) = read.findings
    assert (found.rule, "neither the MCP shape nor the compatibility dialect" in found.text) == ("shape", True)


@pytest.mark.parametrize("result", [{}, {"requestState": TOKEN}, {"inputRequests": None}, {"content": []}])
def test_a_result_without_a_type_that_asks_nothing_is_complete(result: Any) -> None:
    read = read_envelope(enveloped(result))
    assert (read.verdict, read.findings) == (Verdict.COMPLETE, ())


def test_half_a_shape_is_a_normal_result_of_a_method_that_may_not_ask() -> None:
    assert read_envelope(listing(), "tools/list").verdict is Verdict.COMPLETE


def test_an_id_that_is_there_twice_is_found_and_asked_once_as_it_came_first() -> None:
    read = read_envelope(
        listing(field(description="first"), field("units"), field(description="second"), field("units"))
    )
    assert [(one.key, one.message) for one in read.questions] == [("city", "first"), ("units", "What city?")]
    assert [one.text for one in read.findings if one.rule == "duplicate-key"] == [
        "the id 'city' appears 2 times",
        "the id 'units' appears 2 times",
    ]


def test_an_id_that_is_there_twice_must_be_answered_if_either_must() -> None:
    (one,) = read_envelope(listing(field(required=False), field(required=True))).questions
    assert one.required


def test_other_members_of_an_entry_are_allowed() -> None:
    assert recognize_input_required(listing(field(title="City", maxLength=5))) is not None
