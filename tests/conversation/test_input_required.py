"""Both dialects on the wire (testing.md section 1): the rule of the compatibility dialect, the wire types, the retry's params.

Protocol section 6.4: the state echoed exactly and only if there was one, the answers of this round only.
"""

import copy
import json
from io import StringIO
from types import MappingProxyType
from typing import Any

import pytest
from pydantic import ValidationError
from rich.console import Console

from bespeak.testing import (
    Dialect,
    InputRequest,
    InputRequiredResult,
    InputResponse,
    RequestState,
    Verdict,
    build_retry_params,
    read_envelope,
    recognize_input_required,
)
from tests.conversation.envelopes import (
    COMPLETE,
    DONE,
    FAILED,
    FOLDERS,
    MODEL,
    PAGE,
    TOKEN,
    asking,
    enveloped,
    field,
    form,
    listing,
)

ORIGINAL: dict[str, Any] = {"name": "weather", "arguments": {"loc": "SFO"}, "_meta": {"key": {"deep": [1]}}}
ANSWERED = {"city": {"action": "accept", "content": {"city": "San Francisco"}}}


# The rule of the compatibility dialect


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
    "an array with a state that is an object": listing(field(), state={"a": 1}),
    "an array without a state": enveloped({"inputRequests": [field()]}),
    "an entry that is null": listing(field(), None),
    "an entry that is a text": listing("city"),
    "an entry that is an array": listing([field()]),
    "an entry without an id": listing({"kind": "string", "description": "What city?"}),
    "an id that is a number": listing({**field(), "id": 5}),
    "an id that is null": listing({**field(), "id": None}),
    "a kind that is a number": listing(field(kind=5)),
    "a kind that is null": listing(field(kind=None)),
    "a description that is an array": listing(field(description=["What city?"])),
    "required as a text": listing(field(required="yes")),
    "required as null": listing(field(required=None)),
    "required as a number": listing(field(required=1)),
    "a map without a resultType": enveloped({"inputRequests": {"city": form()}, "requestState": TOKEN}),
    "a text": enveloped({"inputRequests": "city", "requestState": TOKEN}),
    "a number": enveloped({"inputRequests": 5, "requestState": TOKEN}),
    "true": enveloped({"inputRequests": True, "requestState": TOKEN}),
}


@pytest.mark.parametrize("shape", HALF)
def test_half_a_shape_is_a_normal_result(shape: str) -> None:
    read = read_envelope(HALF[shape])
    assert (read.verdict, read.questions, read.state, read.dialect) == (Verdict.COMPLETE, (), None, None)
    assert recognize_input_required(HALF[shape]) is None


@pytest.mark.parametrize("shape", HALF)
def test_half_a_shape_is_found(shape: str) -> None:
    (found,) = read_envelope(HALF[shape]).findings
    assert found.rule == "shape"
    assert "neither the MCP shape nor the compatibility dialect" in found.text


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


def test_the_same_entry_twice_is_asked_once() -> None:
    entry = field()
    assert len(read_envelope(listing(entry, entry)).questions) == 1


def test_ten_thousand_fields_are_read_in_their_order() -> None:
    read = read_envelope(listing(*(field(f"f{number}") for number in range(10_000))))
    assert [one.key for one in read.questions] == [f"f{number}" for number in range(10_000)]


def test_what_else_an_entry_has_is_no_fault() -> None:
    assert recognize_input_required(listing(field(title="City", maxLength=5))) is not None


# Recognized


@pytest.mark.parametrize("state", ["s", "", "x" * 2**20, "\ud800", '{"a": "\\u0000"}'])
def test_an_asking_result_of_the_mcp_shape_is_recognized(state: str) -> None:
    requests = {"city": form(), "login": PAGE, "words": MODEL, "where": FOLDERS}
    found = recognize_input_required(asking(requests, requestState=state, description="Need it."))
    assert found is not None
    assert (found.result_type, found.input_requests, found.description) == ("input_required", requests, "Need it.")
    assert found.request_state == RequestState(state)


@pytest.mark.parametrize(
    "envelope",
    [
        DONE,
        FAILED,
        asking(),
        asking({"city": None}),
        enveloped({**COMPLETE, "inputRequests": [field()]}),
        None,
        [],
        {},
        "x",
    ],
)
def test_what_asks_nothing_or_only_looks_as_if_it_did_is_not_recognized(envelope: Any) -> None:
    assert recognize_input_required(envelope) is None


@pytest.mark.parametrize(
    "envelope",
    [
        asking({"city": form(), "words": MODEL}, requestState=TOKEN, description="Need it."),
        asking({"city": form()}),
        asking({"city": form()}, requestState=""),
        asking(requestState=TOKEN),
        listing(field(required=False), field("units", required=True), description="Need it."),
    ],
)
def test_what_was_recognized_is_written_as_it_came(envelope: dict[str, Any]) -> None:
    found = recognize_input_required(envelope)
    assert found is not None
    assert json.loads(found.model_dump_json()) == envelope["result"]


@pytest.mark.parametrize(
    "envelope", [asking({"city": form()}, requestState=""), asking(requestState=TOKEN), listing(field())]
)
def test_the_wire_type_reads_what_the_recognizer_reads(envelope: dict[str, Any]) -> None:
    assert InputRequiredResult.model_validate(envelope["result"]) == recognize_input_required(envelope)


def test_the_wire_types_take_pythons_names_too_and_write_camel_case() -> None:
    asked = InputRequiredResult(input_requests=[InputRequest(id="city")], request_state=RequestState(TOKEN))
    assert list(asked.model_dump()) == list(json.loads(asked.model_dump_json())) == ["inputRequests", "requestState"]


@pytest.mark.parametrize("wrong", [{}, {"id": 5}, {"id": "city", "required": "perhaps"}, {"id": "city", "kind": None}])
def test_a_field_that_is_none_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        InputRequest.model_validate(wrong)


@pytest.mark.parametrize("value", [None, False, 0, "", "\ud800", [1, {"a": None}], {"b": 1.5}, 10**30, {"\ud800": 1}])
def test_a_response_carries_any_value(value: Any) -> None:
    retry = build_retry_params({}, None, [InputResponse(id="city", value=value)])
    assert retry == {"inputResponses": [{"id": "city", "value": value}]}


# The token


def rich_shows(value: Any) -> str:
    out = StringIO()
    Console(file=out, width=200).print(value)
    return out.getvalue()


@pytest.mark.parametrize("show", [repr, str, "{}".format, "{!r:.500}".format, ascii, rich_shows])
@pytest.mark.parametrize("wrapped", [False, True])
def test_the_token_is_never_printed(show: Any, wrapped: bool) -> None:
    state = RequestState(TOKEN)
    shown = show(InputRequiredResult(input_requests={}, request_state=state) if wrapped else state)
    assert TOKEN not in shown
    assert "RequestState" in shown


@pytest.mark.parametrize(
    "wrong", [{"requestState": TOKEN, "inputRequests": 5}, {"requestState": TOKEN, "resultType": 5}]
)
def test_the_token_is_not_in_the_error_of_a_result_that_is_none(wrong: Any) -> None:
    with pytest.raises(ValidationError) as caught:
        InputRequiredResult.model_validate(wrong)
    assert TOKEN not in str(caught.value)


def test_states_are_equal_if_their_tokens_are() -> None:
    assert RequestState("a") == RequestState("a") != RequestState("b")
    assert hash(RequestState("a")) == hash(RequestState("a"))


# The retry


def test_a_retry_of_the_mcp_shape_has_a_map_of_answers() -> None:
    retry = build_retry_params(ORIGINAL, RequestState(TOKEN), ANSWERED)
    assert retry == {**ORIGINAL, "inputResponses": ANSWERED, "requestState": TOKEN}


def test_a_retry_of_the_compatibility_dialect_has_an_array_of_answers() -> None:
    retry = build_retry_params(ORIGINAL, TOKEN, [InputResponse(id="city", value="San Francisco")])
    assert retry["inputResponses"] == [{"id": "city", "value": "San Francisco"}]


@pytest.mark.parametrize("state", ["", " ", "s", "x" * 2**20, "\x00\ud800", '{"a": 1.0}', "\u00e9 is not e\u0301"])
@pytest.mark.parametrize("wrap", [str, RequestState])
def test_the_state_is_echoed_as_it_came(state: str, wrap: Any) -> None:
    assert build_retry_params(ORIGINAL, wrap(state), None) == {**ORIGINAL, "requestState": state}


def test_without_a_state_there_is_none_in_the_retry() -> None:
    assert build_retry_params(ORIGINAL, None, ANSWERED) == {**ORIGINAL, "inputResponses": ANSWERED}


def test_a_round_that_asked_nothing_is_answered_with_nothing() -> None:
    assert "inputResponses" not in build_retry_params(ORIGINAL, TOKEN, None)


@pytest.mark.parametrize("nothing", [{}, []])
def test_a_round_whose_questions_were_all_left_out_is_answered_with_no_answers(nothing: Any) -> None:
    assert build_retry_params(ORIGINAL, TOKEN, nothing)["inputResponses"] == nothing


@pytest.mark.parametrize("original", [None, [], [1], "params", "", 0, 5, True, 1.5])
def test_original_params_that_are_no_object_count_as_none(original: Any) -> None:
    expected = {"inputResponses": ANSWERED, "requestState": TOKEN}
    assert build_retry_params(original, TOKEN, ANSWERED) == expected


def test_original_params_may_be_any_mapping() -> None:
    assert build_retry_params(MappingProxyType({"name": "weather"}), None, None) == {"name": "weather"}


def test_a_retry_never_carries_what_the_round_before_added() -> None:
    first = build_retry_params(ORIGINAL, "first", ANSWERED)
    assert build_retry_params(first, None, None) == ORIGINAL
    second = build_retry_params(first, "second", {"units": {"action": "decline"}})
    assert second == {**ORIGINAL, "inputResponses": {"units": {"action": "decline"}}, "requestState": "second"}


@pytest.mark.parametrize("responses", [ANSWERED, [InputResponse(id="city", value={"a": [1]})]])
def test_building_a_retry_changes_nothing_it_was_given(responses: Any) -> None:
    original, given = copy.deepcopy(ORIGINAL), copy.deepcopy(responses)
    build_retry_params(original, TOKEN, given)
    assert (original, given) == (ORIGINAL, responses)


def test_what_is_done_to_a_retry_reaches_nothing_it_was_built_of() -> None:
    original, answers = copy.deepcopy(ORIGINAL), copy.deepcopy(ANSWERED)
    retry = build_retry_params(original, TOKEN, answers)
    retry["_meta"]["key"]["deep"].append(2)
    retry["arguments"].clear()
    retry["inputResponses"]["city"]["content"]["city"] = "Oslo"
    assert (original, answers) == (ORIGINAL, ANSWERED)


def test_what_is_done_to_a_retry_reaches_no_value_of_the_compatibility_dialect() -> None:
    answers = [InputResponse(id="city", value=["San Francisco"])]
    build_retry_params(ORIGINAL, TOKEN, answers)["inputResponses"][0]["value"].append("Oslo")
    assert answers == [InputResponse(id="city", value=["San Francisco"])]
