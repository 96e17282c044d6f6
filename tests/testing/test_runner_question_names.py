"""The names of questions in suites and reports: a suite names a question, and reports show the name."""

import json
from pathlib import Path
from typing import Annotated, Any

import pytest

from bespeak import Elicit, ElicitationResult, MCPServer, Resolve
from bespeak.testing import converse
from bespeak.testing.cassettes.record_mode import RecordMode
from bespeak.testing.report.pretty_report import describe
from bespeak.testing.runner import Options
from tests.testing.canned import HEAD, Canned, Hold, Json, Pushing, form, messages, round_of, told
from tests.testing.canned import hold as hold

FIRST, SECOND = "shop:confirm~1a2b3c4d", "shop:confirm~5e6f7a8b"
NAME = "shop:confirm"
BOTH = f"the name '{NAME}' fits several open questions: '{FIRST}', '{SECOND}'; write the whole key"
YES = {"action": "accept", "content": {"value": "yes"}}


def pushed(key: str, message: str = "Which one?") -> Json:
    """A question as a server of an older revision pushes it, with its key."""
    question = form(message)
    return {**question, "params": {**question["params"], "_meta": {"bespeak/key": key}}}


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


@pytest.mark.parametrize(
    "expected",
    [
        f"['{NAME}', city]",
        f"['{FIRST}', city]",
        f"{{contains: '{NAME}'}}",
        f"{{contains: '{FIRST}'}}",
        "{not: {contains: confirm}}",
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
        (f"{{not: {{contains: '{NAME}'}}}}", f'asked: must not match, but does: ["{NAME}"]'),
        (f"{{not: {{contains: '{FIRST}'}}}}", f'asked: must not match, but does: ["{NAME}"]'),
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


# What is told


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


async def test_rounds_without_end_are_told_by_name(hold: Hold) -> None:
    asks = [round_of({f"{NAME}~{number:08x}": form("Again?")}) for number in range(7)]
    (result,) = await hold(Canned(*asks), f"  - {{name: a, tool: pay, inputResponses: {ANSWERED}}}\n")
    assert f"  round 6: {NAME} (Again?) -> no answer" in result.failures[0].message
    assert "~" not in result.failures[0].message


# What is kept, and what is kept out


async def test_a_snapshot_of_what_was_asked_holds_names(hold: Hold, tmp_path: Path) -> None:
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
