"""Reports: what each writer says of a run, whatever text there is in it, and the exit code."""

import json
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from io import BytesIO, StringIO, TextIOWrapper
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.conversation.matchers import ABSENT
from bespeak.conversation.results import Failure, Kind, Result, Round
from bespeak.conversation.rules import RULES
from bespeak.testing.report.json_report import JsonReport
from bespeak.testing.report.junit_report import JunitReport
from bespeak.testing.report.pretty_report import LONGEST, PrettyReport, describe
from bespeak.testing.report.summary import Summary
from tests.testing.runs import FAILED, GONE, PASSED, RUN, STALE, with_failure, written


def pretty_lines(*results: Result, **summary: Any) -> list[str]:
    return written(PrettyReport, Summary(results, **summary)).splitlines()


def junit(*results: Result) -> ET.Element:
    return ET.fromstring(written(JunitReport, Summary(results, seconds=1.5)))


# The exit code


@pytest.mark.parametrize(
    ("results", "interrupted", "code"),
    [
        ([PASSED, PASSED], False, 0),
        ([PASSED, FAILED], False, 1),
        ([GONE, STALE, FAILED], False, 1),
        ([STALE, GONE], False, 3),
        ([PASSED, STALE], False, 4),
        ([], False, 7),
        ([], True, 130),
        ([FAILED, PASSED], True, 130),
    ],
)
def test_the_exit_code_is_that_of_the_gravest_kind_of_failure(
    results: list[Result], interrupted: bool, code: int
) -> None:
    assert Summary(results, interrupted=interrupted).exit_code == code


def test_the_gravest_failure_of_one_test_decides_whatever_its_place() -> None:
    mixed = replace(PASSED, failures=[*STALE.failures, *GONE.failures, *with_failure().failures])

    assert Summary([mixed]).exit_code == 1


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


def test_a_failed_test_is_told_in_full_at_the_end() -> None:
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


def test_failures_come_in_the_order_of_the_files_whichever_ended_first() -> None:
    lines = pretty_lines(STALE, GONE)

    assert lines.index("suites/weather.bespeak.yaml:40: is there") < lines.index(
        "suites/weather.bespeak.yaml:50: plays"
    )


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


def test_a_value_that_is_not_there_is_no_value_in_any_report() -> None:
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
def test_a_value_that_is_no_json_is_shown_all_the_same(value: Any) -> None:
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


def test_the_json_report_is_one_document() -> None:
    assert json.loads(written(JsonReport, RUN)) == {
        "version": 1,
        "summary": {"passed": 1, "failed": 1, "deselected": 2, "interrupted": False},
        "results": [PASSED.as_json(), FAILED.as_json()],
    }


def test_the_json_report_has_sorted_keys_an_indent_of_two_and_ends_with_a_newline() -> None:
    text = written(JsonReport, RUN)

    assert text == json.dumps(json.loads(text), indent=2, sort_keys=True) + "\n"


def test_two_runs_give_the_same_json_whatever_their_order_and_times() -> None:
    eras = [None, "", "2025-11-25", "2026-07-28"]
    results = [replace(PASSED, name=name, case=case, era=era) for name in "ab" for case in (None, "") for era in eras]
    later = [replace(result, seconds=9.0) for result in reversed(results)]

    assert written(JsonReport, Summary(results, seconds=1)) == written(JsonReport, Summary(later, seconds=2))


def test_results_are_sorted_by_suite_line_name_case_and_era() -> None:
    places = [("a", 2), ("a", 10), ("b", 1)]
    results = [replace(PASSED, suite=suite, line=line) for suite, line in reversed(places)]
    told = json.loads(written(JsonReport, Summary(results)))["results"]

    assert [(one["suite"], one["line"]) for one in told] == places


def test_an_interrupted_run_leaves_json_of_what_is_known_so_far() -> None:
    told = json.loads(written(JsonReport, Summary([PASSED], interrupted=True)))

    assert told["summary"]["interrupted"] is True
    assert len(told["results"]) == 1


def test_a_value_nested_without_end_is_cut_and_not_the_end_of_the_report() -> None:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    summary = Summary([with_failure(path="a", expected=deep, actual=deep)])

    assert json.loads(written(JsonReport, summary))["summary"]["failed"] == 1
    assert "    expected [[[[" in written(PrettyReport, summary)


# JUnit


def test_junit_has_a_suite_for_each_file_with_its_counts() -> None:
    other = replace(PASSED, suite="other.bespeak.yaml")
    root = junit(FAILED, other, GONE, PASSED, STALE)
    counts = {"tests": "5", "failures": "2", "errors": "1", "skipped": "0", "time": "1.500"}

    assert root.tag == "testsuites"
    assert root.attrib == {"name": "bespeak", **counts}
    assert [suite.attrib for suite in root.findall("testsuite")] == [
        {"name": "other.bespeak.yaml", "tests": "1", "failures": "0", "errors": "0", "skipped": "0", "time": "0.250"},
        {"name": PASSED.suite, "tests": "4", "failures": "2", "errors": "1", "skipped": "0", "time": "1.250"},
    ]


def test_a_junit_case_says_where_it_stands_and_how_long_it_took() -> None:
    case = junit(PASSED).find("testsuite/testcase")

    assert case is not None
    assert len(case) == 0
    assert case.attrib == {
        "classname": "suites.weather",
        "name": "asks for the city",
        "file": "suites/weather.bespeak.yaml",
        "line": "9",
        "time": "0.250",
    }


@pytest.mark.parametrize(
    ("result", "element", "message", "kind"),
    [
        (FAILED, "failure", "the result differs", "failed"),
        (GONE, "error", "connection refused", "unreachable"),
        (STALE, "failure", "diverged at round 1", "cassette"),
        (with_failure("one\n  two"), "failure", "one two", "failed"),
        (replace(GONE, failures=[*GONE.failures, *FAILED.failures]), "failure", "the result differs", "failed"),
    ],
)
def test_a_junit_failure_has_the_text_of_the_pretty_report(
    result: Result, element: str, message: str, kind: str
) -> None:
    (found,) = junit(result).findall("testsuite/testcase/*")

    assert (found.tag, found.attrib) == (element, {"message": message, "type": kind})
    assert found.text == describe(result)
    assert describe(result) in written(PrettyReport, Summary([result]))


def test_an_empty_run_is_a_junit_report_too() -> None:
    assert junit().attrib["tests"] == "0"


# Any text

nasty = st.sampled_from("\x00\x08\x1b\x7f\x85\x9b\u200b\u202e\u2028\ud800\udfff\ufffe\uffff\U0001fffe\r\n\t]>&<\"'\\")
texts = st.text(st.characters() | nasty, max_size=12)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
failures = st.builds(
    Failure,
    texts,
    kind=st.sampled_from(Kind),
    path=st.none() | texts,
    expected=values,
    actual=values,
    rule=st.none() | st.sampled_from(sorted(RULES)),
    hint=st.none() | texts,
)
rounds = st.builds(
    Round, st.dictionaries(texts, texts, max_size=2), st.dictionaries(texts, values, max_size=2), st.booleans()
)
results = st.builds(
    Result,
    texts,
    st.integers(1, 9),
    texts,
    st.none() | texts,
    st.none() | texts,
    texts,
    failures=st.lists(failures, max_size=2),
    rounds=st.lists(rounds, max_size=2),
    again=texts,
)
runs = st.lists(results, max_size=2)


def refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


@given(runs)
def test_any_text_gives_well_formed_json(results: Sequence[Result]) -> None:
    text = written(JsonReport, Summary(results))
    told = json.loads(text, parse_constant=refuse)

    assert text.isascii()
    assert len(told["results"]) == len(results)
    json.dumps(told, ensure_ascii=False).encode()  # no half of a pair, which strict readers refuse


@given(runs)
def test_any_text_gives_well_formed_xml(results: Sequence[Result]) -> None:
    text = written(JunitReport, Summary(results))

    assert text.isascii()
    assert len(ET.fromstring(text).findall("testsuite/testcase")) == len(results)


@given(runs)
def test_the_pretty_report_holds_no_control_characters_but_newlines(results: Sequence[Result]) -> None:
    text = written(PrettyReport, Summary(results))

    assert {unicodedata.category(char) for char in set(text) - {"\n"}}.isdisjoint({"Cc", "Cf", "Cs", "Zl", "Zp"})
