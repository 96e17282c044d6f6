"""What a test says of a question that it has no answer to: what was asked, which answers were left over, what to paste."""

import pytest

from bespeak.testing.suite.yaml_positions import read_yaml
from tests.testing.canned import NOVEMBER, Canned, Hold, Json, Pushing, asking, form, messages, told
from tests.testing.canned import hold as hold


def model(**more: Json | str) -> Json:
    asked = {"messages": [{"role": "user", "content": {"type": "text", "text": "Describe it."}}], "maxTokens": 9}
    return {"method": "sampling/createMessage", "params": {**asked, **more}}


async def test_an_answer_with_a_misspelt_name_is_named(hold: Hold) -> None:
    results = await hold(Canned(asking("city")), "  - {name: a, tool: x, inputResponses: {citty: Rome, units: C}}")
    assert messages(results) == ["there is no answer to 'city' (Which one?); not used so far: 'citty', 'units'"]


async def test_a_question_for_the_model_is_shown_with_what_it_asks(hold: Hold) -> None:
    ((failure,),) = [one.failures for one in await hold(Canned(asking(say=model())), "  - {name: a, tool: x}")]
    assert failure.message == "there is no answer to 'say' (Describe it.)"
    assert failure.hint == 'inputResponses:\n  say: {"sample": "..."}'


ROUNDS = "  - {{name: a, tool: x, rounds: [{}]{}}}\n"
CITY = "{answer: {city: Rome}}"


@pytest.mark.parametrize(
    ("rounds", "message", "number"),
    [
        (f"{CITY}, {{answer: {{unit: C}}}}", "there is no answer to 'units' (Which one?); not used so far: 'unit'", 2),
        (CITY, "round 2 was not expected; it asks 'units'", 2),
        ("{}", "there is no answer to 'city' (Which one?)", 1),
    ],
)
async def test_a_test_with_rounds_gets_yaml_with_rounds(hold: Hold, rounds: str, message: str, number: int) -> None:
    server = Canned(asking("city"), asking("units"), told())
    ((failure,),) = [one.failures for one in await hold(server, ROUNDS.format(rounds, ""))]
    assert failure.message == message
    name = "units" if number == 2 else "city"
    assert failure.hint == f'rounds:\n  # in round {number}\n  - answer:\n      {name}: "..."'
    assert read_yaml(failure.hint or "").value == {"rounds": [{"answer": {name: "..."}}]}


async def test_a_test_with_rounds_that_stops_later_gets_yaml_with_rounds_as_well(hold: Hold) -> None:
    block = "{expect: {asks: [units]}, answer: {citty: Rome}}"
    results = await hold(Canned(asking("city")), ROUNDS.format(block, ", stop: {after: 2}"))
    assert messages(results) == [
        "there is no answer to 'city' (Which one?); not used so far: 'citty'",
        "round 1 asked city instead of units",
    ]
    assert results[0].failures[0].hint == 'rounds:\n  # in round 1\n  - answer:\n      city: "..."'


async def test_a_test_with_answers_that_stops_later_names_those_that_were_not_used(hold: Hold) -> None:
    test = "  - {name: a, tool: x, inputResponses: {citty: Rome}, stop: {after: 2}}"
    ((failure,),) = [one.failures for one in await hold(Canned(asking("city")), test)]
    assert failure.message == "there is no answer to 'city' (Which one?); not used so far: 'citty'"
    assert failure.hint == 'inputResponses:\n  city: "..."'


@pytest.mark.parametrize(
    ("when", "hinted"),
    [
        ("message: Which", True),
        ("message: which one", True),
        ("message: Where", False),
        ("message: {contains: which}", False),
        ("method: sampling/createMessage", False),
    ],
)
async def test_a_rule_with_a_part_of_the_message_is_told_to_use_contains(hold: Hold, when: str, hinted: bool) -> None:
    rules = f"[{{when: {{{when}}}, answer: Rome}}]"
    hint = "is for the whole message: for a part of it, use contains or matches"
    results = await hold(Canned(asking("city")), f"  - {{name: a, tool: x, inputResponses: {rules}}}")
    told_ = "there is no answer to 'city' (Which one?)"
    assert messages(results) == [f"{told_}; inputResponses[0] {hint}" if hinted else told_]
    results = await hold(Canned(asking("city")), ROUNDS.format(f"{{answer: {rules}}}", ""))
    assert messages(results) == [f"{told_}; rounds[0].answer[0] {hint}" if hinted else told_]


@pytest.mark.parametrize("answer", ["units: C", "city: 5"])
async def test_a_round_that_asks_something_else_is_reported_too(hold: Hold, answer: str) -> None:
    expects = f"{{expect: {{asks: [units]}}, answer: {{{answer}}}}}"
    results = await hold(Canned(asking("city")), ROUNDS.format(expects, ""))
    assert messages(results)[1:] == ["round 1 asked city instead of units"]


@pytest.mark.parametrize(("asks", "said"), [("units", ["round 1 asked city instead of units"]), ("city, units", [])])
async def test_a_pushed_question_is_no_mismatch_if_others_may_follow(hold: Hold, asks: str, said: list[str]) -> None:
    expects = f"{{expect: {{asks: [{asks}]}}, answer: {{units: C}}}}"
    results = await hold(Pushing(form(city={"type": "string"})), ROUNDS.format(expects, f", eras: [{NOVEMBER}]"))
    assert messages(results)[1:] == said


async def test_a_round_that_is_not_expected_and_asks_nothing_has_nothing_to_paste(hold: Hold) -> None:
    ((failure,),) = [
        one.failures for one in await hold(Canned(asking("city"), asking(), told()), ROUNDS.format(CITY, ""))
    ]
    assert (failure.message, failure.hint) == ("round 2 was not expected; it asks nothing", None)
