"""Output that nobody reads any more: `bespeak test | head` closes the pipe before we have written everything."""

import os
from typing import TextIO


def flush(stream: TextIO) -> bool:
    """Write what a stream holds back. Return whether there is still a reader; without one, the rest is thrown away."""
    try:
        stream.flush()
    except BrokenPipeError:
        discard(stream)
        return False
    return True


def discard(stream: TextIO) -> None:
    """Throw away all that is written to a stream from now on. Otherwise Python tries once more when it exits, and complains."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
