"""`bespeak call --answer` and `--save-answers`: as they are written, as they are sent, and as a suite reads them back."""

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from bespeak.conversation.fixtures import InputResponseFixture
from bespeak.testing.suite.loader import load_suite
from tests.cli.desks import QUESTION, WORD, Raw, accepted, asking, bespeak, form, page, served, told, write_raw


@pytest.fixture
def raw(tmp_path: Path) -> Raw:
    """The command that starts a server of that script."""
    return write_raw(tmp_path)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    with served(tmp_path_factory.mktemp("answering") / "answering_desk.py") as target:
        yield target


@pytest.mark.timing
@pytest.mark.parametrize(
    ("question", "answer", "sent"),
    [
        (WORD, "Rome", accepted(x="Rome")),
        (WORD, "a=b c", accepted(x="a=b c")),
        (WORD, '"12"', accepted(x="12")),
        (WORD, "yes", accepted(x="yes")),
        (WORD, "a: b", accepted(x="a: b")),
        (WORD, "True", accepted(x="True")),
        (WORD, "NaN", accepted(x="NaN")),
        (WORD, "it's {x}", accepted(x="it's {x}")),
        (form("?", x={"type": "integer"}), "12", accepted(x=12)),
        (form("?", x={"type": "boolean"}), "false", accepted(x=False)),
        (form("?", x=QUESTION, y=QUESTION), '{"accept": {"x": "a", "y": "b"}}', accepted(x="a", y="b")),
        (WORD, "decline", {"action": "decline"}),
        (WORD, "cancel", {"action": "cancel"}),
        (WORD, '{"raw": [1]}', [1]),
        ({"method": "roots/list"}, '{"roots": ["file:///a"]}', {"roots": [{"uri": "file:///a"}]}),
        (page("https://a.example"), '{"url": "done"}', {"action": "accept"}),
    ],
)
def test_an_answer_is_written_as_in_a_suite(raw: Raw, question: Any, answer: str, sent: Any) -> None:
    result = bespeak("call", raw(asking(q=question), "echo"), "t", "--answer", f"q={answer}")
    assert json.loads(result.stdout)["inputResponses"] == {"q": sent}


@pytest.mark.timing
def test_a_sampling_answer_speaks_for_the_model_and_omit_leaves_its_key_out(raw: Raw) -> None:
    model: dict[str, Any] = {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 9}}
    target = raw(asking(model=model, other=WORD), "echo")
    result = bespeak("call", target, "t", "--answer", 'model={"sample": "Paris"}', "--answer", "other=omit")
    sent = json.loads(result.stdout)
    assert list(sent["inputResponses"]) == ["model"]
    assert sent["inputResponses"]["model"]["content"] == {"type": "text", "text": "Paris"}
    assert sent["requestState"] == "TOKEN"


@pytest.mark.timing
def test_a_word_for_a_boolean_is_told_what_to_write(raw: Raw) -> None:
    result = bespeak("call", raw(asking(q=form("?", sure={"type": "boolean"}))), "t", "--answer", "q=yes")
    assert told(result, 1) == (
        "bespeak: the answer to 'q' does not fit its form: sure: must be true or false; write true, without quotes\n"
    )


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("units=K", "the answer to 'units' does not fit its form: value: must be one of"),
        ("units=12", "the answer to 'units' does not fit its form: value: must be a string"),
        ('units={"accept": {"unit": "C"}}', "the form of 'units' has no field 'unit'; it has value"),
        ('units={"sample": "C"}', "'units' asks with a form (elicitation/create), which {sample: ...} does not answer"),
    ],
)
def test_an_answer_that_does_not_fit_is_not_sent(desk: str, answer: str, said: str) -> None:
    result = bespeak("call", desk, "forecast", "--answer", "city=Rome", "--answer", answer)
    assert said in told(result, 1)
    assert result.stdout == ""


@pytest.mark.timing
@pytest.mark.parametrize(("number", "code"), [(64, 0), (65, 1)])
def test_a_round_of_more_questions_than_anybody_would_answer_is_not_answered(raw: Raw, number: int, code: int) -> None:
    questions = asking(**{f"q{at}": WORD for at in range(number)})
    answers = [word for at in range(number) for word in ("--answer", f"q{at}=x")]
    said = told(bespeak("call", raw(questions, "echo"), "t", *answers), code)
    refused = "bespeak: the server asked 65 questions in one round; at most 64 are answered\n"
    assert said == (refused if code else "")


NASTY = [
    "True",
    "null",
    "Null",
    "yes",
    "12",
    "1e3",
    "decline",
    "${HOME}",
    "$${x}",
    "a: b # c",
    "- x",
    "it's",
    'say "x"',
]
ODD = ["\u00fc\u8c8c", "two\nlines", "\x1b[2J\u202e\x85\u2028\ufeff", " ", "", "~", "*a", "&a", "!x", "%", "@", "|"]


@pytest.mark.parametrize("value", NASTY + ODD)
def test_saved_answers_are_a_block_of_a_suite_that_answers_the_same(desk: str, tmp_path: Path, value: str) -> None:
    saved, suite = tmp_path / "answers.yaml", tmp_path / "saved.bespeak.yaml"
    city = json.dumps({"accept": {"value": value}} if value == "decline" else value)
    given = ("--answer", f"city={city}", "--answer", "units=C", "--save-answers", str(saved))
    first = bespeak("call", desk, "forecast", *given)
    assert first.exit_code == 0
    block = "".join(f"    {line}\n" for line in saved.read_text().splitlines())
    test = f"  - name: as it was\n    tool: forecast\n{block}    capture: {{said: structuredContent.result}}\n"
    again = "  - name: the same\n    tool: say\n    arguments: {text: '${said}'}\n"
    suite.write_text(f"version: 1\nservers:\n  desk: {{python: {json.dumps(desk)}}}\ntests:\n{test}{again}")
    assert InputResponseFixture(load_suite(suite).model.tests[0].inputResponses).rules
    report = tmp_path / "report.json"
    assert bespeak("test", str(suite), "--report", f"json={report}").exit_code == 0
    answered = json.loads(report.read_text())["results"][0]["rounds"][0]["answered"]
    assert answered["city"]["content"] == {"value": value}
