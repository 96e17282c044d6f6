"""How a message of the wire is shown in the timeline."""

import json

import pytest

from bespeak.dev.wire_record import LONGEST, TITLE, as_shown, parsed


@pytest.mark.parametrize(
    ("message", "kind", "title"),
    [
        ({"id": 1, "method": "tools/call", "params": {"name": "buy"}}, "request", "tools/call buy"),
        (
            {"id": 1, "method": "tools/call", "params": {"name": "buy", "inputResponses": {}}},
            "request",
            "tools/call buy, with answers",
        ),
        ({"id": 1, "method": "resources/read", "params": {"uri": "shop:a"}}, "request", "resources/read shop:a"),
        ({"method": "notifications/initialized"}, "notification", "notifications/initialized"),
        ({"id": 1, "result": {"action": "decline"}}, "response", "answer: decline"),
        ({"id": 1, "result": {"roots": []}}, "response", "answer"),
        ({"id": 1, "error": {"code": 1, "message": "no"}}, "error", "error: no"),
        ({"id": 1, "error": "no"}, "error", "error: no"),
        (["not a message"], "error", "not a message"),
    ],
)
def test_what_is_sent_is_named_by_what_it_is(message: object, kind: str, title: str) -> None:
    shown = as_shown("sent", message)
    assert (shown.way, shown.kind, shown.title) == ("sent", kind, title)


@pytest.mark.parametrize(
    ("result", "title"),
    [
        ({}, "result"),
        (None, "result"),
        ({"isError": True}, "result: the call failed"),
        ({"resultType": "input_required", "inputRequests": {"a": {}}}, "input required: 1 question"),
        ({"resultType": "input_required"}, "input required: 0 questions"),
    ],
)
def test_a_response_is_named_by_what_came_of_the_request(result: object, title: str) -> None:
    shown = as_shown("received", {"id": 1, "result": result})
    assert (shown.way, shown.kind, shown.title) == ("received", "response", title)


@pytest.mark.parametrize("part", ["params", "result"])
def test_a_state_is_shown_only_as_sealed_with_its_length(part: str) -> None:
    shown = as_shown("received", {"id": 1, part: {"requestState": "s" * 1234, "other": 1}})
    assert json.loads(shown.text)[part] == {"requestState": "(sealed, 1,234 characters)", "other": 1}


def test_an_argument_of_that_name_is_shown_as_it_is() -> None:
    params = {"name": "buy", "arguments": {"requestState": "mine"}}
    assert json.loads(as_shown("sent", {"id": 1, "params": params}).text)["params"] == params


def test_a_long_message_is_cut_and_says_so() -> None:
    shown = as_shown("sent", {"id": 1, "method": "x" * 1000, "params": {"name": "y" * LONGEST}})
    assert len(shown.title) == TITLE
    assert shown.text.splitlines()[-1].startswith("(cut: the message has 61,")
    assert len(shown.text) < LONGEST + 100


def test_what_is_not_json_is_shown_as_text() -> None:
    assert parsed(b'{"a": 1}') == {"a": 1}
    assert parsed(b"\xffhello") == "\ufffdhello"
    assert as_shown("received", parsed(b"hello")).text == "hello"
