"""Values kept from an earlier run, in a file beside the suite, for `{snapshot: NAME}`."""

import json
from typing import Any, cast

from bespeak.conversation.matchers import ABSENT, Difference, equal_to
from bespeak.conversation.responses import no_constant
from bespeak.testing.atomic_files import alone, write_whole
from bespeak.testing.cassettes.cassette_file import LARGEST
from bespeak.testing.cassettes.record_mode import RecordMode
from bespeak.testing.redaction.redactor import Redactor
from bespeak.testing.suite.loader import Suite


class SnapshotFile:
    """The snapshots of one test. What is new is kept when the test has passed."""

    def __init__(self, suite: Suite, title: str, mode: RecordMode, redaction: Redactor) -> None:
        self._path = suite.path.with_name(f"{suite.stem}.snapshots.json")
        self._title = title
        self._mode = mode
        self._redaction = redaction
        self._kept: dict[str, Any] | None = None
        self._new: dict[str, Any] = {}

    def check(self, name: str, actual: Any) -> Difference | None:
        """How a value differs from the one kept under that name; if none is kept and that is allowed, this one will be."""
        value = self._redaction.apply(actual)
        if name in self._new:
            return equal_to(self._new[name]).check(value)
        try:
            if self._kept is None:
                self._kept = self._read().get(self._title, {})
            found = equal_to(self._kept[name]).check(value) if name in self._kept else None
        except (OSError, ValueError, RecursionError):
            what = f"the snapshots in {self._path.name} cannot be read; mend the file, or remove it and record anew"
            return Difference("", what, ABSENT, value)
        if name in self._kept and (found is None or self._mode in (RecordMode.NONE, RecordMode.ONCE)):
            return found
        if self._mode is RecordMode.NONE:
            return Difference("", f"there is no snapshot {name!r} yet; run with --record once", ABSENT, value)
        self._new[name] = value
        return None

    def keep(self) -> None:
        """The test has passed: what is new is kept. Raises `OSError`, and `ValueError` if it is too large."""
        if not self._new:
            return
        with alone(self._path.parent):  # others may be adding theirs
            kept = self._read()
            kept[self._title] = {**kept.get(self._title, {}), **self._new}
            text = json.dumps(kept, indent=2, sort_keys=True) + "\n"
            if len(text) > LARGEST:
                raise ValueError(f"{self._path.name} would come to {len(text):,} bytes, and it may have {LARGEST:,}")
            write_whole(self._path, text)

    def _read(self) -> dict[str, dict[str, Any]]:
        """All snapshots of the suite. Raises `OSError` and `ValueError`."""
        try:
            found: Any = json.loads(self._path.read_text(encoding="utf-8"), parse_constant=no_constant)
        except FileNotFoundError:
            return {}
        if not isinstance(found, dict) or not all(
            isinstance(one, dict) for one in cast("dict[str, Any]", found).values()
        ):
            raise ValueError("the file holds no snapshots")
        return cast("dict[str, dict[str, Any]]", found)
