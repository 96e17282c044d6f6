"""The result of one test, as reports may show it: without secrets, states and what the suite redacts, and not too large."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from bespeak.conversation.call_rounds import Round
from bespeak.conversation.protocol_rules import Finding
from bespeak.terminal.safe_text import clean
from bespeak.testing.expected_failures import outcome_of
from bespeak.testing.redaction.declared import matched
from bespeak.testing.redaction.result_redactor import ResultRedactor
from bespeak.testing.report.excerpts import bounded, event_excerpt, failure_excerpt, round_excerpt, shortened
from bespeak.testing.report.results import Failure, Result
from bespeak.testing.report.timeline import Event
from bespeak.testing.run_options import Options, relative
from bespeak.testing.suite.keyword_filter import exactly
from bespeak.testing.suite.plan import Item


@dataclass(frozen=True, slots=True)
class ItemResult:
    """What happened in one test, case and era."""

    item: Item
    options: Options
    failures: Sequence[Failure]
    advice: Sequence[Finding]
    rounds: Sequence[Round]
    events: Sequence[Event]
    ended: str | None
    """The error text of a call that failed."""
    fails_rightly: bool
    """Whether that error is the one that the test expects."""
    states: Sequence[str]
    """The request states of its conversation."""
    tokens: Sequence[str]
    """The request states of all tests so far."""
    ran: bool
    """Whether it was run to its end."""
    replayed: bool
    """Whether the conversation comes from a cassette."""
    skipped: str | None = None
    """Why its conversation was not held."""
    notes: Sequence[str] = ()
    """What the author of the suite should know, whether the test passed or not."""
    outside: Sequence[str] = ()
    """What the server asked outside of a call."""
    printed: str = ""
    """The end of the server's output."""

    def told(self, redactor: ResultRedactor, seconds: float) -> Result:
        """Return the result for reports."""
        item, start = self.item, self.options.start
        failures, skipped, xfailed = outcome_of(item.test, self.failures, ran=self.ran)
        if self.skipped is not None and not self.failures:
            failures, skipped, xfailed = self.failures, self.skipped, None
        suite = relative(item.suite.path, start)
        shown = redactor.without_values([one.body for one in self.events])
        tokens = [*self.tokens, *self.states]
        result = Result(
            suite=suite,
            line=item.line,
            name=item.test.name,
            case=item.case,
            era=item.era,
            server=item.server_name,
            failures=[failure_excerpt(shown.failure(one, self.tokens)) for one in failures],
            rounds=[round_excerpt(shown.round(one, self.states).named()) for one in self.rounds],
            advice=[shown.finding(one, tokens) for one in dict.fromkeys(self.advice)],
            ended=None if self.ended is None else shortened(shown.message(self.ended, tokens)),
            fails_rightly=self.fails_rightly,
            conversation=[event_excerpt(one) for one in shown.events(self.events, tokens)],
            notes=[*self.notes, *self._notes()],
            outside=[shortened(shown.message(one, tokens)) for one in self.outside],
            printed="\n".join(clean(line) for line in shown.message(self.printed, tokens).splitlines()),
            again=shlex.join(["bespeak", "test", suite, *self.options.flags(), "-k", exactly(item.title)]),
            seconds=seconds,
            file=None if item.file == item.suite.path else relative(item.file, start),
            tags=tuple(item.test.tags or ()),
            skipped=skipped,
            xfailed=xfailed,
        )
        return bounded(result)

    def _notes(self) -> list[str]:
        if self.failures or not self.ran or self.skipped is not None or self.item.test.skip is not None:
            return []
        place = f"{relative(self.item.file, self.options.start)}:{self.item.line}"
        unmatched = [one.written for one in self.item.test.redact if one.written not in self.matched()]
        return [f"{place}: redact: {written!r} matched nothing in this test" for written in unmatched]

    def matched(self) -> set[str]:
        """Return the declared redactions that match something. In a replay, nothing is left that a pattern could match."""
        declared = [*self.item.suite.model.redact, *self.item.test.redact]
        searched = [one for one in declared if one.pattern is None or not self.replayed]
        found = matched(searched, [one.body for one in self.events])
        return found | {one.written for one in declared if one not in searched}
