"""Reserves standard input and output for a server's messages, whatever an author's code prints or reads.

While a server uses stdio, other code that prints to standard output prints to standard error, and its standard input is
empty.
"""

import contextlib
import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(slots=True)
class PrivateFiles:
    """The real standard input and output."""

    stdin: int
    stdout: int
    in_use: bool = False
    """Whether a thread is still blocked on one of them. Then their numbers must not be used for other files."""


@contextmanager
def private_stdio() -> Generator[PrivateFiles]:
    """File descriptors of the real standard input and output. While the block is open, no other code uses them."""
    try:
        files = PrivateFiles(os.dup(0), os.dup(1))
    except OSError:
        raise ConnectionError(
            "there is no standard input or output to serve on; start the server from a client"
        ) from None
    nothing = os.open(os.devnull, os.O_RDONLY)
    buffered = False
    try:
        os.dup2(nothing, 0)
        os.dup2(2, 1)
        _flush()  # what was printed before and is still held back goes to standard error as well
        buffered = _line_buffering(True)
        yield files
    finally:
        _flush()
        _line_buffering(buffered)
        os.dup2(files.stdin, 0)
        os.dup2(files.stdout, 1)
        os.close(nothing)
        if not files.in_use:
            os.close(files.stdin)
            os.close(files.stdout)


def _line_buffering(wanted: bool) -> bool:
    """Have what is printed appear line by line, or not; how it was before."""
    before: bool = getattr(sys.stdout, "line_buffering", False)
    reconfigure: Callable[..., None] | None = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(line_buffering=wanted)
    return before


def _flush() -> None:
    with contextlib.suppress(ValueError, OSError, AttributeError):
        sys.stdout.flush()
