"""Snapshots: values saved from an earlier run in a file beside the suite, for `{snapshot: NAME}`."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from bespeak.conversation.atomic_files import alone, write_whole
from bespeak.conversation.matchers import ABSENT, Difference, equal_to
from bespeak.conversation.responses import no_constant
from bespeak.testing.cassettes.cassette_file import LARGEST
from bespeak.testing.cassettes.record_mode import RecordMode
from bespeak.testing.redaction.redactor import REDACTED, Redactor
from bespeak.testing.suite.loader import Suite


class SnapshotFile:
    """The snapshots of one test. New ones are saved when the test has passed."""

    def __init__(
        self, suite: Suite, title: str, mode: RecordMode, redaction: Redactor, *, verifying: bool = False
    ) -> None:
        """`verifying` says that the test has a recording, which still fits the snapshots."""
        self._path = snapshots_path(suite)
        self._title = title
        self._mode = mode
        self._again = f"again with --record {RecordMode.REWRITE if verifying else RecordMode.NEW}"
        self._redaction = redaction
        self._kept: dict[str, Any] | None = None
        self._new: dict[str, Any] = {}
        self._hidden: dict[str, Any] = {}
        """Stored values without what is redacted now."""

    def check(self, name: str, actual: Any) -> Difference | None:
        """Compare a value with the snapshot of that name. Without a snapshot, the value becomes one if recording is on."""
        value = self._redaction.apply(actual)
        if name in self._new:
            return equal_to(self._new[name]).check(value)
        try:
            if self._kept is None:
                self._kept = read_snapshots(self._path).get(self._title, {})
            found = equal_to(self._kept[name]).check(value) if name in self._kept else None
        except (OSError, ValueError, RecursionError):
            what = f"the snapshots in {self._path.name} cannot be read; fix the file, or delete it and record again"
            return Difference("", what, ABSENT, value)
        if name in self._kept and (found is None or self._mode in (RecordMode.NONE, RecordMode.ONCE)):
            return None if found is None else self._differs(name, self._kept[name], value)
        if self._mode is RecordMode.NONE:
            return Difference("", f"there is no snapshot {name!r} yet; run with --record once", ABSENT, value)
        self._new[name] = value
        return None

    def _differs(self, name: str, kept: Any, value: Any) -> Difference | None:
        """Return how a value differs from a stored one, which may have been stored before something was redacted."""
        self._hidden[name] = self._redaction.apply(_redacted_like(kept, value))
        found = equal_to(self._hidden[name]).check(value)
        if found is not None:
            again = f"if that is right, record the snapshot {name!r} {self._again}"
            return replace(found, message=f"{found.message}; {again}")
        what = f"the snapshot {name!r} has a value that is redacted now; record it {self._again}"
        return Difference("", what, ABSENT, value)

    def kept(self, name: str) -> Any:
        """Return the snapshot with that name; `ABSENT` if there is none."""
        return {**(self._kept or {}), **self._hidden}.get(name, ABSENT)

    def keep(self) -> None:
        """Save new snapshots after the test has passed. Raises `OSError`, and `ValueError` if the file would be too large."""
        if not self._new:
            return
        with alone(self._path.parent):  # other processes may be adding theirs
            kept = read_snapshots(self._path)
            kept[self._title] = {**kept.get(self._title, {}), **self._new}
            text = json.dumps(kept, indent=2, sort_keys=True) + "\n"
            if len(text) > LARGEST:
                raise ValueError(f"{self._path.name} would have {len(text):,} bytes; the limit is {LARGEST:,}")
            write_whole(self._path, text)


def _redacted_like(kept: Any, value: Any) -> Any:
    """Return a stored value with everything redacted that is redacted in a value of today."""
    if value == REDACTED:
        return REDACTED
    if isinstance(kept, dict) and isinstance(value, dict):
        today = cast("dict[str, Any]", value)
        return {
            name: _redacted_like(one, today.get(name, ABSENT)) for name, one in cast("dict[str, Any]", kept).items()
        }
    if isinstance(kept, list) and isinstance(value, list):
        known, entries = cast("list[Any]", kept), cast("list[Any]", value)
        alike = [*entries, *entries[-1:] * len(known)]  # what is redacted in one entry may be so in all
        return [_redacted_like(one, alike[at]) if entries else one for at, one in enumerate(known)]
    return cast("Any", kept)


def snapshots_path(suite: Suite) -> Path:
    """Return the file with the snapshots of a suite."""
    return suite.path.with_name(f"{suite.stem}.snapshots.json")


def read_snapshots(path: Path) -> dict[str, dict[str, Any]]:
    """Return all snapshots of a suite, by the titles of tests and by name. Raises `OSError` and `ValueError`."""
    try:
        found: Any = json.loads(path.read_text(encoding="utf-8"), parse_constant=no_constant)
    except FileNotFoundError:
        return {}
    if not isinstance(found, dict) or not all(isinstance(one, dict) for one in cast("dict[str, Any]", found).values()):
        raise ValueError("the file does not contain snapshots")
    return cast("dict[str, dict[str, Any]]", found)
