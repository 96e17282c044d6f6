"""A graph while it is compiled: the resolvers read so far, and the faults found so far."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from bespeak.resolve.errors import Fault
from bespeak.resolve.graph.drawing import draw_path
from bespeak.resolve.graph.model import Input
from bespeak.resolve.markers import Resolve
from bespeak.resolve.reading.signatures import Signature


@dataclass(slots=True)
class Draft:
    """A resolver before the whole graph is known."""

    fn: Callable[..., Any]
    original: Callable[..., Any]
    """The function of its marker, which an override may have replaced."""
    marker: Resolve
    signature: Signature
    trail: tuple[str, ...]
    path: str
    inputs: list[Input] = field(default_factory=list[Input])
    below: set[int] = field(default_factory=set[int])
    """Every resolver it depends on, directly or not."""


class Faults:
    """All faults of one consumer, in the order in which they are found."""

    def __init__(self) -> None:
        self.found: list[Fault] = []

    def add(self, place: str, trail: tuple[str, ...], problem: str, fix: str) -> None:
        """Note a fault. `trail` is the path from the consumer to it, one label a step."""
        self.found.append(Fault(problem, fix, place, draw_path(trail)))

    def add_defects(self, signature: Signature, trail: tuple[str, ...]) -> None:
        """Note what was found when a function was read."""
        for defect in signature.defects:
            labels = (*trail, defect.parameter) if defect.parameter else trail
            self.add(signature.place, labels, f"{signature.name}: {defect.problem}", defect.fix)


def warn_at(signature: Signature, message: str) -> None:
    """Warn at the place of a function."""
    file, _, line = signature.place.rpartition(":")
    warnings.warn_explicit(message, UserWarning, file, int(line) if line.isdigit() else 0)
