"""What answers the questions of a test: its answers, a person, or nobody after a certain round."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from bespeak.conversation.answer_sources import Asks, Enter, FixtureScript, PromptScript, Script
from bespeak.conversation.exchange import Stopped
from bespeak.conversation.fixtures import InputResponseFixture
from bespeak.conversation.responses import Question
from bespeak.terminal.prompt_types import Asker
from bespeak.testing.expect.expectations import Telling
from bespeak.testing.expect.round_expectations import RoundsScript
from bespeak.testing.report.results import Failure
from bespeak.testing.suite.suite_file import Test

Leftovers = Callable[[], list[Failure]]
"""Returns what was not as expected when the call has ended, and the answers that were not used."""


class StoppingScript:
    """Answers like another script, but not the questions of one round: there the client goes away."""

    def __init__(self, script: Script, after: int, enter: Enter | None = None) -> None:
        self.script = script
        """What answers the questions before."""
        self._after = after
        self._enter = enter
        self._rounds = 0
        self.stopped = False

    @property
    def never(self) -> str:
        """Why the client did not stop."""
        return f"the server never reached round {self._after}, so the client did not stop"

    def never_sent(self, failure: Failure) -> Failure:
        """Return a failure about an answer that was not used, with the likely reason."""
        return replace(failure, message=f"{failure.message}; the client stops after round {self._after}")

    async def answers(self, questions: Sequence[Question], *, state: bool | None) -> dict[str, Any]:
        self._rounds += 1
        if self._rounds < self._after:
            return await self.script.answers(questions, state=state)
        if self._enter is not None:
            self._enter(questions, state)
        self.stopped = True
        raise Stopped

    def scripts(self, question: Question) -> bool:
        return self.script.scripts(question)


def answering(script: Script) -> Script:
    """Return what answers the questions, without the client that goes away."""
    return script.script if isinstance(script, StoppingScript) else script


def script_of(
    test: Test,
    prompt: Asks | None,
    telling: Telling,
    shown: Callable[[Question], Question],
    asker: Callable[[], Asker] = Asker,
) -> tuple[Script, Leftovers]:
    """Return what answers the questions of a test. With a prompt, a person is asked, and told who asks.

    `shown` returns a question without what is redacted in it by path.
    """
    rounds = None if test.rounds is None else RoundsScript(test.rounds, telling, shown)
    script, leftovers = _answering(test, prompt, rounds, asker)
    if test.stop is None:
        return script, leftovers
    stopping = StoppingScript(script, test.stop.after, None if rounds is None else rounds.enter)
    return stopping, lambda: [stopping.never_sent(one) for one in leftovers()]


def _answering(
    test: Test, prompt: Asks | None, rounds: RoundsScript | None, asker: Callable[[], Asker]
) -> tuple[Script, Leftovers]:
    if prompt is not None:
        if rounds is None:
            return PromptScript(prompt, asker=asker), list
        return PromptScript(prompt, enter=rounds.enter, asker=asker), lambda: rounds.leftovers(answers=False)
    if rounds is not None:
        return rounds, rounds.leftovers
    fixture = FixtureScript(InputResponseFixture(test.inputResponses))
    return fixture, lambda: [Failure(one) for one in fixture.leftovers()]
