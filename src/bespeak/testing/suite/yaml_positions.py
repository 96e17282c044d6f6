"""YAML with positions: plain values, and the line each of them was written on.

Only the core schema of YAML 1.2 is supported, so `2025-11-25` and `yes` are strings. Surprising features are errors with a
line: duplicate keys, keys that are not strings, tags, merge keys.

It reads the parser's events, because composed nodes do not record where an alias is or whether a tag was written. Tags never
create objects: all values are plain.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any, cast

from bespeak.testing.suite.yaml_indentation import misfit, too_deep
from bespeak.transports.interfaces import MissingExtra

MOST_VALUES = 100_000
"""The maximum number of values, including those that aliases repeat: ten lines of aliases can mean billions."""
DEEPEST = 100
"""How deep lists and maps may be nested."""

Path = tuple[str | int, ...]

_NULLS = ("", "~", "null", "Null", "NULL")
_BOOLS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_WHOLE = re.compile(r"[-+]?[0-9]+")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_REAL = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NO_NUMBER = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_SURROGATE = re.compile("[\ud800-\udfff]")
_NO_DIRECTIVES = "directives are not supported; remove the lines %YAML and %TAG"
_NO_MAP_HERE = "mapping values are not allowed here"
_HINTS = {
    _NO_MAP_HERE: 'quote text that contains ": "',
    r"found character '\t' that cannot start any token": "indent with spaces, not with tabs",
    "that cannot start any token": "quote text that starts with it",
}


class YamlError(Exception):
    """The YAML cannot be read. Lines and columns count from 1."""

    def __init__(self, message: str, line: int, column: int = 1) -> None:
        super().__init__(f"line {line}, column {column}: {message}")
        self.message = message
        self.line = line
        self.column = column


@dataclass(frozen=True, slots=True)
class YamlValue:
    """One value and its line. The value of a map's key has the line of the key."""

    line: int
    content: str | int | float | bool | tuple["YamlValue", ...] | Mapping[str, "YamlValue"] | None
    size: int = field(init=False)
    """The number of values in it: itself, all values inside it, and their keys."""
    height: int = field(init=False)
    """How deep lists and maps are nested in it."""

    def __post_init__(self) -> None:
        inner = self.inner()
        keys = len(self.content) if isinstance(self.content, Mapping) else 0
        object.__setattr__(self, "size", 1 + keys + sum(node.size for node in inner))
        nests = isinstance(self.content, (tuple, Mapping))
        object.__setattr__(self, "height", nests + max((node.height for node in inner), default=0))

    def inner(self) -> tuple["YamlValue", ...]:
        """Return the values directly inside it."""
        if isinstance(self.content, Mapping):
            return tuple(self.content.values())
        return self.content if isinstance(self.content, tuple) else ()

    def at(self, step: str | int) -> "YamlValue | None":
        """Return the value at a key or index."""
        if isinstance(self.content, Mapping):
            return self.content.get(step) if isinstance(step, str) else None
        if isinstance(self.content, tuple) and isinstance(step, int) and 0 <= step < len(self.content):
            return self.content[step]
        return None

    def plain(self) -> Any:
        """Return the value as plain Python. Values that aliases repeat are copied."""
        if isinstance(self.content, Mapping):
            return {key: node.plain() for key, node in self.content.items()}
        if isinstance(self.content, tuple):
            return [node.plain() for node in self.content]
        return self.content


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """A parsed document: its value, and the lines of its parts."""

    root: YamlValue
    value: Any

    def line(self, path: Path = ()) -> int:
        """Return the line of the value at a path, or of the nearest value around it."""
        found = self.root
        for step in path:
            below = found.at(step)
            if below is None:
                break
            found = below
        return found.line


def read_yaml(text: str) -> YamlDocument:
    """Parse a text with one document. Raises `YamlError`, and `MissingExtra` if ruamel.yaml is not installed."""
    try:
        from ruamel.yaml import YAML, error, events
    except ImportError:
        raise MissingExtra("loading suites needs ruamel.yaml: pip install 'bespeak[test]'") from None
    parser: Any = YAML(typ="safe", pure=True)
    try:
        root = _Composer(events, parser.parse(text)).document()
    except error.YAMLError as problem:
        raise _syntax(problem, text) from None
    except AssertionError:  # how the parser refuses a version it does not know
        raise YamlError(_NO_DIRECTIVES, text.partition("%YAML")[0].count("\n") + 1) from None
    return YamlDocument(root, root.plain())


def _syntax(problem: Any, text: str) -> YamlError:
    """The parser's error with its position, and a hint for common mistakes."""
    mark = getattr(problem, "problem_mark", None) or getattr(problem, "context_mark", None)
    if mark is None:  # a character that may not be in any text; such errors have a position only
        before = text[: getattr(problem, "position", 0)]
        what = f"the character {getattr(problem, 'character', 0):#06x} cannot be in a file; write it as an escape"
        return YamlError(what, before.count("\n") + 1, len(before) - before.rfind("\n"))
    said = cast("str", getattr(problem, "problem", None) or "this is not YAML")
    indented = _indentation(said, text.split("\n"), mark)
    if indented is not None:
        return YamlError(indented, mark.line + 1, mark.column + 1)
    hint = next((f" ({hint})" for sign, hint in _HINTS.items() if said.endswith(sign)), "")
    began = getattr(problem, "context_mark", None)
    context = f"{problem.context} from line {began.line + 1}: " if began and problem.context else ""
    return YamlError(f"{context}{said}{hint}", mark.line + 1, mark.column + 1)


def _indentation(said: str, lines: Sequence[str], mark: Any) -> str | None:
    """What is wrong with the indentation of a line, if that is the parser's problem."""
    if said.startswith(("expected <block end>", "expected '<document start>'")):
        return misfit(lines, mark.line + 1, mark.column)
    return too_deep(lines, mark.line + 1) if said == _NO_MAP_HERE else None


@dataclass(slots=True)
class _Anchor:
    """An anchor. Its value is known only after it has been read."""

    node: YamlValue | None = None


@dataclass(slots=True)
class _Composer:
    """Builds values from the parser's events."""

    kinds: ModuleType
    events: Iterator[Any]
    anchors: dict[str, _Anchor] = field(default_factory=dict[str, _Anchor])
    count: int = 0

    def document(self) -> YamlValue:
        """Return the only document."""
        kinds, root = self.kinds, None
        for event in self.events:
            if isinstance(event, kinds.DocumentStartEvent):
                if root is not None:
                    raise _error("the file has a second document; a suite file has one", event)
                if event.version or event.tags:
                    raise _error(_NO_DIRECTIVES, event)
                first = next(self.events)
                root = self._node(first, 0)
                if isinstance(first, kinds.ScalarEvent) and first.value == "" and first.implicit[0]:
                    raise _error("the file is empty", first)
        if root is None:
            raise YamlError("the file is empty", 1)
        return root

    def _node(self, event: Any, depth: int) -> YamlValue:
        kinds, line = self.kinds, event.start_mark.line + 1
        self._count(1, event)
        if isinstance(event, kinds.AliasEvent):
            return replace(self._repeated(event, depth), line=line)
        if event.tag is not None:
            raise _error("tags are not supported; remove the tag, and quote the value if it is text", event)
        anchor = _Anchor()
        if event.anchor is not None:
            self.anchors[event.anchor] = anchor
        if isinstance(event, kinds.ScalarEvent):
            content = _scalar(event)
        elif depth == DEEPEST:
            raise _too_deep(event)
        elif isinstance(event, kinds.SequenceStartEvent):
            content = tuple(self._node(entry, depth + 1) for entry in self._until(kinds.SequenceEndEvent))
        else:
            content = self._members(depth + 1)
        anchor.node = YamlValue(line, content)
        return anchor.node

    def _members(self, depth: int) -> dict[str, YamlValue]:
        found: dict[str, YamlValue] = {}
        for event in self._until(self.kinds.MappingEndEvent):
            key, line = self._key(event, depth), event.start_mark.line + 1
            if key in found:
                raise _error(f"the key {key!r:.80} is used twice, first on line {found[key].line}", event)
            found[key] = replace(self._node(next(self.events), depth), line=line)
        return found

    def _key(self, event: Any, depth: int) -> str:
        if isinstance(event, self.kinds.ScalarEvent) and event.value == "<<" and event.implicit[0]:
            raise _error("merge keys are not supported; write the keys out", event)
        key = self._node(event, depth).content
        if isinstance(key, (tuple, Mapping)):
            raise _error("a key must be a string, not a list or a map", event)
        if not isinstance(key, str):
            written = event.value if isinstance(event, self.kinds.ScalarEvent) else key
            raise _error(f'a key must be a string; quote it: "{written}"', event)
        return key

    def _repeated(self, event: Any, depth: int) -> YamlValue:
        """The value that an alias refers to."""
        anchor = self.anchors.get(event.anchor)
        if anchor is None:
            raise _error(f"there is no anchor &{event.anchor} above this alias", event)
        if anchor.node is None:
            raise _error(f"the alias *{event.anchor} refers to a value that contains it", event)
        if depth + anchor.node.height > DEEPEST:
            raise _too_deep(event)
        self._count(anchor.node.size - 1, event)
        return anchor.node

    def _until(self, end: type) -> Iterator[Any]:
        while not isinstance(event := next(self.events), end):
            yield event

    def _count(self, values: int, event: Any) -> None:
        self.count += values
        if self.count > MOST_VALUES:
            raise _error(f"the file has more than {MOST_VALUES:,} values, including those that aliases repeat", event)


def _scalar(event: Any) -> str | int | float | bool | None:
    written: str = event.value
    if not event.implicit[0]:
        return _text(written, event)
    if written in _NULLS:
        return None
    if written in _BOOLS:
        return _BOOLS[written]
    if _WHOLE.fullmatch(written) or _BASED.fullmatch(written):
        return _whole(written, event)
    if _NO_NUMBER.fullmatch(written):
        raise _error(f'{written} cannot be written as JSON; quote it if it is text: "{written}"', event)
    if _REAL.fullmatch(written):
        number = float(written)
        if math.isinf(number):
            raise _error("the number is too large; quote it if it is text", event)
        return number
    return _text(written, event)


def _whole(written: str, event: Any) -> int:
    """A whole number that can be written in decimal digits again: Python reads and writes no more than some thousands."""
    try:
        number = int(written, 0 if _BASED.fullmatch(written) else 10)
        str(number)
    except ValueError:
        raise _error("the number has too many digits; quote it if it is text", event) from None
    return number


def _text(written: str, event: Any) -> str:
    """Join surrogate pairs: JSON writes some characters as two escapes."""
    if not _SURROGATE.search(written):
        return written
    try:
        return written.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise _error("half of a surrogate pair is not a character; write both halves", event) from None


def _too_deep(event: Any) -> YamlError:
    return _error(f"lists and maps are nested more than {DEEPEST} deep", event)


def _error(message: str, event: Any) -> YamlError:
    mark = event.start_mark
    return YamlError(message, mark.line + 1, mark.column + 1)
