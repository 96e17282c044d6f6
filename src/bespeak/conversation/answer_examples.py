"""Example answers for questions that have none: YAML to paste into a suite and fill in."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from bespeak.conversation.fixtures import SHOWN
from bespeak.conversation.json_values import as_array
from bespeak.conversation.responses import Question
from bespeak.protocol.text_formats import FORMATS


def paste(questions: Sequence[Question]) -> str:
    """YAML with an example answer for each question."""
    return written(example(questions)).rstrip()


def paste_in_round(questions: Sequence[Question], number: int) -> str:
    """YAML with an example answer for each question, for a test that answers round by round."""
    answers = [f"      {in_yaml(key)}: {in_yaml(answer)}" for key, answer in example(questions).items()]
    return "\n".join(["rounds:", f"  # in round {number}", "  - answer:", *answers])


def example(questions: Sequence[Question]) -> dict[str, Any]:
    """Return an example answer for each question, by name."""
    return {question.name: _example(question) for question in questions[:SHOWN]}


def written(answers: Mapping[str, Any]) -> str:
    """Return answers as YAML for a suite."""
    lines = [f"  {in_yaml(key)}: {in_yaml(answer)}" for key, answer in answers.items()]
    return "\n".join(["inputResponses:", *lines, ""])


def in_yaml(value: Any) -> str:
    """Return a value as one line of YAML, with `${` escaped: JSON is YAML, and a plain word does not need quotes."""
    if isinstance(value, str) and value.isidentifier() and value.isascii() and value.lower() not in _READ_OTHERWISE:
        return value
    text = json.dumps(value, ensure_ascii=False)
    return (text if text.isprintable() else json.dumps(value)).replace("${", "$${")


_READ_OTHERWISE = ("true", "false", "null")


def _example(question: Question) -> Any:
    if question.method is None:
        return _sample_value(question.schema)
    if question.is_url:
        return {"url": "done"}
    if not question.is_form:
        return {"sample": "..."} if question.method.startswith("sampling") else {"roots": ["file:///..."]}
    fields = question.properties
    if len(fields) == 1:
        ((name, shown),) = fields.items()
        value = _sample_value(shown)
        # Some words mean something else where a value stands alone.
        return {"accept": {name: value}} if value in ("decline", "cancel", "omit") else value
    required: Any = question.schema.get("required")
    named = as_array(required)
    return {"accept": {name: _sample_value(shown) for name, shown in fields.items() if name in named}}


def _sample_value(shown: Mapping[str, Any]) -> Any:
    """A value that the field probably accepts."""
    default: Any = shown.get("default")
    if isinstance(default, str | int | float | list):
        return cast("Any", default)
    choices = _choices(shown)
    if choices:
        return choices[0]
    kind = shown.get("type")
    if kind in ("integer", "number"):
        return _number(shown)
    if kind == "array":
        items: Any = shown.get("items")
        fewest: Any = shown.get("minItems")
        offered = _choices(cast("dict[str, Any]", items)) if isinstance(items, dict) else []
        return offered[: fewest if isinstance(fewest, int) else 0]
    if kind == "boolean":
        return True
    form: Any = shown.get("format")
    return FORMATS[form].example if isinstance(form, str) and form in FORMATS else "..."


def _choices(shown: Mapping[str, Any]) -> list[str]:
    """The choices of a field, from `enum`, `oneOf` or `anyOf`."""
    plain: Any = shown.get("enum")
    found = [*cast("list[Any]", plain)] if isinstance(plain, list) else []
    for name in ("oneOf", "anyOf"):
        titled: Any = shown.get(name)
        entries = as_array(titled)
        found += [cast("dict[str, Any]", one).get("const") for one in entries if isinstance(one, dict)]
    return [one for one in found if isinstance(one, str)]


def _number(shown: Mapping[str, Any]) -> Any:
    least, most = shown.get("minimum"), shown.get("maximum")
    if isinstance(least, int | float):
        return least
    return min(0, most) if isinstance(most, int | float) else 0
