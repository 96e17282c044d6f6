"""The names of questions: a suite writes the name in a key, and the whole key goes over the wire.

testing.md section 1 (words): a key may carry a suffix after `~`; a fixture may give the bare name, an exact key wins.
"""

import json
from pathlib import Path
from typing import Annotated, Any

import pytest

from bespeak import Elicit, ElicitationResult, MCPServer, Resolve
from bespeak.conversation.answers import CannotAnswer
from bespeak.conversation.dialects import InputRequest
from bespeak.conversation.matchers import parse_matcher
from bespeak.conversation.question_names import AmbiguousName, SpelledKey, meant, name_of, names_of
from bespeak.conversation.responses import Question, in_one_round, read_envelope
from bespeak.testing import Conversation, InputResponseFixture, collect_responses, converse, run_elicitation_chain
from bespeak.testing.report.pretty_report import describe
from bespeak.testing.runner import Options
from tests.testing.canned import (
    HEAD,
    TOKEN,
    Canned,
    Hold,
    Json,
    Pushing,
    asking,
    form,
    listing,
    messages,
    round_of,
    told,
)
from tests.testing.canned import hold as hold

FIRST, SECOND = "shop:confirm~1a2b3c4d", "shop:confirm~5e6f7a8b"
NAME = "shop:confirm"
BOTH = f"the name '{NAME}' fits several open questions: '{FIRST}', '{SECOND}'; write the whole key"
YES = {"action": "accept", "content": {"value": "yes"}}
NO = {"action": "accept", "content": {"value": "no"}}


def asked(*keys: str) -> tuple[Question, ...]:
    """Questions that are open at the same time."""
    return in_one_round([Question(key, form()["method"], form()["params"]) for key in keys])


def pushed(key: str, message: str = "Which one?") -> Json:
    """A question as a server of an older revision pushes it, with its key."""
    question = form(message)
    return {**question, "params": {**question["params"], "_meta": {"bespeak/key": key}}}


# Which name a key has


@pytest.mark.parametrize(
    ("key", "name"),
    [
        (FIRST, NAME),
        ("city~00000000", "city"),
        ("module:<locals>.ask#2~deadbeef", "module:<locals>.ask#2"),
        ("a~deadbeef~12345678", "a~deadbeef"),
        ("größe~deadbeef", "größe"),
        *((key, key) for key in ("city", "", "city~1", "city~DEADBEEF", "city~deadbee", "city~deadbeef0")),
        *((key, key) for key in ("city-deadbeef", "deadbeef", "~deadbeef", "city~deadbeef ", "city~deadbeef\n")),
    ],
)
def test_a_name_is_what_stands_before_the_end_of_a_key(key: str, name: str) -> None:
    assert name_of(key) == name


@pytest.mark.parametrize(
    ("written", "keys", "key"),
    [
        (NAME, [FIRST], FIRST),
        (FIRST, [FIRST], FIRST),
        (FIRST, [SECOND, FIRST], FIRST),
        (FIRST, [SECOND], None),
        (NAME, [NAME], NAME),
        (NAME, [NAME, FIRST, SECOND], NAME),
        ("confirm", [FIRST], None),
        ("", ["~deadbeef"], None),
        (NAME, [], None),
    ],
)
def test_a_whole_key_means_itself_and_a_name_the_only_question_of_that_name(
    written: str, keys: list[str], key: str | None
) -> None:
    assert meant(written, keys) == key


def test_a_name_of_two_open_questions_means_neither() -> None:
    with pytest.raises(AmbiguousName) as raised:
        meant(NAME, [SECOND, FIRST, "other"])
    assert str(raised.value) == BOTH


def test_of_very_many_questions_of_one_name_some_are_listed() -> None:
    with pytest.raises(AmbiguousName, match=r"'x~00000019' and 9975 more; write the whole key$"):
        meant("x", [f"x~{number:08}" for number in reversed(range(9995))])


@pytest.mark.parametrize(
    ("keys", "names"),
    [
        ([FIRST, "city~deadbeef"], [NAME, "city"]),
        ([FIRST, SECOND, "city~deadbeef"], [FIRST, SECOND, "city"]),
        ([NAME, FIRST], [NAME, FIRST]),
        (["city", "city~1"], ["city", "city~1"]),
    ],
)
def test_questions_go_by_their_names_unless_two_of_a_round_share_one(keys: list[str], names: list[str]) -> None:
    assert list(names_of(keys).values()) == names
    assert [question.name for question in asked(*keys)] == names


@pytest.mark.parametrize(
    ("written", "fits"),
    [
        (NAME, True),
        (FIRST, True),
        (SECOND, False),
        ("confirm", False),
        ({"equals": NAME}, True),
        ({"equals": FIRST}, True),
        ({"oneOf": ["city", NAME]}, True),
        ({"oneOf": ["city", FIRST]}, True),
        ({"contains": "confirm"}, True),
        ({"contains": "~1a2b"}, True),
        ({"contains": "~5e6f"}, False),
        ({"matches": "confirm$"}, True),
        ({"matches": "~1a2b3c4d$"}, True),
        ({"matches": "~5e6f7a8b$"}, False),
        ({"matches": "^confirm"}, False),
        ({"schema": {"const": NAME}}, True),
        ({"schema": {"const": FIRST}}, True),
        ({"length": len(NAME)}, True),
        ({"not": NAME}, False),
        ({"not": FIRST}, False),
        ({"not": SECOND}, True),
        ({"not": {"matches": "confirm$"}}, False),
        ({"not": {"oneOf": ["city", NAME]}}, False),
        ({"oneOf": ["city", {"not": NAME}]}, False),
        ({"matches": "^shop", "not": NAME}, False),
        ({"not": {"not": NAME}}, True),
    ],
)
def test_a_matcher_takes_the_name_or_the_whole_key_and_denies_both(written: Any, fits: bool) -> None:
    assert (parse_matcher(written).check(SpelledKey(FIRST)) is None) is fits


# Answers


@pytest.mark.parametrize(
    "answers",
    [
        {NAME: "yes"},
        {FIRST: "yes"},
        {NAME: "no", FIRST: "yes"},
        {FIRST: "yes", NAME: "no"},
        [{"id": NAME, "value": "yes"}],
        [{"id": NAME, "value": "no"}, {"id": FIRST, "value": "yes"}],
        [{"when": {"key": NAME}, "answer": "yes"}],
        [{"when": {"key": FIRST}, "answer": "yes"}],
        [{"when": {"key": SECOND}, "answer": "no"}, {"otherwise": "yes"}],
        [{"when": {"key": {"not": NAME}}, "answer": "no"}, {"otherwise": "yes"}],
        [{"when": {"key": {"matches": "confirm$"}, "message": {"contains": "one"}}, "answer": "yes"}],
        {SECOND: "no", NAME: "yes"},
    ],
)
def test_an_answer_by_name_is_sent_with_the_whole_key(answers: Any) -> None:
    fixture = InputResponseFixture(answers)
    sent: list[Json] = []

    def done(params: Json) -> Json:
        sent.append(params)
        return {"jsonrpc": "2.0", "id": 2, "result": told()}

    first = {"jsonrpc": "2.0", "id": 1, "result": round_of({FIRST: form()})}
    run_elicitation_chain(first, {"name": "pay"}, fixture, 5, done)
    assert sent == [{"name": "pay", "inputResponses": {FIRST: YES}, "requestState": TOKEN}]
    assert collect_responses({FIRST: form()}, fixture) == {FIRST: YES}


def test_another_key_of_the_same_name_answers_nothing() -> None:
    with pytest.raises(CannotAnswer, match=f"^there is no answer to '{NAME}' \\(Which one\\?\\)$"):
        collect_responses({FIRST: form()}, InputResponseFixture({SECOND: "yes"}))


@pytest.mark.parametrize(
    "answers",
    [
        {NAME: "yes"},
        {NAME: "yes", FIRST: "no"},
        [{"id": NAME, "value": "yes"}],
        [{"when": {"key": NAME}, "answer": "yes"}, {"otherwise": "no"}],
        [{"when": {"key": {"oneOf": [NAME, "city"]}}, "answer": "yes"}, {"otherwise": "no"}],
    ],
)
def test_a_name_that_fits_two_open_questions_is_an_error_that_lists_both(answers: Any) -> None:
    with pytest.raises(CannotAnswer) as raised:
        collect_responses({FIRST: form(), SECOND: form()}, InputResponseFixture(answers))
    assert str(raised.value) == BOTH


@pytest.mark.parametrize(
    "answers",
    [
        {FIRST: "yes", SECOND: "no"},
        [{"when": {"key": FIRST}, "answer": "yes"}, {"when": {"key": SECOND}, "answer": "no"}],
        [
            {"when": {"key": {"matches": "4d$"}}, "answer": "yes"},
            {"when": {"key": {"contains": "~5e"}}, "answer": "no"},
        ],
        [{"when": {"key": FIRST}, "answer": "yes"}, {"when": {"key": {"contains": NAME}}, "answer": "no"}],
        [{"when": {"key": {"matches": "^shop:"}}, "answer": "yes"}, {"id": NAME, "value": "never"}],
    ],
)
def test_two_open_questions_of_one_name_are_told_apart_by_their_keys(answers: Any) -> None:
    found = collect_responses({FIRST: form(), SECOND: form()}, InputResponseFixture(answers))
    assert found[FIRST] == YES
    assert found.keys() == {FIRST, SECOND}


def test_a_question_whose_key_is_a_name_is_not_mistaken_for_one_that_has_that_name() -> None:
    requests = {NAME: form(), FIRST: form()}
    assert collect_responses(requests, InputResponseFixture({NAME: "yes", FIRST: "no"})) == {NAME: YES, FIRST: NO}
    with pytest.raises(CannotAnswer, match=f"^there is no answer to '{FIRST}'"):
        collect_responses(requests, InputResponseFixture({NAME: "yes"}))
    by_rule = [{"when": {"key": NAME}, "answer": "yes"}, {"otherwise": "no"}]
    assert collect_responses(requests, InputResponseFixture(by_rule)) == {NAME: YES, FIRST: NO}


def test_the_compatibility_dialect_has_names_too() -> None:
    requests = [InputRequest(id=FIRST), InputRequest(id="city~deadbeef")]
    answers = collect_responses(requests, InputResponseFixture([{"id": NAME, "value": "yes"}, {"otherwise": "Rome"}]))
    assert [(one.id, one.value) for one in answers] == [(FIRST, "yes"), ("city~deadbeef", "Rome")]
    with pytest.raises(CannotAnswer) as raised:
        collect_responses([InputRequest(id=FIRST), InputRequest(id=SECOND)], InputResponseFixture({NAME: "yes"}))
    assert str(raised.value) == BOTH


@pytest.mark.long
def test_ten_thousand_questions_of_one_name_are_read_and_refused_at_once() -> None:
    requests = {f"x~{number:08x}": form() for number in range(10_000)}
    with pytest.raises(CannotAnswer, match="and 9980 more"):
        collect_responses(requests, InputResponseFixture({"x": "yes"}))
    answers = dict.fromkeys(requests, "yes")
    assert len(collect_responses(requests, InputResponseFixture(answers))) == 10_000


# A conversation that was put down


def test_a_conversation_that_is_taken_up_again_knows_the_names_of_its_round() -> None:
    conversation = Conversation("tools/call", {"name": "pay"})
    conversation.receive({"jsonrpc": "2.0", "id": 1, "result": round_of({FIRST: form(), SECOND: form()})})
    again = Conversation.from_json(json.loads(json.dumps(conversation.as_json())))
    assert again.pending is not None
    assert [question.name for question in again.pending.questions] == [FIRST, SECOND]


# Suites


ANSWERED = f"{{'{NAME}': 'yes'}}"


async def test_a_suite_names_questions_wherever_it_can(hold: Hold) -> None:
    server = Canned(round_of({FIRST: form("Pay 5?"), "city~deadbeef": form("Where?")}), told("paid"))
    tests = f"""
  - name: a
    tool: pay
    rounds:
      - expect:
          asks: [city, '{NAME}']
          messages: {{'{NAME}': Pay 5?, city: {{contains: Where}}}}
          schemas: {{'{NAME}': {{contains: {{type: object}}}}}}
          methods: {{city: elicitation/create}}
        answer: {{'{NAME}': 'yes', city: Rome}}
    expect: {{asked: ['{NAME}', city], text: paid}}
"""
    assert messages(await hold(server, tests)) == []
    assert server.params[1]["inputResponses"].keys() == {FIRST, "city~deadbeef"}


async def test_a_suite_may_write_whole_keys_wherever_it_can(hold: Hold) -> None:
    server = Canned(round_of({FIRST: form("Pay 5?")}), told("paid"))
    tests = f"""
  - name: a
    tool: pay
    rounds:
      - expect:
          asks: ['{FIRST}']
          messages: {{'{FIRST}': Pay 5?}}
          schemas: {{'{FIRST}': {{contains: {{type: object}}}}}}
          methods: {{'{FIRST}': elicitation/create}}
        answer: {{'{FIRST}': 'yes'}}
    expect: {{asked: ['{FIRST}']}}
"""
    assert messages(await hold(server, tests)) == []


@pytest.mark.parametrize(
    "expected",
    [
        f"['{NAME}', city]",
        f"['{FIRST}', city]",
        f"['{NAME}', city~deadbeef]",
        f"{{contains: '{NAME}'}}",
        f"{{contains: '{FIRST}'}}",
        f"{{each: {{oneOf: [city, '{NAME}']}}}}",
        "{not: {contains: confirm}}",
        "{length: 2}",
    ],
)
async def test_what_was_asked_is_compared_by_name_or_by_whole_key(hold: Hold, expected: str) -> None:
    server = Canned(round_of({FIRST: form()}), round_of({"city~deadbeef": form()}), told())
    tests = f"  - {{name: a, tool: pay, inputResponses: [{{otherwise: 'yes'}}], expect: {{asked: {expected}}}}}\n"
    assert messages(await hold(server, tests)) == []


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ("[city]", f'asked[0]: expected "city", got "{NAME}"'),
        (f"['{SECOND}']", f'asked[0]: expected "{SECOND}", got "{NAME}"'),
        (f"{{not: {{contains: '{NAME}'}}}}", f'asked: is what it must not be: ["{NAME}"]'),
        (f"{{not: {{contains: '{FIRST}'}}}}", f'asked: is what it must not be: ["{NAME}"]'),
        (f"{{each: {{not: '{NAME}'}}}}", f'asked[0]: is what it must not be: "{NAME}"'),
    ],
)
async def test_what_was_asked_and_is_not_as_expected_is_told_by_name(hold: Hold, expected: str, message: str) -> None:
    server = Canned(round_of({FIRST: form()}), told())
    tests = f"  - {{name: a, tool: pay, inputResponses: {ANSWERED}, expect: {{asked: {expected}}}}}\n"
    assert messages(await hold(server, tests)) == [message]


TWO = f"{{'{FIRST}': 'yes', '{SECOND}': 'no'}}"


@pytest.mark.parametrize(
    ("test", "message"),
    [
        (f"inputResponses: {ANSWERED}", BOTH),
        (f"inputResponses: {TWO}, expect: {{asked: ['{NAME}', '{NAME}']}}", f"expect: {BOTH}"),
        (f"inputResponses: {TWO}, expect: {{asked: {{contains: '{NAME}'}}}}", f"expect: {BOTH}"),
        (f"rounds: [{{answer: {TWO}, expect: {{asks: ['{NAME}', '{NAME}']}}}}]", f"round 1, asks: {BOTH}"),
        (f"rounds: [{{answer: {TWO}, expect: {{messages: {{'{NAME}': x}}}}}}]", f"round 1, messages: {BOTH}"),
        (f"rounds: [{{answer: {TWO}, expect: {{schemas: {{'{NAME}': {{}}}}}}}}]", f"round 1, schemas: {BOTH}"),
        (f"rounds: [{{answer: {TWO}, expect: {{methods: {{'{NAME}': x}}}}}}]", f"round 1, methods: {BOTH}"),
    ],
)
async def test_a_name_of_two_open_questions_is_an_error_wherever_a_suite_writes_it(
    hold: Hold, test: str, message: str
) -> None:
    server = Canned(round_of({FIRST: form(), SECOND: form()}), told())
    assert messages(await hold(server, f"  - {{name: a, tool: pay, {test}}}\n")) == [message]


@pytest.mark.parametrize(
    "test",
    [
        f"inputResponses: {TWO}, expect: {{asked: ['{FIRST}', '{SECOND}']}}",
        f"inputResponses: {TWO}, expect: {{asked: {{each: {{matches: ^shop}}}}}}",
        f"rounds: [{{answer: {TWO}, expect: {{asks: ['{SECOND}', '{FIRST}'], messages: {{'{SECOND}': Which one?}}}}}}]",
    ],
)
async def test_two_open_questions_of_one_name_can_be_named_by_their_keys(hold: Hold, test: str) -> None:
    server = Canned(round_of({FIRST: form(), SECOND: form()}), told())
    assert messages(await hold(server, f"  - {{name: a, tool: pay, {test}}}\n")) == []


async def test_a_name_may_come_back_in_a_later_round_with_another_key(hold: Hold) -> None:
    server = Canned(round_of({FIRST: form("Pay 5?")}), round_of({SECOND: form("Pay 6?")}), told())
    test = f"inputResponses: {ANSWERED}, expect: {{rounds: 2, asked: ['{NAME}', '{NAME}']}}"
    assert messages(await hold(server, f"  - {{name: a, tool: pay, {test}}}\n")) == []
    assert [sent["inputResponses"] for sent in server.params[1:]] == [{FIRST: YES}, {SECOND: YES}]


async def test_what_a_round_asks_otherwise_is_told_by_name(hold: Hold) -> None:
    server = Canned(round_of({FIRST: form()}), told())
    test = f"rounds: [{{expect: {{asks: [city], messages: {{'{NAME}': Who?}}}}, answer: {ANSWERED}}}]"
    assert messages(await hold(server, f"  - {{name: a, tool: pay, {test}}}\n")) == [
        f"round 1 asked {NAME} instead of city",
        f'round 1, messages of \'{NAME}\': expected "Who?", got "Which one?"',
    ]


# Pushed questions


@pytest.mark.parametrize("protocol", ["legacy", "2025-11-25"])
async def test_a_pushed_question_is_answered_by_its_name(hold: Hold, protocol: str) -> None:
    server = Pushing(pushed(FIRST), pushed("city~deadbeef"))
    test = f"inputResponses: {{'{NAME}': 'yes', city: Rome}}, expect: {{asked: ['{NAME}', city]}}"
    head = HEAD.replace("timeout: 5", f"timeout: 5, protocol: {protocol}")
    assert messages(await hold(server, f"  - {{name: a, tool: pay, {test}}}\n", head)) == []


async def test_a_question_that_is_pushed_again_with_another_key_begins_another_round(hold: Hold) -> None:
    server = Pushing(pushed(FIRST, "Pay 5?"), pushed("city~deadbeef"), pushed(SECOND, "Pay 6?"))
    tests = f"""
  - name: a
    tool: pay
    rounds:
      - expect: {{asks: ['{NAME}', city], messages: {{'{NAME}': Pay 5?}}}}
        answer: {{'{NAME}': 'no', city: Rome}}
      - expect: {{asks: ['{NAME}'], messages: {{'{NAME}': Pay 6?}}}}
        answer: {{'{NAME}': 'yes'}}
"""
    assert messages(await hold(server, tests)) == []
    assert [one["result"]["content"]["value"] for one in server.answered] == ["no", "Rome", "yes"]


async def test_two_pushed_questions_of_one_name_are_of_one_round_where_the_suite_tells_them_apart(hold: Hold) -> None:
    server = Pushing(pushed(FIRST), pushed(SECOND))
    test = f"rounds: [{{expect: {{asks: ['{FIRST}', '{SECOND}']}}, answer: {TWO}}}]"
    assert messages(await hold(server, f"  - {{name: a, tool: pay, {test}}}\n")) == []


# What is told


async def test_a_missing_answer_is_pasted_by_name(hold: Hold) -> None:
    server = Canned(round_of({FIRST: form("Pay 5?"), "city~deadbeef": form("Where?")}))
    (result,) = await hold(server, "  - {name: a, tool: pay, inputResponses: {city: Rome}}\n")
    assert messages([result]) == [f"there is no answer to '{NAME}' (Pay 5?)"]
    assert result.failures[0].hint == f'inputResponses:\n  "{NAME}": "..."'


async def test_the_whole_key_is_pasted_where_two_open_questions_share_a_name(hold: Hold) -> None:
    server = Canned(round_of({FIRST: form("Pay 5?"), SECOND: form("Pay 6?")}))
    (result,) = await hold(server, f"  - {{name: a, tool: pay, inputResponses: {{'{FIRST}': 'yes'}}}}\n")
    assert messages([result]) == [f"there is no answer to '{SECOND}' (Pay 6?)"]
    assert result.failures[0].hint == f'inputResponses:\n  "{SECOND}": "..."'


async def test_reports_show_names(hold: Hold) -> None:
    server = Canned(round_of({FIRST: form("Pay 5?")}), round_of({SECOND: form("Pay 6?")}), told("paid"))
    (result,) = await hold(server, f"  - {{name: a, tool: pay, inputResponses: {ANSWERED}, expect: {{text: no}}}}\n")
    assert [list(one.asked) for one in result.rounds] == [[NAME], [NAME]]
    assert [list(one.answered) for one in result.rounds] == [[NAME], [NAME]]
    assert "~" not in describe(result) + json.dumps(result.as_json())
    assert f'    {NAME}: "Pay 5?"\n      answered ' in describe(result)


async def test_reports_show_whole_keys_where_two_open_questions_share_a_name(hold: Hold) -> None:
    server = Canned(round_of({FIRST: form("Pay 5?"), SECOND: form("Pay 6?")}), told("paid"))
    (result,) = await hold(server, f"  - {{name: a, tool: pay, inputResponses: {TWO}, expect: {{text: no}}}}\n")
    assert [list(one.asked) for one in result.rounds] == [[FIRST, SECOND]]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("{accept: {x: 1}}", f"the form of '{NAME}' has no field 'x'; it has value"),
        ("{sample: Rome}", f"'{NAME}' asks with a form (elicitation/create), which {{sample: ...}} does not answer"),
        ("5", f"the answer to '{NAME}' does not fit its form"),
    ],
)
async def test_an_answer_that_does_not_fit_is_told_by_name(hold: Hold, answer: str, message: str) -> None:
    (result,) = await hold(
        Canned(round_of({FIRST: form()})), f"  - {{name: a, tool: pay, inputResponses: {{'{NAME}': {answer}}}}}\n"
    )
    assert result.failures[0].message.startswith(message)


async def test_rounds_without_end_are_told_by_name(hold: Hold) -> None:
    asks = [round_of({f"{NAME}~{number:08x}": form("Again?")}) for number in range(7)]
    (result,) = await hold(Canned(*asks), f"  - {{name: a, tool: pay, inputResponses: {ANSWERED}}}\n")
    assert f"  round 6: {NAME} (Again?) -> no answer" in result.failures[0].message
    assert "~" not in result.failures[0].message


async def test_a_question_of_a_kind_that_was_not_declared_is_told_by_name(hold: Hold) -> None:
    (result,) = await hold(Canned(round_of({FIRST: form()})), "  - {name: a, tool: pay, declare: {}}\n")
    assert result.failures[0].message == f"'{NAME}' asks for elicitation.form, which was not declared"


def test_a_broken_question_is_told_by_name() -> None:
    read = read_envelope({"jsonrpc": "2.0", "id": 1, "result": round_of({FIRST: {}})})
    assert [finding.text for finding in read.findings] == [f"the question '{NAME}' has no method"]


async def test_a_round_too_many_is_told_by_name(hold: Hold) -> None:
    server = Canned(round_of({FIRST: form()}), round_of({SECOND: form()}))
    tests = f"  - {{name: a, tool: pay, rounds: [{{answer: {ANSWERED}}}]}}\n"
    assert messages(await hold(server, tests)) == [f"round 2 was not expected; it asks '{NAME}'"]


# What is kept, and what is kept out


async def test_a_snapshot_of_what_was_asked_holds_names(hold: Hold, tmp_path: Path) -> None:
    from bespeak.testing.cassettes.record_mode import RecordMode

    tests = f"  - {{name: a, tool: pay, inputResponses: {ANSWERED}, expect: {{asked: {{snapshot: asked}}}}}}\n"
    recording = Options(record=RecordMode.ONCE)
    assert messages(await hold(Canned(round_of({FIRST: form()}), told()), tests, options=recording)) == []
    kept = json.loads((tmp_path / "desk.snapshots.json").read_text())
    assert kept == {"a": {"asked": [NAME]}}
    assert messages(await hold(Canned(round_of({SECOND: form()}), told()), tests)) == []


@pytest.mark.parametrize("by", [NAME, FIRST])
async def test_what_is_kept_out_of_reports_can_be_declared_by_name(hold: Hold, by: str) -> None:
    head = f"{HEAD}redact: ['inputRequests[\"{by}\"].params.message', 'inputResponses[\"{by}\"].content.value']\n"
    server = Canned(round_of({FIRST: form("SECRET words"), "city": form("Where?")}), told("paid"))
    tests = f"  - {{name: a, tool: pay, inputResponses: {{'{NAME}': 'SECRET', city: Rome}}, expect: {{text: no}}}}\n"
    (result,) = await hold(server, tests, head)
    assert result.rounds[0].asked == {NAME: "[redacted]", "city": "Where?"}
    assert "SECRET" not in describe(result)
    assert "Rome" in describe(result)


async def test_a_missing_answer_is_told_without_what_is_declared_by_name(hold: Hold) -> None:
    head = f"{HEAD}redact: ['inputRequests[\"{NAME}\"].params.message']\n"
    (result,) = await hold(Canned(round_of({FIRST: form("SECRET words")})), "  - {name: a, tool: pay}\n", head)
    assert messages([result]) == [f"there is no answer to '{NAME}' ([redacted])"]


# A result that asks, after a state was dropped


@pytest.mark.parametrize("key", [NAME, FIRST])
async def test_a_question_in_a_result_is_captured_and_expected_by_name_or_whole_key(hold: Hold, key: str) -> None:
    server = Canned(round_of({FIRST: form("Pay 5?")}), round_of({FIRST: form("Pay 5?")}), told("Pay 5?"))
    expected = f"{{contains: {{inputRequests: {{'{key}': {{contains: {{method: elicitation/create}}}}}}}}}}"
    tests = f"""
  - name: a
    tool: pay
    inputResponses: {ANSWERED}
    tamper: {{round: 1, requestState: drop}}
    expect: {{result: {expected}}}
    capture: {{said: 'inputRequests["{key}"].params.message'}}
  - {{name: b, tool: pay, expect: {{text: "${{said}}"}}}}
"""
    assert messages(await hold(server, tests)) == []


async def test_a_name_of_two_questions_in_a_result_cannot_be_captured(hold: Hold) -> None:
    asks = round_of({FIRST: form(), SECOND: form()})
    tests = f"""
  - name: a
    tool: pay
    inputResponses: {TWO}
    tamper: {{round: 1, requestState: drop}}
    capture: {{said: 'inputRequests["{NAME}"].params.message'}}
"""
    assert messages(await hold(Canned(asks, asks), tests)) == [f"capture: {BOTH}"]


# From Python


async def test_a_conversation_in_code_has_names_and_keys() -> None:
    server = Canned(round_of({FIRST: form("Pay 5?")}), round_of({SECOND: form("Pay 6?")}), told("paid"))
    said = await converse(server, "pay", answers={NAME: "yes"}, era="2026-07-28")
    assert said.asked == [NAME, NAME]
    assert said.keys == [FIRST, SECOND]
    assert [one.asked for one in said.rounds] == [{NAME: "Pay 5?"}, {NAME: "Pay 6?"}]
    assert [one.answered for one in said.rounds] == [{NAME: YES}, {NAME: YES}]


async def test_a_list_of_fields_is_answered_by_name(hold: Hold) -> None:
    server = Canned(listing(FIRST), told())
    tests = f"  - {{name: a, tool: pay, wire: list, inputResponses: {ANSWERED}, expect: {{asked: ['{NAME}']}}}}\n"
    assert messages(await hold(server, tests)) == []
    assert server.params[1]["inputResponses"] == [{"id": FIRST, "value": "yes"}]


async def test_keys_without_an_end_are_what_they_were(hold: Hold) -> None:
    server = Canned(asking("city", "city~1"), told())
    test = "inputResponses: {city: Rome, city~1: Oslo}, expect: {asked: [city, city~1]}"
    (result,) = await hold(server, f"  - {{name: a, tool: pay, {test}}}\n")
    assert messages([result]) == []
    assert list(result.rounds[0].asked) == ["city", "city~1"]


async def test_a_server_of_ours_may_ask_a_declined_question_again_when_what_it_depends_on_has_changed() -> None:
    rates = iter([1, 1, 1, 2, 2, 2, 2])
    mcp = MCPServer[Any]("exchange")

    async def rate() -> int:
        return next(rates)

    async def amount(rate: Annotated[int, Resolve(rate)]) -> Elicit[int]:
        return Elicit(f"How much, at {rate}?", int)

    async def insured(amount: Annotated[int, Resolve(amount, key="amount")]) -> Elicit[bool]:
        return Elicit("Insured?", bool)

    async def name(asked: Annotated[ElicitationResult[bool], Resolve(insured, key="insured")]) -> Elicit[str]:
        return Elicit(f"Whose money is it ({asked.action})?", str)

    @mcp.tool()
    async def change(
        insured: Annotated[ElicitationResult[bool], Resolve(insured, key="insured")],
        name: Annotated[str, Resolve(name, key="name")],
    ) -> str:
        return f"{name}: {insured.action}"

    answers = {"amount": 5, "insured": "decline", "name": "Ada"}
    said = await converse(mcp, "change", answers=answers, era="2026-07-28", max_rounds=6)
    assert said.text == "Ada: decline"
    assert said.asked == ["amount", "insured", "name", "amount", "insured", "name"]
    assert len(set(said.keys)) == 6
