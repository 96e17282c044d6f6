"""Folders of this machine in what a server says: cassettes and snapshots have a placeholder in place of each."""

import json
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote

from bespeak.testing.redaction.secret_forms import Span, Text

SUITE_FOLDER = "[suiteFolder]"
"""Stands for the folder of the suite."""
SERVER_FOLDER = "[serverFolder]"
"""Stands for the folder that the server runs in, if it is outside the suite's folder."""
_ANY = re.compile("(" + "|".join(map(re.escape, (SUITE_FOLDER, SERVER_FOLDER))) + ")")


@dataclass(frozen=True, slots=True)
class FolderPath:
    """One way to write the path of a folder. A longer path that only begins alike is another folder."""

    path: str

    @property
    def length(self) -> int:
        return len(self.path)

    def spans(self, text: Text) -> Iterator[Span]:
        """Yield where it is found, from left to right."""
        if self.path in text.text:
            yield from (found.span() for found in _whole(self.path).finditer(text.text))


@lru_cache(maxsize=64)
def _whole(path: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w.~%-]){re.escape(path)}(?![\w~%-]|\.\w)")


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder, and what is written in place of it."""

    shown: str
    paths: tuple[str, ...]
    """Its path without links, and as it was given."""

    def forms(self) -> list[FolderPath]:
        """Return the paths in all forms: as they are, as in a URI, and as in JSON."""
        written = {form for path in self.paths for form in (path, quote(path), json.dumps(path)[1:-1])}
        return [FolderPath(form) for form in sorted(written)]

    def restored(self, text: str) -> str:
        """Return a text with the path put back in place of the placeholder."""
        return text.replace(f"file://{self.shown}", f"file://{quote(self.paths[0])}").replace(self.shown, self.paths[0])


def folders_of(suite: Path, server: Path | None) -> tuple[Folder, ...]:
    """Return the folder of a suite, and the one that its server runs in if that is another."""
    return tuple(_folders(((SUITE_FOLDER, suite), (SERVER_FOLDER, server))))


def _folders(given: Iterable[tuple[str, Path | None]]) -> Iterator[Folder]:
    before: list[Path] = []
    for shown, path in given:
        if path is None:
            continue
        whole = path.resolve()
        # The root is a part of every path, and what lies in a folder before is found by that one.
        if whole != Path(whole.anchor) and not any(whole.is_relative_to(one) for one in before):
            yield Folder(shown, tuple(dict.fromkeys((str(whole), os.path.normpath(path.absolute())))))
        before.append(whole)


def could_be(stored: str, text: str) -> bool:
    """Return whether a text is a stored one with any folders in place of the placeholders."""
    if SUITE_FOLDER not in stored and SERVER_FOLDER not in stored:
        return stored == text
    parts = (".+" if part in (SUITE_FOLDER, SERVER_FOLDER) else re.escape(part) for part in _ANY.split(stored))
    return re.fullmatch("".join(parts), text, re.DOTALL) is not None
