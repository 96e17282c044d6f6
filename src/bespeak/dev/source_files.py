"""The source files of a server, and whether they have changed: those it has loaded, and those beside them."""

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType

from bespeak.server.author_frames import is_own

State = Mapping[str, tuple[int, int]]
"""By path: when a file was changed, and its size."""
MOST_FILES = 5000


class SourceFiles:
    """Which files to look at."""

    def __init__(self) -> None:
        self._files: set[Path] = set()

    def add(self, files: Iterable[str]) -> None:
        """Look at these files from now on, too. Those of before stay: a file that cannot be loaded names no others."""
        self._files |= set(map(Path, files))

    def state(self) -> State:
        """Return what the files are like now. A file beside one of them counts as well: it may be about to be imported."""
        folders = {file.parent for file in self._files}
        found = {*self._files, *(file for folder in folders for file in _sources_in(folder))}
        return {str(file): told for file in sorted(found)[:MOST_FILES] if (told := _told(file)) is not None}


def _sources_in(folder: Path) -> list[Path]:
    try:
        return list(folder.glob("*.py"))
    except OSError:  # it was removed
        return []


def _told(file: Path) -> tuple[int, int] | None:
    try:
        about = file.stat()
    except OSError:
        return None
    return about.st_mtime_ns, about.st_size


def changed(before: State, after: State) -> list[str]:
    """Return the files that are new, gone or different."""
    return sorted(name for name in {*before, *after} if before.get(name) != after.get(name))


def loaded_files(error: BaseException | None = None) -> list[str]:
    """Return the author's files that this process has loaded, and those in which loading failed."""
    files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    while error is not None:
        files |= set(_files_in(error.__traceback__))
        if isinstance(error, SyntaxError):
            files.add(error.filename)
        error = error.__cause__ or error.__context__
    return sorted(str(Path(file).absolute()) for file in files if isinstance(file, str) and is_own(file))


def _files_in(trace: TracebackType | None) -> Iterable[str]:
    while trace is not None:
        yield trace.tb_frame.f_code.co_filename
        trace = trace.tb_next
