"""The names of questions: a name in a suite stands for a whole key on the wire."""

from typing import Any

import pytest

from bespeak.conversation.answers import CannotAnswer
from bespeak.conversation.input_required import InputRequest
from bespeak.conversation.matchers import parse_matcher
from bespeak.conversation.question_names import AmbiguousName, SpelledKey, meant, name_of, names_of
from bespeak.conversation.responses import Question, in_one_round, read_envelope
from bespeak.testing import InputResponseFixture, collect_responses, run_elicitation_chain
from tests.testing.canned import TOKEN, Json, form, round_of, told

FIRST, SECOND = "shop:confirm~1a2b3c4d", "shop:confirm~5e6f7a8b"
NAME = "shop:confirm"
BOTH = f"the name '{NAME}' fits several open questions: '{FIRST}', '{SECOND}'; write the whole key"
YES = {"action": "accept", "content": {"value": "yes"}}
NO = {"action": "accept", "content": {"value": "no"}}


def asked(*keys: str) -> tuple[Question, ...]:
    """Questions that are open at the same time."""
    return in_one_round([Question(key, form()["method"], form()["params"]) for key in keys])


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
        ({"equals": NAME}, True),
        ({"oneOf": ["city", NAME]}, True),
        ({"contains": "confirm"}, True),
        ({"contains": "~1a2b"}, True),
        ({"matches": "confirm$"}, True),
        ({"matches": "~1a2b3c4d$"}, True),
        ({"schema": {"const": NAME}}, True),
        ({"length": len(NAME)}, True),
        ({"not": NAME}, False),
        ({"not": FIRST}, False),
        ({"not": SECOND}, True),
        ({"not": {"matches": "confirm$"}}, False),
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
        [{"id": NAME, "value": "yes"}],
        [{"id": NAME, "value": "no"}, {"id": FIRST, "value": "yes"}],
        [{"when": {"key": NAME}, "answer": "yes"}],
        [{"when": {"key": SECOND}, "answer": "no"}, {"otherwise": "yes"}],
        [{"when": {"key": {"not": NAME}}, "answer": "no"}, {"otherwise": "yes"}],
        [{"when": {"key": {"matches": "confirm$"}, "message": {"contains": "one"}}, "answer": "yes"}],
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
def test_two_open_questions_with_one_name_are_distinguished_by_their_keys(answers: Any) -> None:
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


# A conversation that was put down


def test_an_invalid_question_is_reported_by_name() -> None:
    read = read_envelope({"jsonrpc": "2.0", "id": 1, "result": round_of({FIRST: {}})})
    assert [finding.text for finding in read.findings] == [f"the question '{NAME}' has no method"]
