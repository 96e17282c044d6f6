"""`--record`: when conversations are recorded, and where recording is refused."""

import os
from enum import StrEnum
from pathlib import Path


class RecordMode(StrEnum):
    """When conversations are written down."""

    NONE = "none"
    """Never: what is not there is missing."""
    ONCE = "once"
    """When there is no cassette yet."""
    NEW = "new"
    """When there is none, or it no longer fits."""
    REWRITE = "rewrite"
    """Always."""

    @classmethod
    def named(cls, name: str) -> "RecordMode":
        """The mode of that name. Raises `ValueError`."""
        if name not in list(cls):
            raise ValueError(f"when to record is one of {', '.join(cls)}, not {name!r}")
        return cls(name)

    def records(self, cassette: Path) -> bool:
        """Return whether the test must run against the live server and be recorded."""
        return self is RecordMode.REWRITE or (self is not RecordMode.NONE and not cassette.exists())


class RecordingRefused(Exception):
    """Recording is for people, not for CI: what lands there must have been looked at."""


def check_allowed(mode: RecordMode) -> None:
    """Raises `RecordingRefused` where nobody looks at what is recorded."""
    if mode is not RecordMode.NONE and os.environ.get("CI", "").lower() not in ("", "0", "false"):
        raise RecordingRefused(
            f"recording ({mode}) is refused under CI; record at your desk, look at it, and commit it"
        )
