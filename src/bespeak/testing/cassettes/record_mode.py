"""`--record`: when conversations are recorded, and where recording is refused."""

import os
from enum import StrEnum
from pathlib import Path


class RecordMode(StrEnum):
    """When conversations are recorded."""

    NONE = "none"
    """Never. A missing cassette is a failure."""
    ONCE = "once"
    """When there is no cassette yet."""
    NEW = "new"
    """When there is no cassette, or it no longer fits."""
    REWRITE = "rewrite"
    """Always."""

    @classmethod
    def named(cls, name: str) -> "RecordMode":
        """Return the mode of that name. Raises `ValueError`."""
        if name not in list(cls):
            raise ValueError(f"the record mode is one of {', '.join(cls)}, not {name!r}")
        return cls(name)

    def records(self, cassette: Path) -> bool:
        """Return whether the test must run against the live server and be recorded."""
        return self is RecordMode.REWRITE or (self is not RecordMode.NONE and not cassette.exists())


class RecordingRefused(Exception):
    """Recording is refused in CI: a person must review what is recorded."""


def check_allowed(mode: RecordMode) -> None:
    """Raises `RecordingRefused` in CI."""
    if mode is not RecordMode.NONE and os.environ.get("CI", "").lower() not in ("", "0", "false"):
        raise RecordingRefused(
            f"recording ({mode}) is refused in CI; record on your own machine, review the cassettes and commit them"
        )
