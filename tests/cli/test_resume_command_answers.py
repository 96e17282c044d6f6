"""`bespeak call` over several rounds, and where nobody can be asked: it is put down and taken up again. Testing.md section 4."""

import json
import os
import shlex
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from bespeak.cli.commands import app
from bespeak.conversation.question_names import name_of
from tests.cli.desks import QUESTION, WORD, Raw, asking, bespeak, form, served, told, write_raw

ANSWERS = {"city": "Rome", "units": "C", "sure": "true", "q": "x", "a": "x"}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    with served(tmp_path_factory.mktemp("resumed") / "resumed_desk.py") as target:
        yield target


@pytest.fixture
def raw(tmp_path: Path) -> Raw:
    return write_raw(tmp_path)


# Rounds


@pytest.mark.timing
@pytest.mark.parametrize(("asked", "code"), [(10, 0), (11, 1)])
def test_ten_rounds_are_answered_unless_set_differently(raw: Raw, asked: int, code: int) -> None:
    target = raw(*[asking(q=form("Again?\x1b[2J\u202e", x=QUESTION))] * asked, "echo")
    said = told(bespeak("call", target, "t", "--answer", "q=x"), code)
    assert ("the server is still asking after 10 answered rounds" in said, "round 11: q (Again?" in said) == (
        bool(code),
    ) * 2
    assert "TOKEN" not in said
    assert all(char.isprintable() or char == "\n" for char in said)


# Put down, and taken up again


def follow(command: str, told: str, tmp_path: Path) -> Result:
    """What comes of doing what a call that was put down says: its dots replaced by answers."""
    file = tmp_path / "waiting.json"
    file.write_text(told)
    words = [str(file) if word == "FILE" else word for word in shlex.split(command)]
    named = [f"{word[:-4]}={ANSWERS[word[:-4]]}" if word.endswith("=...") else word for word in words]
    assert named[:2] == ["bespeak", "call"]
    return bespeak(*named[1:])


def waiting(result: Result) -> dict[str, Any]:
    assert told(result, 6) == ""
    return json.loads(result.stdout)


def test_questions_nobody_is_there_to_answer_are_printed_as_json(desk: str) -> None:
    pending = waiting(bespeak("call", desk, "forecast", "day=mon"))
    assert {key: one["params"]["message"] for key, one in pending["waiting"].items()} == {
        "city": "Which city?",
        "units": "Which units?",
    }
    assert (pending["target"], pending["revision"]) == (desk, "2026-07-28")
    assert pending["resume"] == f"bespeak call {desk} --resume FILE --answer city=... --answer units=..."


@pytest.mark.parametrize(
    ("tool", "given", "steps", "result"),
    [
        ("forecast", [], 1, "Rome in C mon\n"),
        ("forecast", ["--answer", "city=Rome"], 1, "Rome in C mon\n"),
        ("trip", [], 2, "Rome True mon\n"),
        ("trip", ["--answer", "city=Rome"], 1, "Rome True mon\n"),
    ],
)
@pytest.mark.parametrize("era", ["auto", "legacy"])
def test_doing_what_it_says_comes_to_the_result(
    desk: str, tmp_path: Path, era: str, tool: str, given: list[str], steps: int, result: str
) -> None:
    ended = bespeak("call", desk, tool, "--arguments", '{"day": "mon"}', "--era", era, *given)
    for _ in range(steps if era == "auto" else 2):
        if ended.exit_code == 6:
            pending = json.loads(ended.stdout)
            ended = follow(pending["resume" if era == "auto" else "again"], ended.stdout, tmp_path)
    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, result, "")


def test_a_call_that_waits_is_resumed_from_standard_input(desk: str) -> None:
    pending = bespeak("call", desk, "trip", "--answer", "city=Rome")
    ended = bespeak("call", desk, "--resume", "-", "--answer", "sure=true", stdin=pending.stdout)
    assert (ended.exit_code, ended.stdout) == (0, "Rome True today\n")


def test_an_answer_for_a_later_round_is_not_forgotten(desk: str) -> None:
    pending = bespeak("call", desk, "trip", "--answer", "sure=true")
    ended = bespeak("call", desk, "--resume", "-", "--answer", "city=Rome", stdin=pending.stdout)
    assert (ended.exit_code, ended.stdout) == (0, "Rome True today\n")


def test_the_rounds_before_are_kept_and_the_cap_counts_them(desk: str) -> None:
    pending = waiting(bespeak("call", desk, "trip", "--answer", "city=Rome"))
    (before,) = pending["conversation"]["rounds"]
    assert {name_of(key): said for key, said in before["asked"].items()} == {"city": "Which city?"}
    short = bespeak("call", desk, "trip", "--max-rounds", "1").stdout
    answers = ("--answer", "city=Rome", "--answer", "sure=true")
    assert "after 1 answered round" in told(bespeak("call", desk, "--resume", "-", *answers, stdin=short), 1)
    assert (
        bespeak("call", desk, "--resume", "-", *answers, "--max-rounds", "2", stdin=short).stdout == "Rome True today\n"
    )


@pytest.mark.timing
@pytest.mark.parametrize("state", [None, "", "a \u00fc\U0001f600\x00"])
def test_the_state_is_echoed_as_it_was_after_a_pause_too(raw: Raw, state: str | None) -> None:
    asks = asking(q=WORD)
    asks["result"] |= {"requestState": state} if state is not None else {}
    if state is None:
        del asks["result"]["requestState"]
    target = raw(asks)
    pending = waiting(bespeak("call", target, "t", "--arguments", '{"a": 1}'))
    Path(shlex.split(target)[-1]).write_text(json.dumps({"calls": ["echo"], "pages": [{"tools": []}]}))
    sent = json.loads(bespeak("call", target, "--resume", "-", "--answer", "q=x", stdin=json.dumps(pending)).stdout)
    assert sent.get("requestState") == state
    assert sent["arguments"] == {"a": 1}


@pytest.mark.timing
def test_the_compatibility_dialect_is_resumed_in_its_own_shape(raw: Raw, tmp_path: Path) -> None:
    fields = [{"id": "a", "kind": "string"}, {"id": "b", "kind": "string", "required": False}]
    target = raw({"result": {"inputRequests": fields, "requestState": "s"}})
    pending = bespeak("call", target, "t")
    assert list(waiting(pending)["waiting"]) == ["a"]
    Path(shlex.split(target)[-1]).write_text(json.dumps({"calls": ["echo"], "pages": [{"tools": []}]}))
    sent = json.loads(follow(json.loads(pending.stdout)["resume"], pending.stdout, tmp_path).stdout)
    assert (sent["inputResponses"], sent["requestState"]) == ([{"id": "a", "value": "x"}], "s")


def test_a_call_of_an_older_revision_cannot_be_resumed_and_says_how_to_make_it_again(desk: str) -> None:
    pending = bespeak("call", desk, "trip", "--era", "2025-06-18")
    assert waiting(pending)["again"].startswith(f"bespeak call {desk} trip ")
    said = told(bespeak("call", desk, "--resume", "-", "--answer", "city=Rome", stdin=pending.stdout), 2)
    assert "make it again" in said
    assert "'conversation'" not in said


def altered(pending: dict[str, Any], path: str, value: Any) -> str:
    changed = json.loads(json.dumps(pending))
    *outer, last = path.split(".")
    place = changed
    for step in outer:
        place = place[int(step) if step.isdigit() else step]
    place[int(last) if last.isdigit() else last] = value
    return json.dumps(changed)


@pytest.mark.parametrize("saved", ["", "{", "[]", "5", "null", "{}", '{"conversation": {}}', "[" * 99_999, '"\\ud800"'])
def test_what_is_not_a_call_that_waits_is_refused_with_our_own_message(saved: str) -> None:
    said = told(bespeak("call", "--resume", "-", stdin=saved), 2)
    assert said.startswith("bespeak: --resume: standard input does not contain a call that is waiting for answers")
    for word in ("object", "indices", "subscriptable", "KeyError", "TypeError", "argument", "'conversation'"):
        assert word not in said


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("target", 5),
        ("revision", "1999-01-01"),
        ("revision", "2025-11-25"),
        ("conversation", []),
        ("conversation.method", ["tools/call"]),
        ("conversation.maxRounds", "many"),
        ("conversation.rounds", [5]),
        ("conversation.pending", None),
        ("conversation.pending.dialect", "x"),
        ("conversation.pending.questions", [["sure", 5]]),
        ("conversation.pending.questions.0.1.params", 5),
        ("conversation.pending.questions.0.1.method", 5),
    ],
)
def test_a_tampered_call_is_refused_with_our_own_message(desk: str, path: str, value: Any) -> None:
    pending = waiting(bespeak("call", desk, "trip", "--answer", "city=Rome"))
    result = bespeak("call", desk, "--resume", "-", "--answer", "sure=true", stdin=altered(pending, path, value))
    said = told(result, 2)
    assert "--resume" in said or "put down" in said
    for word in ("object is not", "KeyError", "TypeError", "ValueError", "bespeak.testing", "Dialect", "argument"):
        assert word not in said


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "pending.json"
    file.write_bytes(b"\xff\xfe\x00")
    said = told(bespeak("call", "--resume", str(file)), 2)
    assert said.startswith("bespeak: --resume: ")
    assert "codec" not in said


def test_nothing_is_read_from_an_input_that_never_ends(
    desk: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ours, its = os.pipe()
    with os.fdopen(ours) as never, os.fdopen(its, "w"):
        monkeypatch.setattr(sys, "stdin", never)
        with pytest.raises(SystemExit) as ended:
            app(["call", desk, "forecast"])
    assert ended.value.code == 6
    assert list(json.loads(capsys.readouterr().out)["waiting"]) == ["city", "units"]
