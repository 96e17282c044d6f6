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
from bespeak.conversation.connection import Connection
from bespeak.conversation.question_names import texts_in
from bespeak.conversation.responses import no_constant
from bespeak.testing.cassettes.cassette_format import (
    AFRESH,
    FORMAT,
    Cassette,
    StaleCassette,
    compared,
    diverged,
    first_difference,
    is_question,
)
from bespeak.testing.cassettes.key_handles import KeyHandles, Turns
from bespeak.testing.cassettes.player import Player
from bespeak.testing.cassettes.recorder import Recorder
from bespeak.testing.redaction.redactor import Redactor
from bespeak.testing.suite.plan import Item

LARGEST = 16 * 1024 * 1024
"""The maximum number of bytes of a cassette."""


class CassetteFile:
    """The cassette of one test."""

    def __init__(self, folder: Path, item: Item, redaction: Redactor) -> None:
        self.path = folder / _file_name(folder, item)
        self._redaction = redaction
        self._recorder: Recorder | None = None
        written = [item.test.model_dump(by_alias=True, exclude_unset=True), item.suite.model.redact]
        self._written = "\n".join(texts_in(written))
        """All strings of the test in the suite. A key that the suite writes out is recorded as it is."""

    # Writing

    def recorder(self, connection: Connection) -> "Recorder":
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
        """Read the cassette. Raises `StaleCassette` if it is missing or cannot be read."""
        try:
            text = self.path.read_bytes()
        except FileNotFoundError:
            raise StaleCassette(f"never recorded: there is no {self.path.name}; run with --record once") from None
        except OSError as error:
            raise StaleCassette(f"{self.path.name} cannot be read: {error.strerror or error}") from None
        try:
            found: Any = json.loads(text, parse_constant=no_constant)
            Cassette.model_validate(found)
            requests = [one["request"] for turn in found["turns"] for one in turn.get("asked", [])]
            if not all(is_question(self._redaction.restored(request)) for request in requests):
                raise ValueError("these are not questions")
        except (ValueError, RecursionError):
            raise StaleCassette(
                f"{self.path.name} is not a cassette of format {FORMAT}; run with --record rewrite"
            ) from None
        return cast("dict[str, Any]", found)

    def player(self) -> "Player":
        """Return a line that plays the server's part. Raises `StaleCassette`."""
        return Player(self.read(), self._redaction)

    def difference(self, before: Mapping[str, Any]) -> StaleCassette | None:
        """Return where the new recording differs from an earlier one."""
        now = json.loads(json.dumps(self.recorded()))
        known = before if "keys" in before else self._stored(before["turns"])
        found = compared("revision", before["revision"], now["revision"])
        found = found or first_difference(known["turns"], now["turns"])
        found = found or compared("keys", known.get("keys", []), now.get("keys", []))
        return None if found is None else diverged(found, AFRESH)


def _file_name(folder: Path, item: Item) -> str:
    """A unique file name that every file system accepts."""
    suite = os.path.relpath(item.suite.path.resolve(), folder.resolve())
    name = item.suite.stem
    told = json.dumps([Path(suite).as_posix(), item.test.name, item.case, item.era])
    slug = re.sub(r"[^a-z0-9]+", "-", f"{name} {item.title}".lower()).strip("-")[:100]
    return f"{slug}.{hashlib.sha256(told.encode()).hexdigest()[:8]}.json"
