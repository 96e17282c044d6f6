"""The HTML report: one file without scripts and without anything to load, in which a server's text is only ever text."""

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest

from bespeak.conversation.differences import ABSENT
from bespeak.conversation.protocol_rules import RULES, Finding
from bespeak.testing.report.html_report import HtmlReport
from bespeak.testing.report.html_style import STYLE
from bespeak.testing.report.results import Failure, Result
from bespeak.testing.report.summary import Summary
from bespeak.testing.report.timeline import Event, Step
from tests.testing.runs import FAILED, GONE, PASSED, RUN, SKIPPED, XFAILED, written

EVIL = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&\x1b[2J\u202e\udc80"
FORM = {
    "method": "elicitation/create",
    "params": {
        "mode": "form",
        "message": "Which city?",
        "requestedSchema": {
            "properties": {
                "city": {"type": "string", "format": "email"},
                "units": {"enum": ["C", "F"]},
                "sky": {"oneOf": [{"const": "sun", "title": "Sun"}]},
            },
            "required": ["city"],
        },
    },
}
PAGE = {"method": "elicitation/create", "params": {"mode": "url", "message": "Pay", "url": "https://pay.example/1"}}
SAMPLE: dict[str, Any] = {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 5}}
EVENTS = [
    Event(Step.CALL, {"name": "forecast", "arguments": {"loc": "SFO"}, "more": 1}, "tools/call"),
    Event(Step.ASKS, {"inputRequests": {"city": FORM, "pay": PAGE, "said": SAMPLE}, "description": "two"}, state=True),
    Event(
        Step.ANSWERS,
        {"inputResponses": {"city": {"action": "accept", "content": {"city": "Rome"}}, "pay": {"action": "decline"}}},
        state=True,
    ),
    Event(Step.AGAIN, {}, "tools/call"),
    Event(Step.ASKS, {}, state=True),
    Event(Step.ASKS, {"inputRequests": [{"id": "when", "kind": "string", "description": "When?", "required": False}]}),
    Event(Step.ANSWERS, {"inputResponses": [{"id": "when", "value": "now"}]}),
    Event(Step.ANSWER, {}),
    Event(Step.NOTIFICATION, {"params": {"progress": 1}}, "notifications/progress"),
    Event(
        Step.RESULT, {"content": [{"type": "text", "text": "sunny"}, {"type": "image", "data": "aa"}], "isError": True}
    ),
    Event(
        Step.RESULT,
        {"contents": [{"uri": "a:b", "text": "\n".join(map(str, range(30)))}], "structuredContent": {"a": 1}},
    ),
    Event(Step.RESULT, {}),
    Event(Step.ERROR, {"code": -32602, "message": "no"}),
    Event(Step.NO_RESPONSE, {"reason": "timed out"}),
    Event(Step.GIVES_UP, {"reason": "there is no answer to 'city'"}),
]


class Page(HTMLParser):
    """The elements of a page, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.said: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.said.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.said).split())

    def classes(self, tag: str) -> list[str]:
        return [str(attributes.get("class", "")) for name, attributes in self.tags if name == tag]


def page(*results: Result, **more: Any) -> Page:
    return Page(written(HtmlReport, Summary(results, **more)))


def test_the_report_has_the_counts_the_tests_and_what_failed() -> None:
    found = Page(written(HtmlReport, RUN))
    assert "1 of 2 tests failed 1 failed 1 passed 2 deselected 1.50 s" in found.text
    assert "suites/weather.bespeak.yaml" in found.text
    assert "refuses a changed state [flip, 2026-07-28]" in found.text
    assert "the altered state was taken" in found.text
    assert "at content[0].text" in found.text
    assert "inputResponses: units: C" in found.text
    assert f"Run it again: {FAILED.again}" in found.text
    assert found.classes("details") == ["test passed", "test failed"]
    assert [("open" in attributes) for tag, attributes in found.tags if tag == "details"] == [False, True]


@pytest.mark.parametrize(
    ("summary", "verdict"),
    [
        (Summary([PASSED]), "All tests passed"),
        (Summary([]), "No tests were run"),
        (Summary([PASSED], interrupted=True), "The run was interrupted"),
        (Summary([GONE]), "1 of 1 tests failed"),
    ],
)
def test_the_verdict_comes_first(summary: Summary, verdict: str) -> None:
    assert verdict in Page(written(HtmlReport, summary)).text


def test_skipped_tests_and_expected_failures_have_their_reasons() -> None:
    found = page(SKIPPED, replace(XFAILED, tags=["slow"], file="shared.yaml"))
    assert "1 skipped 1 failed as expected" in found.text
    assert ["badge skipped" in found.classes("span"), "badge xfailed" in found.classes("span")] == [True, True]
    assert str(SKIPPED.reason) in found.text
    assert str(XFAILED.reason) in found.text
    assert f"shared.yaml:{XFAILED.line} \u00b7 #slow" in found.text


def test_a_conversation_is_a_timeline_of_two_lanes() -> None:
    found = page(replace(PASSED, conversation=EVENTS))
    lanes = [kind.split()[0] for kind in found.classes("li")]
    assert lanes == ["client" if event.by_client else "server" for event in EVENTS]
    for said in (
        "calls the tool forecast loc:",
        "asks with a state city Which city?",
        "city: email units: C | F, optional sky: sun, optional",
        "https://pay.example/1",
        "sampling/createMessage",
        'answers with its state city accept city: "Rome" pay decline',
        "sends the same request again, as if the response was lost",
        "nothing: it only hands out a state",
        "when When? string, optional",
        "progress progress: 1",
        "returns a result that is an error sunny",
        "text, 30 lines",
        "returns an error code: -32602",
        'does not respond reason: "timed out"',
        "client sends no answer server progress",
        "client gives up there is no answer to 'city'",
    ):
        assert said in found.text


def test_a_diff_has_a_colour_for_each_kind_of_line() -> None:
    failure = Failure(
        "differs",
        path="",
        expected=[1],
        actual=[2],
        diff=["--- expected", "+++ actual", "@@ -1 +1 @@", " a", "-b", "+c"],
    )
    found = page(replace(PASSED, failures=[failure]))
    assert [kind for kind in found.classes("span") if kind in ("plus", "minus", "hunk", "same")] == [
        "minus",
        "plus",
        "hunk",
        "same",
        "minus",
        "plus",
    ]
    assert "at the top level" in found.text


def test_single_values_are_shown_one_above_the_other() -> None:
    found = page(replace(PASSED, failures=[Failure("differs", path="text", expected="a", actual="b")]))
    assert 'at text expected "a" actual "b"' in found.text
    assert {"minus", "plus"} <= set(found.classes("span"))


def test_what_was_not_expected_or_did_not_come_is_nothing() -> None:
    more = Failure("the call failed", path="error", expected=ABSENT, actual={"code": -32602})
    less = Failure("is missing", path="text", expected="a", actual=ABSENT)
    found = page(replace(PASSED, failures=[more, less]))
    assert "at error expected (nothing) actual code: -32602" in found.text
    assert 'at text expected "a" actual (nothing)' in found.text
    assert "absent" not in found.text.lower()


def test_advice_is_shown_at_its_test_apart_from_failures() -> None:
    found = page(replace(PASSED, advice=[Finding("tool-name", "the tool 'a b' has an odd name")]))
    assert f"Advice: the tool 'a b' has an odd name (tool-name: {RULES['tool-name']})" in found.text
    assert "All tests passed" in found.text
    assert "1 piece of advice" in found.text
    both = [Finding("tool-name", "one"), Finding("tool-name", "two")]
    assert "2 pieces of advice" in page(replace(PASSED, advice=both)).text


def test_the_error_of_the_tool_is_told_unless_a_failure_says_it() -> None:
    failed = replace(FAILED, ended="the tool failed: no money")
    assert "the tool failed: no money" in page(failed).text
    said = replace(FAILED, ended="the tool failed: no money", failures=[Failure("the tool failed: no money")])
    assert page(said).text.count("the tool failed: no money") == 1
    assert "no money" not in page(replace(PASSED, ended="the tool failed: no money")).text


def test_notes_and_the_slowest_tests_are_listed() -> None:
    found = page(*(replace(PASSED, name=f"test {number}", seconds=number) for number in range(9)), notes=["look here"])
    assert "Note: look here" in found.text
    assert found.text.endswith("8.00 s test 8 7.00 s test 7 6.00 s test 6 5.00 s test 5 4.00 s test 4")


# What a server sends


def test_the_text_of_a_server_is_never_html() -> None:
    bodies = [
        Event(Step.CALL, {"name": EVIL, "arguments": {EVIL: EVIL}}, "tools/call"),
        Event(
            Step.ASKS, {"inputRequests": {EVIL: {"method": EVIL, "params": {"message": EVIL, "url": EVIL, EVIL: EVIL}}}}
        ),
        Event(Step.ASKS, {"inputRequests": [{"id": EVIL, "description": EVIL, "kind": EVIL}, EVIL]}),
        Event(
            Step.ASKS,
            {"inputRequests": {EVIL: {"params": {"requestedSchema": {"properties": {EVIL: {"enum": [EVIL]}}}}}}},
        ),
        Event(Step.ANSWERS, {"inputResponses": {EVIL: {"action": EVIL, "content": {EVIL: EVIL}}}}),
        Event(Step.NOTIFICATION, {"params": EVIL}, EVIL),
        Event(Step.RESULT, {"content": [{"type": "text", "text": EVIL}], EVIL: [EVIL]}),
        Event(Step.ERROR, {"message": EVIL}),
    ]
    failure = Failure(EVIL, path=EVIL, expected=EVIL, actual=EVIL, hint=EVIL, diff=[EVIL])
    result = Result(EVIL, 1, EVIL, EVIL, EVIL, EVIL, [failure], again=EVIL, ended=EVIL, conversation=bodies)
    text = written(HtmlReport, Summary([result, PASSED], notes=[EVIL]))
    found = Page(text)
    assert {tag for tag, _ in found.tags} & {"script", "img", "a", "link", "iframe", "object", "form"} == set()
    assert not any(
        name.startswith("on") or name in ("src", "href", "style") for _, attributes in found.tags for name in attributes
    )
    assert "\x1b" not in text
    assert text.isascii()
    assert "\u202e" not in found.text


@pytest.mark.parametrize("odd", [None, 5, [], {}, "x", [None], {"a": None}])
def test_a_message_of_any_shape_has_a_place(odd: Any) -> None:
    names = ("inputRequests", "inputResponses", "content", "arguments", "params", "name", "isError")
    events = [Event(step, {name: odd}) for step in Step for name in names]
    assert len(page(replace(PASSED, conversation=events)).classes("li")) == len(events)


def test_the_page_needs_nothing_else_and_runs_nothing() -> None:
    text = written(HtmlReport, RUN)
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    (policy,) = re.findall(r'content="(default-src[^"]*)"', text)
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert STYLE in text
    assert "url(" not in STYLE
    assert "http" not in STYLE
