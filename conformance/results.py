"""What the suite found: reading the files that it writes, and comparing them with what is expected."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

_FOLDER = re.compile(r"(?P<scenario>.+)-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z")
_COUNTED = ("SUCCESS", "FAILURE", "WARNING")
"""Other checks are for information, or were skipped."""

Side = Literal["server", "client"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the suite found in one scenario."""

    passed: int
    problems: tuple[str, ...] = ()
    """Failures and warnings, one text each."""

    @property
    def checks(self) -> int:
        return self.passed + len(self.problems)

    def shortfalls(self, expected: int) -> tuple[str, ...]:
        """Return what is wrong, given the number of checks the scenario has. Empty if nothing is."""
        if self.problems or self.passed >= expected:
            return self.problems
        return (f"only {self.passed} of {expected} checks were made",)


NOT_RUN = Outcome(0)


def read_outcome(checks: list[dict[str, Any]]) -> Outcome:
    """Return the outcome of a scenario, given the contents of its `checks.json`."""
    counted = [check for check in checks if check["status"] in _COUNTED]
    problems = [
        f"{check['status']} {check['id']}: {check.get('errorMessage') or check['description']}"
        for check in counted
        if check["status"] != "SUCCESS"
    ]
    return Outcome(len(counted) - len(problems), tuple(problems))


def read_outcomes(folder: Path, side: Side) -> dict[str, Outcome]:
    """Return the outcome of each scenario whose results the suite has saved in a folder."""
    outcomes: dict[str, Outcome] = {}
    for file in sorted(folder.glob("*/checks.json")):
        match = _FOLDER.fullmatch(file.parent.name)
        if match is not None:
            scenario = match["scenario"].removeprefix("server-") if side == "server" else match["scenario"]
            outcomes[scenario] = read_outcome(json.loads(file.read_text()))
    return outcomes


def read_listed(printed: str) -> list[str]:
    """Return the names of the scenarios that `conformance list` prints."""
    return re.findall(r"^ *- (\S+)", printed, re.MULTILINE)


def shortfalls(expected: Mapping[str, int], found: Mapping[str, Outcome]) -> dict[str, tuple[str, ...]]:
    """Return what is wrong, by scenario: failures, warnings, and checks that were not made. Empty if nothing is."""
    wrong = {name: found.get(name, NOT_RUN).shortfalls(checks) for name, checks in expected.items()}
    wrong |= {name: ("the suite has this scenario, but it is not expected",) for name in found if name not in expected}
    return {name: reasons for name, reasons in wrong.items() if reasons}
