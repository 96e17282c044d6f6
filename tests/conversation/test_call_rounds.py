"""One call and its rounds (testing.md section 1, protocol sections 6.4 to 6.7): the stepper, and the loop around it.

This round's answers only; the state echoed byte for byte, absent when it was absent and empty when it was empty; nothing
leaks into a parallel call; rounds without questions count and back off; the cap lists every round, and no token.
"""

import json
import time
from typing import Any, cast

import pytest

from bespeak.conversation.fixtures import responses_to
from bespeak.testing import (
    Conversation,
    InputResponseFixture,
    MalformedResponse,
    Round,
    RoundsExceeded,
    Verdict,
)
from tests.conversation.envelopes import (
    DONE,
    FAILED,
    FOLDERS,
    MODEL,
    PAGE,
    TEXT,
    TOKEN,
    asking,
    enveloped,
    field,
    form,
    listing,
    question,
)

PARAMS: dict[str, Any] = {"name": "weather", "arguments": {"loc": "SFO"}, "_meta": {"client": {"name": "x"}}}
OSLO: dict[str, Any] = {"action": "accept", "content": {"city": "Oslo"}}
DECLINED = {"action": "decline"}
FORMS: dict[str, Any] = {"elicitation": {"form": {}}}


def call(max_rounds: int = 5, capabilities: Any = None, method: str = "tools/call") -> Conversation:
    return Conversation(method, json.loads(json.dumps(PARAMS)), max_rounds, capabilities)


def rules(conversation: Conversation) -> list[str]:
    return [finding.rule for finding in conversation.findings]


def step(conversation: Conversation, envelope: Any, **responses: Any) -> dict[str, Any]:
    """Take in a response, answer it, and send what is then to be sent."""
    conversation.receive(envelope)
    conversation.answer(responses)
    return conversation.to_send


# What is sent


def test_the_first_request_has_the_original_params() -> None:
    assert call().to_send == PARAMS


def test_only_this_rounds_answers_are_sent() -> None:
    conversation = call()
    step(conversation, asking({"city": form()}, requestState="one"), city=OSLO)
    retry = step(conversation, asking({"units": form()}, requestState="two"), units=DECLINED)
    assert retry == {**PARAMS, "inputResponses": {"units": DECLINED}, "requestState": "two"}


@pytest.mark.parametrize("state", ["", "\x00\ud800\u2028"])
@pytest.mark.parametrize("ask", [asking({"city": form()}), asking()])
def test_a_state_is_echoed_as_it_came(state: str, ask: dict[str, Any]) -> None:
    conversation = call()
    read = conversation.receive(enveloped({**ask["result"], "requestState": state}))
    conversation.answer({one.key: OSLO for one in read.questions})
    assert conversation.to_send["requestState"] == state


def test_a_state_of_an_earlier_round_is_never_carried_on() -> None:
    conversation = call()
    step(conversation, asking({"city": form()}, requestState="one"), city=OSLO)
    assert "requestState" not in step(conversation, asking({"units": form()}), units=DECLINED)


@pytest.mark.parametrize("members", [{}, {"inputRequests": {}}])
def test_a_round_that_asked_nothing_is_answered_with_the_state_alone(members: Any) -> None:
    conversation = call()
    step(conversation, asking({"city": form()}, requestState="one"), city=OSLO)
    assert step(conversation, asking(requestState="two", **members)) == {**PARAMS, "requestState": "two"}


def test_each_round_is_answered_in_the_dialect_of_its_questions() -> None:
    conversation = call()
    first = step(conversation, listing(field(), state="one"), city="Oslo")
    second = step(conversation, asking({"units": form()}, requestState="two"), units=DECLINED)
    third = step(conversation, listing(field("days"), state="three"), days=2)
    assert first["inputResponses"] == [{"id": "city", "value": "Oslo"}]
    assert (second["inputResponses"], second["requestState"]) == ({"units": DECLINED}, "two")
    assert third == {**PARAMS, "inputResponses": [{"id": "days", "value": 2}], "requestState": "three"}
    assert rules(conversation) == ["dialect", "dialect"]


# What came


@pytest.mark.parametrize(
    "envelope", [DONE, FAILED, enveloped({}), enveloped({"inputRequests": [], "requestState": "s"})]
)
def test_what_asks_nothing_ends_the_call(envelope: Any) -> None:
    conversation = call()
    step(conversation, asking({"city": form()}), city=OSLO)
    assert conversation.receive(envelope).verdict is Verdict.COMPLETE
    assert conversation.pending is None
    assert conversation.rounds == [Round({"city": "Which city?"}, {"city": OSLO}, state=False)]


def test_what_is_malformed_ends_the_call_with_every_fault() -> None:
    conversation = call()
    with pytest.raises(
        MalformedResponse, match=r"the question 'a' has no method .*; the question 'b' is null"
    ) as caught:
        conversation.receive(asking({"a": {}, "b": None}))
    assert [one.rule for one in caught.value.findings] == rules(conversation) == ["question", "question"]


@pytest.mark.parametrize("before", [[], [asking({"city": form()}), DONE]])
def test_only_a_round_that_is_open_can_be_answered(before: list[Any]) -> None:
    conversation = call()
    for envelope in before:
        conversation.receive(envelope)
    with pytest.raises(RuntimeError, match="there is no open question to answer"):
        conversation.answer({"city": OSLO})


def test_a_pushed_question_is_a_round_without_a_state() -> None:
    conversation = call(1, FORMS)
    conversation.push(question(form()))
    conversation.answer({"city": OSLO})
    assert conversation.rounds == [Round({"city": "Which city?"}, {"city": OSLO}, state=False)]
    assert conversation.findings == []


def test_pushed_questions_are_capped_too() -> None:
    conversation = call(2)

    def ask_on() -> None:
        for _ in range(100):
            conversation.push(question(form()))
            conversation.answer({"city": OSLO})

    with pytest.raises(RoundsExceeded, match="the server is still asking"):
        ask_on()


@pytest.mark.parametrize("envelope", [asking({"units": form()}), asking(requestState=TOKEN), listing(field("units"))])
def test_an_answer_without_an_open_question_is_not_sent(envelope: Any) -> None:
    conversation = call()
    conversation.receive(envelope)
    with pytest.raises(ValueError, match="no open question has the key 'city'"):
        conversation.answer({"city": OSLO})
    assert (conversation.rounds, conversation.to_send) == ([], PARAMS)
    assert conversation.pending is not None


# After a decline


def test_a_question_that_was_declined_should_not_be_asked_again() -> None:
    conversation = call()
    step(conversation, asking({"city": form()}), city=DECLINED)
    step(conversation, asking({"units": form("Which units?")}), units=OSLO)
    conversation.receive(asking({"city": form()}))
    assert rules(conversation) == ["declined"]
    assert conversation.findings[0].text == "'city' was declined, but the server asked it again"


@pytest.mark.parametrize("response", [OSLO, {"action": "cancel"}, None, "decline", {"action": None}])
def test_a_question_that_was_not_declined_may_be_asked_again(response: Any) -> None:
    conversation = call()
    step(conversation, asking({"city": form()}), city=response)
    conversation.receive(asking({"city": form()}))
    assert conversation.findings == []


def test_another_question_of_the_same_key_may_be_asked_after_a_decline() -> None:
    conversation = call()
    step(conversation, asking({"city": form()}), city=DECLINED)
    conversation.receive(asking({"city": form("Which city then?")}))
    assert conversation.findings == []


SURE, SURE_NOW, SUM = "sure~1a2b3c4d", "sure~5e6f7a8b", "sum~00000000"


def test_a_declined_question_may_be_asked_again_under_another_answer() -> None:
    """The end of its key says that what it depends on has changed, and that was asked for in between."""
    conversation = call()
    conversation.receive(asking({SURE: form("Sure?")}))
    conversation.answer({SURE: DECLINED})
    conversation.receive(asking({SUM: form("How much then?")}))
    conversation.answer({SUM: OSLO})
    again = Conversation.from_json(json.loads(json.dumps(conversation.as_json())))
    for one in (conversation, again):
        one.receive(asking({SURE_NOW: form("Sure?")}))
        assert one.findings == []


@pytest.mark.parametrize("between", [[], [{SURE: form("Really?")}], [{}]])
def test_a_new_key_alone_does_not_allow_asking_a_declined_question_again(between: list[Any]) -> None:
    conversation = call()
    for questions in ({SUM: form("How much?")}, {SURE: form("Sure?")}, *between):
        conversation.receive(asking(questions))
        conversation.answer({key: DECLINED if key == SURE else OSLO for key in questions})
    conversation = Conversation.from_json(json.loads(json.dumps(conversation.as_json())))
    conversation.receive(asking({SURE_NOW: form("Sure?")}))
    assert [finding.text for finding in conversation.findings] == ["'sure' was declined, but the server asked it again"]


@pytest.mark.parametrize(
    ("key", "found"), [(SURE, ["declined"]), ("other", []), ("other~1a2b3c4d", []), ("other~5e6f7a8b", [])]
)
def test_the_same_words_under_another_name_are_another_question(key: str, found: list[str]) -> None:
    conversation = call()
    for questions in ({SURE: form("Sure?")}, {SUM: form("How much?")}):
        conversation.receive(asking(questions))
        conversation.answer(dict.fromkeys(questions, DECLINED))
    conversation.receive(asking({key: form("Sure?")}))
    assert rules(conversation) == found


@pytest.mark.timing
@pytest.mark.long
def test_ten_thousand_declined_questions_of_one_name_are_known_again_at_once() -> None:
    conversation = call()
    for start in (0, 10_000):
        questions = {f"x~{number:08x}": form("Sure?") for number in range(start, start + 10_000)}
        started = time.process_time()
        conversation.receive(asking(questions))
        assert time.process_time() - started < 5
        conversation.answer(dict.fromkeys(questions, DECLINED))
    assert rules(conversation) == ["declined"] * 10_000


# What was not declared


TOOLS: dict[str, Any] = {"method": MODEL["method"], "params": {**MODEL["params"], "tools": []}}
CONTEXT: dict[str, Any] = {"method": MODEL["method"], "params": {**MODEL["params"], "includeContext": "thisServer"}}
BOTH: dict[str, Any] = {"method": MODEL["method"], "params": {**TOOLS["params"], **CONTEXT["params"]}}


@pytest.mark.parametrize(
    ("request_", "declared", "lacks"),
    [
        (form(), {}, "elicitation.form"),
        (PAGE, {"elicitation": {"form": {}}}, "elicitation.url"),
        (MODEL, FORMS, "sampling"),
        (TOOLS, {"sampling": {}}, "sampling.tools"),
        (BOTH, {"sampling": {"tools": {}}}, "sampling.context"),
    ],
)
def test_a_question_the_client_did_not_declare_is_found(request_: Any, declared: Any, lacks: str) -> None:
    conversation = call(capabilities=declared)
    conversation.receive(asking({"it": request_}))
    (found,) = conversation.findings
    assert (found.rule, found.text) == ("undeclared", f"'it' asks for {lacks}, which the client did not declare")


@pytest.mark.parametrize(
    ("request_", "declared"),
    [
        (form(), {"elicitation": {}}),
        (PAGE, {"elicitation": {"url": {}}}),
        (MODEL, {"sampling": {}}),
        (FOLDERS, {"roots": {"listChanged": True}}),
        (PAGE, None),
    ],
)
def test_a_question_the_client_declared_is_allowed(request_: Any, declared: Any) -> None:
    conversation = call(capabilities=declared)
    conversation.receive(asking({"it": request_}))
    assert conversation.findings == []


def test_a_pushed_question_must_be_declared_too() -> None:
    conversation = call(capabilities={})
    conversation.push(question(form()))
    assert rules(conversation) == ["undeclared"]


# Rounds without questions, and the cap


def test_rounds_without_questions_back_off_and_those_with_questions_do_not() -> None:
    conversation = call(20)
    assert conversation.pause == 0
    pauses: list[float] = []
    for envelope in [asking(requestState="s")] * 5 + [asking({"city": form()})] + [asking(requestState="s")] * 2:
        step(conversation, envelope)
        pauses.append(conversation.pause)
    assert pauses == pytest.approx([0.05, 0.1, 0.2, 0.25, 0.25, 0, 0.05, 0.1])  # pyright: ignore[reportUnknownMemberType] - pytest's own


@pytest.mark.parametrize("max_rounds", [0, 2])
@pytest.mark.parametrize("envelope", [asking({"city": form()}), asking(requestState=TOKEN), listing(field())])
def test_as_many_rounds_as_the_cap_are_answered_and_one_more_fails(max_rounds: int, envelope: Any) -> None:
    conversation = call(max_rounds)
    for _ in range(max_rounds):
        step(conversation, envelope)
    with pytest.raises(RoundsExceeded) as caught:
        conversation.receive(envelope)
    assert (caught.value.max_rounds, len(caught.value.rounds)) == (max_rounds, max_rounds + 1)
    assert conversation.pending is None


def exceeded(conversation: Conversation, envelope: Any) -> str:
    with pytest.raises(RoundsExceeded) as caught:
        conversation.receive(envelope)
    return str(caught.value)


def test_the_caps_error_lists_every_round_with_keys_messages_and_answers_and_no_token() -> None:
    conversation = call(4)
    step(conversation, asking({"city": form(), "words": MODEL}, requestState=TOKEN), city=OSLO)
    step(conversation, asking(requestState=TOKEN))
    step(conversation, listing(field("days")), days=2)
    step(conversation, asking({"ok": form("Sure?")}, requestState=TOKEN), ok=DECLINED)
    first, *listed = exceeded(conversation, asking({"again": form("And now?")}, requestState=TOKEN)).splitlines()
    assert first == "the server is still asking after 4 answered rounds; it asked:"
    assert len(listed) == 5
    parts = (
        ("round 1: ", "city", "Which city?", "Oslo", "words", "sampling/createMessage", "no answer"),
        ("round 2: nothing, only a state",),
        ("round 3: ", "days", "What city?", "2"),
        ("round 4: ", "ok", "Sure?", "decline"),
        ("round 5: ", "again", "And now?", "no answer"),
    )
    for line, expected in zip(listed, parts, strict=True):
        assert all(part in line for part in expected), line
    assert TOKEN not in "\n".join(listed)


@pytest.mark.parametrize("text", ["\x1b[2J", "a\n  round 9: nothing", "\u202e", "\r"])
def test_a_server_writes_no_line_of_the_caps_error_and_steers_no_terminal(text: str) -> None:
    conversation = call(1)
    step(conversation, asking({text: form(text)}), **{text: {"action": text}})
    lines = exceeded(conversation, asking({text: form(text)})).split("\n")
    assert len(lines) == 3
    assert all(line.isprintable() for line in lines)


@pytest.mark.long
def test_the_caps_error_stays_short() -> None:
    conversation = call(1)
    envelope = asking({f"key {number}": form("m" * 10_000) for number in range(10_000)})
    step(conversation, envelope, **{f"key {number}": {"action": "x" * 10_000} for number in range(10_000)})
    said = exceeded(conversation, envelope)
    assert len(said) < 50_000
    assert said.count("and 9980 more") == 2


# Parallel calls, and the token


ANSWERS: list[tuple[Any, Any]] = [
    (asking({"city": form()}), {"accept": {"city": "Oslo"}}),
    (asking({"city": form()}), {"raw": {"a": [1]}}),
    (asking({"city": form(city={"type": "array", "items": TEXT})}), ["Oslo"]),
    (asking({"city": MODEL}), {"sample": {"content": [{"type": "text", "text": "Oslo"}]}}),
    (asking({"city": FOLDERS}), {"roots": [{"uri": "file:///a"}]}),
    (listing(field()), {"raw": ["Oslo"]}),
]


@pytest.mark.parametrize(("envelope", "written"), ANSWERS)
def test_what_a_driver_does_to_what_it_sends_reaches_no_parallel_call(envelope: Any, written: Any) -> None:
    params, fixture = json.loads(json.dumps(PARAMS)), InputResponseFixture({"city": written})
    one, other = Conversation("tools/call", params), Conversation("tools/call", params)
    expected: list[str] = []
    for conversation in (one, other):
        before = json.dumps(conversation.to_send)
        read = conversation.receive(envelope)
        _spoil(conversation.to_send)
        conversation.answer(responses_to(read.questions, fixture.answer_for))
        expected += [before + json.dumps([conversation.to_send, conversation.rounds[0].as_json()])]
        _spoil(conversation.to_send)
        assert json.dumps(conversation.rounds[0].as_json()) in expected[-1]
    assert expected[0] == expected[1]


def _spoil(value: Any) -> None:
    """Empty everything in it that can be emptied."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        _spoil([*members.values()])
        members.clear()
    elif isinstance(value, list):
        while entries := cast("list[Any]", value):
            _spoil(entries.pop())


def test_the_token_is_not_in_the_representation_of_a_conversation() -> None:
    conversation = Conversation("tools/call", PARAMS)
    conversation.receive(asking({"city": form()}, requestState=TOKEN))
    assert TOKEN not in repr(conversation)
    conversation.answer({"city": OSLO})
    assert TOKEN not in repr(conversation)
