"""`bespeak call` and the keys of questions: a person reads and writes names, and the server gets its keys back."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.cli.desks import WORD, Raw, accepted, asking, bespeak, form, told, write_raw
from tests.cli.terminals import at_terminal

FIRST, SECOND = "pay~1a2b3c4d", "pay~5e6f7a8b"
BOTH = f"the name 'pay' fits several open questions: '{FIRST}', '{SECOND}'; write the whole key"
X = accepted(x="x")


@pytest.fixture
def raw(tmp_path: Path) -> Raw:
    return write_raw(tmp_path)


def asks(*keys: str) -> dict[str, Any]:
    return asking(**dict.fromkeys(keys, WORD))


def given(*answers: str) -> list[str]:
    return [word for answer in answers for word in ("--answer", answer)]


@pytest.mark.timing
@pytest.mark.parametrize("answers", [["pay=x"], [f"{FIRST}=x"], ["pay=y", f"{FIRST}=x"], [f"{FIRST}=x", "pay=y"]])
def test_an_answer_is_given_by_name_or_by_whole_key_and_the_key_wins(raw: Raw, answers: list[str]) -> None:
    result = bespeak("call", raw(asks(FIRST), "echo"), "t", *given(*answers))
    assert json.loads(result.stdout)["inputResponses"] == {FIRST: X}


@pytest.mark.timing
def test_a_name_that_fits_two_open_questions_is_an_error_that_lists_both(raw: Raw) -> None:
    result = bespeak("call", raw(asks(FIRST, SECOND)), "t", *given("pay=x"))
    assert BOTH in told(result, 1)
    assert result.stdout == ""


@pytest.mark.timing
def test_two_open_questions_of_one_name_are_answered_by_their_keys(raw: Raw) -> None:
    result = bespeak("call", raw(asks(FIRST, SECOND), "echo"), "t", *given(f"{FIRST}=x", f"{SECOND}=y"))
    assert json.loads(result.stdout)["inputResponses"] == {FIRST: X, SECOND: accepted(x="y")}


@pytest.mark.timing
def test_what_waits_is_printed_by_name_and_continued_by_name(raw: Raw, tmp_path: Path) -> None:
    target = raw(asks(FIRST, "city~deadbeef"))
    result = bespeak("call", target, "t", *given("city=x"))
    told(result, 6)
    pending = json.loads(result.stdout)
    assert list(pending)[:2] == ["waiting", "resume"]  # before the long conversation
    assert list(pending["waiting"]) == ["pay"]
    assert pending["resume"] == f"bespeak call {shlex.quote(target)} --resume FILE --answer pay=..."
    assert [key for key, _ in pending["conversation"]["pending"]["questions"]] == [FIRST, "city~deadbeef"]
    file = tmp_path / "waiting.json"
    target = raw("echo")
    file.write_text(json.dumps({**pending, "target": target}))
    resumed = bespeak("call", target, "--resume", str(file), "--answer", "pay=x")
    assert json.loads(resumed.stdout)["inputResponses"] == {FIRST: X, "city~deadbeef": X}


@pytest.mark.timing
def test_what_waits_is_printed_by_whole_key_where_two_share_a_name(raw: Raw, tmp_path: Path) -> None:
    target = raw(asks(FIRST, SECOND))
    result = bespeak("call", target, "t", *given(f"{FIRST}=x"))
    told(result, 6)
    pending = json.loads(result.stdout)
    assert list(pending["waiting"]) == [SECOND]
    assert pending["resume"] == f"bespeak call {shlex.quote(target)} --resume FILE --answer {shlex.quote(SECOND)}=..."
    file = tmp_path / "waiting.json"
    target = raw("echo")
    file.write_text(json.dumps({**pending, "target": target}))
    assert BOTH in told(bespeak("call", target, "--resume", str(file), "--answer", "pay=y"), 1)
    resumed = bespeak("call", target, "--resume", str(file), "--answer", f"{SECOND}=y")
    assert json.loads(resumed.stdout)["inputResponses"] == {FIRST: X, SECOND: accepted(x="y")}


@pytest.mark.timing
def test_answers_are_saved_by_name(raw: Raw, tmp_path: Path) -> None:
    saved = tmp_path / "answers.yaml"
    words = ["--save-answers", str(saved), *given(f"{FIRST}=x", "city=y")]
    assert bespeak("call", raw(asks(FIRST, "city~deadbeef"), "echo"), "t", *words).exit_code == 0
    assert saved.read_text() == "inputResponses:\n  pay: x\n  city: y\n"


@pytest.mark.timing
def test_a_person_sees_names_and_what_they_typed_is_saved_by_name(raw: Raw, tmp_path: Path) -> None:
    saved = tmp_path / "answers.yaml"
    rounds = [asking(**{FIRST: form("Pay 5?", x={"type": "string"})}), asks(SECOND), "echo"]
    ended = at_terminal("call", raw(*rounds), "t", "--save-answers", str(saved), typed="a\nx\ny\na\ny\ny\n")
    assert json.loads(ended.out)["inputResponses"] == {SECOND: accepted(x="y")}
    assert "      key | pay\n" in ended.screen
    assert "~" not in ended.screen
    assert saved.read_text() == "inputResponses:\n  pay: y\n"


# An answer by name is for one question


def price(key: str, cents: int) -> dict[str, Any]:
    return asking(**{key: form(f"Pay {cents}?", x={"type": "string"})})


@pytest.mark.timing
def test_an_answer_by_name_does_not_answer_the_next_question_of_that_name(raw: Raw, tmp_path: Path) -> None:
    result = bespeak("call", raw(price(FIRST, 100), price(SECOND, 200)), "t", *given("pay=x"))
    told(result, 6)
    pending = json.loads(result.stdout)
    assert pending["waiting"]["pay"]["params"]["message"] == "Pay 200?"
    assert pending["conversation"]["rounds"][0]["answered"] == {FIRST: X}
    file = tmp_path / "waiting.json"
    target = raw("echo")
    file.write_text(json.dumps({**pending, "target": target}))
    told(bespeak("call", target, "--resume", str(file)), 6)
    resumed = bespeak("call", target, "--resume", str(file), *given("pay=y"))
    assert json.loads(resumed.stdout)["inputResponses"] == {SECOND: accepted(x="y")}
    target = raw(price("pay~00000000", 300))
    file.write_text(json.dumps({**pending, "target": target}))
    told(bespeak("call", target, "--resume", str(file), *given("pay=y")), 6)


@pytest.mark.timing
def test_an_answer_by_name_answers_the_same_question_again(raw: Raw) -> None:
    result = bespeak("call", raw(asks(FIRST), asks(FIRST), "echo"), "t", *given("pay=x"))
    assert json.loads(result.stdout)["inputResponses"] == {FIRST: X}


@pytest.mark.timing
def test_an_answer_by_whole_key_answers_that_question_whatever_was_asked_before(raw: Raw) -> None:
    rounds = [price(FIRST, 100), price(SECOND, 200), "echo"]
    result = bespeak("call", raw(*rounds), "t", *given("pay=x", f"{SECOND}=y"))
    assert json.loads(result.stdout)["inputResponses"] == {SECOND: accepted(x="y")}


@pytest.mark.timing
def test_a_person_is_asked_the_next_question_of_a_name_that_was_answered_beforehand(raw: Raw) -> None:
    rounds = [price(FIRST, 100), price(SECOND, 200), "echo"]
    ended = at_terminal("call", raw(*rounds), "t", *given("pay=x"), typed="d\n")
    assert json.loads(ended.out)["inputResponses"] == {SECOND: {"action": "decline"}}
    assert "Pay 200?" in ended.screen
    assert "Pay 100?" not in ended.screen


# An answer under a name that no question has


@pytest.mark.timing
@pytest.mark.parametrize(
    ("name", "told_so"), [("sure", "the server asks 'desk:pay'"), ("pya", "did you mean 'desk:pay'?")]
)
def test_a_person_is_told_of_an_answer_that_is_for_no_question_before_being_asked(
    raw: Raw, name: str, told_so: str
) -> None:
    rounds = [price("desk:pay~00000000", 100), price("desk:pay~11111111", 200), "echo"]
    screen = at_terminal("call", raw(*rounds), "t", *given(f"{name}=x"), typed="d\nd\n").screen
    note = f"--answer {name} answers no question so far; {told_so}"
    assert " ".join(screen.split()).count(note) == 1
    assert 0 <= screen.index("no question so far") < screen.index("Pay 100?")


@pytest.mark.timing
def test_nothing_is_said_of_an_answer_for_a_later_question_while_nobody_is_asked(raw: Raw) -> None:
    rounds = [price(FIRST, 100), asks("sure"), "echo"]
    assert "so far" not in at_terminal("call", raw(*rounds), "t", *given("pay=x", "sure=y")).screen
