"""Reports: what each writer says of a run, whatever text there is in it, and the exit code."""

import json
import re
from dataclasses import replace
from io import BytesIO, StringIO, TextIOWrapper
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from bespeak.conversation.call_rounds import Round
from bespeak.conversation.matchers import ABSENT
from bespeak.conversation.protocol_rules import RULES, Finding
from bespeak.testing.report.excerpts import bounded
from bespeak.testing.report.json_report import JsonReport
from bespeak.testing.report.junit_report import JunitReport
from bespeak.testing.report.pretty_report import LONGEST, PrettyReport, describe
from bespeak.testing.report.results import Failure, Kind, Result
from bespeak.testing.report.summary import Summary, cause_of
from tests.testing.runs import FAILED, GONE, PASSED, RUN, SKIPPED, XFAILED, with_failure, written


def pretty_lines(*results: Result, **summary: Any) -> list[str]:
    return written(PrettyReport, Summary(results, **summary)).splitlines()


# The exit code


# Pretty


def test_each_test_has_its_line_as_soon_as_it_ends() -> None:
    out = StringIO()
    pretty = PrettyReport(out)
    pretty.started(2)
    pretty.finished(PASSED)
    pretty.finished(FAILED)

    assert out.getvalue().splitlines() == [
        "ok      asks for the city  suites/weather.bespeak.yaml:9",
        "FAILED  refuses a changed state [flip, 2026-07-28]  suites/weather.bespeak.yaml:31",
    ]


def test_a_test_that_was_skipped_or_failed_as_expected_has_its_reason_and_nothing_more() -> None:
    assert pretty_lines(SKIPPED, XFAILED, PASSED, seconds=1.5) == [
        "skip    is slow  suites/weather.bespeak.yaml:60  (takes an hour)",
        "xfail   refuses a changed state [flip, 2026-07-28]  suites/weather.bespeak.yaml:70  (known since May)",
        "ok      asks for the city  suites/weather.bespeak.yaml:9",
        "",
        "1 passed, 1 skipped, 1 xfailed in 1.50 s",
    ]


def test_a_test_of_an_included_file_is_shown_with_that_file() -> None:
    assert (
        pretty_lines(replace(PASSED, file="suites/common.yaml"))[0] == "ok      asks for the city  suites/common.yaml:9"
    )


def test_a_failed_test_is_reported_in_full_at_the_end() -> None:
    assert pretty_lines(PASSED, FAILED, deselected=2, seconds=1.5)[2:] == [
        "",
        "suites/weather.bespeak.yaml:31: refuses a changed state [flip, 2026-07-28]",
        "  the result differs",
        "    at content[0].text",
        '    expected "no"',
        '    actual   {"text": "yes"}',
        f"  the altered state was taken (state-verified: {RULES['state-verified']})",
        "  'units' has no answer",
        "    add to the test:",
        "    inputResponses:",
        "      units: C",
        "  round 1 asked",
        '    city: "Which city?"',
        '      answered {"action": "decline"}',
        '    units: "Which units?"',
        "      not answered",
        "  round 2 asked nothing, and returned a state",
        "  run it again: bespeak test suites/weather.bespeak.yaml -k 'refuses a changed state'",
        "",
        "1 failed, 1 passed, 2 deselected in 1.50 s",
    ]


ADVISED = replace(PASSED, advice=[Finding("declined", "'city' was asked again\x1b[2J")])


def test_advice_is_shown_apart_each_once_and_fails_nothing() -> None:
    lines = pretty_lines(ADVISED, replace(ADVISED, line=20), PASSED)
    told = f"'city' was asked again\ufffd[2J (declined: {RULES['declined']})"
    assert lines[3:] == [
        "",
        "advice, which fails nothing:",
        f"  suites/weather.bespeak.yaml:9 and 1 more: {told}",
        "",
        "3 passed in 0.00 s",
    ]


def test_advice_is_in_the_json_of_a_result_and_comes_back_from_it() -> None:
    told = json.loads(json.dumps(ADVISED.as_json()))
    assert told["outcome"] == "passed"
    assert told["advice"] == [
        {"rule": "declined", "text": "'city' was asked again\x1b[2J", "clause": "client/elicitation"}
    ]
    assert Result.from_json(told).advice == ADVISED.advice


def test_a_broken_rule_has_its_clause_in_the_json() -> None:
    (failure,) = with_failure(rule="content").as_json()["failures"]
    assert (failure["rule"], failure["clause"]) == ("content", "schema")


def test_advice_is_in_the_output_of_a_junit_case() -> None:
    (case,) = ET.fromstring(written(JunitReport, Summary([ADVISED]))).iter("testcase")
    assert [(part.tag, part.text) for part in case] == [
        ("system-out", f"advice: 'city' was asked again\ufffd[2J (declined: {RULES['declined']})")
    ]


def test_a_report_holds_so_much_advice_and_not_more() -> None:
    many = bounded(replace(PASSED, advice=[Finding("declined", "x" * 10_000)] * 100))
    assert len(many.advice) == 20
    assert len(many.advice[0].text) < 5_000


def test_an_answer_that_nobody_asked_for_is_shown_as_one() -> None:
    failed = replace(with_failure(), rounds=[Round({"a": "A?"}, {"a": 1, "b": 2}, state=False)])

    assert describe(failed).splitlines()[-2:] == ["    b, which was not asked", "      answered 2"]


@pytest.mark.parametrize(
    ("results", "summary", "line"),
    [
        ([PASSED], {}, "1 passed in 0.00 s"),
        ([], {"deselected": 3}, "no tests were selected, 3 deselected in 0.00 s"),
        ([], {}, "no tests were selected in 0.00 s"),
        ([], {"interrupted": True}, "interrupted after 0 of 0 in 0.00 s"),
    ],
)
def test_the_last_line_has_the_counts(results: list[Result], summary: dict[str, Any], line: str) -> None:
    assert pretty_lines(*results, **summary)[-1] == line


def test_an_interrupted_run_says_how_far_it_came_and_what_is_known_so_far() -> None:
    out = StringIO()
    pretty = PrettyReport(out)
    pretty.started(12)
    pretty.ended(Summary([PASSED, GONE], interrupted=True))

    assert "connection refused" in out.getvalue()
    assert out.getvalue().endswith("\ninterrupted after 2 of 12: 1 failed, 1 passed in 0.00 s\n")


def test_a_difference_at_the_top_says_so() -> None:
    lines = pretty_lines(with_failure(path="", expected=1, actual=None))

    assert lines[4:7] == ["    at the top level", "    expected 1", "    actual   null"]


def test_a_value_that_is_not_there_is_not_a_value_in_any_report() -> None:
    failed = with_failure(path="a", expected=None, actual=ABSENT)

    assert pretty_lines(failed)[5:7] == ["    expected null", "    actual   (nothing)"]
    assert json.loads(written(JsonReport, Summary([failed])))["results"][0]["failures"] == [
        {"kind": "failed", "message": "it differs", "path": "a", "expected": None}
    ]


@pytest.mark.parametrize("value", ["x" * 100_000, ["x"] * 100_000, "a\nb" * 1000], ids=["text", "list", "lines"])
def test_values_are_shown_short_and_on_one_line(value: Any) -> None:
    failed = replace(
        with_failure(path="a", expected=value, actual=value), rounds=[Round({"k": str(value)}, {"k": value}, True)]
    )
    lines = pretty_lines(failed)

    assert len(lines) == 12
    assert max(len(line) for line in lines) < LONGEST + 30


@pytest.mark.parametrize("value", [float("nan"), float("-inf"), object, {1: "one"}, ("a", "b")])
def test_a_value_that_is_not_json_is_shown_all_the_same(value: Any) -> None:
    assert "    expected " in "\n".join(pretty_lines(with_failure(path="a", expected=value)))


def test_text_of_a_server_does_not_pass_for_a_line_of_the_report() -> None:
    forged = "nothing\n\nother.bespeak.yaml:1: forged\r\n9 passed in 0.00 s"
    failed = replace(with_failure(forged, hint=forged), name=forged, rounds=[Round({forged: forged}, {}, False)])

    assert not [line for line in pretty_lines(failed) if line.startswith(("other", "9"))]


def test_colours_are_there_if_asked_for() -> None:
    text = written(lambda out: PrettyReport(out, colour=True), RUN)

    assert "\x1b[32mok    \x1b[0m" in text
    assert "\x1b[31mFAILED\x1b[0m" in text


def test_an_output_that_cannot_show_a_character_gets_its_number() -> None:
    out = TextIOWrapper(raw := BytesIO(), encoding="ascii")
    PrettyReport(out).finished(replace(PASSED, name="fragt nach Köln"))

    assert raw.getvalue().startswith(b"ok      fragt nach K\\xf6ln")


# JSON


# JUnit


# Any text


# Diffs, errors of the tool, and causes


def test_a_diff_stands_in_place_of_the_two_values() -> None:
    failure = Failure(
        "it differs", path="a", expected=[1, 2], actual=[1, 3], diff=["--- expected", "+++ actual", "-\x1b2", "+3"]
    )
    lines = describe(replace(PASSED, failures=[failure])).splitlines()
    assert lines[1:] == ["  it differs", "    at a", "    --- expected", "    +++ actual", "    -\ufffd2", "    +3"]


def test_the_error_of_the_tool_is_told_once() -> None:
    failed = replace(PASSED, failures=[Failure("it differs")], ended="the tool failed: no\nmoney")
    assert describe(failed).splitlines()[1:] == ["  it differs", "  the tool failed: no", "  money"]
    said = replace(failed, failures=[Failure("the tool failed: no\nmoney")])
    assert describe(said).count("money") == 1


def test_tests_of_a_server_that_cannot_be_reached_are_told_together() -> None:
    others = [replace(GONE, line=41, name="is there, too"), replace(GONE, line=42, name="elsewhere", server="other")]
    text = written(PrettyReport, Summary([GONE, *others]))
    assert text.count("connection refused") == 2
    assert "  1 more test failed for the same reason:\n    suites/weather.bespeak.yaml:41: is there, too\n" in text


@pytest.mark.parametrize(
    ("failures", "cause"),
    [
        ([Failure("text: expected 'a', got 'b'\nmore")], "text: expected 'a', got 'b'"),
        ([Failure("stale", Kind.CASSETTE), Failure("wrong"), Failure("x")], "wrong (and 2 more)"),
        ([Failure("\x1b[2Jevil")], "\ufffd[2Jevil"),
        ([Failure("")], ""),
        ([Failure("x" * 400)], "x" * 300 + "... (100 more characters)"),
    ],
)
def test_the_cause_of_a_failed_test_is_one_line(failures: list[Failure], cause: str) -> None:
    assert cause_of(replace(PASSED, failures=failures)) == cause


# Time


def test_each_test_has_its_duration_if_that_is_asked_for() -> None:
    assert "9  0.25 s\n" in written(lambda out: PrettyReport(out, durations=1), Summary([PASSED]))
    assert "9\n" in written(PrettyReport, Summary([PASSED]))


@pytest.mark.parametrize(
    ("most", "heading", "names"),
    [
        (1, "the slowest 1 test:", ["b"]),
        (0, "the slowest 3 tests:", ["b", "c", "a"]),
        (9, "the slowest 3 tests:", ["b", "c", "a"]),
    ],
)
def test_the_slowest_tests_are_listed_if_asked_for(most: int, heading: str, names: list[str]) -> None:
    results = [replace(PASSED, name=name, seconds=seconds) for name, seconds in (("a", 0.1), ("b", 0.3), ("c", 0.2))]
    lines = written(lambda out: PrettyReport(out, durations=most), Summary(results)).splitlines()
    at = lines.index(heading)
    assert [line.split()[2] for line in lines[at + 1 : at + 1 + len(names)]] == names
    assert lines[at + 1] == "     0.30 s  b  suites/weather.bespeak.yaml:9"
    assert lines[at + 1 + len(names)] == ""


def test_without_tests_none_is_the_slowest() -> None:
    assert "slowest" not in written(lambda out: PrettyReport(out, durations=3), Summary([]))


def test_a_counter_is_rewritten_in_one_line() -> None:
    text = written(lambda out: PrettyReport(out, counter=True), Summary([PASSED, PASSED]))
    assert text.startswith("\r\x1b[2K0/2 ...\r\x1b[2Kok      asks")
    assert text.count("\r\x1b[2K1/2 ...") == 1
    assert "2/2" not in text
    shown = "".join(line.rpartition("\x1b[2K")[2] + "\n" for line in text.split("\n"))
    assert "..." not in shown


def test_without_a_counter_there_are_no_control_characters() -> None:
    assert not re.search("[\r\x1b]", written(PrettyReport, RUN))


def test_notes_are_told_once_each_before_the_counts() -> None:
    noted = replace(PASSED, notes=["look here"])
    text = written(PrettyReport, Summary([noted, noted], notes=["and here\x1b"]))
    assert text.endswith("\nnote: and here\ufffd\n\nnote: look here\n\n2 passed in 0.00 s\n")
