"""Requests that are wrong somewhere: valid ones, changed by a seeded generator."""

import copy
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

Path = tuple[Any, ...]

_EMPTY: dict[str, Any] = {}
_LISTS: list[list[Any]] = [[], [None], [[[]]], [1, "a", _EMPTY]]
_OBJECTS: list[dict[str, Any]] = [
    *(
        _EMPTY,
        {"": None},
        {"a": {"b": [_EMPTY]}},
        {"form": 1},
        {"action": "decline"},
        {"action": 7},
        {"roots": [_EMPTY]},
    ),
    *({"action": "accept", "content": [1]}, {"width": "wide"}, {"width": -1, "tags": 5}),
]
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 1.5, -0.0, 1e308, 2**63, 10**30, -(10**400), "", " ", "\0", "é\u2028😀", "x" * 3000),
    *(
        "NaN",
        "Infinity",
        "1e999",
        "2026-07-28",
        "2025-03-26",
        "1900-01-01",
        "../../etc/passwd",
        "%2e%2e%2fetc",
        "%zz%ff",
    ),
    *("{", "[1, 2", '{"width": 1}', "=?base64?!?=", "ref/prompt", "ref/resource", "shop://hours", "files://a/%2e%2e/b"),
    *_LISTS,
    *_OBJECTS,
)
KEYS = (
    "",
    "x",
    "_meta",
    "name",
    "uri",
    "arguments",
    "approved",
    "size",
    "account",
    "requestState",
    "id",
    "method",
    "\0",
)
METHODS = (
    *("tools/call", "tools/list", "prompts/get", "resources/read", "completion/complete", "server/discover", "ping"),
    *("initialize", "logging/setLevel", "resources/subscribe", "subscriptions/listen", "tasks/get", "tools/CALL", "x"),
    *(
        "notifications/cancelled",
        "elicitation/create",
        "sampling/createMessage",
        "roots/list",
        "__init__",
        "rpc.discover",
    ),
)
_MARK = "a value that only raw JSON has"
_NOT_AS_VALUES: tuple[bytes, ...] = (
    *(
        b"NaN",
        b"-Infinity",
        b"1e999",
        b"01",
        b"+1",
        b".5",
        b'"\\ud800"',
        b'"\\udc00\\ud800"',
        b'"\\x41"',
        b"'a'",
        b"\\",
    ),
    *(b'"\x01"', b'"\xff\xfe"', b'"\xc0\xaf"', b'"\xed\xa0\x80"', b"undefined", b"/**/1", b"", b"9" * 5000, b"-" * 9),
    *(b"[" * 150 + b"]" * 150, b"[" * 5000 + b"]" * 5000, b'{"a":' * 180 + b"1" + b"}" * 180, b'{"a":1,"a":2}', b"1,"),
)


@dataclass(frozen=True)
class Seed:
    """A valid request, and the revision at which it is sent."""

    version: str
    message: Any
    headers: dict[str, str] = field(default_factory=dict[str, str])
    """More than the routing headers."""


@dataclass(frozen=True)
class Mutant:
    """What is sent instead."""

    seed: Seed
    message: Any
    """As it can be read; for the routing headers."""
    body: bytes


def mutants(seeds: list[Seed], random_: random.Random, count: int) -> Iterator[Mutant]:
    """Yield that many wrong requests; each seed is used as often as any other."""
    for number in range(count):
        seed = seeds[number % len(seeds)]
        message = copy.deepcopy(seed.message)
        for _ in range(random_.choice((1, 1, 1, 1, 2))):
            message = _changed(message, random_)
        yield Mutant(seed, message, _written(message, random_))


def _paths(value: Any, path: Path = ()) -> list[Path]:
    inner: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        inner = list(cast("dict[str, Any]", value).items())
    elif isinstance(value, list):
        inner = list(enumerate(cast("list[Any]", value)))
    return [path, *(deeper for key, one in inner for deeper in _paths(one, (*path, key)))]


def _at(value: Any, path: Path) -> Any:
    for step in path:
        value = value[step]
    return value


def _changed(message: Any, random_: random.Random) -> Any:
    """A message with one change, mostly in its parameters."""
    paths = _paths(message)
    deep = [path for path in paths if len(path) > 1 and "_meta" not in path]
    path = random_.choice(deep if deep and random_.random() < 0.7 else paths)
    if not path:
        return random_.choice((message, [message], [message, message], random_.choice(VALUES)))
    above, key = _at(message, path[:-1]), path[-1]
    change = random_.randrange(9)
    if change == 0:
        del above[key]
    elif change == 1 and isinstance(above[key], dict):
        above[key][random_.choice(KEYS)] = copy.deepcopy(random_.choice(VALUES))
    elif change in (2, 3) and isinstance(above[key], str):
        above[key] = _other_text(above[key], random_)
    elif change == 4:
        above[key] = copy.deepcopy(_at(message, random_.choice(paths[1:])))
    elif change == 5:
        above[key] = _MARK
    elif key == "method":
        above[key] = random_.choice(METHODS)
    else:
        above[key] = copy.deepcopy(random_.choice(VALUES))
    return message


def _other_text(text: str, random_: random.Random) -> str:
    at = random_.randrange(len(text) + 1)
    piece = random_.choice(("", "%", "%00", "%2e%2e%2f", "/", "\n", "é", "A", "\\", "{", "../", text[:at]))
    return text[:at] + piece + text[at + random_.randrange(3) :]


def _written(message: Any, random_: random.Random) -> bytes:
    raw = json.dumps(message, ensure_ascii=random_.random() < 0.5).encode()
    raw = raw.replace(json.dumps(_MARK).encode(), random_.choice(_NOT_AS_VALUES))
    damage = random_.randrange(100)
    if damage == 0:
        return raw[: random_.randrange(len(raw))]
    if damage == 1:
        return raw.decode(errors="replace").encode(random_.choice(("utf-16", "utf-32-be", "utf-8-sig", "utf-7")))
    if damage == 2:
        return raw + random_.choice((b"}", b"\0", b" []", raw))
    if damage == 3:
        at = random_.randrange(len(raw))
        return raw[:at] + bytes([random_.randrange(256)]) + raw[at + 1 :]
    return raw
