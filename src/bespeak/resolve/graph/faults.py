"""The faults of a consumer: all of them are found before one is raised, each with a drawing of the path to it."""

import warnings

from bespeak.resolve.errors import Fault
from bespeak.resolve.graph.drawing import draw_path
from bespeak.resolve.reading.signatures import Signature


class Faults:
    """All faults of one consumer, in the order in which they are found."""

    def __init__(self) -> None:
        self.found: list[Fault] = []

    def add(self, place: str, trail: tuple[str, ...], problem: str, fix: str) -> None:
        """Note a fault. `trail` is the path from the consumer to it, one label a step."""
        self.found.append(Fault(problem, fix, place, draw_path(trail)))

    def add_defects(self, signature: Signature, trail: tuple[str, ...]) -> None:
        """Note the defects that were found when a function was read."""
        for defect in signature.defects:
            labels = (*trail, defect.parameter) if defect.parameter else trail
            self.add(signature.place, labels, f"{signature.name}: {defect.problem}", defect.fix)


class RegistrationWarning(UserWarning):
    """Something about a function that can be registered, but is probably a mistake."""


def warn_at(signature: Signature, message: str) -> None:
    """Issue a warning with the file and line of a function."""
    file, _, line = signature.place.rpartition(":")
    warnings.warn_explicit(message, RegistrationWarning, file, int(line) if line.isdigit() else 0)
