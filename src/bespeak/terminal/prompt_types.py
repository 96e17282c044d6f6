"""The questions that a prompt asks, and the replies that it returns."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol


class PromptQuestion(Protocol):
    """A question that can be shown to a person."""

    @property
    def name(self) -> str: ...

    @property
    def message(self) -> str: ...

    @property
    def method(self) -> str | None:
        """The MCP method of the question; `None` if it asks for one plain value."""
        ...

    @property
    def params(self) -> Mapping[str, Any]: ...

    @property
    def required(self) -> bool: ...

    @property
    def is_url(self) -> bool: ...

    @property
    def schema(self) -> Mapping[str, Any]:
        """The schema of the form, or of the one plain value."""
        ...

    @property
    def properties(self) -> Mapping[str, Mapping[str, Any]]:
        """The schemas of the form's fields, by name."""
        ...


class Action(StrEnum):
    """What a person does with a question."""

    ACCEPT = "accept"
    DECLINE = "decline"
    CANCEL = "cancel"
    OMIT = "omit"
    """Leave out a value that is optional."""
    SAMPLE = "sample"
    ROOTS = "roots"
    URL = "url"


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks a question, and how far its call is. All of it is shown as text of the server."""

    server: str = ""
    tool: str = ""
    """The tool, prompt or resource whose call asks."""
    description: str = ""
    """What the server says about the whole round."""
    progress: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """A person's answer to one question."""

    action: Action
    content: Any = None
    """The values of a form by field, the model's words, a list of roots, or `done` for a page that was opened."""
