"""One thing to call in a generated module, and the text that its pieces are made of."""

import sys
from dataclasses import dataclass, replace
from textwrap import indent

from tests.resolve.reading.generated.spellings import Spelling, Verdict


@dataclass(frozen=True, slots=True)
class Form:
    """Something to call, named `target`. `{p}` is the parameter, `{h}` its hint, `{core}` the type without a marker."""

    statements: tuple[str, ...]
    loses: bool = False
    """Shows the parameter without its marker, so the marker could be lost."""
    makes: bool = False
    """Is a class: what it gives is not a result to speak of."""
    elsewhere: bool = False
    """Has its annotations read in another module."""
    takes_default: bool = True
    fades: bool = False
    """Nothing can be told of the marker where postponed annotations name what is local to a function that has returned."""
    unseen: bool = False
    """The marker is nowhere to be seen; it is refused for a type variable that cannot be read. A wrapper may show a type."""
    given: bool = False
    """Its hint is a type argument given outside a class, so that it is not known where text in it was written."""
    validates: bool = False
    """Takes values of the right type only."""
    since: tuple[int, int] = (3, 11)

    def takes(self, spelling: Spelling) -> bool:
        if sys.version_info < self.since:
            return False
        if self.loses and (spelling.verdict is not Verdict.HONOURED or spelling.default):
            return False
        has_room = self.takes_default and any("{p}" in text for text in self.statements)
        return has_room or spelling.default is None

    def of(self, spelling: Spelling, hint: str) -> list[str]:
        shown = replace(spelling, hint=hint)
        return [
            text.replace("{p}", shown.parameter).replace("{h}", hint).replace("{core}", spelling.core)
            for text in self.statements
        ]


NOTE = "return note(answer)"
NOTED = "note(answer)"
NEW_OBJECT = "note(answer); return object.__new__(cls)"


def function(name: str, parameters: str, body: str = NOTE, sort: str = "async def") -> str:
    return f"{sort} {name}({parameters}) -> str:\n    {body}"


def member(name: str, parameters: str, body: str = NOTE, sort: str = "async def") -> str:
    shown = "" if name in ("__init__", "__new__") or sort == "def" else " -> str"
    return f"{sort} {name}({parameters}){shown}:\n    {body}"


def block(head: str, *inside: str) -> str:
    """A class, or another statement with others inside."""
    return f"{head}:\n" + "\n".join(indent(one, "    ") for one in inside)
