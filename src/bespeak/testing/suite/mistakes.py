"""Mistakes in suite files, each with its file and line."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Mistake:
    """One mistake in a suite file."""

    path: Path
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


class BadSuite(Exception):
    """A suite file has mistakes. Each line of the message is one of them."""

    def __init__(self, faults: Sequence[Mistake]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(map(str, faults)))
