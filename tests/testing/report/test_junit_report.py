"""The JUnit report has one suite for each file, and one failure for each failed test."""

from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from bespeak.testing.report.junit_report import JunitReport
from bespeak.testing.report.pretty_report import PrettyReport, describe
from bespeak.testing.report.results import Kind, Result
from bespeak.testing.report.summary import Summary
from tests.testing.runs import FAILED, GONE, PASSED, SKIPPED, STALE, XFAILED, with_failure, written


def junit(*results: Result) -> ET.Element:
    return ET.fromstring(written(JunitReport, Summary(results, seconds=1.5)))


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


def test_what_was_skipped_or_failed_as_expected_is_skipped_in_junit() -> None:
    root = junit(SKIPPED, XFAILED, PASSED)
    assert [root.attrib[name] for name in ("tests", "failures", "errors", "skipped")] == ["3", "0", "0", "2"]
    assert [one.attrib for one in root.iter("skipped")] == [
        {"message": "takes an hour", "type": "skipped"},
        {"message": "known since May", "type": "xfailed"},
    ]


def test_a_command_that_failed_is_an_error_in_junit() -> None:
    root = junit(with_failure("setup: no data", kind=Kind.SETUP))
    assert [one.attrib["type"] for one in root.iter("error")] == ["setup"]


def test_a_test_of_an_included_file_has_that_file() -> None:
    case = junit(replace(PASSED, file="suites/common.yaml")).find("testsuite/testcase")
    assert case is not None
    assert case.attrib["file"] == "suites/common.yaml"
