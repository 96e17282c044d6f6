"""Questions, rounds and failures as a report may show them: without secrets, tokens and the values a suite redacts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from bespeak.conversation.call_rounds import Round
from bespeak.conversation.responses import Question
from bespeak.testing.redaction.redactor import Redactor
from bespeak.testing.report.results import Failure


class ResultRedactor:
    """Redacts the parts of a test's result. `tokens` are the request states to take out."""

    def __init__(self, redactor: Redactor) -> None:
        self._secrets = replace(redactor, paths=())
        self._declared = Redactor(redactor.paths)

    def value(self, value: Any, tokens: Sequence[str]) -> Any:
        """Return a value without secrets and tokens. Paths do not apply to it."""
        return replace(self._secrets, tokens=tokens).apply(value)

    def envelope(self, envelope: Any) -> dict[str, Any]:
        """Return a response without the values that the suite redacts by path."""
        message = cast("dict[str, Any]", envelope) if isinstance(envelope, dict) else {}
        return {
            name: self._declared.apply(one) if name in ("result", "error") else one for name, one in message.items()
        }

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

    def failure(self, failure: Failure, tokens: Sequence[str]) -> Failure:
        hidden = replace(self._secrets, tokens=tokens)
        return replace(
            failure,
            message=hidden.message(failure.message),
            path=None if failure.path is None else hidden.text(failure.path),
            expected=hidden.apply(failure.expected),
            actual=hidden.apply(failure.actual),
            hint=None if failure.hint is None else hidden.message(failure.hint),
        )

    def _params(self, key: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """The params of a question without the values that the suite redacts by path."""
        told: Any = self._declared.apply({"inputRequests": {key: {"params": dict(params)}}})
        for step in ("inputRequests", key, "params"):
            told = cast("dict[str, Any]", told).get(step) if isinstance(told, dict) else None
        return cast("dict[str, Any]", told) if isinstance(told, dict) else {}
