"""Whatever a server sends and whatever was answered: the rules of testing.md section 1, on random conversations."""

import copy
import json
import os
import re
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bespeak.conversation.answer_examples import paste
from bespeak.conversation.fixtures import responses_to
from bespeak.testing import (
    Conversation,
    Dialect,
    InputResponse,
    InputResponseFixture,
    MalformedResponse,
    RequestState,
    RoundsExceeded,
    Verdict,
    build_retry_params,
    read_envelope,
    recognize_input_required,
)
from bespeak.testing.suite.yaml_positions import read_yaml
from tests.conversation.envelopes import FOLDERS, MODEL, PAGE, asking, enveloped, field, form, listing

many = settings(max_examples=50 * int(os.environ.get("BESPEAK_SOAK", "1")))

# Any JSON, and JSON that nearly asks

texts = st.text(st.characters(codec=None), max_size=8)
"""Half a surrogate pair, too: JSON can carry it."""
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
values: st.SearchStrategy[Any] = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=8
)
methods = st.sampled_from(["elicitation/create", "sampling/createMessage", "roots/list", "tools/call", ""]) | values
schemas = st.fixed_dictionaries(
    {}, optional={"type": values, "properties": st.dictionaries(texts, values) | values, "required": values}
)
params_ = st.fixed_dictionaries(
    {},
    optional={
        "mode": st.sampled_from(["form", "url"]) | values,
        "message": texts | values,
        "requestedSchema": schemas | values,
        "url": texts | values,
        "messages": st.lists(values, max_size=2) | values,
        "maxTokens": st.integers() | values,
    },
)
entries = st.fixed_dictionaries({}, optional={"method": methods, "params": params_ | values}) | values
fields = (
    st.fixed_dictionaries(
        {},
        optional={
            "id": texts | values,
            "kind": texts | values,
            "description": texts | values,
            "required": st.booleans() | values,
        },
    )
    | values
)
results = st.fixed_dictionaries(
    {},
    optional={
        "resultType": st.sampled_from(["input_required", "complete", "task"]) | values,
        "inputRequests": st.dictionaries(texts, entries, max_size=3) | st.lists(fields, max_size=3) | values,
        "requestState": texts | values,
        "description": values,
    },
)
envelopes = values | st.fixed_dictionaries({}, optional={"result": results | values, "error": values, "id": values})


@many
@given(envelopes, st.sampled_from(["tools/call", "prompts/get", "tools/list"]))
@pytest.mark.long
def test_any_json_is_read(envelope: Any, method: str) -> None:
    before = copy.deepcopy(envelope)
    read = read_envelope(envelope, method)
    assert envelope == before
    assert (read.verdict is Verdict.COMPLETE) is (read.dialect is None) or read.verdict is Verdict.MALFORMED
    assert read.verdict is not Verdict.MALFORMED or read.findings
    assert read.verdict is Verdict.ASKING or (read.questions, read.state) == ((), None)
    assert len({one.key for one in read.questions}) == len(read.questions)
    assert all(str(finding).isprintable() for finding in read.findings)


@many
@given(envelopes)
def test_what_is_recognized_is_what_asks(envelope: Any) -> None:
    found, read = recognize_input_required(envelope), read_envelope(envelope)
    assert (found is not None) is (read.verdict is Verdict.ASKING)
    if found is not None:
        assert found.request_state == (None if read.state is None else RequestState(read.state))
        assert len(found.input_requests) == len(read.questions)
        json.dumps(found.model_dump(mode="json"))


@many
@given(envelopes, values)
def test_whatever_asks_whatever_is_asked_for_can_be_gone_on_with(envelope: Any, response: Any) -> None:
    conversation = Conversation("tools/call", {})
    try:
        read = conversation.receive(envelope)
    except MalformedResponse:
        return
    assert paste(read.questions)
    if read.verdict is Verdict.ASKING:
        conversation.answer({one.key: response for one in read.questions})
        json.dumps(conversation.to_send)


@many
@given(results, st.sampled_from(["complete", "input_required", "task"]))
@pytest.mark.long
def test_the_result_type_decides(result: dict[str, Any], kind: str) -> None:
    read = read_envelope(enveloped({**result, "resultType": kind}))
    allowed = {
        "complete": {Verdict.COMPLETE},
        "input_required": {Verdict.ASKING, Verdict.MALFORMED},
        "task": {Verdict.MALFORMED},
    }
    assert read.verdict in allowed[kind]
    assert read.dialect in (None, Dialect.SPEC)


@many
@given(results)
@pytest.mark.long
def test_without_a_result_type_the_rule_of_the_list_holds(result: dict[str, Any]) -> None:
    result.pop("resultType", None)
    asked, state = result.get("inputRequests"), result.get("requestState")
    entries_ = cast("list[Any]", asked) if isinstance(asked, list) else []
    whole = bool(entries_) and all(map(_is_field, entries_)) and isinstance(state, str) and bool(state)
    read = read_envelope(enveloped(result))
    assert read.verdict is (Verdict.ASKING if whole else Verdict.COMPLETE)
    assert read.dialect is (Dialect.LIST if whole else None)


def _is_field(entry: Any) -> bool:
    members = as_map(entry) or {}
    said = (members.get("id"), members.get("kind", ""), members.get("description", ""))
    return all(isinstance(one, str) for one in said) and isinstance(members.get("required", True), bool)


def as_map(value: Any) -> dict[str, Any] | None:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


# The retry

responses_ = (
    st.none()
    | st.dictionaries(texts, values, max_size=3)
    | st.lists(st.builds(InputResponse, id=texts, value=values), max_size=3)
)


@many
@given(values, st.none() | texts, responses_)
def test_a_retry_has_the_original_params_these_answers_and_this_state(
    original: Any, state: Any, responses: Any
) -> None:
    before = copy.deepcopy((original, responses))
    retry = build_retry_params(original, state, responses)
    assert (original, responses) == before
    added = {"inputResponses", "requestState"}
    kept = {name: value for name, value in retry.items() if name not in added}
    assert kept == {name: value for name, value in (as_map(original) or {}).items() if name not in added}
    assert retry.get("requestState") == state
    assert ("requestState" in retry) is (state is not None)
    assert ("inputResponses" in retry) is (responses is not None)
    json.dumps(retry)


# Conversations

states = st.none() | texts | st.just("") | st.just("x" * 5_000)
KEYS = ["city", "units", "", "\x1b[2J"]
requests = st.sampled_from([form(), form("Which units?"), PAGE, MODEL, FOLDERS])
maps = st.dictionaries(st.sampled_from(KEYS), requests, max_size=3)
lists = st.lists(st.builds(field, st.sampled_from(KEYS), required=st.booleans()), min_size=1, max_size=3)


@st.composite
def rounds(draw: st.DrawFn) -> dict[str, Any]:
    """One asking response, of either dialect."""
    if draw(st.booleans()):
        return listing(*draw(lists), state=draw(texts.filter(bool)))
    state = draw(states)
    members = {} if state is None else {"requestState": state}
    asked = draw(maps) or ({} if members else {"city": form()})
    return asking(asked, **members)


replies = st.sampled_from(
    [
        {"action": "decline"},
        {"action": "cancel"},
        {"action": "accept", "content": {"city": "Oslo"}},
        "Oslo",
        5,
        None,
        ["x"],
    ]
)
params = st.dictionaries(texts, values, max_size=3)


def answers_to(conversation: Conversation, reply: Any) -> dict[str, Any]:
    """An answer to all but the first question, whose key is left out now and then."""
    assert conversation.pending is not None
    asked = conversation.pending.questions
    return {one.key: copy.deepcopy(reply) for one in (asked if reply is not None else asked[1:])}


def seen(conversation: Conversation) -> Any:
    """All that whoever drives a conversation can see of it."""
    pending = conversation.pending
    return (
        (conversation.method, conversation.params, conversation.to_send, conversation.pause),
        (conversation.rounds, conversation.findings, conversation.dialects),
        None if pending is None else (pending.questions, pending.state, pending.dialect, pending.description),
    )


def receive(conversation: Conversation, envelope: Any) -> str | None:
    """Take in a response; what was raised, if anything was."""
    try:
        conversation.receive(copy.deepcopy(envelope))
    except RoundsExceeded as error:
        return str(error)
    return None


@many
@given(params, st.lists(st.tuples(rounds(), replies), max_size=5), st.integers(0, 9), st.integers(1, 5))
@pytest.mark.long
def test_a_conversation_put_down_at_any_point_and_taken_up_again_behaves_the_same(
    original: dict[str, Any], script: list[Any], at: int, cap: int
) -> None:
    one = Conversation("tools/call", copy.deepcopy(original), cap, {"elicitation": {}})
    other = Conversation("tools/call", copy.deepcopy(original), cap, {"elicitation": {}})
    steps = 0
    for envelope, reply in script:
        for answering in (False, True):
            if steps == at:
                other = Conversation.from_json(json.loads(json.dumps(other.as_json())))
            steps += 1
            if answering:
                one.answer(answers_to(one, reply))
                other.answer(answers_to(other, reply))
            else:
                raised = receive(one, envelope)
                assert receive(other, envelope) == raised
                if raised is not None:
                    return
            assert seen(other) == seen(one)


@many
@given(params, st.lists(st.tuples(rounds(), replies), max_size=6))
def test_each_retry_has_this_rounds_answers_and_its_state_and_nothing_of_other_rounds(
    original: dict[str, Any], script: list[Any]
) -> None:
    conversation = Conversation("prompts/get", copy.deepcopy(original), max_rounds=10)
    bare = {name: value for name, value in original.items() if name not in ("inputResponses", "requestState")}
    assert conversation.to_send == original
    for envelope, reply in script:
        conversation.receive(envelope)
        given_ = answers_to(conversation, reply)
        conversation.answer(given_)
        result = envelope["result"]
        expected = dict(bare)
        if "resultType" not in result:
            expected["inputResponses"] = [{"id": key, "value": value} for key, value in given_.items()]
        elif result["inputRequests"]:
            expected["inputResponses"] = given_
        if "requestState" in result:
            expected["requestState"] = result["requestState"]
        assert conversation.to_send == expected


def hold(conversation: Conversation, envelope: Any, reply: Any) -> None:
    """One round, by a driver that adds to what it sends."""
    conversation.receive(envelope)
    conversation.answer(answers_to(conversation, reply))
    conversation.to_send["_meta"] = {"sent": True}


@many
@given(params, st.lists(st.tuples(st.booleans(), rounds(), replies), max_size=8))
@pytest.mark.long
def test_nothing_leaks_from_one_conversation_to_a_parallel_one(original: dict[str, Any], script: list[Any]) -> None:
    shared = copy.deepcopy(original)
    both = [Conversation("tools/call", shared, max_rounds=10) for _ in range(2)]
    alone = [Conversation("tools/call", copy.deepcopy(original), max_rounds=10) for _ in range(2)]
    for first, envelope, reply in script:
        hold(both[0 if first else 1], envelope, reply)
        hold(alone[0 if first else 1], copy.deepcopy(envelope), reply)
        assert [seen(one) for one in both] == [seen(one) for one in alone]
    assert shared == original


@many
@given(st.lists(st.tuples(rounds(), replies), min_size=1, max_size=3))
def test_the_caps_error_names_every_round_and_no_token(script: list[Any]) -> None:
    conversation = Conversation("tools/call", {}, max_rounds=len(script))
    for number, (envelope, reply) in enumerate(script):
        if "requestState" in envelope["result"]:
            envelope["result"]["requestState"] = f"token-{number}"
        conversation.receive(envelope)
        conversation.answer(answers_to(conversation, reply))
    raised = receive(conversation, asking({"again": form()}, requestState="token-last"))
    assert raised is not None
    assert "token-" not in raised
    lines = raised.split("\n")
    assert [re.findall(r"^  round (\d+): ", line) for line in lines[1:]] == [
        [str(n + 1)] for n in range(len(script) + 1)
    ]
    assert all(line.isprintable() for line in lines)


@many
@given(st.lists(rounds(), min_size=1, max_size=3))
@pytest.mark.long
def test_what_is_pasted_for_a_missing_answer_is_a_fixture_for_all_its_questions(envelopes_: list[Any]) -> None:
    for envelope in envelopes_:
        questions = read_envelope(envelope).questions
        pasted = read_yaml(paste(questions)).value["inputResponses"]
        fixture = InputResponseFixture(pasted if questions else None)
        answered = responses_to(questions, fixture.answer_for)
        assert set(answered) == {one.key for one in questions}


@pytest.mark.parametrize("depth", [150])
def test_the_deepest_json_a_wire_carries_is_read_and_sent(depth: int) -> None:
    deep: Any = json.loads("[" * depth + "]" * depth)
    assert read_envelope(enveloped({"resultType": deep})).verdict is Verdict.MALFORMED
    assert build_retry_params({"a": deep}, None, {"b": deep}) == {"a": deep, "inputResponses": {"b": deep}}
    assert Conversation.from_json(Conversation("tools/call", {"a": deep}).as_json()).to_send == {"a": deep}


def test_a_state_that_is_a_plain_word_is_not_hidden_where_it_is_said() -> None:
    conversation = Conversation("tools/call", {"name": "t"})
    conversation.receive(asking({"k": form()}, requestState="confirmed"))
    assert conversation.states == []
