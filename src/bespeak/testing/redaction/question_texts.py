"""Patterns in questions: they apply to text for people. The rest of a question is needed to answer it."""

from typing import Any, cast

from bespeak.testing.redaction.redactor import REDACTED, Redactor

FOR_PEOPLE = frozenset(("message", "description", "title", "text", "systemPrompt"))
"""The members of a question that hold text for people, or for a model."""


def without_found(value: Any, redactor: Redactor) -> Any:
    """Return a question without what the patterns find in its text and in its URL."""
    if not redactor.patterns:
        return value
    if isinstance(value, list):
        return [without_found(one, redactor) for one in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    return {name: _member(name, one, redactor) for name, one in cast("dict[str, Any]", value).items()}


def _member(name: str, value: Any, redactor: Redactor) -> Any:
    if isinstance(value, str) and name in FOR_PEOPLE:
        return redactor.said(value)
    if isinstance(value, str) and name == "url":
        return redactor.said(value).replace(REDACTED, REDACTED.strip("[]"))  # it has to remain a URL
    return without_found(value, redactor)
