"""LangGraph with the adapter of `langchain[mcp]`, and the loop that docs/frameworks.md recommends around its tools.

A question suspends the run. When it is resumed, the node runs again from its beginning, and so the call is made again, without
the state of the first one. The server asks again, and the adapter answers with the answers it has kept: those of the first
question for the first question, of the second for the second, looked up by key. If it has no answer for a key, it raises an
error. The loop then makes the call again, and the person is asked.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from bespeak.conversation.profiles.profile import Ask, Profile, StartOver
from bespeak.conversation.protocol_rules import Finding
from bespeak.conversation.responses import Question, Reading, Verdict
from bespeak.conversation.result_text import text_of
from bespeak.terminal.safe_text import quoted


@dataclass(frozen=True, slots=True)
class _Kept:
    """The questions of a round as a person saw them, and the answers."""

    questions: dict[str, Question]
    answers: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Stale:
    """An approval that is sent for other words than the person saw."""

    seen: Question
    asked: Question


class LangGraph(Profile):
    """Makes the call again after each answer, and sends the answers that it has kept."""

    declares: ClassVar[Mapping[str, Any] | None] = {"elicitation": {"form": {}, "url": {}}}
    needs_rounds: ClassVar[bool] = True

    def __init__(self) -> None:
        self._kept: list[_Kept] = []
        """The answers so far, in the order in which they were given."""
        self._next = 0
        """The next of them to send."""
        self._stale: list[_Stale] = []
        """What was sent with the last request."""

    async def answers(self, questions: Sequence[Question], ask: Ask) -> dict[str, Any]:
        if self._next == len(self._kept):  # the run is suspended until the person has answered
            self._kept.append(_Kept({one.key: one for one in questions}, await ask()))
            self._next = 0
            raise StartOver
        kept = self._kept[self._next]
        self._next += 1
        if not all(one.key in kept.answers for one in questions):  # the adapter's error, and the loop around it
            raise StartOver
        approved = [one for one in questions if _is_approval(kept.answers[one.key])]
        self._stale = [
            _Stale(kept.questions[one.key], one)
            for one in approved
            if one.as_json() != kept.questions[one.key].as_json()
        ]
        return {one.key: kept.answers[one.key] for one in questions}

    def judge(self, response: Any, read: Reading) -> Sequence[Finding]:
        stale, self._stale = self._stale, []
        if not stale or _failed(response):
            return ()
        again = {question.key for question in read.questions}
        return [_found(one, response, read) for one in stale if one.asked.key not in again]


def _is_approval(answer: Any) -> bool:
    """Whether an answer gives the server something to act on."""
    return not isinstance(answer, dict) or cast("dict[str, Any]", answer).get("action", "accept") == "accept"


def _failed(response: Any) -> bool:
    """Whether the call has ended without having been carried out."""
    message = cast("dict[str, Any]", response)
    return "error" in message or cast("dict[str, Any]", message["result"]).get("isError") is True


def _found(stale: _Stale, response: Any, read: Reading) -> Finding:
    seen, asked = _words(stale.seen), _words(stale.asked)
    if seen == asked:
        what = f"the person answered {seen}, and the server accepted the answer for a form of the same words and other fields"
    else:
        what = f"the person answered {seen}, and the server accepted the answer for {asked}"
    if read.verdict is Verdict.COMPLETE:
        said = text_of(cast("dict[str, Any]", response)["result"])
        what += f"; its result is {quoted(said)}" if said else ""
    return Finding("stale-answer", what)


def _words(question: Question) -> str:
    return quoted(question.message or question.name)
