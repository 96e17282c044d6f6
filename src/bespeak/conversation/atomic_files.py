"""Atomic writes of files that only their owner may read, and a lock on a folder."""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex

MODE = 0o600
"""What servers and people said is in these files."""


def write_whole(file: Path, text: str) -> None:
    """Write a file atomically: a reader sees either the old or the new content. Only its owner may read the new one."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with beside(file) as other:
        other.touch(MODE, exist_ok=False)
        other.write_text(text, encoding="utf-8", newline="\n")
        other.replace(file)


@contextmanager
def beside(file: Path) -> Generator[Path]:
    """A temporary name in the same folder. A file of that name is deleted at the end."""
    other = file.with_name(f".{file.name}.{token_hex(4)}.tmp")
    try:
        yield other
    finally:
        other.unlink(missing_ok=True)


@contextmanager
def alone(folder: Path) -> Generator[None]:
    """Hold an exclusive lock on a folder. Does nothing on Windows."""
    if sys.platform == "win32":
        yield
        return
    import fcntl

    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
