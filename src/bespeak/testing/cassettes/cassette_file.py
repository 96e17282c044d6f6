"""The cassette of one test: a recorded conversation, to be replayed without the server or compared with it.

A cassette contains nothing that changes from run to run: no times, paths or versions. A `requestState` is replaced by a number
in order of appearance (`{"$state": 1}`), and a key that depends on the wording by its name with a number (`confirm~1`).
"""

import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from bespeak.conversation.atomic_files import write_whole
from bespeak.conversation.question_names import texts_in
from bespeak.conversation.responses import no_constant
from bespeak.testing.cassettes.cassette_format import (
    AFRESH,
    FORMAT,
    Cassette,
    StaleCassette,
    compared,
    differing_places,
    diverged,
    first_difference,
    is_question,
)
from bespeak.testing.cassettes.key_handles import KeyHandles, Turns
from bespeak.testing.cassettes.plain_values import plain_value
from bespeak.testing.cassettes.player import Player
from bespeak.testing.cassettes.question_order import in_order
from bespeak.testing.cassettes.record_mode import RecordMode
from bespeak.testing.cassettes.recorder import LiveLine, Recorder
from bespeak.testing.redaction.redactor import Redactor
from bespeak.testing.suite.plan import Item

LARGEST = 16 * 1024 * 1024
"""The maximum number of bytes of a cassette."""


class CassetteFile:
    """The cassette of one test."""

    def __init__(self, folder: Path, item: Item, redaction: Redactor) -> None:
        self.path = folder / file_name(folder, item)
        self._redaction = redaction
        self._recorder: Recorder | None = None
        redacted = [one.written for one in item.suite.model.redact]
        written = [item.test.model_dump(by_alias=True, exclude_unset=True), redacted]
        self._written = "\n".join(texts_in(written))
        """All strings of the test in the suite. A key that the suite writes out is recorded as it is."""

    # Writing

    def recorder(self, connection: LiveLine) -> "Recorder":
        """Return a line that records what goes over a connection."""
        self._recorder = Recorder(connection, self._redaction)
        return self._recorder

    def recorded(self) -> dict[str, Any]:
        assert self._recorder is not None, "nothing is written before something was recorded"
        return {"format": FORMAT, "revision": self._recorder.version, **self._stored(self._recorder.turns)}

    def _stored(self, turns: Turns) -> dict[str, Any]:
        """The turns of a conversation with their keys replaced, and the list of handles."""
        handles = KeyHandles.of(turns, self._written)
        listed = list(handles.by_key.values())
        return {"turns": handles.stored(turns), **({"keys": listed} if listed else {})}

    def recorded_player(self) -> "Player | None":
        """Return a line that plays what was just recorded; `None` if the conversation broke off."""
        try:
            found = json.loads(json.dumps(self.recorded()))
            Cassette.model_validate(found)
        except ValueError:
            return None
        return Player(found, self._redaction)

    def write(self) -> None:
        """Write the recorded conversation. Raises `StaleCassette` if it cannot be written."""
        text = json.dumps(self.recorded(), indent=2, sort_keys=True) + "\n"
        if len(text) > LARGEST:
            what = f"{self.path.name} was not written: the conversation has {len(text):,} bytes"
            raise StaleCassette(
                f"{what}, but a cassette may have at most {LARGEST:,}; keep large values out of it with redact"
            )
        try:
            write_whole(self.path, text)
        except OSError as error:
            what = f"{self.path.name} cannot be written into the folder {self.path.parent}: {error.strerror or error}"
            raise StaleCassette(f"{what}; name another cassette folder, or free some space") from None

    # Reading

    def read(self) -> dict[str, Any]:
        """Read the cassette. Raises `StaleCassette` if it is missing, cannot be read, or has what is redacted now."""
        found = read_cassette(self.path, self._redaction)
        path = plain_value(found, self._redaction)
        if path is not None:
            raise PlainValue(self.path, path)
        return found

    def removed_if_plain(self) -> bool:
        """Remove the cassette if it has a value that is redacted now. Return whether it did."""
        try:
            self.read()
        except PlainValue:
            self.path.unlink()
            return True
        except StaleCassette:
            pass
        return False

    def player(self) -> "Player":
        """Return a line that plays the server's part. Raises `StaleCassette`."""
        return Player(self.read(), self._redaction)

    def difference(self, before: Mapping[str, Any]) -> StaleCassette | None:
        """Return where the new recording differs from an earlier one."""
        now = json.loads(json.dumps(self.recorded()))
        known = before if "keys" in before else self._stored(before["turns"])
        found = compared("revision", before["revision"], now["revision"])
        turns = in_order(known["turns"]), in_order(now["turns"])
        found = found or first_difference(*turns)
        found = found or compared("keys", sorted(known.get("keys", [])), sorted(now.get("keys", [])))
        return None if found is None else diverged(found, AFRESH, [*differing_places(*turns)])


def read_cassette(
    path: Path, redaction: Redactor | None = None, advice: str = "run with --record new"
) -> dict[str, Any]:
    """Read and check a cassette. Raises `StaleCassette` if it is missing or cannot be read.

    `advice` says what to do about a file that is not a cassette.
    """
    restored = (redaction or Redactor()).restored
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        raise StaleCassette(f"never recorded: there is no {path.name}; run with --record once") from None
    except OSError as error:
        raise StaleCassette(f"{path.name} cannot be read: {error.strerror or error}") from None
    try:
        found: Any = json.loads(text, parse_constant=no_constant)
        Cassette.model_validate(found)
        requests = [one["request"] for turn in found["turns"] for one in turn.get("asked", [])]
        if not all(is_question(restored(request)) for request in requests):
            raise ValueError("these are not questions")
    except (ValueError, RecursionError):
        raise StaleCassette(f"{path.name} is not a cassette of format {FORMAT}; {advice}") from None
    return cast("dict[str, Any]", found)


class PlainValue(StaleCassette):
    """A value was recorded before it was redacted."""

    def __init__(self, file: Path, path: str, mode: RecordMode = RecordMode.NEW) -> None:
        """`mode` is the one that records it again: a recording that still fits a replay is only replaced by `rewrite`."""
        what = f"{file.name} has a value that is redacted now, at {path}"
        super().__init__(f"{what}; record it again with --record {mode}")


def file_name(folder: Path, item: Item) -> str:
    """Return a unique file name for a test that every file system accepts."""
    suite = os.path.relpath(item.suite.path.resolve(), folder.resolve())
    name = item.suite.stem
    told = json.dumps([Path(suite).as_posix(), item.test.name, item.case, item.era])
    return f"{slug(f'{name} {item.title}')[:100]}.{hashlib.sha256(told.encode()).hexdigest()[:8]}.json"


def slug(text: str) -> str:
    """Return a text in lower case letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
