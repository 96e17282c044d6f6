"""The exit codes of the `bespeak` command."""

from enum import IntEnum


class ExitCode(IntEnum):
    OK = 0
    FAILED = 1
    BAD_USAGE = 2
    UNREACHABLE = 3
    STALE_CASSETTE = 4
    RECORDING_REFUSED = 5
    WAITING = 6
    """The call is waiting for answers."""
    NOTHING_SELECTED = 7
    INTERRUPTED = 130
