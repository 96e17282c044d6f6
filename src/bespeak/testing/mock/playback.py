"""Finds the recorded request that a client's request repeats, and says where it differs if there is none.

Several recordings may begin in the same way. A client that gets a question cannot tell which of them is played, so a state
stands for all of them, and the answers decide.
"""

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from bespeak.conversation.differences import ABSENT, Difference, shown
from bespeak.conversation.input_required import ADDED
from bespeak.protocol.capabilities import capability_names, lacking, merge, requirements
from bespeak.protocol.errors import INVALID_PARAMS, METHOD_NOT_FOUND, MISSING_REQUIRED_CLIENT_CAPABILITY, MCPError
from bespeak.terminal.safe_text import printable
from bespeak.testing.cassettes.cassette_format import ALTERED, compared, diverged
from bespeak.testing.mock.tapes import Step, Tape
from bespeak.testing.redaction.folder_paths import could_be
from bespeak.testing.redaction.redactor import REDACTED

Part = Callable[[Step], tuple[int, str, Any, Any]]
"""A part of a recorded request: the number of its turn, its name, what was recorded, and what the client sent."""
LISTED = 20
"""How many recorded targets an error lists."""
MOST_ARGUMENTS = 5
"""How many recorded arguments an error lists."""


@dataclass(frozen=True, slots=True)
class Match:
    """The recorded requests that a request repeats. They have the same response."""

    steps: Sequence[Step]

    @property
    def step(self) -> Step:
        return self.steps[0]


class Playback:
    """The tapes of a mock, and what has been played of them."""

    def __init__(self, tapes: Sequence[Tape]) -> None:
        self.tapes = tapes
        self._states: dict[str, Sequence[Step]] = {}
        """The states that were handed out, and the requests whose responses had them."""
        self._played: set[tuple[str, int]] = set()

    def steps(self, revision: str) -> list[Step]:
        """Return the requests that were recorded at a revision."""
        return [step for tape in self.tapes if tape.revision == revision for step in tape.steps]

    def find(self, revision: str, method: str, params: Mapping[str, Any]) -> Match:
        """Return what a request repeats. Raises `MCPError` that says where it differs from what was recorded."""
        steps = self.steps(revision)
        if not any(step.method == method for step in steps):
            raise MCPError(METHOD_NOT_FOUND, f"never recorded: {printable(method)}; {_recorded(steps)}")
        sent = {name: value for name, value in params.items() if name not in (*ADDED, "_meta")}
        same = [step for step in self._candidates(steps, params) if step.method == method and _target(step.sent, sent)]
        if not same:
            raise MCPError(INVALID_PARAMS, f"never recorded: {_words(method, sent)}; {_recorded(steps)}")
        same = _agreeing(same, lambda step: (step.number, "sent", step.sent, sent), _arguments(same))
        if "inputResponses" in params or any(step.before is not None for step in same):
            given = params.get("inputResponses", ABSENT)
            same = _agreeing(same, lambda step: _answered(step, given))
        return Match(self._next(same))

    def hand_out(self, match: Match) -> str:
        """Return a new state for the requests that may follow."""
        token = secrets.token_urlsafe(24)
        self._states[token] = match.steps
        return token

    def _candidates(self, steps: Sequence[Step], params: Mapping[str, Any]) -> list[Step]:
        """The recorded requests that may come at this point of a call. Raises `MCPError`."""
        state = params.get("requestState")
        if state is None and "inputResponses" not in params:
            return [step for step in steps if step.before is None]
        if state is None:
            found = [step for step in steps if step.before is not None and step.state is None]
            if not found:
                raise MCPError(
                    INVALID_PARAMS, "diverged: the answers came without the requestState of the round they belong to"
                )
            return found
        if not isinstance(state, str) or state not in self._states:
            found = [step for step in steps if step.state == ALTERED]
            if not found:
                raise MCPError(INVALID_PARAMS, "diverged: the requestState is not one that this mock has handed out")
            return found
        asked = self._states[state]
        found = [step for step in steps if step.before in asked and step.state not in (None, ALTERED)]
        if not found:
            raise MCPError(INVALID_PARAMS, f"never recorded: nothing follows the questions in {asked[0].tape.name}")
        return found

    def _next(self, steps: Sequence[Step]) -> list[Step]:
        """The first that has not been played, or else the last, with all that a client cannot tell from it."""
        chosen = next((step for step in steps if (step.tape.name, step.number) not in self._played), steps[-1])
        self._played.add((chosen.tape.name, chosen.number))
        return [chosen, *(step for step in steps if step is not chosen and step.looks_like(chosen))]


def check_declared(questions: Iterable[Mapping[str, Any]], declared: Mapping[str, Any]) -> None:
    """Raises `MCPError` if a client has not declared what the recorded questions need."""
    needed: dict[str, Any] = {}
    for question in questions:
        merge(needed, requirements(question["method"], question.get("params", {})))
    missing = lacking(needed, declared)
    if missing:
        names = ", ".join(capability_names(missing))
        raise MCPError(
            MISSING_REQUIRED_CLIENT_CAPABILITY,
            f"the recorded server asks here; the client must declare {names}",
            {"requiredCapabilities": missing},
        )


def check_pushed_answer(steps: Sequence[Step], place: int, key: str, answer: Any) -> list[Step]:
    """Return the recordings in which a pushed question was answered like this. `place` counts the questions. Raises `MCPError`."""
    return _agreeing(steps, lambda step: (step.pushed[place], "answered", _pushed(step, place), {key: answer}))


def _pushed(step: Step, place: int) -> Any:
    return step.tape.turns[step.pushed[place]].get("answered", ABSENT)


def _answered(step: Step, given: Any) -> tuple[int, str, Any, Any]:
    before = step.before
    if before is None:
        return step.number, "answered", ABSENT, given
    return before.end, "answered", before.response.get("answered", ABSENT), given


def _agreeing(steps: Sequence[Step], parts: Part, recorded_too: str = "") -> list[Step]:
    """The steps in which a part is as recorded. Raises `MCPError` with the first difference if there are none."""
    found: list[Step] = []
    first: tuple[Step, Difference] | None = None
    for step in steps:
        number, name, recorded, given = parts(step)
        stored = given if given is ABSENT else _hidden(recorded, step.tape.recorded.stored(given))
        difference = compared(f"turns[{number}].{name}", step.tape.recorded.restored(recorded), stored)
        if difference is None:
            found.append(step)
        elif first is None:
            first = step, difference
    if found or first is None:
        return found
    step, difference = first
    error = diverged(difference, f"see {step.tape.name}{recorded_too}")
    data = {"cassette": step.tape.name, "path": error.path}
    data |= {} if error.expected is ABSENT else {"expected": error.expected}
    data |= {} if error.actual is ABSENT else {"actual": error.actual}
    raise MCPError(INVALID_PARAMS, str(error), data)


def _hidden(recorded: Any, given: Any) -> Any:
    """What a client sent, without what was redacted in the recording, and without folders: they may be anything."""
    if recorded == REDACTED or (isinstance(recorded, str) and isinstance(given, str) and could_be(recorded, given)):
        return recorded
    if isinstance(recorded, dict) and isinstance(given, dict):
        known = cast("dict[str, Any]", recorded)
        return {name: _hidden(known.get(name), one) for name, one in cast("dict[str, Any]", given).items()}
    if isinstance(recorded, list) and isinstance(given, list):
        entries = cast("list[Any]", given)
        known_entries = [*cast("list[Any]", recorded), *[None] * len(entries)]
        return [_hidden(before, one) for before, one in zip(known_entries, entries, strict=False)]
    return given


def _arguments(steps: Sequence[Step]) -> str:
    """What was recorded for the target of several requests, to append to a message: as it is stored, without secrets."""
    sent = [{name: value for name, value in step.sent.items() if name not in ("name", "uri")} for step in steps]
    told = list(dict.fromkeys(shown(one["arguments"] if one.keys() == {"arguments"} else one) for one in sent))
    more = f" and {len(told) - MOST_ARGUMENTS} more" if len(told) > MOST_ARGUMENTS else ""
    return f"; recorded for {steps[0].target}: {', '.join(told[:MOST_ARGUMENTS])}{more}" if len(told) > 1 else ""


def _target(recorded: Mapping[str, Any], sent: Mapping[str, Any]) -> bool:
    return all(_hidden(recorded.get(name), sent.get(name)) == recorded.get(name) for name in ("name", "uri"))


def _words(method: str, sent: Mapping[str, Any]) -> str:
    named = sent.get("name", sent.get("uri"))
    return printable(method if named is None else f"{method} {named}")


def _recorded(steps: Sequence[Step]) -> str:
    targets = list(dict.fromkeys(step.target for step in steps))
    more = f" and {len(targets) - LISTED} more" if len(targets) > LISTED else ""
    return f"recorded are {', '.join(targets[:LISTED])}{more}" if targets else "nothing is recorded at this revision"
