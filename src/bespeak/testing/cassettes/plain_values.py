"""Values in a cassette that the suite redacts now. They were recorded before it did, and must not reach a report."""

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from bespeak.conversation.patterns import Expression
from bespeak.testing.cassettes.cassette_format import Writing, first_difference
from bespeak.testing.cassettes.key_handles import KeyHandles
from bespeak.testing.cassettes.question_order import in_order
from bespeak.testing.cassettes.recorded_turns import RecordedTurns
from bespeak.testing.redaction.redactor import REDACTED, Redactor
from bespeak.testing.redaction.secret_forms import SHORTEST_PIECE

_MARK = re.compile(r"\[?redacted\]?")
_LOOKS_BESIDE = re.compile(r"\\[bBAZ]|[\^$]|\(\?[<=!]")
"""Parts of a pattern that depend on what is beside the text that it finds."""
_FILLERS = (REDACTED, "0" * 40, "x" * 40, " " * 40)


def plain_value(cassette: Mapping[str, Any], redaction: Redactor) -> str | None:
    """Return the path of the first value that would not be recorded now; `None` if there is none.

    A very short secret is not looked for: a replay may be given any, and `x` is in many texts.
    """
    kept = {name: secret for name, secret in redaction.secrets.items() if len(secret) >= SHORTEST_PIECE}
    if not (redaction.paths or redaction.patterns or kept):
        return None
    patterns = [_NewlyFound(one.pattern) for one in redaction.patterns]
    again = _Again(cassette, replace(redaction, patterns=patterns, secrets=kept))
    turns = cassette["turns"]
    found = first_difference(in_order(turns), in_order([again.turn(one) for one in turns]))
    return None if found is None else found.path


@dataclass(slots=True)
class _NewlyFound(Expression):
    """A pattern that ignores what it finds only because something beside it has been redacted.

    After `^.` has been redacted, it would find the next character.
    """

    def spans_in(self, text: str) -> list[tuple[int, int]]:
        parts = _MARK.split(text)
        if len(parts) == 1:
            return Expression.spans_in(self, text)
        if _LOOKS_BESIDE.search(self.pattern):
            found = all(self._finds_between(parts, filler) for filler in _FILLERS)
        else:
            found = any(first < last for part in parts for first, last in Expression.spans_in(self, part))
        return [(0, len(text))] if found else []

    def _finds_between(self, parts: list[str], filler: str) -> bool:
        """Return whether it finds something inside one of the parts of a text, whatever was between them."""
        spans = [span for span in Expression.spans_in(self, filler.join(parts)) if span[0] < span[1]]
        start = 0
        for number, part in enumerate(parts):
            end = start + len(part)
            least, most = start + (number > 0), end - (number < len(parts) - 1)
            if any(least <= first and last <= most for first, last in spans):
                return True
            start = end + len(filler)
        return False


class _Again:
    """Writes recorded turns again, as they would be recorded now."""

    def __init__(self, cassette: Mapping[str, Any], redaction: Redactor) -> None:
        self._handles = KeyHandles.listed(cassette.get("keys", []), cassette["turns"])
        self._recorded = RecordedTurns(self._handles, redaction)
        self._writing = Writing(redaction)

    def turn(self, turn: Mapping[str, Any]) -> dict[str, Any]:
        writing, told = self._writing, dict(turn)
        if "sent" in turn:
            told["sent"] = self._sent(turn["sent"])
        if "notifications" in turn:
            told["notifications"] = writing.heard(self._recorded.notifications(turn))
        if "error" in turn:
            told |= writing.came({"error": self._recorded.error(turn)})
        elif "asking" in turn or "result" in turn:
            state = {"requestState": secrets.token_urlsafe(24)} if "state" in turn else {}
            came = writing.came({"result": {**self._recorded.result(turn), **state}})
            told |= {name: part for name, part in came.items() if name != "state"}
        elif "asked" in turn:
            told["asked"] = writing.asked(self._recorded.questions(turn))
        if "answered" in turn:
            told["answered"] = self._answered(turn["answered"])
        return self._handles.stored(told)

    def _sent(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        state = {name: one for name, one in sent.items() if name == "requestState"}
        others = {name: one for name, one in sent.items() if name not in state}
        return {**self._writing.sent(self._recorded.restored(others)), **state}

    def _answered(self, answered: Any) -> Any:
        if isinstance(answered, dict):
            answers = cast("dict[str, Any]", answered)
            answered = {self._handles.key(key): answer for key, answer in answers.items()}
        return self._writing.answered(self._recorded.restored(answered))
