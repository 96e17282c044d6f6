"""When conversations are recorded: none, once, new and rewrite, each with whatever there is; and nothing under CI."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from bespeak.cli.commands import app
from bespeak.testing.cassettes.record_mode import RecordingRefused, RecordMode, check_allowed
from bespeak.testing.report.results import Kind
from tests.testing.taping import CITY, UNITS, Desk, Trip, form, only, stale, text, trip, without_cassettes, write_suite

MODES = ("none", "once", "new", "rewrite")


@pytest.fixture
def taped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    return Desk(tmp_path, monkeypatch)


# Each mode in each situation


def gone(taped: Desk) -> None:
    taped.tape.unlink()


def as_it_is(taped: Desk) -> None:
    """Nothing has changed since."""


def other_arguments(taped: Desk) -> None:
    taped.alter(lambda cassette: cassette["turns"][0]["sent"]["arguments"].update(loc="LIS"))


def too_long(taped: Desk) -> None:
    taped.alter(lambda cassette: cassette["turns"].append(cassette["turns"][-1]))


def too_short(taped: Desk) -> None:
    taped.alter(lambda cassette: cassette["turns"].pop())


def cut_off(taped: Desk) -> None:
    taped.tape.write_bytes(taped.tape.read_bytes()[:100])


def not_utf8(taped: Desk) -> None:
    taped.tape.write_bytes(b"\xff\xfe")


def empty(taped: Desk) -> None:
    taped.tape.write_bytes(b"")


def foreign(taped: Desk) -> None:
    taped.tape.write_text('{"name": "a package", "version": "1.0.0"}', encoding="utf-8")


def of_another_format(taped: Desk) -> None:
    taped.alter(lambda cassette: cassette.update(format=2))


@dataclass(frozen=True)
class Situation:
    comes: Callable[[Desk], None]
    none: str
    """What is said where nothing may be recorded."""
    recorded: tuple[str, ...]
    """The modes that talk to the server, and write."""


SITUATIONS = {
    "missing": Situation(gone, "never recorded: there is no ", ("once", "new", "rewrite")),
    "fitting": Situation(as_it_is, "", ("rewrite",)),
    "other arguments": Situation(other_arguments, "turns[0].sent.arguments.loc", ("new", "rewrite")),
    "a turn too many": Situation(too_long, "1 recorded turn was never played", ("new", "rewrite")),
    "a turn too few": Situation(too_short, "never recorded: the cassette has no more turns", ("new", "rewrite")),
    "cut off": Situation(cut_off, "is not a cassette of format 1", ("new", "rewrite")),
    "not UTF-8": Situation(not_utf8, "is not a cassette of format 1", ("new", "rewrite")),
    "empty": Situation(empty, "is not a cassette of format 1", ("new", "rewrite")),
    "foreign JSON": Situation(foreign, "is not a cassette of format 1", ("new", "rewrite")),
    "another format": Situation(of_another_format, "is not a cassette of format 1", ("new", "rewrite")),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("situation", SITUATIONS.values(), ids=SITUATIONS)
async def test_what_each_mode_does_in_each_situation(taped: Desk, situation: Situation, mode: str) -> None:
    fitting = await taped.recorded(trip())
    situation.comes(taped)
    left = {path.name: path.read_bytes() for path in taped.tapes.iterdir()}
    taped.connections = 0
    result = await taped.run(trip(), record=mode)
    if mode in situation.recorded:
        assert (result.passed, taped.connections) == (True, 1)
        assert taped.tape.read_bytes() == fitting
    else:
        assert taped.connections == 0, "a server was started"
        assert {path.name: path.read_bytes() for path in taped.tapes.iterdir()} == left
        assert result.passed == (not situation.none)
        assert situation.none in (stale(result).message if situation.none else "")


async def test_new_records_what_asks_for_something_else_than_the_test_answers_now(taped: Desk) -> None:
    await taped.recorded(trip())
    taped.server = Trip([{"town": form("Which town?")}, UNITS])
    result = await taped.run(trip(inputResponses={"town": "Lisbon", "units": "C"}), record="new")
    assert result.failures == []
    assert b"Which town?" in taped.tape.read_bytes()


async def test_new_records_what_no_longer_comes_to_what_is_expected(taped: Desk) -> None:
    await taped.recorded(trip(expect={"text": "Sunny."}))
    taped.server = Trip(result=text("Rainy."))
    assert (await taped.run(trip(expect={"text": "Rainy."}), record="new")).failures == []
    assert b"Rainy." in taped.tape.read_bytes()


async def test_new_that_cannot_be_recorded_shows_why_and_not_what_was_stale(taped: Desk) -> None:
    await taped.recorded(trip())
    taped.server = Trip([CITY, UNITS], result=text("Rainy."))
    result = await taped.run(trip(arguments={"loc": "LIS"}, expect={"text": "Sunny."}), record="new")
    assert only(result).message == 'text: expected "Sunny.", got "Rainy."'


async def test_a_test_is_replayed_right_after_it_was_recorded(taped: Desk) -> None:
    await taped.recorded(trip())
    taped.connections = 0
    assert [(await taped.run(trip(), record=mode)).passed for mode in ("none", "once", "new")] == [True] * 3
    assert taped.connections == 0


# Under CI


@pytest.mark.parametrize("mode", ["once", "new", "rewrite"])
@pytest.mark.parametrize("ci", ["true", "1", "yes", "True", "woodpecker"])
def test_every_record_mode_but_none_is_refused_under_ci(monkeypatch: pytest.MonkeyPatch, mode: str, ci: str) -> None:
    monkeypatch.setenv("CI", ci)
    with pytest.raises(RecordingRefused, match="refused in CI"):
        check_allowed(RecordMode(mode))


def test_the_record_mode_none_is_allowed_under_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    check_allowed(RecordMode.NONE)


def test_a_mode_that_is_invalid_names_those_that_are() -> None:
    with pytest.raises(ValueError, match="one of none, once, new, rewrite, not 'always'"):
        RecordMode.named("always")


# At the command line

DESK = {"desk": {"python": "tests.testing.desk:mcp"}}


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("CI", raising=False)
    return write_suite(tmp_path, trip(), servers=DESK)


def bespeak(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["test", *map(str, arguments)])


def test_replaying_under_ci_is_what_cassettes_are_for(suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bespeak(suite, "--record", "once")
    monkeypatch.setenv("CI", "true")
    assert bespeak(suite).exit_code == 0
    assert bespeak(suite, "--verify").exit_code == 0


def test_a_recorded_conversation_that_comes_to_something_else_than_expected_ends_with_1(suite: Path) -> None:
    bespeak(suite, "--record", "once")
    write_suite(suite.parent, trip(expect={"text": "Porto in C"}), servers=DESK)
    assert bespeak(suite).exit_code == 1


def test_a_folder_given_on_the_command_line_is_taken_instead_of_the_suites(suite: Path) -> None:
    other = suite.parent / "other"
    assert bespeak(suite, "--record", "once", "--cassettes", other).exit_code == 0
    assert [path.suffix for path in other.iterdir()] == [".json"]
    assert not (suite.parent / "tapes").exists()
    assert (bespeak(suite, "--cassettes", other).exit_code, bespeak(suite).exit_code) == (0, 4)


def test_verifying_where_there_is_no_folder_of_cassettes_does_not_pass(suite: Path) -> None:
    without_cassettes(suite)
    ended = bespeak(suite, "--verify")
    assert ended.exit_code in (2, 4)
    assert "cassettes" in ended.output


def test_a_suite_without_a_folder_of_cassettes_talks_to_its_server(suite: Path) -> None:
    without_cassettes(suite)
    assert bespeak(suite).exit_code == 0
    assert list(suite.parent.iterdir()) == [suite]


# In pytest


def test_a_stale_cassette_is_a_failure_of_its_own_kind() -> None:
    assert Kind("cassette") is Kind.CASSETTE
