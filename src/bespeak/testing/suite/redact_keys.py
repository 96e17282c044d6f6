"""The key `redact`: what is kept out of cassettes, snapshots and reports."""

from typing import Annotated, Any

from pydantic import WithJsonSchema, model_validator

from bespeak.testing.suite.suite_values import Maybe, Part, Text


class Redact(Part):
    """What is kept out of what is written: the value at a path, or every text that a pattern finds."""

    path: Maybe[str] = None
    pattern: Maybe[Text] = None

    @model_validator(mode="before")
    @classmethod
    def _as_path(cls, written: Any) -> Any:
        return {"path": written} if isinstance(written, str) else written

    @model_validator(mode="after")
    def _one_way(self) -> "Redact":
        if (self.path is None) == (self.pattern is None):
            raise ValueError("write a path, or {pattern: ...} with a regular expression")
        return self

    @property
    def written(self) -> str:
        """The path or the pattern."""
        return self.path or self.pattern or ""


_REDACT: dict[str, Any] = {
    "anyOf": [
        {"type": "string", "description": "A path, such as structuredContent.id or *.token."},
        {
            "type": "object",
            "properties": {"pattern": {"type": "string", "minLength": 1, "description": "A regular expression."}},
            "required": ["pattern"],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "properties": {"path": {"type": "string"}},
            "required": ["path"],
            "additionalProperties": False,
        },
    ]
}
Redactions = list[Annotated[Redact, WithJsonSchema(_REDACT)]]
"""Redactions, each a path or a map with `pattern` or `path`."""
