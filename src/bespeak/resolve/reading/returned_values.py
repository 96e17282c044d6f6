"""What a resolver may return: not a coroutine that was never awaited, and nothing that its annotation plainly rules out.

A forgotten `await` gives a coroutine, which counts as true wherever a consent is expected; so does the text "no", and a
question that is a text. A resolver without a return annotation is held to the parameters that it fills. Values of other
classes are not checked: a resolver may return whatever behaves like what it says.
"""

import functools
import re
from collections.abc import Sequence
from dataclasses import is_dataclass
from types import CoroutineType, NoneType
from typing import Any, get_args

from pydantic import BaseModel

from bespeak.resolve.markers import Question
from bespeak.resolve.outcomes import NotAsked
from bespeak.resolve.reading.misplaced_markers import is_official_question
from bespeak.resolve.reading.signatures import EMPTY
from bespeak.resolve.reading.type_hints import CONTAINERS, OUTCOMES, arms, is_concrete, peel, spell, value_classes

_ALLOWED: dict[type, frozenset[type]] = {
    NoneType: frozenset({NoneType}),
    bool: frozenset({bool}),
    int: frozenset({int, bool}),
    float: frozenset({float, int, bool}),
    str: frozenset({str}),
    bytes: frozenset({bytes}),
    **dict.fromkeys(CONTAINERS, CONTAINERS),
}
PLAIN = CONTAINERS | {NoneType, bool, int, float, str, bytes}
"""The types that are checked. An instance of a subclass is not of one of them."""


COROUTINE = frozenset({CoroutineType})


def ruled_out(hint: Any) -> frozenset[type]:
    """Return the types that a value for this hint must not have: coroutines, and perhaps plain types.

    Plain types are ruled out if the hint names nothing but other plain types, containers, models and dataclasses. A container
    of one kind is as good as one of another. A question counts as what it asks for.
    """
    classes = value_classes(hint)
    if classes is None or not all(cls in _ALLOWED or _is_structured(cls) for cls in classes):
        return COROUTINE
    return PLAIN.difference(*(_ALLOWED.get(cls, ()) for cls in classes)) | COROUTINE


def _is_structured(cls: type[Any]) -> bool:
    return (issubclass(cls, BaseModel) or is_dataclass(cls)) and not issubclass(cls, tuple(PLAIN))


@functools.lru_cache(maxsize=1024)
def is_value(cls: type[Any]) -> bool:
    """Return whether instances of a class are values, and neither questions nor outcomes, of ours or of the official SDK."""
    return not (issubclass(cls, (Question, NotAsked, *OUTCOMES)) or is_official_question(cls))


def asked_class(arms: Sequence[Any]) -> type[Any] | None:
    """Return the class that a resolver asks for, if its return annotation says so: `Backorder` in `Elicit[Backorder]`."""
    named = [peel(one).core for arm in arms for one in get_args(arm)]
    return named[0] if len(named) == 1 and is_concrete(named[0]) else None


def why_not_this_question(
    question: Question, allowed: tuple[type[Question], ...], form: type[Any] | None
) -> str | None:
    """Return what is wrong with a question that a resolver's return annotation rules out; `None` if nothing is.

    `allowed` are the questions that the annotation names, and `form` is the class that a form is for.
    """
    asked: Any = getattr(question, "schema", None)
    given = type(question).__name__
    if allowed and not isinstance(question, allowed):
        return f"returned {given}, but its return annotation says {allowed[0].__name__}"
    if form is None or asked is form or not is_concrete(asked) or issubclass(asked, form):
        return None
    return f"returned a question for {asked.__name__}, but its return annotation says {given}[{form.__name__}]"


def why_ruled_out(value: Any, returns: Any, takers: Sequence[tuple[str, Any]]) -> str:
    """Return what is wrong with a value that a return annotation rules out or, without one, a parameter that takes the value."""
    if isinstance(value, CoroutineType):
        value.close()
        return "returned a coroutine that was never awaited; write `return await ...`"
    given = "None" if value is None else spell(type(value))
    if returns is not EMPTY:
        return f"returned {given}, but its return annotation says {_brief(returns)}"
    name, hint = next(one for one in takers if type(value) in ruled_out(one[1]))
    return f"returned {given}, but parameter {name!r} takes {_brief(hint)}"


def _brief(hint: Any) -> str:
    """A hint without the names of modules."""
    return re.sub(r"\b\w+\.", "", " | ".join(map(spell, arms(hint))))
