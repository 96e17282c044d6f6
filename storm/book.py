"""The till's book: one line when a charge begins and one when it has ended, in a file that all workers append to."""

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

BOOK_VARIABLE = "STORM_BOOK"
"""The environment variable with the path of the file."""


class Event(StrEnum):
    BEGUN = "begun"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the book."""

    event: Event
    call: str
    """The id of the call, as the framework gives it to the tool."""
    order: str
    cents: int
    pid: int
    """The worker."""


def write(path: Path, entry: Entry) -> None:
    """Append an entry with a single write, so that lines of several workers never mix, and a killed worker leaves no half line."""
    file = os.open(path, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o600)
    try:
        os.write(file, json.dumps(asdict(entry)).encode() + b"\n")
    finally:
        os.close(file)


def read(lines: Iterable[str]) -> list[Entry]:
    """Return all entries in the order in which they were written."""
    entries: list[Entry] = []
    for line in lines:
        fields: dict[str, Any] = json.loads(line)
        entries.append(Entry(Event(fields.pop("event")), **fields))
    return entries
