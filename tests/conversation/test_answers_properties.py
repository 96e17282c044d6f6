"""Whatever is answered: it is sent exactly if it fits the question, and what is written down is read back as it was.

Testing.md sections 1 and 2; the grammar of forms is protocol section 7.3.
"""

import os
from typing import Any

import jsonschema
from hypothesis import given, settings
from hypothesis import strategies as st

from bespeak.conversation.answers import Answer, Way, parse_answer, render
from bespeak.testing import CannotAnswer
from tests.conversation.envelopes import form, question

many = settings(max_examples=50 * int(os.environ.get("BESPEAK_SOAK", "1")))
anything: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)

names = st.text("abc", min_size=1, max_size=3)
bounds = st.integers(0, 4)
choices = st.lists(st.text("xyz", max_size=2), min_size=1, max_size=3, unique=True)


@st.composite
def grammar(draw: st.DrawFn) -> dict[str, Any]:
    """One property of a form (protocol section 7.3)."""
    kind = draw(st.sampled_from(["string", "number", "integer", "boolean", "enum", "titled", "array", "titled array"]))
    low = draw(bounds)
    high = low + draw(bounds)
    if kind == "string":
        return {"type": kind, "minLength": low, "maxLength": high}
    if kind in ("number", "integer"):
        return {"type": kind, "minimum": low, "maximum": high}
    if kind == "boolean":
        return {"type": kind}
    offered: Any = draw(choices)
    titled = [{"const": one, "title": one.upper()} for one in offered]
    if kind in ("enum", "titled"):
        return {"type": "string", **({"enum": offered} if kind == "enum" else {"oneOf": titled})}
    items = {"type": "string", "enum": offered} if kind == "array" else {"anyOf": titled}
    return {"type": "array", "items": items, "minItems": low, "maxItems": high}


@st.composite
def forms(draw: st.DrawFn) -> dict[str, Any]:
    properties = draw(st.dictionaries(names, grammar(), max_size=3))
    required = draw(st.lists(st.sampled_from(sorted(properties)), unique=True)) if properties else []
    return form("Which?", required, **properties) if properties else form("Which?")


likely = (
    st.text("xyz", max_size=5)
    | st.integers(-1, 9)
    | st.floats(-1, 9)
    | st.booleans()
    | st.lists(st.text("xyz", max_size=2), max_size=5)
)


def is_map(value: Any) -> bool:
    return isinstance(value, dict)


def matches(value: Any, schema: dict[str, Any]) -> bool:
    try:
        jsonschema.validate(value, schema)
    except jsonschema.ValidationError:
        return False
    return True


@many
@given(forms(), st.dictionaries(names, likely | anything, max_size=4) | likely)
def test_an_answer_to_a_form_is_sent_exactly_if_it_fits_the_schema(asked: dict[str, Any], content: Any) -> None:
    schema = asked["params"]["requestedSchema"]
    properties = schema["properties"]
    way = Way.ACCEPT if is_map(content) else Way.VALUE
    whole: Any = {next(iter(properties)): content} if way is Way.VALUE and len(properties) == 1 else content
    fits = is_map(whole) and matches(whole, {**schema, "additionalProperties": False})
    answer = Answer(way, content)
    try:
        sent = render(question(asked), answer)
    except CannotAnswer:
        assert not fits
        return
    assert fits
    assert sent == {"action": "accept", "content": whole}


@many
@given(anything)
def test_any_json_is_an_answer_or_refused_and_written_as_it_was_read(value: Any) -> None:
    try:
        answer = parse_answer(value)
    except ValueError:
        return
    assert answer.as_written() == value
    assert parse_answer(answer.as_written()) == answer
