"""The JUnit XML report, which CI systems read."""

from collections.abc import Sequence
from itertools import groupby
from xml.etree import ElementTree as ET

from bespeak.terminal.safe_text import marked
from bespeak.testing.report.document import Document
from bespeak.testing.report.pretty_report import describe
from bespeak.testing.report.results import Kind, Result, gravest
from bespeak.testing.report.summary import Summary, in_order


class JunitReport(Document):
    """The report as JUnit XML, with one testsuite for each suite file."""

    def _text(self, summary: Summary) -> str:
        root = ET.Element("testsuites", {"name": "bespeak", **_junit_counts(summary.results, summary.seconds)})
        for suite, group in groupby(in_order(summary.results), key=lambda result: result.suite):
            results = list(group)
            counts = _junit_counts(results, sum(result.seconds for result in results))
            element = ET.SubElement(root, "testsuite", {"name": marked(suite), **counts})
            for result in results:
                _add_case(element, result)
        ET.indent(root)
        return ET.tostring(root, encoding="us-ascii").decode("ascii") + "\n"


def _junit_counts(results: Sequence[Result], seconds: float) -> dict[str, str]:
    elements = [_junit_element(result) for result in results if not result.passed]
    return {
        "tests": str(len(results)),
        "failures": str(elements.count("failure")),
        "errors": str(elements.count("error")),
        "skipped": str(sum(result.reason is not None for result in results)),
        "time": f"{seconds:.3f}",
    }


def _junit_element(result: Result) -> str:
    return "error" if gravest(result.failures).kind in (Kind.UNREACHABLE, Kind.SETUP, Kind.UNUSABLE) else "failure"


def _add_case(suite: ET.Element, result: Result) -> None:
    told = {
        # Readers treat dots as package separators.
        "classname": marked(result.suite).removesuffix(".bespeak.yaml").strip("./").replace("/", "."),
        "name": marked(result.title),
        "file": marked(result.file or result.suite),
        "line": str(result.line),
        "time": f"{result.seconds:.3f}",
    }
    case = ET.SubElement(suite, "testcase", told)
    if result.reason is not None:
        ET.SubElement(case, "skipped", {"message": marked(result.reason), "type": result.outcome.value})
    if not result.passed:
        failure = gravest(result.failures)
        message = " ".join(marked(line).strip() for line in str(failure).splitlines())
        element = ET.SubElement(case, _junit_element(result), {"message": message, "type": failure.kind.value})
        element.text = describe(result)  # readers expect one failure per test, so this text has them all
    if result.advice:
        ET.SubElement(case, "system-out").text = "\n".join(f"advice: {marked(str(one))}" for one in result.advice)
