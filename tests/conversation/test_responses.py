"""What a response is: complete, asking or malformed (testing.md section 1, protocol sections 6.1 to 6.4 and 7.1).

`resultType` decides: `input_required` is the MCP shape, `complete` is complete whatever else is there, any other value is
malformed, and without one the rule of the compatibility dialect holds exactly.
"""

import re
from typing import Any

import pytest

from bespeak.testing import Dialect, Finding, Verdict, read_envelope
from tests.conversation.envelopes import (
    COMPLETE,
    DONE,
    ELICIT,
    FAILED,
    FOLDERS,
    MODEL,
    PAGE,
    ROOTS,
    SAMPLE,
    TEXT,
    TOKEN,
    asking,
    enveloped,
    field,
    form,
    listing,
    question,
)

MAY_ASK = ["tools/call", "prompts/get", "resources/read"]
MAY_NOT = ["tools/list", ""]


PYTHON = re.compile(r"None|True|False|[\[{]'")
"""What JSON writes otherwise."""


def rules(envelope: Any, method: str = "tools/call") -> list[str]:
    return [finding.rule for finding in read_envelope(envelope, method).findings]


def only_finding(envelope: Any, method: str = "tools/call") -> Finding:
    (found,) = read_envelope(envelope, method).findings
    return found


# The MCP shape


def test_a_map_and_a_state_ask_in_the_mcp_shape_with_nothing_to_find_fault_with() -> None:
    read = read_envelope(asking({"city": form(), "login": PAGE, "words": MODEL, "where": FOLDERS}, requestState=TOKEN))
    assert (read.verdict, read.dialect, read.state, read.findings) == (Verdict.ASKING, Dialect.SPEC, TOKEN, ())
    assert [one.key for one in read.questions] == ["city", "login", "words", "where"]
    assert [one.method for one in read.questions] == [ELICIT, ELICIT, SAMPLE, ROOTS]


@pytest.mark.parametrize("method", MAY_ASK)
@pytest.mark.parametrize("envelope", [asking({"city": form()}, requestState=TOKEN), listing(field())])
def test_each_of_three_methods_may_ask(method: str, envelope: Any) -> None:
    assert read_envelope(envelope, method).verdict is Verdict.ASKING


@pytest.mark.parametrize("method", MAY_NOT)
@pytest.mark.parametrize("envelope", [asking({"city": form()}, requestState=TOKEN), listing(field())])
def test_any_other_method_that_asks_is_malformed(method: str, envelope: Any) -> None:
    read = read_envelope(envelope, method)
    assert (read.verdict, read.questions) == (Verdict.MALFORMED, ())
    assert rules(envelope, method) == ["method"]
    assert only_finding(envelope, method).text.startswith(f"{method} was answered with input")


@pytest.mark.parametrize("state", ["", "\x00\n", "\ud800"])
def test_a_state_is_taken_as_it_came(state: str) -> None:
    assert read_envelope(asking({"city": form()}, requestState=state)).state == state


@pytest.mark.parametrize("members", [{}, {"inputRequests": {}}])
def test_a_state_alone_asks_nothing_and_goes_on(members: dict[str, Any]) -> None:
    read = read_envelope(asking(requestState=TOKEN, **members))
    assert (read.verdict, read.questions, read.state, read.findings) == (Verdict.ASKING, (), TOKEN, ())


def test_neither_questions_nor_a_state_is_malformed() -> None:
    assert read_envelope(asking()).verdict is Verdict.MALFORMED
    assert only_finding(asking()).text == "the input_required result has neither inputRequests nor requestState"
    assert rules(asking()) == ["empty"]


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        (None, "null"),
        ([], "an array"),
        ("city", "a string"),
        (True, "a boolean"),
    ],
)
def test_input_required_with_requests_that_are_not_a_map_is_malformed(asked: Any, named: str) -> None:
    envelope = enveloped({"resultType": "input_required", "inputRequests": asked, "requestState": TOKEN})
    read = read_envelope(envelope)
    assert (read.verdict, read.dialect, rules(envelope)) == (Verdict.MALFORMED, Dialect.SPEC, ["shape"])
    assert f"inputRequests is {named}, not a map" in only_finding(envelope).text


@pytest.mark.parametrize(
    ("state", "named"),
    [(None, "null"), (7, "a number"), (1.5, "a number"), (False, "a boolean"), ({}, "an object"), (["s"], "an array")],
)
def test_a_state_that_is_not_a_string_is_malformed(state: Any, named: str) -> None:
    envelope = asking({"city": form()}, requestState=state)
    assert read_envelope(envelope).verdict is Verdict.MALFORMED
    assert only_finding(envelope) == Finding("shape", f"requestState is {named}, not a string")


def no_message(**params: Any) -> dict[str, Any]:
    return {"method": ELICIT, "params": params}


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        (None, "the question 'city' is null, not an object"),
        ("Which city?", "the question 'city' is a string, not an object"),
        ({}, "the question 'city' has no method"),
        ({"method": "tools/call"}, "the question 'city' has the method 'tools/call'"),
        ({"method": ROOTS, "params": []}, "the params of the question 'city' are an array, not an object"),
        ({"method": ELICIT}, "the question 'city' has no valid message"),
        (no_message(message=5, requestedSchema={"type": "object", "properties": {}}), "has no valid message"),
        (no_message(message="m"), "has no valid requestedSchema"),
        (no_message(message="m", requestedSchema={"type": "object"}), "has no valid requestedSchema"),
        (no_message(message="m", requestedSchema={"type": "object", "properties": []}), "has no valid requestedSchema"),
        (no_message(message="m", mode="url", url=5), "has no valid url"),
        (no_message(message="m", mode="page"), "has no valid mode"),
        ({"method": SAMPLE, "params": {"messages": {}, "maxTokens": 1}}, "has no valid messages"),
        ({"method": SAMPLE, "params": {"messages": []}}, "has no valid maxTokens"),
        ({"method": SAMPLE, "params": {"messages": [], "maxTokens": True}}, "has no valid maxTokens"),
    ],
)
def test_an_invalid_question_makes_the_response_malformed(entry: Any, text: str) -> None:
    envelope = asking({"units": form(), "city": entry}, requestState=TOKEN)
    read = read_envelope(envelope)
    assert (read.verdict, read.questions, rules(envelope)) == (Verdict.MALFORMED, (), ["question"])
    assert only_finding(envelope).text.endswith(text)


@pytest.mark.parametrize("method", [None, True, 5, ["roots/list"], {"name": "roots/list"}])
def test_a_method_that_is_not_a_string_is_shown_as_json(method: Any) -> None:
    assert not PYTHON.search(only_finding(asking({"where": {"method": method}})).text)


def test_every_fault_of_a_result_is_found() -> None:
    assert rules(asking({"a": None, "b": {}, "c": form()}, requestState=7)) == ["shape", "question", "question"]


def test_a_form_without_a_mode_is_a_form() -> None:
    asked = form()
    del asked["params"]["mode"]
    (found,) = read_envelope(asking({"city": asked})).questions
    assert (found.is_form, found.is_url, found.message, found.schema["type"]) == (True, False, "Which city?", "object")


def test_a_url_question_is_not_a_form() -> None:
    (found,) = read_envelope(asking({"login": PAGE})).questions
    assert (found.is_form, found.is_url, found.properties) == (False, True, {})


def test_a_question_is_given_back_as_it_was_sent() -> None:
    requests = {"city": form(), "login": PAGE, "words": MODEL, "where": FOLDERS}
    read = read_envelope(asking(requests))
    assert {one.key: one.as_json() for one in read.questions} == requests


def test_the_results_own_description_is_kept() -> None:
    assert read_envelope(asking({"city": form()}, description="Need the city.")).description == "Need the city."


# Keys


@pytest.mark.parametrize("key", ["", "a\u200d", "\x1b[2J", "\ud800"])
@pytest.mark.parametrize("dialect", list(Dialect))
def test_a_key_may_be_any_text(key: str, dialect: Dialect) -> None:
    envelope = asking({key: form()}) if dialect is Dialect.SPEC else listing(field(key))
    read = read_envelope(envelope)
    assert (read.verdict, [one.key for one in read.questions]) == (Verdict.ASKING, [key])
    assert {one.rule for one in read.findings} <= {"dialect"}


def test_a_key_of_any_length_is_named_shortly() -> None:
    assert len(only_finding(asking({"k" * 100_000: None})).text) < 300


# Complete, and neither


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"requestState": TOKEN},
        {"inputRequests": {}},
        {"inputRequests": []},
        {"inputRequests": None},
    ],
)
def test_a_complete_result_is_complete_whatever_empty_fields_it_has(more: dict[str, Any]) -> None:
    read = read_envelope(enveloped({**COMPLETE, **more}))
    assert (read.verdict, read.questions, read.state, read.findings) == (Verdict.COMPLETE, (), None, ())


@pytest.mark.parametrize("asked", [{"city": form()}, [field()]])
def test_complete_with_questions_inside_is_complete_and_found(asked: Any) -> None:
    envelope = enveloped({**COMPLETE, "inputRequests": asked, "requestState": TOKEN})
    assert read_envelope(envelope).verdict is Verdict.COMPLETE
    assert rules(envelope) == ["complete-asks"]


@pytest.mark.parametrize("kind", ["", "INPUT_REQUIRED"])
def test_any_other_string_is_malformed_whatever_else_is_there(kind: str) -> None:
    envelope = enveloped({"resultType": kind, "inputRequests": [field()], "requestState": TOKEN})
    assert read_envelope(envelope).verdict is Verdict.MALFORMED
    assert only_finding(envelope) == Finding("result-type", f"the result has the resultType '{kind}'")


@pytest.mark.parametrize("kind", [None, True, ["complete"], {"a": None}])
def test_a_result_type_that_is_not_a_string_is_malformed_and_shown_as_json(kind: Any) -> None:
    envelope = enveloped({**COMPLETE, "resultType": kind})
    assert (read_envelope(envelope).verdict, rules(envelope)) == (Verdict.MALFORMED, ["result-type"])
    text = only_finding(envelope).text
    assert text.startswith("the result has the resultType")
    assert not PYTHON.search(text)


@pytest.mark.parametrize("error", [FAILED, {"jsonrpc": "2.0", "id": 1, "error": {}}])
def test_a_json_rpc_error_asks_nothing(error: Any) -> None:
    read = read_envelope(error)
    assert (read.verdict, read.questions, read.state, read.findings) == (Verdict.COMPLETE, (), None, ())


@pytest.mark.parametrize("error", [None, 5, "no", [], True])
def test_an_error_that_is_not_an_object_is_malformed(error: Any) -> None:
    envelope = {"jsonrpc": "2.0", "id": 1, "error": error}
    assert read_envelope(envelope).verdict is Verdict.MALFORMED
    assert rules(envelope) == ["envelope"]


@pytest.mark.parametrize("envelope", [None, 0, "input_required", [asking({"city": form()})]])
def test_a_response_that_is_not_an_object_is_malformed(envelope: Any) -> None:
    assert read_envelope(envelope).verdict is Verdict.MALFORMED
    assert only_finding(envelope) == Finding("envelope", "the response is not an object")


@pytest.mark.parametrize("envelope", [{}, *map(enveloped, (None, [], "", 5, True))])
def test_a_response_without_a_result_that_is_an_object_is_malformed(envelope: Any) -> None:
    assert read_envelope(envelope).verdict is Verdict.MALFORMED
    assert only_finding(envelope) == Finding("envelope", "the response has no result object")


def test_a_response_with_a_result_and_an_error_is_malformed() -> None:
    both = {**DONE, **FAILED}
    assert read_envelope(both).verdict is Verdict.MALFORMED
    assert only_finding(both).text == "the response has both a result and an error"


def test_the_token_is_not_in_the_representation_of_a_reading() -> None:
    assert TOKEN not in repr(read_envelope(asking({"city": form()}, requestState=TOKEN)))


# A question, whatever a server put into it


@pytest.mark.parametrize("schema", [{"type": "object", "properties": {"city": 5, "units": TEXT}}])
def test_only_fields_with_a_schema_are_fields(schema: Any) -> None:
    asked = question({"method": ELICIT, "params": {"message": "m", "requestedSchema": schema}})
    assert dict(asked.properties) == {"units": TEXT}


def test_sampling_and_roots_have_no_message_and_no_form() -> None:
    for asked in (question(MODEL), question(FOLDERS)):
        assert (asked.message, asked.is_form, asked.is_url, dict(asked.properties)) == ("", False, False, {})
