"""What a rule of the protocol is: a clause of the specification, its strength, and the revisions that have it."""

from dataclasses import dataclass
from enum import StrEnum

MODERN = "2026-07-28"
NOVEMBER = "2025-11-25"
JUNE = "2025-06-18"
MARCH = "2025-03-26"


class Strength(StrEnum):
    """What it means to break a rule."""

    MUST = "must"
    """The test fails."""
    ADVICE = "advice"
    """It is reported, and the test passes."""
    ATTACK = "attack"
    """The protocol does not demand it, but a test that attacks the server in this way fails."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One clause of the specification that a client can check."""

    name: str
    sentence: str
    clause: str
    """The page of the specification, and the section in quotes if it is a long page."""
    strength: Strength = Strength.MUST
    first: str | None = None
    """The first revision that has the clause; `None` if all have it."""
    last: str | None = None
    """The last revision that has it; `None` if the newest has it."""

    def holds_at(self, version: str) -> bool:
        """Return whether the rule holds for a revision."""
        return (self.first is None or version >= self.first) and (self.last is None or version <= self.last)

    @property
    def revisions(self) -> str:
        """The revisions that have the clause, in words."""
        return revisions(self.first, self.last)

    def __str__(self) -> str:
        return f"{self.sentence}; see {self.clause}"


def revisions(first: str | None, last: str | None) -> str:
    """Return a range of revisions in words."""
    if first is None:
        return "all" if last is None else f"up to {last}"
    if first in (last, MODERN):
        return first
    return f"from {first}" if last is None else f"{first} to {last}"


def advice(name: str, sentence: str, clause: str, first: str | None = None, last: str | None = None) -> Rule:
    """Return a rule for a SHOULD."""
    return Rule(name, sentence, clause, Strength.ADVICE, first, last)


def attack(name: str, sentence: str, clause: str) -> Rule:
    """Return a rule for a SHOULD that an attack shows."""
    return Rule(name, sentence, clause, Strength.ATTACK, MODERN)


def modern(name: str, sentence: str, clause: str) -> Rule:
    """Return a rule of the newest revision."""
    return Rule(name, sentence, clause, first=MODERN)
