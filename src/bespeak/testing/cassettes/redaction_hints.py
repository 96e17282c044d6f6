"""What to redact if a conversation differs from its recording: all places at once, or patterns for lines that differ."""

import json
import re
from collections.abc import Iterator, Sequence

from bespeak.conversation.differences import ABSENT
from bespeak.testing.cassettes.cassette_format import Place, StaleCassette
from bespeak.testing.redaction.redactor import REDACTED

MOST_LISTED = 10
"""How many places and patterns a hint lists."""
SHORTEST_PREFIX = 4
"""A pattern that begins with less would also be found where it is not meant."""
_PART = re.compile(r"turns\[[0-9]+\]\.(\w+)[.[]")
_NAMED = ("sent", "result", "error", "asking")
"""The parts of a turn in which a path of `redact` is the path in that part."""
_KEPT = ("isError", "resultType")
"""Members that are written whatever is redacted."""
_SPECIAL = re.compile(r"[\\.^$*+?{}\[\]|()]")
_WORD = re.compile(r"[\w.+-]*\Z")
_PLACEHOLDERS = (REDACTED, "${env:", "[suiteFolder]", "[serverFolder]", "[requestState]")


def redaction_hint(error: StaleCassette, places: Sequence[Place] = ()) -> str | None:
    """Return how to leave out values that differ from what was recorded. `places` are all of them, without secrets."""
    if error.path is None or error.expected is ABSENT or error.actual is ABSENT:
        return None
    part = _PART.match(error.path)
    if part is None or error.path[part.end() :] in _KEPT:
        return None
    if part[1] not in _NAMED:
        return "if this value is different every time, list it in redact, and record again"
    found = [*dict.fromkeys(_redactions(places or [(error.path, error.expected, error.actual)]))]
    if not found:
        return None
    if len(found) == 1 and not found[0].startswith("pattern: "):
        return f"if this value is different every time, list it in redact: {found[0]}, and record again"
    more = len(found) - MOST_LISTED
    lines = [f"    - {one}" for one in found[:MOST_LISTED]] + ([f"    # and {more} more"] if more > 0 else [])
    what = "this is" if len(found) == 1 else "these values are"
    listed = "list it" if len(found) == 1 else "list them"
    return "\n".join([f"if {what} different every time, {listed} in redact, and record again:", "  redact:", *lines])


def _redactions(places: Sequence[Place]) -> Iterator[str]:
    """The entries of `redact` that leave out what differs, as they are written."""
    for path, before, now in places:
        part = _PART.match(path)
        if part is None or part[1] not in _NAMED or path[part.end() :] in _KEPT:
            continue
        patterns = _patterns(before, now)
        if patterns:
            yield from (f"pattern: {_quoted(one)}" for one in patterns)
        else:
            yield _as_yaml(path[part.end() :])


def _patterns(before: object, now: object) -> list[str]:
    """Patterns for the lines that differ between two texts; none if some line has nothing to recognise it by."""
    if not isinstance(before, str) or not isinstance(now, str):
        return []
    old, new = before.splitlines(), now.splitlines()
    differing = [(one, other) for one, other in zip(old, new, strict=False) if one != other]
    if len(old) != len(new) or not differing or len(differing) == len(old):
        return []
    found = [_pattern(one, other) for one, other in differing]
    return [] if None in found else [one for one in found if one is not None]


def _pattern(one: str, other: str) -> str | None:
    """A pattern for two lines that begin alike, up to the word in which they differ."""
    same = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    prefix = _WORD.sub("", one[:same]).lstrip()
    has_placeholder = any(mark in prefix for mark in _PLACEHOLDERS)
    if len(prefix.strip()) < SHORTEST_PREFIX or has_placeholder or not prefix.isprintable():
        return None
    escaped = _SPECIAL.sub(lambda found: f"\\{found[0]}", prefix)
    return f"{escaped}.+" if len(prefix) < min(len(one.lstrip()), len(other.lstrip())) else None


def _quoted(text: str) -> str:
    """A text in single quotes, as YAML reads it: without escapes."""
    return "'{}'".format(text.replace("'", "''"))


def _as_yaml(path: str) -> str:
    return path if re.fullmatch(r'[\w.\[\]"~-]+', path) and path[0].isalpha() else json.dumps(path)
