"""Results of a run that reports are written of, and the report as a text."""

from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from typing import Any

from bespeak.conversation.call_rounds import Round
from bespeak.testing.report.results import Failure, Kind, Result
from bespeak.testing.report.summary import Summary
from bespeak.testing.report.writers import Writer

PASSED = Result("suites/weather.bespeak.yaml", 9, "asks for the city", None, None, "weather", seconds=0.25)
FAILED = Result(
    "suites/weather.bespeak.yaml",
    31,
    "refuses a changed state",
    "flip",
    "2026-07-28",
    "weather",
    failures=[
        Failure("the result differs", path="content[0].text", expected="no", actual={"text": "yes"}),
        Failure("the altered state was taken", rule="state-verified"),
        Failure("'units' has no answer", hint="add to the test:\ninputResponses:\n  units: C"),
    ],
    rounds=[
        Round({"city": "Which city?", "units": "Which units?"}, {"city": {"action": "decline"}}, state=True),
        Round({}, {}, state=True),
    ],
    again="bespeak test suites/weather.bespeak.yaml -k 'refuses a changed state'",
    seconds=0.5,
)
GONE = replace(PASSED, line=40, name="is there", failures=[Failure("connection refused", Kind.UNREACHABLE)])
STALE = replace(PASSED, line=50, name="plays", failures=[Failure("diverged at round 1", Kind.CASSETTE)])
SKIPPED = replace(PASSED, line=60, name="is slow", skipped="takes an hour")
XFAILED = replace(FAILED, line=70, xfailed="known since May")
RUN = Summary([PASSED, FAILED], deselected=2, seconds=1.5)


def written(make: Callable[[StringIO], Writer], summary: Summary) -> str:
    """The whole report of a run."""
    out = StringIO()
    writer = make(out)
    writer.started(len(summary.results))
    for result in summary.results:
        writer.finished(result)
    writer.ended(summary)
    return out.getvalue()


def with_failure(message: str = "it differs", **more: Any) -> Result:
    return replace(PASSED, failures=[Failure(message, **more)])
