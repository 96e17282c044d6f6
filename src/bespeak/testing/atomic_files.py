"""Files that are written whole or not at all, by one process at a time."""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex


def write_whole(file: Path, text: str) -> None:
    """All or nothing: whoever reads the file meanwhile sees what was there before, or this."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with beside(file) as other:
        other.write_text(text, encoding="utf-8", newline="\n")
        other.replace(file)


@contextmanager
def beside(file: Path) -> Generator[Path]:
    """A new name in the same folder; nothing stays there."""
    other = file.with_name(f".{file.name}.{token_hex(4)}.tmp")
    try:
        yield other
    finally:
        other.unlink(missing_ok=True)


@contextmanager
def alone(folder: Path) -> Generator[None]:
    """Nobody else who asks for the same is at work in a folder meanwhile; where systems have no such locks, anybody may be."""
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
