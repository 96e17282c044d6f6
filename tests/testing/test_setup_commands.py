"""Commands before and after tests and suites."""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bespeak.conversation.servers import Reached
from bespeak.testing.cassettes.record_mode import RecordMode
from bespeak.testing.report.results import Failure, Kind, Outcome, Result
from bespeak.testing.runner import Options, Runner, run_items
from bespeak.testing.setup_commands import run_commands
from bespeak.testing.suite.loader import load_suite
from bespeak.testing.suite.plan import items_of
from bespeak.testing.suite.setup_keys import Command
from tests.testing.canned import Canned, Hold, messages, told
from tests.testing.canned import hold as hold
from tests.waiting import eventually


async def ran(folder: Path, *commands: Any, **more: Any) -> list[Failure]:
    given = [Command.model_validate(one if isinstance(one, dict) else {"command": one}) for one in commands]
    return await run_commands(given, folder, more.pop("fill", str), "setup", **more)


def sh(script: str, **more: Any) -> dict[str, Any]:
    return {"command": ["sh", "-c", script], **more}


# One command


async def test_a_command_runs_in_the_folder_with_a_small_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_SECRET_OF_THE_SHELL", "x")
    (tmp_path / "inner").mkdir()
    script = "echo ${A_SECRET_OF_THE_SHELL-none} $GIVEN > ${PWD##*/}.txt"
    assert await ran(tmp_path, sh(script, env={"GIVEN": "given"}), sh(script, cwd="inner")) == []
    assert (tmp_path / f"{tmp_path.name}.txt").read_text() == "none given\n"
    assert (tmp_path / "inner" / "inner.txt").read_text() == "none\n"


async def test_python_is_the_python_of_the_tests(tmp_path: Path) -> None:
    assert await ran(tmp_path, ["python", "-c", "import bespeak"]) == []


async def test_a_command_that_fails_is_shown_with_its_output_and_the_rest_is_not_run(tmp_path: Path) -> None:
    (failure,) = await ran(tmp_path, sh("echo out; echo err >&2; exit 3"), sh("touch later"))
    assert failure.message == "setup: the command sh -c 'echo out; echo err >&2; exit 3' exited with code 3"
    assert failure.hint == "it printed:\n  out\n  err"
    assert failure.kind is Kind.SETUP
    assert not (tmp_path / "later").exists()


async def test_cleaning_up_goes_on_after_a_failure(tmp_path: Path) -> None:
    failures = await ran(tmp_path, sh("exit 1"), sh("touch later; exit 2"), go_on=True)
    assert [failure.message[-1] for failure in failures] == ["1", "2"]
    assert failures[0].hint is None
    assert (tmp_path / "later").exists()


@pytest.mark.long
async def test_a_command_that_does_not_end_is_killed(tmp_path: Path) -> None:
    (failure,) = await ran(tmp_path, sh("echo $$ > pid; echo waiting; exec sleep 60", timeout=0.3))
    assert failure.message.endswith("did not end within 0.3 s; give it a larger timeout")
    assert failure.hint == "it printed:\n  waiting"
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


async def test_a_command_of_a_run_that_is_stopped_is_killed(tmp_path: Path) -> None:
    running = asyncio.create_task(ran(tmp_path, sh("echo $$ > new; mv new pid; exec sleep 60")))
    await eventually((tmp_path / "pid").exists)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["no-such-command-at-all"], "could not be run: cannot start it: there is no command 'no-such-command-at-all'"),
        ({"command": ["sh"], "cwd": "nowhere"}, "could not be run: there is no folder"),
    ],
)
async def test_a_command_that_cannot_be_run_says_why(tmp_path: Path, command: Any, message: str) -> None:
    (failure,) = await ran(tmp_path, command)
    assert message in failure.message


async def test_the_command_is_shown_as_it_is_written(tmp_path: Path) -> None:
    def filled(text: str) -> str:
        return text.replace("${code}", "4")

    (failure,) = await ran(tmp_path, sh("exit ${code}"), fill=filled)
    assert failure.message == "setup: the command sh -c 'exit ${code}' exited with code 4"


# In a suite


def log(word: str) -> str:
    return f"[[sh, -c, 'echo {word} >> log']]"


ONE = "  - {name: one, tool: x, setup: SETUP, teardown: TEARDOWN, MORE}\n"


def one(more: str = "expect: {text: ok}", setup: str = log("before"), teardown: str = log("after")) -> str:
    return ONE.replace("SETUP", setup).replace("TEARDOWN", teardown).replace("MORE", more)


@pytest.mark.parametrize("expect", ["ok", "something else"])
async def test_a_test_runs_between_its_commands_whether_it_passes_or_not(
    hold: Hold, tmp_path: Path, expect: str
) -> None:
    (result,) = await hold(Canned(told("ok")), one(f"expect: {{text: {expect}}}"))
    assert result.passed is (expect == "ok")
    assert (tmp_path / "log").read_text().split() == ["before", "after"]


async def test_without_its_set_up_a_test_is_not_run_but_cleaned_up(hold: Hold, tmp_path: Path) -> None:
    server = Canned()
    (result,) = await hold(server, one(setup="[[sh, -c, echo no data; exit 1]]"))
    assert messages([result]) == ["setup: the command sh -c 'echo no data; exit 1' exited with code 1"]
    assert server.entered == 0
    assert (tmp_path / "log").read_text().split() == ["after"]


async def test_a_test_whose_cleaning_up_fails_fails(hold: Hold) -> None:
    (result,) = await hold(Canned(told("ok")), one(teardown="[[sh, -c, exit 1]]"))
    assert messages([result]) == ["teardown: the command sh -c 'exit 1' exited with code 1"]


async def test_captured_values_and_secrets_can_be_used_and_secrets_are_not_shown(
    hold: Hold, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DESK_PASSWORD", "hunter2-hunter2")
    tests = "  - {name: a, tool: x, capture: {id: text}}\n" + one(
        setup="[[sh, -c, 'echo ${id} > id; echo ${env:DESK_PASSWORD}; exit 1']]"
    )
    _, result = await hold(Canned(told("i-7")), tests)
    assert (tmp_path / "id").read_text() == "i-7\n"
    assert "hunter2" not in repr(result)
    assert result.failures[0].hint == "it printed:\n  ${env:DESK_PASSWORD}"


HEAD = "version: 1\nservers: {desk: {command: [desk]}}\nsetup: SETUP\nteardown: TEARDOWN\n"


def suite_at(
    folder: Path, setup: str = log("suite-before"), teardown: str = log("suite-after"), tests: str = ""
) -> Path:
    path = folder / "desk.bespeak.yaml"
    head = HEAD.replace("SETUP", setup).replace("TEARDOWN", teardown)
    path.write_text(f"{head}tests:\n{tests or TWO}", encoding="utf-8")
    return path


TWO = "  - {name: a, tool: x, setup: [[sh, -c, 'echo a >> log']]}\n  - {name: b, tool: x}\n"


async def finish(path: Path, *more: Path, first: bool = False, options: Options | None = None) -> list[Result]:
    results: list[Result] = []

    def finished(result: Result) -> bool:
        results.append(result)
        return not first

    items = [item for one in (path, *more) for item in items_of(load_suite(one))]
    await run_items(Runner(options), items, finished)
    return results


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Canned:
    canned = Canned(told("ok"))

    @asynccontextmanager
    async def reach(*_: Any) -> AsyncGenerator[Reached]:
        yield Reached(canned)

    monkeypatch.setattr("bespeak.conversation.connection_pool.reach", reach)
    return canned


async def test_a_suite_is_set_up_once_and_cleaned_up_after_its_last_test(tmp_path: Path, server: Canned) -> None:
    results = await finish(suite_at(tmp_path))
    assert messages(results) == []
    assert (tmp_path / "log").read_text().split() == ["suite-before", "a", "suite-after"]


async def test_the_servers_of_a_suite_are_stopped_before_it_is_cleaned_up(tmp_path: Path, server: Canned) -> None:
    (tmp_path / "other").mkdir()
    await finish(suite_at(tmp_path), suite_at(tmp_path / "other"))
    assert (server.entered, server.left) == (2, 2)
    assert (tmp_path / "other" / "log").read_text().split() == ["suite-before", "a", "suite-after"]


async def test_without_its_set_up_no_test_of_a_suite_is_run(tmp_path: Path, server: Canned) -> None:
    results = await finish(suite_at(tmp_path, setup="[[sh, -c, 'echo x >> tried; exit 1']]"))
    said = "setup of the suite: the command sh -c 'echo x >> tried; exit 1' exited with code 1"
    assert messages(results) == [said, said]
    assert (tmp_path / "tried").read_text().split() == ["x"]
    assert (tmp_path / "log").read_text().split() == ["suite-after"]


async def test_a_suite_whose_cleaning_up_fails_fails_with_its_last_test(tmp_path: Path, server: Canned) -> None:
    first, last = await finish(suite_at(tmp_path, teardown="[[sh, -c, exit 1]]"))
    assert first.passed
    assert messages([last]) == ["teardown of the suite: the command sh -c 'exit 1' exited with code 1"]
    assert last.outcome is Outcome.FAILED


async def test_a_run_that_stops_early_cleans_up_and_logs_what_fails(
    tmp_path: Path, server: Canned, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DESK_PASSWORD", "hunter2-hunter2")
    teardown = "[[sh, -c, 'echo gone >> log; echo ${env:DESK_PASSWORD}; exit 1']]"
    results = await finish(suite_at(tmp_path, teardown=teardown), first=True)
    assert len(results) == 1
    assert (tmp_path / "log").read_text().split() == ["suite-before", "a", "gone"]
    assert "teardown of the suite: the command" in caplog.text
    assert "hunter2" not in caplog.text


async def test_a_suite_of_skipped_tests_is_not_set_up(tmp_path: Path, server: Canned) -> None:
    await finish(suite_at(tmp_path, tests="  - {name: a, tool: x, skip: no}\n"))
    assert not (tmp_path / "log").exists()


async def test_a_replay_needs_no_set_up(tmp_path: Path, server: Canned) -> None:
    tapes = tmp_path / "tapes"
    path = suite_at(tmp_path)
    recorded = await finish(path, options=Options(record=RecordMode.ONCE, cassettes=tapes))
    (tmp_path / "log").unlink()
    assert messages([*recorded, *await finish(path, options=Options(cassettes=tapes))]) == []
    assert not (tmp_path / "log").exists()
