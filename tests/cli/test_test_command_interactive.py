"""`bespeak test --interactive`: a person is asked first, and where there is none, the fixture. Testing.md section 4."""

import json
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.desks import WORD, asking, bespeak, served, text, write_raw
from tests.cli.terminals import at_terminal, in_a_process, is_gone
from tests.waiting import eventually

pytestmark = pytest.mark.timing

CHOICE = "a = accept, d = decline, c = cancel: "
Suite = Callable[..., str]
FORECAST: dict[str, Any] = {"name": "forecast", "tool": "forecast", "inputResponses": {"city": "Rome", "units": "C"}}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    with served(tmp_path_factory.mktemp("interactive") / "interactive_desk.py") as target:
        yield target


@pytest.fixture
def suite(desk: str, tmp_path: Path) -> Suite:
    """Writes a suite of the desk, of those tests."""

    def written(*tests: Any, server: Any = None, **more: Any) -> str:
        file = tmp_path / "asked.bespeak.yaml"
        told = {"version": 1, "servers": {"desk": server or {"python": desk}}, "tests": tests, **more}
        file.write_text(json.dumps(told))
        return str(file)

    return written


# At a terminal


@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_a_person_is_asked_first_whatever_the_fixture_says(suite: Suite, era: str) -> None:
    file = suite({**FORECAST, "expect": {"text": "Oslo in F today"}})
    ended = at_terminal("test", file, "--interactive", "--era", era, typed="a\nOslo\ny\na\nF\ny\n")
    assert ended.code == 0, ended.out
    assert "1 passed" in ended.out
    assert "| Which city?" in ended.screen


def test_the_report_stays_alone_on_standard_output(suite: Suite) -> None:
    ended = at_terminal("test", suite(FORECAST), "--interactive", "--report", "json", typed="a\nOslo\ny\na\nF\ny\n")
    (result,) = json.loads(ended.out)["results"]
    assert result["rounds"][0]["answered"]["city"]["content"] == {"value": "Oslo"}


def test_what_a_round_should_ask_is_checked_no_matter_who_answers(suite: Suite) -> None:
    rounds = [{"expect": {"messages": {"city": "Which town?"}}, "answer": {"city": "Rome", "units": "C"}}]
    file = suite({"name": "forecast", "tool": "forecast", "rounds": rounds})
    ended = at_terminal("test", file, "--interactive", typed="a\nOslo\ny\na\nF\ny\n")
    assert ended.code == 1
    assert "Which town?" in ended.out


def test_without_the_switch_nobody_is_asked(suite: Suite) -> None:
    ended = at_terminal("test", suite(FORECAST))
    assert (ended.code, ended.screen) == (0, "")


def test_a_question_that_nobody_answers_fails_its_test_and_no_other(suite: Suite) -> None:
    say = {"name": "held all the same", "tool": "say"}
    ended = at_terminal("test", suite(FORECAST, say), "--interactive", typed="\x04")
    assert ended.code == 1
    assert "'city' was not answered: the input has ended" in ended.out
    assert "ok      held all the same" in ended.out


@pytest.mark.long
async def test_an_interrupt_ends_the_run_with_130_and_is_not_a_decline(suite: Suite, tmp_path: Path) -> None:
    pid, report = tmp_path / "pid", tmp_path / "report.json"
    command = write_raw(tmp_path)(text("ok"), asking(q=WORD), text("answered"), pid=str(pid)).split()
    tests = [{"name": name, "tool": "t"} for name in ("before", "asks", "after")]
    file = suite(*tests, server={"command": command})
    with in_a_process("test", file, "--interactive", "--report", "pretty", "--report", f"json={report}") as terminal:
        terminal.wait_for(CHOICE)
        terminal.type("\x03")
        code, out = terminal.ended()
        assert code == 130
        assert "interrupted after 1 of 3: 1 passed" in out
        assert "Traceback" not in terminal.seen
    told = json.loads(report.read_text())
    assert (told["summary"]["interrupted"], [one["name"] for one in told["results"]]) == (True, ["before"])
    await eventually(lambda: is_gone(pid))


# Without one


def test_without_a_terminal_the_fixture_answers(suite: Suite) -> None:
    result = bespeak("test", suite({**FORECAST, "expect": {"text": "Rome in C today"}}), "--interactive")
    assert (result.exit_code, result.stderr) == (0, "")


def test_without_a_terminal_a_round_is_checked_as_the_test_says(suite: Suite) -> None:
    rounds = [{"expect": {"asks": ["city"]}, "answer": {"city": "Rome", "units": "C"}}]
    result = bespeak("test", suite({"name": "forecast", "tool": "forecast", "rounds": rounds}), "--interactive")
    assert result.exit_code == 1
    assert "round 1 asked city, units instead of city" in result.stdout
