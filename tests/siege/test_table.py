"""What a siege prints."""

import json

from siege.honest import Sample
from siege.judgement import Check, Turn
from siege.laying import Outcome
from siege.readings import Reading
from siege.table import as_json, table

CALLS = {kind: Sample([0.002, 0.004, 0.003]) for kind in ("plain", "asked", "pushed")}
TURN = Turn(
    Reading(50, 15, 3, 1), Reading(80.4, 20, 9, 2), Reading(60, 15, 3, 1), {"refused": 2}, 1.5, CALLS, CALLS, CALLS
)
WITHSTOOD = Outcome("a flood", CALLS, (TURN, TURN), (Check("nothing breaks", True),))
LOST = Outcome("a large event", {}, (), (Check("it ends", False, "it did not"),))


def test_a_row_says_what_was_held_and_how_long_honest_calls_took() -> None:
    lines = table([WITHSTOOD]).splitlines()
    assert len(lines) == 3
    assert "50 / 80 / 60 / 80" in lines[2]
    assert "1 / 2 / 1 / 2" in lines[2]
    assert "3.0 / 3.0 / 3.0" in lines[2]
    assert lines[2].endswith("PASS")


def test_what_was_not_met_stands_below_its_row() -> None:
    lines = table([LOST]).splitlines()
    assert lines[2].endswith("FAIL")
    assert lines[3] == "    not met: it ends (it did not)"


def test_json_holds_everything_but_single_times() -> None:
    (found, _) = json.loads(json.dumps(as_json([WITHSTOOD, LOST])))
    assert found["passed"] is True
    assert found["turns"][0]["tally"] == {"refused": 2}
    assert found["turns"][0]["peak"]["memory"] == 80.4
    assert found["honest before"]["plain"] == {"calls": 3, "median ms": 3.0, "failures": []}
