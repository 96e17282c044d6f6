"""The HTML report: one file that needs nothing else, with the timeline of each conversation.

It has no scripts. A browser is told to load nothing and to apply only the style that is in the file.
"""

import base64
import hashlib
import json
from collections.abc import Iterable
from itertools import groupby
from typing import Any
from xml.etree import ElementTree as ET

from bespeak.conversation.differences import ABSENT
from bespeak.testing.report.document import Document
from bespeak.testing.report.html_elements import add, add_block
from bespeak.testing.report.html_style import STYLE
from bespeak.testing.report.html_timeline import add_timeline
from bespeak.testing.report.results import Failure, Outcome, Result
from bespeak.testing.report.summary import Summary, in_order
from bespeak.testing.report.yaml_lines import yaml_lines

SLOWEST = 5
"""How many of the slowest tests are listed."""
_DIFF = {"+": "plus", "-": "minus", "@": "hunk"}


_BADGES = {
    Outcome.PASSED: "ok",
    Outcome.FAILED: "failed",
    Outcome.SKIPPED: "skipped",
    Outcome.XFAILED: "expected failure",
}


class HtmlReport(Document):
    """The report as one HTML file."""

    def _text(self, summary: Summary) -> str:
        page = ET.Element("html", {"lang": "en"})
        _add_head(page)
        main = add(add(page, "body"), "main")
        _add_counts(main, summary)
        for note in summary.all_notes:
            add(main, "p", f"Note: {note}", "note")
        results = in_order(summary.results)
        if summary.failed and summary.passed:
            for name, said in (("all", "all tests"), ("only", "failed tests")):
                chosen = {"checked": "checked"} if name == "all" else {}
                add(main, "input", id=name, name="shown", type="radio", **chosen)
                add(main, "label", said, "filter", **{"for": name})
        for suite, group in groupby(results, key=lambda result: result.suite):
            tests = list(group)
            section = add(main, "section", kind="passed" if all(one.passed for one in tests) else "failed")
            add(section, "h2", suite)
            for result in tests:
                _add_test(section, result)
        _add_slowest(main, results)
        written = ET.tostring(page, encoding="us-ascii", method="html").decode("ascii")
        return f"<!doctype html>\n{written}\n"


def _add_head(page: ET.Element) -> None:
    head = add(page, "head")
    add(head, "meta", charset="utf-8")
    add(head, "meta", name="viewport", content="width=device-width, initial-scale=1")
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    allowed = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    add(head, "meta", content=allowed, **{"http-equiv": "Content-Security-Policy"})
    add(head, "title", "bespeak test")
    add(head, "style").text = STYLE


def _add_counts(main: ET.Element, summary: Summary) -> None:
    if summary.interrupted:
        verdict = "The run was interrupted"
    elif summary.succeeded:
        verdict = "All tests passed"
    else:
        verdict = f"{summary.failed} of {len(summary.results)} tests failed" if summary.results else "No tests were run"
    add(main, "h1", verdict)
    counts = add(main, "p", kind="counts")
    for number, noun, kind in (
        (summary.failed, "failed", "bad"),
        (summary.passed, "passed", "good"),
        (summary.skipped, "skipped", ""),
        (summary.xfailed, "failed as expected", ""),
        (summary.deselected, "deselected", ""),
    ):
        if number:
            span = add(counts, "span", kind=kind)
            add(span, "b", str(number)).tail = f" {noun}"
    if advice := sum(len(result.advice) for result in summary.results):
        add(counts, "span", "1 piece of advice" if advice == 1 else f"{advice} pieces of advice")
    add(counts, "span", f"{summary.seconds:.2f} s")
    if summary.results:
        bar = add(main, "div", kind="bar", **{"aria-hidden": "true"})
        # Without an inline style, a bar is made of one piece for each test.
        for result in in_order(summary.results)[:MOST_PIECES]:
            add(bar, "span", kind=result.outcome.value)


MOST_PIECES = 400


def _add_test(section: ET.Element, result: Result) -> None:
    opened = {} if result.passed else {"open": "open"}
    test = add(section, "details", kind=f"test {'passed' if result.passed else 'failed'}", **opened)
    line = add(test, "summary")
    add(line, "span", _BADGES[result.outcome], f"badge {result.outcome.value}")
    add(line, "span", result.title, "title")
    place = f"line {result.line}" if result.file is None else f"{result.file}:{result.line}"
    told = [f"server {result.server}", place, *map("#{}".format, result.tags), f"{result.seconds:.2f} s"]
    add(line, "span", " \u00b7 ".join(told), "meta")
    inside = add(test, "div", kind="inside")
    if result.reason is not None:
        add(inside, "p", result.reason, "note")
    for failure in result.failures:
        _add_failure(inside, failure)
    if not result.passed and result.tells_ended:
        add(add(inside, "div", kind="failure"), "p", result.ended or "", "message")
    for sentence in result.outside:
        add(inside, "p", sentence, "note")
    for finding in result.advice:
        add(inside, "p", f"Advice: {finding}", "note")
    if result.printed:
        add(inside, "p", f"server {result.server!r} printed:", "at")
        add_block(inside, result.printed.splitlines())
    add_timeline(inside, result.conversation, result.server)
    if result.again:
        add(add(inside, "p", "Run it again: ", "again"), "code", result.again)


def _add_failure(inside: ET.Element, failure: Failure) -> None:
    box = add(inside, "div", kind="failure")
    add(box, "p", str(failure), "message")
    if failure.path is not None:
        add(box, "p", f"at {failure.path or 'the top level'}", "at")
        if failure.diff:
            block = add(box, "pre", kind="diff")
            for line in failure.diff:
                add(block, "span", line or " ", _DIFF.get(line[:1], "same"))
        else:
            _add_both(box, failure)
    add_block(box, (failure.hint or "").splitlines())


def _add_both(box: ET.Element, failure: Failure) -> None:
    """Add an expected and an actual value without a diff: they are short, or one is missing."""
    for said, value, kind in (("expected", failure.expected, "minus"), ("actual", failure.actual, "plus")):
        add(box, "p", said, "at")
        block = add(box, "pre", kind="diff")
        for line in _value_lines(value):
            add(block, "span", line, kind)


def _value_lines(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        return [json.dumps(value, ensure_ascii=False)]
    return ["(nothing)"] if value is ABSENT else yaml_lines(value)


def _add_slowest(main: ET.Element, results: list[Result]) -> None:
    if len(results) <= 1:
        return
    add(main, "h2", "The slowest tests")
    table = add(main, "table")
    for result in sorted(results, key=lambda one: -one.seconds)[:SLOWEST]:
        row = add(table, "tr")
        add(row, "td", f"{result.seconds:.2f} s", "time")
        add(row, "td", result.title)
