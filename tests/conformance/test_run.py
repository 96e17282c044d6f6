"""Running the suite: what counts as a failed run, and what is printed of it. A script takes the place of Node."""

from pathlib import Path

import pytest
from conformance.expected import CHECKS, MODERN
from conformance.results import Outcome
from conformance.run import Failed, Report, Suite

LISTED = "".join(f"  - {name} [{MODERN}]\n" for name in CHECKS["client", MODERN])
PASSED = '[{"id": "a", "description": "b", "status": "SUCCESS"}]'


def printing(folder: Path, *lines: str) -> Suite:
    """Return a suite that runs these lines of shell instead."""
    node = folder / "node"
    node.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    node.chmod(0o755)
    results = folder / "results"
    results.mkdir()
    return Suite(node, results)


def saving(checks: str) -> list[str]:
    """Return lines of shell that save the checks of one scenario in the folder that the last argument names."""
    own = '"$out/tools_call-2026-11-18T02-59-22-201Z"'
    return ['for out in "$@"; do :; done', f"mkdir -p {own}", f"echo '{checks}' > {own}/checks.json"]


def test_a_suite_that_cannot_be_started_says_how_to_install_it(tmp_path: Path) -> None:
    with pytest.raises(Failed, match=r"cannot start .*no-node: .*; `make conformance` installs what is needed"):
        Suite(tmp_path / "no-node", tmp_path).check_scenarios("client", MODERN)


def test_the_scenarios_of_the_suite_are_those_that_are_run_and_those_with_oauth(tmp_path: Path) -> None:
    suite = printing(tmp_path, f"cat <<'END'\n{LISTED}  - auth/metadata-default [{MODERN}]\nEND")
    assert suite.check_scenarios("client", MODERN) == {}


@pytest.mark.parametrize("listed", [f"{LISTED}  - brand-new [{MODERN}]\n", LISTED.replace("tools_call", "brand-new")])
def test_a_scenario_that_is_not_run_fails(tmp_path: Path, listed: str) -> None:
    suite = printing(tmp_path, f"cat <<'END'\n{listed}END")
    with pytest.raises(Failed, match=r"expected\.py and the suite differ in these scenarios: brand-new"):
        suite.check_scenarios("client", MODERN)


def test_the_outcome_of_a_client_scenario_is_read(tmp_path: Path) -> None:
    assert printing(tmp_path, *saving(PASSED)).run_client("tools_call", MODERN) == {"tools_call": Outcome(1)}


def test_a_suite_that_exits_with_an_error_fails_though_all_checks_passed(tmp_path: Path) -> None:
    suite = printing(tmp_path, *saving(PASSED), "exit 3")
    with pytest.raises(Failed, match="the suite exited with code 3"):
        suite.run_client("tools_call", MODERN)


def test_a_client_that_exits_with_an_error_fails_even_where_the_suite_forgives_it(tmp_path: Path) -> None:
    suite = printing(tmp_path, *saving(PASSED), "echo 'Client exited with code 1'")
    with pytest.raises(Failed, match="our client exited with an error"):
        suite.run_client("tools_call", MODERN)


# What is printed


def test_a_run_that_passes_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    report = Report()
    assert report.run("server, h11", {"ping": 2}, lambda: {"ping": Outcome(2)}) == {"ping": Outcome(2)}
    (line,) = capsys.readouterr().out.splitlines()
    assert line.split() == ["ok", "server,", "h11", "2", "of", "2", "checks", "0.0", "s"]
    assert report.failures == 0


def test_a_run_with_problems_fails_and_lists_them(capsys: pytest.CaptureFixture[str]) -> None:
    report = Report()
    report.run("server, h11", {"ping": 2, "caching": 8}, lambda: {"ping": Outcome(1, ("FAILURE ping: no",))})
    first, *reasons = capsys.readouterr().out.splitlines()
    assert first.startswith("FAILED  server, h11")
    assert [reason.strip() for reason in reasons] == [
        "ping: FAILURE ping: no",
        "caching: only 0 of 8 checks were made",
    ]
    assert report.failures == 1


def test_a_run_that_does_not_end_fails_and_the_next_one_is_done(capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> dict[str, Outcome]:
        raise Failed("the server did not listen")

    report = Report()
    assert report.run("server, h11", {"ping": 2}, fail) == {}
    assert report.run("server, httptools", {"ping": 2}, lambda: {"ping": Outcome(2)})
    assert "the server did not listen" in capsys.readouterr().out
    assert report.failures == 1
