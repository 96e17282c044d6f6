"""The fields of a form: what a person is asked to type, and the value that was typed."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, cast

from bespeak.protocol.forms import check_value
from bespeak.protocol.methods import ELICIT
from bespeak.terminal.prompt_types import PromptQuestion
from bespeak.terminal.safe_text import SHORT, clean, text_at

CHOICES = 20
"""How many choices are shown and can be chosen by number."""


class Unfillable(Exception):
    """The form cannot be filled in. The message says why."""


# What is typed


def _whole(typed: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,400}", typed):
        raise ValueError("must be a whole number")
    return int(typed)


def _number(typed: str) -> int | float:
    if not re.fullmatch(r"[+-]?([0-9]{1,400}(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]{1,9})?", typed, re.IGNORECASE):
        raise ValueError("must be a number")
    return int(typed) if re.fullmatch(r"[+-]?[0-9]+", typed) else float(typed)


def read_yes_no(typed: str) -> bool:
    """Return what a yes or a no means. Raises `ValueError`."""
    typed = typed.strip()
    known = {"yes": True, "y": True, "true": True, "no": False, "n": False, "false": False}
    if typed.lower() not in known:
        raise ValueError("must be yes or no")
    return known[typed.lower()]


# Fields


class Kind(Enum):
    """What is typed into a field."""

    TEXT = "text"
    WHOLE = "a whole number"
    NUMBER = "a number"
    YES_NO = "yes or no"
    SEVERAL = "texts, separated by commas"


_KINDS = {"integer": Kind.WHOLE, "number": Kind.NUMBER, "boolean": Kind.YES_NO, "array": Kind.SEVERAL}
_READERS: Mapping[Kind, Callable[[str], Any]] = {Kind.WHOLE: _whole, Kind.NUMBER: _number, Kind.YES_NO: read_yes_no}
_FORMATS = {"email": "an e-mail address", "uri": "a URI", "date": "a date", "date-time": "a date and time"}


@dataclass(frozen=True, slots=True)
class Choice:
    """One of the values that a field offers."""

    value: Any
    title: str = ""

    @property
    def text(self) -> str:
        """How it is typed."""
        return as_typed(self.value)

    def __str__(self) -> str:
        return f"{clean(self.text, SHORT)} ({clean(self.title, SHORT)})" if self.title else clean(self.text, SHORT)


class Choices:
    """The choices of a field; empty if anything may be typed."""

    def __init__(self, shown: Mapping[str, Any]) -> None:
        self.all = tuple(_offered(shown))
        self._typed = {choice.text: choice for choice in reversed(self.all)}
        self._typed = self._titled() | self._typed  # a value takes precedence
        self._numbers = {str(number): choice for number, choice in enumerate(self.all[:CHOICES], 1)}
        # A number that is the value of another choice could mean either.
        self.numbered = all(
            self._typed.get(number, choice).text == choice.text for number, choice in self._numbers.items()
        )

    @property
    def titled(self) -> bool:
        """Whether some choices have titles."""
        return any(choice.title for choice in self.all)

    def _titled(self) -> dict[str, Choice]:
        """The choices by their titles, as they are shown. A title that several choices have means none of them."""
        titles = [clean(choice.title, SHORT).strip() for choice in self.all]
        count = Counter(titles)
        return {title: choice for title, choice in zip(titles, self.all, strict=True) if title and count[title] == 1}

    def __contains__(self, typed: str) -> bool:
        return typed in self._typed

    def find(self, typed: str) -> Any:
        """Return the value of a choice, given by its number, its title or as it is. Raises `ValueError`."""
        found = self._typed.get(typed) or self._typed.get(typed.strip())
        if found is None and self.numbered:
            found = self._numbers.get(typed.strip())
        if found is None:
            raise ValueError("must be one of the offered choices")
        return found.value


@dataclass(frozen=True, slots=True)
class Field:
    """One value that is asked for."""

    name: str
    shown: Mapping[str, Any]
    """Its schema."""
    required: bool
    kind: Kind
    choices: Choices

    @property
    def default(self) -> Any:
        """The value for an empty line; `None` if the field has no valid default."""
        value = self.shown.get("default")
        return None if value is None or self._problem(value) else value

    def read(self, line: str) -> dict[str, Any]:
        """Return the content for a typed line; empty if the field is left out. Raises `ValueError`."""
        if line.strip():
            value = self._several(line) if self.kind is Kind.SEVERAL else self._one(line)
            if problem := self._problem(value):
                raise ValueError(problem)
            return {self.name: value}
        if self.default is not None:
            return {self.name: self.default}
        if not self.required:
            return {}
        if self._may_be_none:
            return {self.name: []}
        raise ValueError("is required")

    def wanted(self, start: str) -> str:
        """Return the instruction above the input line. It contains no text of the server."""
        several = self.kind is Kind.SEVERAL
        wanted = self.kind.value
        if self.choices.all:
            ways = [
                *(["number"] if self.choices.numbered else []),
                *(["title"] if self.choices.titled else []),
                "value",
            ]
            how = "by " + " or ".join(filter(None, [", ".join(ways[:-1]), ways[-1]]))
            wanted = f"{'some' if several else 'one'} of these, {how}{', separated by commas' if several else ''}"
        return "; ".join([f"{start}: {wanted}", *self._bounds(), self._empty()])

    @property
    def may_be_empty(self) -> bool:
        """Whether an empty line is an answer: the default, an empty list, or nothing."""
        return not self.required or self.default is not None or self._may_be_none

    def _empty(self) -> str:
        needed = "required" if self.required else "optional"
        if self.default is not None:
            return f"{needed}, empty takes the default"
        if not self.required:
            return "empty to leave out"
        return "required, empty for an empty list" if self._may_be_none else "required"

    @property
    def _may_be_none(self) -> bool:
        return self.kind is Kind.SEVERAL and not self._problem([])

    def _problem(self, value: Any) -> str | None:
        try:
            return check_value(self.shown, value, formats=True)
        except (TypeError, AttributeError, KeyError, ValueError):
            raise Unfillable("the schema of a field is not valid") from None

    def _one(self, typed: str) -> Any:
        if self.choices.all:
            return self.choices.find(typed)
        reader = _READERS.get(self.kind)
        return reader(typed.strip()) if reader else typed

    def _several(self, typed: str) -> list[Any]:
        parts = [typed] if typed in self.choices else [part.strip() for part in typed.split(",")]
        found: dict[str, Any] = {}  # each is chosen once
        for part in filter(None, parts):
            value = self._one(part)
            found.setdefault(as_typed(value), value)
        return list(found.values())

    def _bounds(self) -> Iterator[str]:
        if self.choices.all and self.kind is not Kind.SEVERAL:
            return
        low, high, what = {
            Kind.TEXT: ("minLength", "maxLength", " characters"),
            Kind.SEVERAL: ("minItems", "maxItems", " of them"),
        }.get(self.kind, ("minimum", "maximum", ""))
        for words, bound in (("at least", self.shown.get(low)), ("at most", self.shown.get(high))):
            if isinstance(bound, int | float) and not isinstance(bound, bool) and abs(bound) < 1e18:
                yield f"{words} {bound}{what}"
        form: Any = self.shown.get("format")
        if isinstance(form, str) and form in _FORMATS:
            yield _FORMATS[form]


def read_fields(question: PromptQuestion) -> list[Field]:
    """Return the fields of a form. Raises `Unfillable` if no input can fill it in."""
    properties = question.properties
    required: Any = question.schema.get("required") or []
    if not isinstance(required, list) or not all(isinstance(name, str) for name in cast("list[Any]", required)):
        raise Unfillable("its list of required fields is not valid")
    names = set(cast("list[str]", required))
    if names - properties.keys():
        raise Unfillable("it requires a field that it does not have")
    return [read_field(name, shown, required=name in names) for name, shown in properties.items()]


def is_yes_no(question: PromptQuestion) -> bool:
    """Return whether a question is a form of one yes or no, which needs no second step."""
    shown = list(question.properties.values())
    return question.method == ELICIT and not question.is_url and [one.get("type") for one in shown] == ["boolean"]


def read_field(name: str, shown: Mapping[str, Any], *, required: bool) -> Field:
    """Return the field for one schema."""
    type_: Any = shown.get("type")
    kind = _KINDS.get(type_, Kind.TEXT) if isinstance(type_, str) else Kind.TEXT
    offering: Any = shown.get("items") if kind is Kind.SEVERAL else shown
    offers = isinstance(offering, Mapping) and kind is not Kind.YES_NO
    return Field(name, shown, required, kind, Choices(cast("Mapping[str, Any]", offering) if offers else {}))


def _offered(shown: Mapping[str, Any]) -> Iterator[Choice]:
    titled: Any = shown.get("oneOf") or shown.get("anyOf")
    if isinstance(titled, list):
        for option in cast("list[Any]", titled):
            if isinstance(option, dict) and "const" in option:
                known = cast("dict[str, Any]", option)
                yield Choice(known["const"], text_at(known.get("title")))
        return
    values: Any = shown.get("enum")
    names: Any = shown.get("enumNames")
    titles = cast("list[Any]", names) if isinstance(names, list) else []
    for number, value in enumerate(cast("list[Any]", values) if isinstance(values, list) else []):
        yield Choice(value, text_at(titles[number]) if number < len(titles) else "")


def as_typed(value: Any) -> str:
    """Return a value as a person would type it: a string as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
