"""Reports: what each writer says of a run, whatever text there is in it, and the exit code."""

import json
from dataclasses import replace
from io import BytesIO, StringIO, TextIOWrapper
from typing import Any

import pytest

from bespeak.conversation.call_rounds import Round
from bespeak.conversation.matchers import ABSENT
from bespeak.conversation.protocol_rules import RULES
from bespeak.testing.report.json_report import JsonReport
from bespeak.testing.report.pretty_report import LONGEST, PrettyReport, describe
from bespeak.testing.report.results import Result
from bespeak.testing.report.summary import Summary
from tests.testing.runs import FAILED, GONE, PASSED, RUN, with_failure, written


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
