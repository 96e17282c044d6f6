"""Cassettes and snapshots that no test uses: they are reported, and removed only if that is asked for."""

import json
import sys
from pathlib import Path

import pytest

from bespeak.testing.run_options import Options
from bespeak.testing.suite.loader import load_suite
from bespeak.testing.unused_files import Unused, unused_files
from tests.testing.conftest import Bench, said

ONE = "- {name: one, tool: say, arguments: {text: a}, expect: {text: {snapshot: said}}}\n"
TWO = "- {name: two, tool: say, arguments: {text: b}, cases: [{name: x}, {name: y}]}\n"


@pytest.fixture
def recorded(bench: Bench) -> Bench:
    """A suite whose second test is gone since it was recorded."""
    bench.suite(ONE + TWO)
    assert bench.bespeak("test", "--cassettes", "tapes", "--record", "once")[0] == 0
    bench.suite(ONE)
    return bench


def tapes(bench: Bench) -> list[str]:
    return sorted(path.name.partition(".")[0] for path in (bench.path / "tapes").iterdir())


def unused(bench: Bench, *suites: Path) -> Unused:
    return unused_files(
        [load_suite(suite) for suite in suites], Options(cassettes=bench.path / "tapes", start=bench.path)
    )


def test_a_cassette_that_no_test_uses_is_reported_after_the_run(recorded: Bench) -> None:
    code, output = recorded.bespeak("test", "--cassettes", "tapes")
    assert code == 0
    assert output.count("; bespeak test --prune removes it") == 2
    assert "note: no test uses tapes/desk-two-x." in output
    assert tapes(recorded) == ["desk-one", "desk-two-x", "desk-two-y"]


def test_prune_removes_what_no_test_uses_and_says_so(recorded: Bench) -> None:
    code, output = recorded.bespeak("test", "--prune", "--cassettes", "tapes")
    assert code == 0
    assert [line.partition(".")[0] for line in output.splitlines()] == [
        "removed tapes/desk-two-x",
        "removed tapes/desk-two-y",
    ]
    assert tapes(recorded) == ["desk-one"]
    assert recorded.bespeak("test", "--prune", "--cassettes", "tapes") == (0, "every cassette and snapshot is used\n")


def test_what_cannot_be_removed_is_told(recorded: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def unlink(*_: object, **__: object) -> None:
        raise PermissionError("not yours")

    monkeypatch.setattr(Path, "unlink", unlink)
    code, output = recorded.bespeak("test", "--prune", "--cassettes", "tapes")
    assert (code, output) == (2, "bespeak: a file could not be removed: not yours\n")


def test_tests_that_are_not_selected_still_use_their_cassettes(bench: Bench) -> None:
    bench.suite(ONE + TWO)
    bench.bespeak("test", "--cassettes", "tapes", "--record", "once")
    assert "note:" not in bench.bespeak("test", "--cassettes", "tapes", "-k", "one")[1]


def test_cassettes_of_any_era_are_used(bench: Bench) -> None:
    suite = bench.suite(ONE)
    bench.bespeak("test", "--cassettes", "tapes", "--record", "once", "--era", "legacy")
    assert list(unused(bench, suite)) == []


def test_the_cassettes_of_another_suite_and_other_files_are_left_alone(recorded: Bench) -> None:
    suite = recorded.path / "desk.bespeak.yaml"
    first = next((recorded.path / "tapes").iterdir())
    for name, text in {
        "desk-two.0000aaaa.json": "not JSON",
        "desk-two.0000aaab.json": "[]",
        "desk-two.json": first.read_text(),
        "desk-of-others-one.0000aaaa.json": first.read_text(),
        "desktop-one.0000aaaa.json": first.read_text(),
        "other-one.0000aaaa.json": first.read_text(),
    }.items():
        (recorded.path / "tapes" / name).write_text(text)
    recorded.suite(ONE, "desk-of-others.bespeak.yaml")
    assert [path.name.partition(".")[0] for path in unused(recorded, suite).cassettes] == ["desk-two-x", "desk-two-y"]


def test_a_folder_that_cannot_be_named_is_not_searched(bench: Bench) -> None:
    suite = bench.suite(ONE)
    suite.write_text(suite.read_text().replace("server: desk\n", "server: desk\ncassettes: '${env:NO_SUCH_FOLDER}'\n"))
    assert list(unused_files([load_suite(suite)], Options())) == []


def test_a_suite_names_its_folder(recorded: Bench) -> None:
    suite = recorded.path / "desk.bespeak.yaml"
    suite.write_text(suite.read_text().replace("server: desk\n", "server: desk\ncassettes: tapes\n"))
    assert len(list(unused_files([load_suite(suite)], Options(start=recorded.path)))) == 2


# Snapshots


def test_a_snapshot_that_no_test_uses_is_reported_and_removed(recorded: Bench) -> None:
    file = recorded.path / "desk.snapshots.json"
    kept = json.loads(file.read_text())
    file.write_text(json.dumps({**kept, "one": {**kept["one"], "old": 1}, "gone": {"said": 2}}))
    suite = recorded.path / "desk.bespeak.yaml"
    told = [one for one in unused(recorded, suite) if "snapshot" in one]
    assert told == [
        "the snapshot 'old' of 'one' in desk.snapshots.json",
        "the snapshot 'said' of 'gone' in desk.snapshots.json",
    ]
    unused(recorded, suite).remove()
    assert json.loads(file.read_text()) == kept


def test_a_snapshot_whose_name_is_filled_in_may_be_any(bench: Bench) -> None:
    first = "- {name: zero, tool: say, arguments: {text: a}, capture: {it: text}}\n"
    suite = bench.suite(first + "- {name: one, tool: say, arguments: {text: a}, expect: {text: {snapshot: '${it}'}}}\n")
    bench.write("desk.snapshots.json", '{"one": {"x": 1}, "zero": {"x": 1}}')
    assert list(unused(bench, suite)) == ["the snapshot 'x' of 'zero' in desk.snapshots.json"]


def test_snapshots_that_cannot_be_read_are_left_alone(bench: Bench) -> None:
    suite = bench.suite(ONE)
    bench.write("desk.snapshots.json", "[]")
    assert list(unused(bench, suite)) == []


# With pytest, and redactions of a suite


def test_pytest_tells_the_same_notes(recorded: Bench) -> None:
    ran = recorded.pytest("--bespeak-cassettes=tapes")
    ran.assert_outcomes(passed=1)
    assert said(ran).count("bespeak: note: no test uses tapes/desk-two-") == 2


@pytest.mark.long
@pytest.mark.parametrize("more", [(), ("--bespeak-report=json=r.json",)])
def test_several_processes_tell_each_note_once(
    recorded: Bench, more: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    suite = recorded.suite(ONE)
    suite.write_text(suite.read_text().replace("server: desk\n", "server: desk\ncassettes: tapes\n"))
    plugins = ("-p", "xdist", "-p", "bespeak.testing.plugin")
    ran = recorded.pytester.run(sys.executable, "-m", "pytest", *plugins, "-n", "2", *more)
    ran.assert_outcomes(passed=1)
    assert said(ran).count("bespeak: note: no test uses tapes/desk-two-") == 2
    if more:
        assert len(json.loads((recorded.path / "r.json").read_text())["notes"]) == 2


@pytest.mark.parametrize(("words", "notes"), [((), 1), (("-k", "one"), 0)])
def test_a_redaction_of_a_suite_that_matches_in_none_of_its_tests_is_reported(
    bench: Bench, words: tuple[str, ...], notes: int
) -> None:
    suite = bench.suite("- {name: one, tool: say, arguments: {text: a}}\n" + TWO)
    suite.write_text(suite.read_text().replace("server: desk\n", "server: desk\nredact: ['content[0].text', x.y]\n"))
    code, output = bench.bespeak("test", *words)
    assert (code, output.count("note: desk.bespeak.yaml:4: redact: 'x.y' matched nothing in any test")) == (0, notes)
    assert "content" not in output
