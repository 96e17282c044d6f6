"""Reading what the suite has found."""

import json
from pathlib import Path
from typing import Any

from conformance.results import Outcome, read_listed, read_outcome, read_outcomes, shortfalls


def check(status: str, **more: Any) -> dict[str, Any]:
    return {"id": "an-id", "description": "what is checked", "status": status, **more}


def test_only_checks_with_a_verdict_are_counted() -> None:
    outcome = read_outcome([check("SUCCESS"), check("INFO"), check("SKIPPED"), check("SUCCESS")])
    assert outcome == Outcome(2)
    assert outcome.checks == 2


def test_a_failure_is_a_problem_and_says_why() -> None:
    outcome = read_outcome([check("SUCCESS"), check("FAILURE", errorMessage="no name")])
    assert outcome == Outcome(1, ("FAILURE an-id: no name",))
    assert outcome.checks == 2


def test_a_warning_is_a_problem_like_a_failure() -> None:
    assert read_outcome([check("WARNING")]) == Outcome(0, ("WARNING an-id: what is checked",))


def saved(folder: Path, name: str, *checks: dict[str, Any]) -> None:
    (folder / name).mkdir()
    (folder / name / "checks.json").write_text(json.dumps(checks))


def test_the_outcomes_of_a_server_are_read_by_the_names_of_the_folders(tmp_path: Path) -> None:
    saved(tmp_path, "server-server-initialize-2026-11-18T02-59-22-201Z", check("SUCCESS"))
    saved(tmp_path, "server-json-schema-2020-12-2026-11-18T02-59-22-207Z", check("FAILURE"))
    (tmp_path / "server.log").write_text("")
    outcomes = read_outcomes(tmp_path, "server")
    assert {name: outcome.passed for name, outcome in outcomes.items()} == {
        "server-initialize": 1,
        "json-schema-2020-12": 0,
    }


def test_the_folders_of_client_scenarios_have_no_prefix(tmp_path: Path) -> None:
    saved(tmp_path, "sse-retry-2026-11-18T02-59-59-562Z", check("SUCCESS"), check("SUCCESS"))
    assert read_outcomes(tmp_path, "client") == {"sse-retry": Outcome(2)}


def test_a_folder_that_does_not_exist_has_no_outcomes(tmp_path: Path) -> None:
    assert read_outcomes(tmp_path / "results", "server") == {}


def test_the_listed_scenarios_are_read() -> None:
    printed = (
        "Client scenarios (test against a client):\n  - tools_call [2025-11-25]\n  - auth/metadata-var1 [2026-07-28]\n"
    )
    assert read_listed(printed) == ["tools_call", "auth/metadata-var1"]


# What is wrong


def test_nothing_is_wrong_with_all_checks_passed() -> None:
    assert shortfalls({"ping": 2, "tools-list": 3}, {"ping": Outcome(2), "tools-list": Outcome(3)}) == {}


def test_more_checks_than_expected_are_not_wrong() -> None:
    assert shortfalls({"ping": 2}, {"ping": Outcome(3)}) == {}


def test_problems_are_wrong_though_enough_checks_passed() -> None:
    assert shortfalls({"ping": 2}, {"ping": Outcome(2, ("WARNING x: y",))}) == {"ping": ("WARNING x: y",)}


def test_fewer_checks_than_expected_are_wrong() -> None:
    assert shortfalls({"ping": 2}, {"ping": Outcome(1)}) == {"ping": ("only 1 of 2 checks were made",)}


def test_a_scenario_that_was_not_run_is_wrong() -> None:
    assert shortfalls({"ping": 2}, {}) == {"ping": ("only 0 of 2 checks were made",)}


def test_a_scenario_that_is_not_expected_is_wrong() -> None:
    said = ("the suite has this scenario, but it is not expected",)
    assert shortfalls({}, {"new": Outcome(5)}) == {"new": said}
