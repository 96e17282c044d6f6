"""`input_required` results and retries as typed models.

Protocol section 6.4: the state echoed exactly and only if there was one, the answers of this round only.
"""

import copy
import json
from io import StringIO
from typing import Any

import pytest
from pydantic import ValidationError
from rich.console import Console

from bespeak.testing import (
    InputRequest,
    InputRequiredResult,
    InputResponse,
    RequestState,
    build_retry_params,
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


# Recognized


@pytest.mark.parametrize("state", ["", "\ud800"])
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
def test_an_invalid_field_is_rejected(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        InputRequest.model_validate(wrong)


@pytest.mark.parametrize("value", [None, "\ud800", [1, {"a": None}], 10**30])
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
def test_the_token_is_not_in_the_error_of_an_invalid_result(wrong: Any) -> None:
    with pytest.raises(ValidationError) as caught:
        InputRequiredResult.model_validate(wrong)
    assert TOKEN not in str(caught.value)


# The retry


def test_a_retry_of_the_mcp_shape_has_a_map_of_answers() -> None:
    retry = build_retry_params(ORIGINAL, RequestState(TOKEN), ANSWERED)
    assert retry == {**ORIGINAL, "inputResponses": ANSWERED, "requestState": TOKEN}


def test_a_retry_of_the_compatibility_dialect_has_an_array_of_answers() -> None:
    retry = build_retry_params(ORIGINAL, TOKEN, [InputResponse(id="city", value="San Francisco")])
    assert retry["inputResponses"] == [{"id": "city", "value": "San Francisco"}]


@pytest.mark.parametrize("state", ["", "\x00\ud800", "\u00e9 is not e\u0301"])
@pytest.mark.parametrize("wrap", [str, RequestState])
def test_the_state_is_echoed_as_it_came(state: str, wrap: Any) -> None:
    assert build_retry_params(ORIGINAL, wrap(state), None) == {**ORIGINAL, "requestState": state}


def test_a_round_that_asked_nothing_is_answered_with_nothing() -> None:
    assert "inputResponses" not in build_retry_params(ORIGINAL, TOKEN, None)


@pytest.mark.parametrize("nothing", [{}, []])
def test_a_round_whose_questions_were_all_left_out_is_answered_with_no_answers(nothing: Any) -> None:
    assert build_retry_params(ORIGINAL, TOKEN, nothing)["inputResponses"] == nothing


@pytest.mark.parametrize("original", [None, [1], "params"])
def test_original_params_that_are_not_an_object_count_as_empty(original: Any) -> None:
    expected = {"inputResponses": ANSWERED, "requestState": TOKEN}
    assert build_retry_params(original, TOKEN, ANSWERED) == expected


def test_a_retry_never_carries_what_the_round_before_added() -> None:
    first = build_retry_params(ORIGINAL, "first", ANSWERED)
    assert build_retry_params(first, None, None) == ORIGINAL
    second = build_retry_params(first, "second", {"units": {"action": "decline"}})
    assert second == {**ORIGINAL, "inputResponses": {"units": {"action": "decline"}}, "requestState": "second"}


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
