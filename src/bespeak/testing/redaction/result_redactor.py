"""Questions, rounds and failures as a report may show them: without secrets, tokens and the values a suite redacts."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from bespeak.conversation.call_rounds import Round
from bespeak.conversation.json_values import as_object
from bespeak.conversation.patterns import Expression
from bespeak.conversation.protocol_rules import Finding
from bespeak.conversation.responses import Question
from bespeak.testing.redaction.declared import texts_at
from bespeak.testing.redaction.redactor import SHORTEST, Redactor
from bespeak.testing.redaction.secret_forms import SHORTEST_PIECE
from bespeak.testing.report.results import Failure
from bespeak.testing.report.timeline import Event
from bespeak.testing.value_paths import parse_path


def without_declared(envelope: Any, declared: Redactor) -> dict[str, Any]:
    """Return a response without the values that are redacted by path."""
    message = as_object(envelope)
    return {name: declared.apply(one) if name in ("result", "error") else one for name, one in message.items()}


MOST_VALUES = 50
"""How many texts at declared paths are also looked for in other texts."""


class ResultRedactor:
    """Redacts the parts of a test's result. `tokens` are the request states to take out."""

    def __init__(self, redactor: Redactor) -> None:
        self._secrets = replace(redactor, paths=())
        self._declared = Redactor(redactor.paths)

    def value(self, value: Any, tokens: Sequence[str]) -> Any:
        """Return a value without secrets and tokens. Paths do not apply to it."""
        return replace(self._secrets, tokens=tokens).apply(value)

    def message(self, text: str, tokens: Sequence[str]) -> str:
        """Return a text without secrets and tokens."""
        return replace(self._secrets, tokens=tokens).message(text)

    @property
    def declared(self) -> Redactor:
        """What the suite redacts by path."""
        return self._declared

    def as_declared(self, question: Question) -> Question:
        """Return a question without what the suite redacts by path."""
        return replace(question, params=self._params(question.key, question.params))

    def question(self, question: Question, tokens: Sequence[str]) -> Question:
        hidden = replace(self._secrets, tokens=tokens)
        return replace(
            question,
            key=hidden.apply(question.key),
            params=hidden.apply(self._params(question.key, question.params)),
            namesakes=tuple(map(hidden.apply, question.namesakes)),
        )

    def round(self, one: Round, tokens: Sequence[str]) -> Round:
        hidden = replace(self._secrets, tokens=tokens)
        answered: Any = self._declared.apply({"inputResponses": one.answered})["inputResponses"]
        if not isinstance(answered, dict):  # the suite redacts all answers
            answered = dict.fromkeys(one.answered, answered)
        said = {key: self._params(key, {"message": text}).get("message", "") for key, text in one.asked.items()}
        return replace(one, asked=hidden.apply(said), answered=hidden.apply(answered))

    def events(self, events: Sequence[Event], tokens: Sequence[str]) -> list[Event]:
        """Return the events of a timeline, with the names of questions instead of their keys."""
        declared = [replace(one, body=self._declared.apply(dict(one.body))) for one in events]
        said = json.dumps([one.body for one in declared], default=str, ensure_ascii=False)
        # There may be thousands of tokens. Few of them are in a conversation, and it takes long to search for all forms.
        hidden = replace(self._secrets, tokens=[one for one in tokens if one[:SHORTEST_PIECE] in said])
        return [replace(one, body=hidden.apply(one.body), method=hidden.text(one.method)).named() for one in declared]

    def without_values(self, bodies: Sequence[Any]) -> "ResultRedactor":
        """Return a redactor that also removes the texts at the declared paths from all other texts.

        A server often repeats in its text what it also returns as structured content.
        """
        paths = [parse_path(path) for path in self._declared.paths]
        found = {text for path in paths for body in bodies for text in texts_at(path, body) if len(text) >= SHORTEST}
        more = [Expression(re.escape(text)) for text in sorted(found, key=len, reverse=True)[:MOST_VALUES]]
        if not more:
            return self
        hidden = replace(self._secrets, patterns=[*more, *self._secrets.patterns])
        return ResultRedactor(replace(hidden, paths=self._declared.paths))

    def envelope(self, envelope: Any) -> dict[str, Any]:
        """Return a response without the values that the suite redacts by path."""
        return without_declared(envelope, self._declared)

    def failure(self, failure: Failure, tokens: Sequence[str]) -> Failure:
        hidden = replace(self._secrets, tokens=tokens)
        return replace(
            failure,
            message=hidden.message(failure.message),
            path=None if failure.path is None else hidden.text(failure.path),
            expected=hidden.apply(failure.expected),
            actual=hidden.apply(failure.actual),
            hint=None if failure.hint is None else hidden.message(failure.hint),
            diff=[hidden.message(line) for line in failure.diff],
        )

    def finding(self, finding: Finding, tokens: Sequence[str]) -> Finding:
        return replace(finding, text=replace(self._secrets, tokens=tokens).message(finding.text))

    def _params(self, key: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """The params of a question without the values that the suite redacts by path."""
        told: Any = self._declared.apply({"inputRequests": {key: {"params": dict(params)}}})
        for step in ("inputRequests", key, "params"):
            told = cast("dict[str, Any]", told).get(step) if isinstance(told, dict) else None
        return as_object(told)
