"""The format of cassettes: the turns of a conversation, how each part is written, and how two are compared."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal, cast

from mcp_types import SERVER_INFO_META_KEY
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from bespeak.conversation.input_required import ADDED
from bespeak.conversation.json_values import as_object
from bespeak.conversation.matchers import ABSENT, Difference, equal_to, join
from bespeak.conversation.responses import Verdict, is_secret, read_envelope
from bespeak.protocol.versions import SPOKEN
from bespeak.testing.cassettes.key_handles import is_handle
from bespeak.testing.cassettes.question_order import by_id, place_of
from bespeak.testing.redaction.question_texts import without_found
from bespeak.testing.redaction.redactor import Redactor
from bespeak.testing.value_paths import parse_path

FORMAT = 1
ALTERED = {"$state": "altered"}
"""Stands for a state that the server did not issue."""
ANEW = "if that is right, record it again with --record new"
AFRESH = "if that is right, record it again with --record rewrite"


Place = tuple[str, Any, Any]
"""A path in a cassette, with what was recorded there and what there is now."""


class StaleCassette(Exception):
    """A cassette is missing, or differs from what happens. The message says where."""

    def __init__(
        self,
        message: str,
        path: str | None = None,
        expected: Any = ABSENT,
        actual: Any = ABSENT,
        places: Sequence[Place] = (),
    ) -> None:
        self.path, self.expected, self.actual = path, expected, actual
        self.places = places
        """All values that differ, if more than the first is known."""
        super().__init__(message)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _State(_Strict):
    number: int | Literal["altered"] = Field(alias="$state")


class _Asked(_Strict):
    """A question and its key."""

    key: str
    request: dict[str, Any]


class _Heard(_Strict):
    method: str
    params: Any


class Turn(_Strict):
    """One request, with the questions and answers; the last turn has the result."""

    method: str | None = None
    sent: dict[str, Any] | None = None
    """The params without the answers, which are in the turn that asked. Absent for a pushed question."""
    notifications: list[_Heard] = []
    asked: list[_Asked] | None = None
    """Questions in the MCP format."""
    listed: list[Any] | None = None
    """Questions in the compatibility dialect."""
    state: _State | None = None
    asking: dict[str, Any] | None = None
    """The other keys of a result that asks."""
    answered: Any = None
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None

    @model_validator(mode="before")
    @classmethod
    def _nothing_empty(cls, written: Any) -> Any:
        members = as_object(written)
        if any(value is None and name != "answered" for name, value in members.items()):  # a hostile answer may be null
            raise ValueError("a key is null; it should be left out")
        return written

    @model_validator(mode="after")
    def _one_end(self) -> "Turn":
        ends = sum(end is not None for end in (self.asking, self.result, self.error))
        pushed = ends == 0 and self.asked is not None and self.listed is None and self.state is None
        if not pushed and ends != 1:
            raise ValueError("a turn ends in one way")
        if self.asking is None and (self.listed is not None or (self.asked is not None and not pushed)):
            raise ValueError("only a result that asks has questions")
        asked = self.asked or []
        if (
            len({one.key for one in asked}) < len(asked)
            or (pushed and not asked)
            or (asked and self.listed is not None)
        ):
            raise ValueError("these are not questions")
        return self


def is_question(request: Any) -> bool:
    """Return whether a request is a valid question."""
    read = read_envelope({"result": {"resultType": "input_required", "inputRequests": {"it": request}}})
    return read.verdict is Verdict.ASKING


def _no_bool(written: Any) -> Any:
    if isinstance(written, bool):
        raise ValueError("must be a number")
    return written


class Cassette(_Strict):
    """The content of a cassette."""

    format: Annotated[Literal[1], BeforeValidator(_no_bool)]
    revision: Literal[SPOKEN]  # pyright: ignore[reportInvalidTypeForm] - the revisions there are, listed once
    turns: list[Turn] = Field(min_length=1)
    keys: list[str] = []
    """The keys in the turns that are handles. Empty if the server's keys never change."""

    @model_validator(mode="after")
    def _handles(self) -> "Cassette":
        if len(set(self.keys)) < len(self.keys) or not all(map(is_handle, self.keys)):
            raise ValueError("these are not handles")
        return self


IN_ORDER = ("method", "sent", "notifications", "asked", "listed", "asking", "state", "result", "error", "answered")
"""The keys of a turn, in the order in which they happen."""


def first_difference(before: list[dict[str, Any]], now: list[dict[str, Any]]) -> Difference | None:
    """Return the first difference of two conversations."""
    for number in range(max(len(before), len(now))):
        path = f"turns[{number}]"
        if number >= len(before) or number >= len(now):
            old, new = (turns[number] if number < len(turns) else ABSENT for turns in (before, now))
            what = "was not recorded" if old is ABSENT else "was recorded and is missing now"
            return Difference(path, what, old, new)
        for name in IN_ORDER:
            old, new = before[number].get(name, ABSENT), now[number].get(name, ABSENT)
            found = compared(f"{path}.{name}", old, new)
            if found is not None:
                return found
    return None


def differing_places(before: list[dict[str, Any]], now: list[dict[str, Any]]) -> Iterator[Place]:
    """Yield all values that differ in two conversations. What is only in one of them is not compared."""
    for number, (old, new) in enumerate(zip(before, now, strict=False)):
        for name in IN_ORDER:
            if name in old and name in new:
                yield from differing(f"turns[{number}].{name}", old[name], new[name])


def differing(path: str, old: Any, new: Any) -> Iterator[Place]:
    """Yield the values that differ inside two values."""
    if old is ABSENT or new is ABSENT:
        return
    if isinstance(old, dict) and isinstance(new, dict):
        now = cast("dict[str, Any]", new)
        for name, value in cast("dict[str, Any]", old).items():
            if name in now:
                yield from differing(join(path, name), value, now[name])
    elif isinstance(old, list) and isinstance(new, list):
        entries = zip(cast("list[Any]", old), cast("list[Any]", new), strict=False)
        for number, (one, other) in enumerate(entries):
            yield from differing(join(path, number), one, other)
    elif equal_to(old).check(new) is not None:
        yield path, old, new


def compared(path: str, expected: Any, actual: Any) -> Difference | None:
    """Return how one part of a conversation differs from what was recorded."""
    if expected is ABSENT and actual is ABSENT:
        return None
    if expected is ABSENT:
        return Difference(path, "was never recorded", expected, actual)
    return equal_to(expected).check(actual, path)


def diverged(found: Difference, anew: str = ANEW, places: Sequence[Place] = ()) -> StaleCassette:
    """Return the error for a difference. An answer belongs to the round of its question, the first request to round 0."""
    place = re.match(r"turns\[([0-9]+)\](?:\.(asked|listed|state|asking|answered))?", found.path)
    number = int(place[1]) + (place[2] is not None) if place else 0
    message = f"diverged at round {number}: {found.path}: {found.message}; {anew}"
    return StaleCassette(message, found.path, found.expected, found.actual, places)


class _States:
    """Request states, and the numbers that replace them."""

    def __init__(self) -> None:
        self.numbers: dict[str, Any] = {}
        self.altered: set[str] = set()

    def handed_out(self, token: str) -> dict[str, Any]:
        return {"$state": self.numbers.setdefault(token, len(self.numbers) + 1)}

    def sent(self, token: Any) -> dict[str, Any]:
        if isinstance(token, str) and token in self.numbers:
            return {"$state": self.numbers[token]}
        self.altered |= {token} if isinstance(token, str) else set()
        return dict(ALTERED)


class Writing:
    """Writes each part of a turn without values that change from run to run and without redacted values."""

    def __init__(self, redaction: Redactor) -> None:
        self._given = redaction
        self._asking = [path for path in redaction.paths if parse_path(path)[0] == "inputRequests"]
        """The redacted paths inside questions. Paths such as `*` do not apply: without its parts, it is not a question."""
        self._said = ""
        self._made: dict[tuple[tuple[str, ...], bool, str, int, int], Redactor] = {}
        self.states = _States()

    def _redact(self, value: Any) -> Any:
        """Redact a value of the server, which may contain request states."""
        return self._without(self._given.paths).apply(value)

    def _without(self, paths: Sequence[str], *, patterns: bool = True) -> Redactor:
        """The redactor for the current tokens. It is cached because tokens can be long and questions many."""
        key = (tuple(paths), patterns, self._said, len(self.states.numbers), len(self.states.altered))
        if key not in self._made:
            found = self._given.patterns if patterns else ()
            self._made[key] = replace(self._given, paths=paths, tokens=self._tokens(), patterns=found)
        return self._made[key]

    def _tokens(self) -> list[str]:
        handed_out = filter(is_secret, self.states.numbers)
        return [one for one in (*handed_out, *self.states.altered) if one not in self._said]

    def sent(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the params of a request without the answers, which are in the turn that asked."""
        said = {name: one for name, one in params.items() if name not in ADDED}
        self._said = json.dumps(said, ensure_ascii=False)
        told = self._given.apply(said)
        if "requestState" in params:
            told["requestState"] = self.states.sent(params["requestState"])
        return told

    def answered(self, responses: Any) -> Any:
        (told,) = self._given.apply({"inputResponses": responses}).values()
        return by_id(cast("list[Any]", told)) if isinstance(told, list) else told

    def heard(self, notifications: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [
            {
                "method": self._without(()).text(one["method"]),
                "params": _inner(self._without(self._given.paths), {"params": _same_every_time(one)["params"]}, 1),
            }
            for one in notifications
        ]

    def asked(self, requests: Mapping[str, Any]) -> list[dict[str, Any]]:
        asked = [
            {"key": self._without(()).text(key), "request": self._question(key, _same_every_time(one))}
            for key, one in requests.items()
        ]
        return sorted(asked, key=place_of)

    def _question(self, key: str, request: dict[str, Any]) -> dict[str, Any]:
        """One question. The keys that a replay needs are kept, whatever is redacted."""
        if "params" not in request:
            return request
        asking = self._without(self._asking, patterns=False)
        told = {
            name: _inner(asking, {"inputRequests": {key: {"params": {name: one}}}}, 4)
            for name, one in without_found(request["params"], self._without(())).items()
        }
        return {"method": request["method"], "params": told}

    def came(self, envelope: Any) -> dict[str, Any]:
        """Return the content of a response: questions and a state, a result, or an error."""
        message = as_object(envelope)
        if "error" in message:
            return {"error": self._redact(message["error"])}
        members = dict(cast("dict[str, Any]", message.get("result")))
        if (meta := _meta(members.pop("_meta", None))) is not None:
            members["_meta"] = meta
        came: dict[str, Any] = {}
        if isinstance(members.get("requestState"), str):
            came["state"] = self.states.handed_out(members.pop("requestState"))
        read = read_envelope(message)
        if read.verdict is not Verdict.ASKING:
            return {**came, "result": {**self._redact(members), **_kept(members, self._redact(members))}}
        asked: Any = members.pop("inputRequests", None)
        if isinstance(asked, list):
            found: Any = without_found(asked, self._without(()))
            asking = self._without(self._asking, patterns=False)
            came["listed"] = by_id(_inner(asking, {"inputRequests": found}, 1))
        elif asked is not None:
            came["asked"] = self.asked(asked)
        return {**came, "asking": {**self._redact(members), **_kept(members, {})}}


def _inner(redactor: Redactor, value: dict[str, Any], levels: int) -> Any:
    """Redact a value and return the part so many levels inside it."""
    told: Any = redactor.apply(value)
    for _ in range(levels):
        if not isinstance(told, dict):
            return told
        told = next(iter(cast("dict[str, Any]", told).values()))
    return told


def _same_every_time(message: Mapping[str, Any]) -> dict[str, Any]:
    """Remove `elicitationId`, which older revisions send and which changes every time."""
    params: Any = message.get("params")
    if not isinstance(params, dict) or "elicitationId" not in params:
        return dict(message)
    rest = {name: one for name, one in cast("dict[str, Any]", params).items() if name != "elicitationId"}
    return {**message, "params": rest}


def _kept(members: Mapping[str, Any], told: Mapping[str, Any]) -> dict[str, Any]:
    """The keys that decide what kind of result it is. They are kept, whatever is redacted."""
    kept = {name: one for name, one in members.items() if name in ("resultType", "isError")}
    if "content" in told and not isinstance(told["content"], list):
        kept["content"] = [{"type": "text", "text": told["content"]}]
    return kept


def _meta(meta: Any) -> Any:
    """The `_meta` of a result, without the server's name and version."""
    if not isinstance(meta, dict):
        return meta
    return {name: one for name, one in cast("dict[str, Any]", meta).items() if name != SERVER_INFO_META_KEY} or None
