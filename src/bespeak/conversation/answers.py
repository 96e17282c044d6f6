"""Answers to questions: as a suite writes them, and as they are sent in the question's dialect."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, cast

from bespeak.conversation.json_values import as_object
from bespeak.conversation.responses import Question
from bespeak.protocol.forms import check_content, check_value, offered_by
from bespeak.protocol.methods import ELICIT, ROOTS, SAMPLE
from bespeak.terminal.prompt_types import Reply
from bespeak.terminal.safe_text import printable, quoted

MODEL = "bespeak-test"
"""The model name in a scripted sampling answer."""

MOST_CHOICES = 20
"""How many choices a message lists."""


class Way(StrEnum):
    """The kinds of answers."""

    VALUE = "value"
    """One value: it goes into the form's only field."""
    ACCEPT = "accept"
    DECLINE = "decline"
    CANCEL = "cancel"
    OMIT = "omit"
    """Leave the key out; the server should ask again."""
    RAW = "raw"
    """Send this without checking it."""
    SAMPLE = "sample"
    ROOTS = "roots"
    URL = "url"


_WORDS = {Way.DECLINE, Way.CANCEL, Way.OMIT}
FORMS = {Way.ACCEPT, Way.RAW, Way.SAMPLE, Way.ROOTS, Way.URL}


@dataclass(frozen=True, slots=True)
class Value:
    """A value to answer with, even if it looks like one of the words or forms of a suite."""

    value: Any


class CannotAnswer(Exception):
    """An answer does not fit the question. The message says why, and what would fit."""


class Refused(CannotAnswer):
    """Sampling or roots were declined. At older revisions that is an error for the server; in rounds nothing says it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer, independent of its question."""

    way: Way
    value: Any = None

    def as_written(self) -> Any:
        """Return the answer as a suite writes it."""
        if self.way in _WORDS:
            return self.way.value
        return self.value if self.way is Way.VALUE else {self.way.value: self.value}

    def saved(self, question: Question) -> Any:
        """Return the answer as a suite writes it for this question: a value such as `decline` must not stand alone."""
        if self.way is Way.VALUE and self.value in list(_WORDS) and len(question.properties) == 1:
            return {Way.ACCEPT.value: {next(iter(question.properties)): self.value}}
        return self.as_written()

    @property
    def declines(self) -> bool:
        return self.way in (Way.DECLINE, Way.CANCEL)


def parse_answer(written: Any) -> Answer:
    """Parse an answer as a suite writes it. Raises `ValueError`."""
    if isinstance(written, Value):
        return Answer(Way.VALUE, written.value)
    if isinstance(written, str) and written in _WORDS:
        return Answer(Way(written))
    if not isinstance(written, dict):
        if written is None:
            raise ValueError(
                "an answer is a value, decline, cancel, omit, or a form such as {accept: ...}; null is not an answer"
            )
        return Answer(Way.VALUE, written)
    said = cast("dict[Any, Any]", written)
    ways = " ".join(f"{{{way}: ...}}" for way in sorted(FORMS))
    if len(said) != 1 or next(iter(said)) not in FORMS:
        raise ValueError(f"an answer is a value, decline, cancel, omit, or one of {ways}")
    ((name, value),) = said.items()
    return Answer(Way(name), _checked(Way(name), value))


def answer_from(question: Question, reply: Reply) -> Answer:
    """Return a person's reply, in the shortest form that reads back as the same answer where it is saved."""
    answer = Answer(Way(reply.action.value), reply.content)
    alone = question.method is None or len(question.properties) == 1
    if answer.way is not Way.ACCEPT or not alone or not answer.value:
        return answer
    (value,) = answer.value.values()
    try:
        shortest = parse_answer(value)
    except ValueError:
        return answer
    return shortest if shortest.way is Way.VALUE else answer


def _checked(way: Way, value: Any) -> Any:
    if way is Way.ACCEPT and not isinstance(value, dict):
        raise ValueError(
            "{accept: ...} takes a map of the form's fields; if the form has one field, write only its value"
        )
    if way is Way.URL and value != "done":
        raise ValueError("a URL question is answered with {url: done}, decline or cancel")
    if way is Way.SAMPLE and not isinstance(value, str) and not _is_sampled(value):
        raise ValueError("{sample: ...} takes the model's text, a content block, or a whole result with content")
    if way is Way.ROOTS:
        entries = cast("list[Any]", value) if isinstance(value, list) else [None]
        if not all(isinstance(entry, str) or _has_uri(entry) for entry in entries):
            raise ValueError("{roots: ...} takes a list of URIs, or of {uri, name}")
    return cast("Any", value)


def _is_sampled(value: Any) -> bool:
    members = as_object(value)
    return "type" in members or isinstance(members.get("content"), dict | list)


def _has_uri(entry: Any) -> bool:
    return isinstance(entry, dict) and isinstance(cast("dict[str, Any]", entry).get("uri"), str)


def render(question: Question, answer: Answer) -> Any:
    """Return the answer as it is sent: a result of the question's method, or the value of its field.

    Raises `CannotAnswer`.

    Not for `Way.OMIT`.
    """
    if answer.way is Way.RAW:
        return answer.value
    if question.method is None:
        return _field_value(question, answer)
    if question.method == SAMPLE:
        return _sampled(_only(Way.SAMPLE, question, answer))
    if question.method == ROOTS:
        return {
            "roots": [{"uri": root} if isinstance(root, str) else root for root in _only(Way.ROOTS, question, answer)]
        }
    if answer.declines:
        return {"action": answer.way.value}
    if question.is_url:
        _only(Way.URL, question, answer)
        return {"action": "accept"}
    return {"action": "accept", "content": _content(question, answer)}


def _only(way: Way, question: Question, answer: Answer) -> Any:
    if answer.way is way:
        return answer.value
    example = {
        Way.SAMPLE: '{sample: "what the model says"}',
        Way.ROOTS: "{roots: [file:///...]}",
        Way.URL: "{url: done}",
    }
    asked = "a page to open" if way is Way.URL else question.method
    instead = "; it cannot be declined" if answer.declines else ""
    kind = Refused if answer.declines else CannotAnswer
    raise kind(f"{quoted(question.name)} asks for {asked}, which is answered with {example[way]}{instead}")


def _sampled(value: Any) -> dict[str, Any]:
    said: dict[str, Any] = {"content": {"type": "text", "text": value}} if isinstance(value, str) else value
    if "type" in said:  # one block of content
        said = {"content": said}
    return {"role": "assistant", "model": MODEL, "stopReason": "endTurn", **said}


def _content(question: Question, answer: Answer) -> dict[str, Any]:
    fields = question.properties
    if answer.way is Way.ACCEPT:
        content: dict[str, Any] = answer.value
    elif answer.way is Way.VALUE:
        if len(fields) != 1:
            raise CannotAnswer(
                f"{quoted(question.name)} has the fields {_names(fields) or '(none)'}; write {{accept: {{...}}}}, or decline"
            )
        content = {next(iter(fields)): answer.value}
    else:
        raise CannotAnswer(
            f"{quoted(question.name)} asks with a form ({ELICIT}), which {{{answer.way}: ...}} does not answer; "
            "write a value, {accept: {...}}, decline or cancel"
        )
    unknown = [name for name in content if name not in fields]
    if unknown:
        raise CannotAnswer(
            f"the form of {quoted(question.name)} has no field {unknown[0]!r}; it has {_names(fields) or 'none'}"
        )
    if faults := _faults(question.schema, content):
        raise CannotAnswer(
            f"the answer to {quoted(question.name)} does not fit its form: {'; '.join(map(printable, faults))}"
        )
    return content


def _names(fields: Mapping[str, Any]) -> str:
    return ", ".join(map(printable, fields))


def _faults(schema: Mapping[str, Any], content: Mapping[str, Any]) -> list[str]:
    try:
        found = check_content(schema, content, formats=True)
        properties: Any = schema.get("properties")
        return [
            _explained(as_object(as_object(properties).get(name)), fault, content.get(name))
            for fault in found
            for name in (fault.rpartition(": ")[0],)
        ]
    except (TypeError, AttributeError, KeyError, ValueError):
        return ["the form is not a flat schema (use {raw: ...} to answer it anyway)"]


def _explained(shown: Mapping[str, Any], fault: str, value: Any) -> str:
    """Return what is wrong with a value, with the choices if it is none of them, or with the word that is meant."""
    if fault.endswith("must be true or false") and isinstance(value, str) and value.lower() in _YES_OR_NO:
        return f"{fault}; write {_YES_OR_NO[value.lower()]}, without quotes"
    if not fault.endswith("offered choices"):
        return fault
    offered = offered_by(as_object(shown.get("items")) if shown.get("type") == "array" else shown) or []
    more = f" and {len(offered) - MOST_CHOICES} more" if len(offered) > MOST_CHOICES else ""
    return f"{fault}: {', '.join(map(str, offered[:MOST_CHOICES]))}{more}"


_YES_OR_NO = {"yes": "true", "on": "true", "true": "true", "no": "false", "off": "false", "false": "false"}
"""What people write for `true` and `false`."""


def _field_value(question: Question, answer: Answer) -> Any:
    if answer.declines:
        raise CannotAnswer(
            f"{quoted(question.name)} is in the compatibility dialect and cannot be declined; give it a value"
        )
    if answer.way not in (Way.VALUE, Way.ACCEPT):
        raise CannotAnswer(
            f"{quoted(question.name)} is in the compatibility dialect and takes one value, not {{{answer.way}: ...}}"
        )
    value = answer.value
    if answer.way is Way.ACCEPT:
        if len(value) != 1:
            raise CannotAnswer(
                f"{quoted(question.name)} is in the compatibility dialect and takes one value, not {len(value)}"
            )
        value = next(iter(value.values()))
    if problem := check_value(question.schema, value, formats=True):
        told = printable(_explained(question.schema, problem, value))
        raise CannotAnswer(f"the answer to {quoted(question.name)} {told}")
    return value
