"""Conversations written down, to be held again without their server, or compared with what it does today.

One file a test, with nothing in it that would be another the next time: no times, no paths, no versions, and for a
`requestState` a number (`{"$state": 1}`) in the order they were handed out. A turn is what was sent, what was asked, what
was answered, and in the end the result.
"""

import hashlib
import json
import os
import re
import secrets
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, cast

from mcp_types import SERVER_INFO_META_KEY

from bespeak.testing.connection import Connection, Line, Push, Received
from bespeak.testing.matchers import ABSENT, equal_to
from bespeak.testing.plan import Item
from bespeak.testing.redaction import Redaction
from bespeak.testing.verdicts import Question, Verdict, read_envelope

FORMAT = 1
ALTERED = {"$state": "altered"}
"""Stands for a state that was never handed out."""


class Mode(StrEnum):
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
    def named(cls, name: str) -> "Mode":
        """The mode of that name. Raises `ValueError`."""
        if name not in list(cls):
            raise ValueError(f"when to record is one of {', '.join(cls)}, not {name!r}")
        return cls(name)

    def records(self, book: "Book") -> bool:
        """Whether a conversation is to be held with the server itself."""
        return self is Mode.REWRITE or (self is not Mode.NONE and not book.path.exists())


class RecordingRefused(Exception):
    """Recording is for people, not for CI: what lands there must have been looked at."""


def check_allowed(mode: Mode) -> None:
    """Raises `RecordingRefused` where nobody looks at what is recorded."""
    if mode is not Mode.NONE and os.environ.get("CI", "").lower() not in ("", "0", "false"):
        raise RecordingRefused(f"--record {mode} is refused under CI; record at your desk, look at it, and commit it")


class StaleCassette(Exception):
    """A cassette is missing, or no longer what happens. Says where they part."""

    def __init__(self, message: str, path: str | None = None, expected: Any = ABSENT, actual: Any = ABSENT) -> None:
        self.path, self.expected, self.actual = path, expected, actual
        super().__init__(message)


class Book:
    """The cassette of one test."""

    def __init__(self, folder: Path, item: Item, redaction: Redaction) -> None:
        self.path = folder / _file_name(item)
        self._redaction = redaction
        self._recorder: Recorder | None = None
        self._comparing = False

    # Writing

    def recorder(self, connection: Connection) -> "Recorder":
        """A line that writes down what goes over a connection."""
        self._recorder = Recorder(connection, self._redaction)
        return self._recorder

    def comparing(self) -> "Book":
        """This one, but what is recorded is only to be compared."""
        self._comparing = True
        return self

    def recorded(self) -> dict[str, Any]:
        assert self._recorder is not None, "nothing is written before something was recorded"
        return {"format": FORMAT, "revision": self._recorder.version, "turns": self._recorder.turns}

    def write(self) -> None:
        """Keep what was recorded."""
        if self._comparing:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(self.recorded(), indent=2, sort_keys=True, ensure_ascii=False)
        beside = self.path.with_name(f"{self.path.name}.{os.getpid()}.part")
        beside.write_text(f"{text}\n", encoding="utf-8")
        beside.replace(self.path)

    # Reading

    def read(self) -> dict[str, Any]:
        """What was recorded. Raises `StaleCassette` if there is nothing, or it cannot be read."""
        try:
            found: Any = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise StaleCassette(f"never recorded: there is no {self.path.name}; run with --record once") from None
        except (OSError, ValueError, RecursionError) as error:
            raise StaleCassette(f"{self.path.name} cannot be read ({error}); run with --record rewrite") from None
        if not _is_cassette(found):
            raise StaleCassette(f"{self.path.name} is no cassette of format {FORMAT}; run with --record rewrite")
        return cast("dict[str, Any]", found)

    def player(self) -> "Player":
        """A line that plays the server's part. Raises `StaleCassette`."""
        return Player(self.read(), self._redaction)

    def difference(self, before: Mapping[str, Any]) -> StaleCassette | None:
        """Where what was recorded now parts from what was recorded before."""
        now = json.loads(json.dumps(self.recorded()))
        found = equal_to(before["turns"]).check(now["turns"], "turns")
        if found is None:
            found = equal_to(before["revision"]).check(now["revision"], "revision")
        if found is None:
            return None
        number = re.match(r"turns\[([0-9]+)\]", found.path)
        where = f"diverged at round {int(number[1]) if number else 0}"
        return StaleCassette(f"{where}: {found.path}: {found.message}", found.path, found.expected, found.actual)


def _is_cassette(found: Any) -> bool:
    if not isinstance(found, dict):
        return False
    members = cast("dict[str, Any]", found)
    turns: Any = members.get("turns")
    return (
        members.get("format") == FORMAT
        and isinstance(members.get("revision"), str)
        and isinstance(turns, list)
        and all(isinstance(turn, dict) for turn in cast("list[Any]", turns))
    )


def _file_name(item: Item) -> str:
    """A name that every file system takes, and that no other test has."""
    title = f"{item.suite.path.name.removesuffix('.bespeak.yaml')} {item.title}"
    slug = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:100]
    return f"{slug}.{hashlib.sha256(title.encode()).hexdigest()[:8]}.json"


class _States:
    """Tokens, and the numbers that stand for them."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def handed_out(self, token: str) -> dict[str, int]:
        return {"$state": self._numbers.setdefault(token, len(self._numbers) + 1)}

    def know(self, token: str, number: int) -> None:
        self._numbers[token] = number

    def sent(self, token: Any) -> dict[str, Any]:
        known = isinstance(token, str) and token in self._numbers
        return {"$state": self._numbers[token]} if known else dict(ALTERED)


class Recorder:
    """Writes down what goes over a connection."""

    def __init__(self, connection: Connection, redaction: Redaction) -> None:
        self._connection = connection
        self._redaction = redaction
        self._states = _States()
        self._heard = 0
        self.turns: list[dict[str, Any]] = []

    @property
    def version(self) -> str:
        return self._connection.version

    async def send(self, method: str, params: dict[str, Any], push: Push) -> Received:
        if self.turns and "inputResponses" in params:
            self.turns[-1]["answered"] = _answered(params, self._redaction)
        turn = {"method": method, "sent": _sent(params, self._states, self._redaction)}
        self._heard = 0

        async def pushed(question: Question) -> Any:
            nonlocal turn
            answer = await push(question)
            asked = {question.key: question.as_json()}
            self._close(turn, self._connection.notifications)
            turn |= {"asked": self._redaction.apply({"inputRequests": asked})["inputRequests"]}
            turn["answered"] = self._redaction.apply({"inputResponses": {question.key: answer}})["inputResponses"]
            turn = {}
            return answer

        received = await self._connection.send(method, params, pushed)
        self._close(turn, received.notifications)
        turn |= _came(received.envelope, self._states, self._redaction)
        return received

    def _close(self, turn: dict[str, Any], notifications: list[dict[str, Any]]) -> None:
        """A turn is over: it has the notifications that came in it."""
        heard = notifications[self._heard :]
        self._heard = len(notifications)
        if heard:
            turn["notifications"] = self._redaction.apply(heard)
        self.turns.append(turn)


def _sent(params: Mapping[str, Any], states: _States, redaction: Redaction) -> dict[str, Any]:
    """What was sent, without the answers: those stand in the turn that asked for them."""
    told = redaction.apply(
        {name: value for name, value in params.items() if name not in ("inputResponses", "requestState")}
    )
    if "requestState" in params:
        told["requestState"] = states.sent(params["requestState"])
    return told


def _answered(params: Mapping[str, Any], redaction: Redaction) -> Any:
    return redaction.apply({"inputResponses": params["inputResponses"]})["inputResponses"]


def _came(envelope: Any, states: _States, redaction: Redaction) -> dict[str, Any]:
    """What a response brought: questions and a state, a result, or an error."""
    message = cast("dict[str, Any]", envelope) if isinstance(envelope, dict) else {}
    if "error" in message:
        return {"error": redaction.apply(message["error"])}
    result: Any = message.get("result")
    if not isinstance(result, dict):
        return {"result": redaction.apply(result)}
    members = {name: value for name, value in cast("dict[str, Any]", result).items() if name != "_meta"}
    if (meta := _meta(cast("dict[str, Any]", result).get("_meta"))) is not None:
        members["_meta"] = meta
    if read_envelope(message).verdict is not Verdict.ASKING:
        return {"result": redaction.apply(members)}
    came: dict[str, Any] = {}
    if "inputRequests" in members:
        came["asked"] = redaction.apply({"inputRequests": members.pop("inputRequests")})["inputRequests"]
    if "requestState" in members:
        came["state"] = states.handed_out(members.pop("requestState"))
    return {**came, "asking": redaction.apply(members)}


def _meta(meta: Any) -> Any:
    """What a result says beside its content, without the server's version."""
    if not isinstance(meta, dict):
        return meta
    return {name: value for name, value in cast("dict[str, Any]", meta).items() if name != SERVER_INFO_META_KEY} or None


class Player:
    """Plays the server's part of a conversation that was recorded, and demands the client's part of it."""

    def __init__(self, cassette: Mapping[str, Any], redaction: Redaction) -> None:
        self._version: str = cassette["revision"]
        self._turns: list[dict[str, Any]] = cassette["turns"]
        self._redaction = redaction
        self._next = 0
        self._states = _States()
        self._tokens: dict[Any, str] = {}

    @property
    def version(self) -> str:
        return self._version

    async def send(self, method: str, params: dict[str, Any], push: Push) -> Received:
        if self._next > 0 and "inputResponses" in params:
            answered = _answered(params, self._redaction)
            self._same("answered", self._turns[self._next - 1].get("answered", ABSENT), answered, self._next - 1)
        if self._next >= len(self._turns):
            raise StaleCassette(f"never recorded: the cassette has {len(self._turns)} turns, and one more was sent")
        self._same("method", self._turns[self._next].get("method", ABSENT), method, self._next)
        sent = _sent(params, self._states, self._redaction)
        self._same("sent", self._turns[self._next].get("sent", ABSENT), sent, self._next)
        notifications: list[dict[str, Any]] = []
        while True:
            number, turn = self._next, self._turns[self._next]
            self._next += 1
            notifications += turn.get("notifications", [])
            if "asking" in turn or "result" in turn or "error" in turn:
                return Received(self._envelope(turn), notifications)
            await self._push(number, turn, push)
            if self._next >= len(self._turns):
                raise StaleCassette("the cassette ends in mid-call; run with --record rewrite")

    async def _push(self, number: int, turn: Mapping[str, Any], push: Push) -> None:
        asked: Any = turn.get("asked")
        if not isinstance(asked, dict):
            raise StaleCassette("the cassette has a turn in which nothing happens; run with --record rewrite")
        for key, one in cast("dict[str, Any]", asked).items():
            answer = await push(Question(key, one["method"], one.get("params", {})))
            told = self._redaction.apply({"inputResponses": {key: answer}})["inputResponses"]
            self._same("answered", turn.get("answered", ABSENT), told, number)

    def _same(self, name: str, expected: Any, actual: Any, number: int) -> None:
        found = equal_to(expected).check(actual, f"turns[{number}].{name}") if expected is not ABSENT else None
        if expected is ABSENT and actual is not ABSENT:
            path = f"turns[{number}].{name}"
            raise StaleCassette(f"diverged at round {number}: {path}: was never recorded", path, ABSENT, actual)
        if found is not None:
            message = f"diverged at round {number}: {found.path}: {found.message}"
            raise StaleCassette(message, found.path, found.expected, found.actual)

    def _envelope(self, turn: Mapping[str, Any]) -> dict[str, Any]:
        """The response of a turn, with a token of our own for each state."""
        if "error" in turn:
            return {"jsonrpc": "2.0", "id": 1, "error": turn["error"]}
        if "result" in turn:
            return {"jsonrpc": "2.0", "id": 1, "result": turn["result"]}
        result: dict[str, Any] = dict(turn["asking"])
        if "asked" in turn:
            result["inputRequests"] = turn["asked"]
        if "state" in turn:
            number: Any = turn["state"].get("$state")
            token = self._tokens.setdefault(number, secrets.token_urlsafe(24))
            self._states.know(token, number)
            result["requestState"] = token
        return {"jsonrpc": "2.0", "id": 1, "result": result}

    def check_played(self) -> None:
        """Raises `StaleCassette` if there is more in the cassette than was said."""
        left = len(self._turns) - self._next
        if left:
            raise StaleCassette(f"{left} of {len(self._turns)} recorded turns were never played")


__all__ = ["Book", "Line", "Mode", "Player", "Recorder", "RecordingRefused", "StaleCassette", "check_allowed"]
