"""Values kept from an earlier run, in a file beside the suite, for `{snapshot: NAME}`."""

import json
import os
from pathlib import Path
from typing import Any, cast

from bespeak.testing.cassettes import Mode
from bespeak.testing.matchers import ABSENT, Difference, equal_to
from bespeak.testing.redaction import Redaction


class SnapshotFile:
    """The snapshots of one test."""

    def __init__(self, suite: Path, title: str, mode: Mode, redaction: Redaction) -> None:
        self._path = suite.with_name(f"{suite.name.removesuffix('.bespeak.yaml')}.snapshots.json")
        self._title = title
        self._mode = mode
        self._redaction = redaction

    def check(self, name: str, actual: Any) -> Difference | None:
        """How a value differs from the one kept under that name; if none is kept and that is allowed, it is kept now."""
        value = self._redaction.apply(actual)
        kept = self._read()
        mine: dict[str, Any] = kept.get(self._title, {})
        if name in mine and self._mode is not Mode.REWRITE:
            return equal_to(mine[name]).check(value)
        if self._mode is Mode.NONE:
            return Difference("", f"there is no snapshot {name!r} yet; run with --record once", ABSENT, value)
        self._write({**kept, self._title: {**mine, name: value}})
        return None

    def _read(self) -> dict[str, Any]:
        try:
            found: Any = json.loads(self._path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError):
            return {}
        return cast("dict[str, Any]", found) if isinstance(found, dict) else {}

    def _write(self, kept: dict[str, Any]) -> None:
        text = json.dumps(kept, indent=2, sort_keys=True, ensure_ascii=False)
        beside = self._path.with_name(f"{self._path.name}.{os.getpid()}.part")
        beside.write_text(f"{text}\n", encoding="utf-8")
        beside.replace(self._path)
