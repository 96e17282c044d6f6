"""Pieces of generated signatures: markers, outcomes and questions as a parameter's hint and default, rightly and wrongly.

Each piece is Python text. A generated module reads as an author would have written it, with real or with postponed
annotations, and a failing example can be run as it is printed.
"""

from dataclasses import dataclass, replace
from enum import Enum


class Verdict(Enum):
    """What registering must result in."""

    HONOURED = "registers, and the resolver fills the parameter"
    REFUSED = "raises InvalidSignature"
    CLOSED = "either of the two, or left to its default: what the client sends never arrives"
    SHOWN = "registers, and the model sees the parameter"


@dataclass(frozen=True, slots=True)
class Spelling:
    """A parameter's hint and default as text, with the statements that they need before them."""

    hint: str
    default: str | None = None
    before: tuple[str, ...] = ()
    verdict: Verdict = Verdict.REFUSED
    core: str = "C"
    """The type without its marker."""
    marked: bool = True
    """Has to do with `Resolve`, and not with outcomes or questions only."""
    textual: bool = False
    """Has text in it that is evaluated later."""

    @property
    def parameter(self) -> str:
        return f"{self.hint} = {self.default}" if self.default else self.hint


# What can stand there

_MARKERS = {
    "a marker without a call": "Resolve",
    "a marker in text": "'Resolve(ask_c)'",
    "a marker with options in text": "'Resolve(ask_c, once=True)'",
    "a marker with its module in text": "'bespeak.Resolve(ask_c)'",
    "a marker in text in a list": "['Resolve(ask_c)']",
    "a marker in a list": "[Resolve(ask_c)]",
    "a marker in a list in a list": "[[Resolve(ask_c)]]",
    "a marker in a tuple": "(Resolve(ask_c),)",
    "a marker in a set": "{Resolve(ask_c)}",
    "a marker in a dict": "{'by': Resolve(ask_c)}",
    "a marker in a list in a tuple in a dict": "{'by': ([Resolve(ask_c)],)}",
    "a marker in a deque": "collections.deque([Resolve(ask_c)])",
    "a marker in an object": "SimpleNamespace(by=Resolve(ask_c))",
    "a marker in a list in an object": "SimpleNamespace(by=[Resolve(ask_c)])",
    "a marker in an object in an object": "SimpleNamespace(by=SimpleNamespace(by=Resolve(ask_c)))",
    "a marker in a slot": "Slotted(Resolve(ask_c))",
    "a marker that metadata yields": "Grouped(lambda: iter([Resolve(ask_c)]))",
    "a marker that metadata yields from others": "Grouped(lambda: iter([1, Grouped(lambda: iter([Resolve(ask_c)]))]))",
    "a marker of another copy": "Copied(ask_c)",
    "a marker of another copy in a list": "[Copied(ask_c)]",
    "a marker of another copy without a call": "Copied",
    "a marker without a call in a list": "[Resolve]",
    "a partial marker": "functools.partial(Resolve, ask_c)",
    "a partial marker without a function": "functools.partial(Resolve)",
    "a partial marker in a list": "[functools.partial(Resolve, ask_c)]",
    "a marker as a field's default": "Field(default=Resolve(ask_c))",
    "a marker from a field's factory": "Field(default_factory=lambda: Resolve(ask_c))",
    "a marker from a field's factory that takes data": "Field(default_factory=lambda data: Resolve(ask_c))",
    "a marker from a field's named factory": "Field(default_factory=make_marker)",
    "a marker as a field's factory": "Field(default_factory=Resolve(ask_c))",
    "a partial marker as a field's factory": "Field(default_factory=functools.partial(Resolve, ask_c))",
}
_TWICE = {
    "two markers": "Annotated[C, Resolve(ask_c), Resolve(ask_more)]",
    "two markers in layers": "Annotated[Annotated[C, Resolve(ask_c)], Resolve(ask_c)]",
}
_MARKED = {
    "a marker": Spelling("Annotated[C, Resolve(ask_c)]"),
    "a marker on a bool": Spelling("Annotated[bool, Resolve(ask_bool)]", core="bool"),
    "a marker after a field": Spelling("Annotated[C, Field(description='Sure?'), Resolve(ask_c)]"),
    "a marker with a default": Spelling("Annotated[C | None, Resolve(ask_c)]", "None"),
    "a marker on an outcome": Spelling("Annotated[ElicitationResult[C], Resolve(ask_c)]"),
    "a marker on some outcomes": Spelling("Annotated[AcceptedElicitation[C], Resolve(ask_c)]"),
    "a marker on an object": Spelling("Annotated[object, Resolve(ask_c)]"),
    "a marker on a list of outcomes": Spelling("Annotated[list[ElicitationResult[C]], Resolve(ask_any)]"),
    "a marker beside no question asked": Spelling("Annotated[C | NotAsked, Resolve(ask_c)]"),
    "a marker on all outcomes": Spelling("Annotated[ElicitationResult[C] | NotAsked, Resolve(ask_c)]"),
}
_TYPES = {
    "an outcome": "ElicitationResult[C]",
    "an outcome's bare alias": "ElicitationResult",
    "an accepted outcome": "AcceptedElicitation[C]",
    "a bare accepted outcome": "AcceptedElicitation",
    "a declined outcome": "DeclinedElicitation",
    "a cancelled outcome": "CancelledElicitation",
    "a form question": "Elicit[C]",
    "a bare form question": "Elicit",
    "a sampling question": "Sample",
    "a roots question": "ListRoots",
    "no question asked": "NotAsked",
    "an answer of the wire": "ElicitResult",
    "a message of the wire": "CreateMessageResult",
    "roots of the wire": "ListRootsResult",
}
_INSTANCES = {
    "a form question's instance": "Elicit('Sure?', C)",
    "a sampling question's instance": "Sample([], max_tokens=1)",
    "a roots question's instance": "ListRoots()",
    "a declined outcome's instance": "DeclinedElicitation()",
    "an accepted outcome's instance": "AcceptedElicitation[C](data=C(ok=False))",
}
_PLAIN = {
    "a model": Spelling("C"),
    "a bool": Spelling("bool", core="bool"),
    "a default": Spelling("bool", "True", core="bool"),
    "a note": Spelling("Annotated[bool, 'how to resolve it']", core="bool"),
    "a note that begins like a marker": Spelling("Annotated[bool, 'Resolve conflicts first (see below)']", core="bool"),
    "a note with a call in it": Spelling("Annotated[C, 'see dns.Resolve(host) for how']"),
    "notes in a tuple": Spelling("Annotated[bool, ('resolve', 'refund')]", core="bool"),
    "a described field": Spelling("Annotated[bool, Field(description='Resolve this question?')]", core="bool"),
    "a field as default": Spelling("bool", "Field(default=False)", core="bool"),
    "a factory": Spelling("C", "Field(default_factory=lambda: C(ok=False))"),
    "an optional": Spelling("C | None", "None"),
    "anything": Spelling("Any"),
    "no hint to speak of": Spelling("object", "None"),
}

PLAIN = {name: replace(one, verdict=Verdict.SHOWN) for name, one in _PLAIN.items()}
"""Without a marker, an outcome or a question."""


def _leaves() -> dict[str, Spelling]:
    found = {name: replace(one, verdict=Verdict.HONOURED) for name, one in _MARKED.items()}
    found |= {name: Spelling(text) for name, text in _TWICE.items()}
    found |= {f"{name}, in Annotated": Spelling(f"Annotated[C, {text}]") for name, text in _MARKERS.items()}
    markers = {"a marker": "Resolve(ask_c)", **_MARKERS}
    found |= {f"{name}, as the default": Spelling("C", text) for name, text in markers.items() if "'" not in text[:2]}
    found |= {f"{name}, as the hint": Spelling(text) for name, text in markers.items() if text.startswith("Resolve")}
    found |= {name: Spelling(text, marked=False) for name, text in _TYPES.items()}
    for name, text in {**_TYPES, **_INSTANCES}.items():
        found[f"{name}, in Annotated"] = Spelling(f"Annotated[C, {text}]", marked=False)
        found[f"{name}, as the default"] = Spelling("C", text, marked=False)
        found[f"{name}, as a field's default"] = Spelling("C", f"Field(default={text})", marked=False)
        found[f"{name}, from a field's factory"] = Spelling("C", f"Field(default_factory=lambda: {text})", marked=False)
    found |= {f"{name}, as the hint": Spelling(text, marked=False) for name, text in _INSTANCES.items()}
    return found


LEAVES = _leaves()
