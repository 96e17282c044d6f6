"""Tapes: the requests of recorded conversations, each with the questions before it and the response to it."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bespeak.conversation.input_required import ADDED
from bespeak.testing.cassettes.cassette_file import read_cassette
from bespeak.testing.cassettes.cassette_format import ALTERED, StaleCassette
from bespeak.testing.cassettes.key_handles import KeyHandles
from bespeak.testing.cassettes.recorded_turns import RecordedTurns
from bespeak.testing.redaction.redactor import Redactor

_VARIABLE = re.compile(r"\$\{env:([^}]+)\}")


class NoCassette(Exception):
    """A cassette cannot be served. The message says why."""


@dataclass(frozen=True, slots=True)
class Step:
    """One recorded request, and what came back."""

    tape: "Tape" = field(repr=False)
    number: int
    """The number of the request's turn."""
    pushed: Sequence[int]
    """The turns that end in pushed questions, before the response. Only older revisions have them."""
    end: int
    """The turn with the response, or the last one before the client went away."""
    before: "Step | None"
    """The request whose questions this one answers; `None` for the first one of a call."""

    @property
    def method(self) -> str:
        return self.turn["method"]

    @property
    def turn(self) -> Mapping[str, Any]:
        return self.tape.turns[self.number]

    @property
    def response(self) -> Mapping[str, Any]:
        return self.tape.turns[self.end]

    @property
    def sent(self) -> dict[str, Any]:
        """The params, without the state and the answers."""
        return {name: value for name, value in self.turn["sent"].items() if name not in ADDED}

    @property
    def state(self) -> Any:
        """The handle of the state that it sends back; `None` if it sends none."""
        return self.turn["sent"].get("requestState")

    @property
    def target(self) -> str:
        """What is called, in words."""
        named = self.sent.get("name", self.sent.get("uri"))
        return self.method if named is None else f"{self.method} {named}"

    def looks_like(self, other: "Step", place: int = 0) -> bool:
        """Whether a client cannot tell from what comes next which of two recordings is played.

        `place` is the number of pushed questions before.
        """
        one, two = (step.tape.turns[step.number + place] for step in (self, other))
        return _visible(one) == _visible(two)


def _visible(turn: Mapping[str, Any]) -> dict[str, Any]:
    told = {name: turn.get(name) for name in ("asked", "listed", "asking", "result", "error", "notifications")}
    return {**told, "state": "state" in turn}


class Tape:
    """One cassette."""

    def __init__(self, name: str, cassette: Mapping[str, Any], redactor: Redactor) -> None:
        self.name = name
        self.revision: str = cassette["revision"]
        self.turns: list[dict[str, Any]] = cassette["turns"]
        self.recorded = RecordedTurns(KeyHandles.listed(cassette.get("keys", []), self.turns), redactor)
        self.steps = list(self._cut())

    def _cut(self) -> Iterator[Step]:
        """The requests, each with the one before it. Raises `NoCassette`."""
        steps: list[Step] = []
        number = 0
        while number < len(self.turns):
            first, end = self.turns[number], number
            while not _ends(self.turns[end]) and "answered" in self.turns[end] and end + 1 < len(self.turns):
                end += 1
            is_cut = not _ends(self.turns[end]) and "answered" in self.turns[end]
            if is_cut or "sent" not in first or "method" not in first:
                raise NoCassette(f"{self.name} ends in the middle of a call; record it again")
            pushed = range(number, end if _ends(self.turns[end]) else end + 1)
            step = Step(self, number, pushed, end, self._before(first, steps))
            steps.append(step)
            yield step
            number = end + 1

    def _before(self, turn: Mapping[str, Any], steps: Sequence[Step]) -> Step | None:
        state = turn["sent"].get("requestState")
        last = steps[-1] if steps and "asking" in steps[-1].response else None
        if state is None or state == ALTERED:
            return last if last is not None and "answered" in last.response else None
        return next((step for step in reversed(steps) if step.response.get("state") == state), None)


def _ends(turn: Mapping[str, Any]) -> bool:
    return any(name in turn for name in ("asking", "result", "error"))


def load_tapes(paths: Sequence[Path]) -> list[Tape]:
    """Return the cassettes of files and folders. Raises `NoCassette`."""
    files: list[Path] = []
    for path in paths:
        found = sorted(path.glob("*.json")) if path.is_dir() else [path]
        if not found:
            raise NoCassette(f"there are no cassettes (*.json) in the folder {path}")
        files += found
    return [_load(path) for path in {path.resolve(): path for path in files}.values()]


def _load(path: Path) -> Tape:
    if not path.is_file():
        raise NoCassette(f"there is no cassette {path}")
    try:
        cassette = read_cassette(path, advice="bespeak test SUITE --cassettes FOLDER --record once writes some")
    except StaleCassette as error:
        raise NoCassette(str(error)) from None
    text = path.read_text(encoding="utf-8")
    secrets = {name: os.environ[name] for name in _VARIABLE.findall(text) if name in os.environ}
    return Tape(path.name, cassette, Redactor(secrets=secrets))
