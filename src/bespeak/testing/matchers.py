"""Matchers: what a suite says a value must be, and the first place where it is not.

A plain value is equality, all the way down. A map whose keys are all operators is a matcher instead, at any depth; `equals`
is the way out where such a map is the very value that is expected. Whether something may be missing is said by `absent`
and `present` only: every other matcher wants a value to look at, or `not` would hold for any misspelt name.
"""

import json
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, StrEnum
from functools import reduce
from operator import ge, gt, le, lt
from typing import Any, Protocol, cast

from bespeak.transports.transport import MissingExtra

LONGEST_SEARCHED = 2**20
"""How much of a string `matches` looks at: there are expressions that take forever on a long one."""

Steps = tuple[str | int, ...]


class Absent(Enum):
    """Stands where there is no value at all; `null` is one."""

    ABSENT = "absent"


ABSENT = Absent.ABSENT


class InvalidMatcher(ValueError):
    """What was written is no matcher. `steps` lead to the fault, from the whole of what was written."""

    def __init__(self, message: str, steps: Steps = ()) -> None:
        super().__init__(message)
        self.steps = steps


@dataclass(frozen=True, slots=True)
class Difference:
    """The first place where a value is not as expected."""

    path: str
    """`a.b[0].c`; empty for the whole value."""
    message: str
    expected: Any
    """What was written for this place; `ABSENT` if nothing should be there."""
    actual: Any


class Snapshots(Protocol):
    """Values kept from an earlier run."""

    def check(self, name: str, actual: Any) -> Difference | None:
        """How a value differs from the one kept under that name."""
        ...


class Operator(StrEnum):
    """The keys that make a map a matcher."""

    EQUALS = "equals"
    CONTAINS = "contains"
    MATCHES = "matches"
    SCHEMA = "schema"
    ONE_OF = "oneOf"
    NOT = "not"
    ABSENT = "absent"
    PRESENT = "present"
    GT = "gt"
    LT = "lt"
    GTE = "gte"
    LTE = "lte"
    LENGTH = "length"
    EACH = "each"
    SNAPSHOT = "snapshot"


@dataclass(frozen=True, slots=True)
class Matcher(ABC):
    """Something a value can be held against."""

    written: Any

    @property
    def about_presence(self) -> bool:
        """Whether it can judge a value that is not there."""
        return False

    def check(self, actual: Any, path: str = "", snapshots: Snapshots | None = None) -> Difference | None:
        """The first difference; `None` if the value is as expected."""
        if actual is ABSENT and not self.about_presence:
            return self._differs("is not there", ABSENT, path)
        return self._check(actual, path, snapshots)

    @abstractmethod
    def _check(self, actual: Any, path: str, snapshots: Snapshots | None) -> Difference | None: ...

    def _differs(self, message: str, actual: Any, path: str) -> Difference:
        return Difference(path, message, self.written, actual)


def parse_matcher(written: Any) -> Matcher:
    """The matcher that was written. Raises `InvalidMatcher`, a `ValueError`."""
    return _parse(written, ())


def equal_to(value: Any) -> Matcher:
    """The matcher of exactly this value: nothing in it is an operator."""
    return _plain(value, (), _literally)


def join(path: str, step: str | int) -> str:
    """A path, one step further: `.name`, `[0]`, or `["any other key"]`."""
    if isinstance(step, int):
        return f"{path}[{step}]"
    if not step.isidentifier():
        return f"{path}[{json.dumps(step, ensure_ascii=not step.isprintable())}]"
    return f"{path}.{step}" if path else step


# Plain values


@dataclass(frozen=True, slots=True)
class Scalar(Matcher):
    """Null, true, false, a number or a string. `true` is not 1, and 1 is 1.0."""

    def _check(self, actual: Any, path: str, snapshots: Snapshots | None) -> Difference | None:
        either = isinstance(self.written, bool) or isinstance(actual, bool)
        same = actual is self.written if either else actual == self.written
        return None if same else self._differs(f"expected {_shown(self.written)}, got {_shown(actual)}", actual, path)


@dataclass(frozen=True, slots=True)
class Entries(Matcher):
    """A list, entry by entry."""

    entries: tuple[Matcher, ...]

    def _check(self, actual: Any, path: str, snapshots: Snapshots | None) -> Difference | None:
        if not isinstance(actual, list):
            return self._differs(f"expected a list, got {_shown(actual)}", actual, path)
        found = cast("list[Any]", actual)
        for index, entry in enumerate(self.entries):
            value = found[index] if index < len(found) else ABSENT
            if difference := entry.check(value, join(path, index), snapshots):
                return difference
        more = len(self.entries)
        if len(found) > more:
            message = f"expected {more} entries, got {len(found)}"
            return Difference(join(path, more), message, ABSENT, found[more])
        return None


@dataclass(frozen=True, slots=True)
class Members(Matcher):
    """A map, member by member."""

    members: Mapping[str, Matcher]
    exact: bool = True
    """Whether there may be no other members."""

    def _check(self, actual: Any, path: str, snapshots: Snapshots | None) -> Difference | None:
        if not isinstance(actual, dict):
            return self._differs(f"expected a map, got {_shown(actual)}", actual, path)
        found = cast("dict[str, Any]", actual)
        for key, member in self.members.items():
            if difference := member.check(found.get(key, ABSENT), join(path, key), snapshots):
                return difference
        extra = next((key for key in found if key not in self.members), None) if self.exact else None
        if extra is None:
            return None
        return Difference(join(path, extra), "is there, and was not expected", ABSENT, found[extra])


# Operators


@dataclass(frozen=True, slots=True)
class Equals(Matcher):
    """Exactly this value."""

    value: Matcher

    def _check(self, actual: Any, path: str, snapshots: Snapshots | None) -> Difference | None:
        return self.value.check(actual, path, snapshots)


@dataclass(frozen=True, slots=True)
class Contains(Matcher):
    """A string with this part, a list with such an entry, or a map with these members and maybe others."""

    part: Matcher

    def _check(self, actual: Any, path: str, snapshots: Snapshots | None) -> Difference | None:
        part = self.part.written
        if isinstance(actual, str):
            if not isinstance(part, str):
                return self._differs(f"is a string, and cannot contain {_shown(part)}", actual, path)
            holds = part in actual
        elif isinstance(actual, list):
            entries = cast("list[Any]", actual)
            holds = any(self.part.check(entry, join(path, i), snapshots) is None for i, entry in enumerate(entries))
        elif not isinstance(actual, dict):
            return self._differs(f"is {_kind(actual)}, and contains needs a string, a list or a map", actual, path)
        elif not isinstance(self.part, Members):
            return self._differs(f"is a map, and cannot contain {_shown(part)}; name its members", actual, path)
        else:
            return replace(self.part, exact=False).check(actual, path, snapshots)
        return None if holds else self._differs(f"does not contain {_shown(part)}: {_shown(actual)}", actual, path)


@dataclass(frozen=True, slots=True)
class Matches(Matcher):
    """A string in which a regular expression is found."""

    expression: re.Pattern[str]

    def _check(self, actual: Any, path: str, snapshots: Snapshots | None) -> Difference | None:
        if not isinstance(actual, str):
            return self._differs(f"is {_kind(actual)}, and matches needs a string", actual, path)
        if self.expression.search(actual[:LONGEST_SEARCHED]):
            return None
        return self._differs(f"does not match {_shown(self.expression.pattern)}: {_shown(actual)}", actual, path)


@dataclass(frozen=True, slots=True)
class Schema(Matcher):
    """A value that is valid against a JSON Schema."""

    validator: Any

    def _check(self, actual: Any, path: str, snapshots: Snapshots | None) -> Difference | None:
        from referencing.exceptions import Unresolvable

        try:
            error: Any = next(self.validator.iter_errors(actual), None)
        except Unresolvable as missing:
            message = f"the schema refers to {_shown(missing.ref)}, which is not in it; write it into its $defs"
            return self._differs(message, actual, path)
        except RecursionError:
            return self._differs("the schema refers to itself without end", actual, path)
        if error is None:
            return None
        place = reduce(join, error.absolute_path, path)
        return Difference(place, f"does not fit the schema: {_printable(error.message)}", self.written, error.instance)


@dataclass(frozen=True, slots=True)
class OneOf(Matcher):
    """A value for which any of these holds."""

    options: tuple[Matcher, ...]

    @property
    def about_presence(self) -> bool:
        return any(option.about_presence for option in self.options)

    def _check(self, actual: Any, path: str, snapshots: Snapshots | None) -> Difference | None:
        if any(option.check(actual, path, snapshots) is None for option in self.options):
            return None
        return self._differs(f"is none of the {len(self.options)} in oneOf: {_shown(actual)}", actual, path)


@dataclass(frozen=True, slots=True)
class Not(Matcher):
    """A value for which this does not hold."""

    refused: Matcher

    @property
    def about_presence(self) -> bool:
        return self.refused.about_presence

    def _check(self, actual: Any, path: str, snapshots: Snapshots | None) -> Difference | None:
        if self.refused.check(actual, path, snapshots):
            return None
        return self._differs(f"is what it must not be: {_shown(actual)}", actual, path)


@dataclass(frozen=True, slots=True)
class Presence(Matcher):
    """Whether there is a value, whatever it is."""

    wanted: bool

    @property
    def about_presence(self) -> bool:
        return True

    def _check(self, actual: Any, path: str, snapshots: Snapshots | None) -> Difference | None:
        if (actual is not ABSENT) == self.wanted:
            return None
        return self._differs("is not there" if self.wanted else f"should be absent: {_shown(actual)}", actual, path)


_BOUNDS: Mapping[Operator, tuple[Callable[[Any, Any], bool], str]] = {
    Operator.GT: (gt, "greater than"),
    Operator.GTE: (ge, "at least"),
    Operator.LT: (lt, "less than"),
    Operator.LTE: (le, "at most"),
}


@dataclass(frozen=True, slots=True)
class Bound(Matcher):
    """A number on one side of another."""

    operator: Operator
    bound: int | float

    def _check(self, actual: Any, path: str, snapshots: Snapshots | None) -> Difference | None:
        if not _is_number(actual):
            return self._differs(f"is {_kind(actual)}, and {self.operator} needs a number", actual, path)
        holds, said = _BOUNDS[self.operator]
        if holds(actual, self.bound):
            return None
        return self._differs(f"must be {said} {self.bound}, is {_shown(actual)}", actual, path)


@dataclass(frozen=True, slots=True)
class Length(Matcher):
    """A string, list or map of a length."""

    length: Matcher

    def _check(self, actual: Any, path: str, snapshots: Snapshots | None) -> Difference | None:
        if not isinstance(actual, (str, list, dict)):
            return self._differs(f"is {_kind(actual)}, and has no length", actual, path)
        difference = self.length.check(len(cast("Sequence[Any]", actual)), path, snapshots)
        return difference and self._differs(f"its length: {difference.message}", actual, path)


@dataclass(frozen=True, slots=True)
class Each(Matcher):
    """A list of nothing but such entries."""

    entry: Matcher

    def _check(self, actual: Any, path: str, snapshots: Snapshots | None) -> Difference | None:
        if not isinstance(actual, list):
            return self._differs(f"is {_kind(actual)}, and each needs a list", actual, path)
        entries = enumerate(cast("list[Any]", actual))
        return next((d for i, value in entries if (d := self.entry.check(value, join(path, i), snapshots))), None)


@dataclass(frozen=True, slots=True)
class Snapshot(Matcher):
    """The value that was kept under a name."""

    name: str

    def _check(self, actual: Any, path: str, snapshots: Snapshots | None) -> Difference | None:
        if snapshots is None:
            return self._differs("no snapshots are kept here; say what is expected", actual, path)
        difference = snapshots.check(self.name, actual)
        if difference is None or not path:
            return difference
        between = "." if difference.path and not difference.path.startswith("[") else ""
        return replace(difference, path=f"{path}{between}{difference.path}")


@dataclass(frozen=True, slots=True)
class All(Matcher):
    """A value for which all operators of one map hold."""

    parts: tuple[Matcher, ...]

    @property
    def about_presence(self) -> bool:
        return any(part.about_presence for part in self.parts)

    def _check(self, actual: Any, path: str, snapshots: Snapshots | None) -> Difference | None:
        return next((d for part in self.parts if (d := part.check(actual, path, snapshots))), None)


# Reading what was written

_Parse = Callable[[Any, Steps], Matcher]
_OPERATORS = frozenset(Operator)


def _parse(written: Any, steps: Steps) -> Matcher:
    if isinstance(written, dict):
        members = cast("dict[Any, Any]", written)
        operators = [key for key in members if key in _OPERATORS]
        if operators and len(operators) < len(members):
            other = next(key for key in members if key not in _OPERATORS)
            message = f"{operators[0]} is an operator and {_shown(other)} is not; "
            escape = "write {equals: {...}} to compare with a map that has such keys"
            raise InvalidMatcher(message + escape, (*steps, other))
        if operators:
            parts = tuple(_operator(Operator(key), members[key], (*steps, key)) for key in operators)
            return parts[0] if len(parts) == 1 else All(written, parts)
    return _plain(written, steps, _parse)


def _literally(written: Any, steps: Steps) -> Matcher:
    return _plain(written, steps, _literally)


def _plain(written: Any, steps: Steps, inner: _Parse) -> Matcher:
    if isinstance(written, list):
        entries = enumerate(cast("list[Any]", written))
        return Entries(written, tuple(inner(entry, (*steps, index)) for index, entry in entries))
    if isinstance(written, dict):
        members = cast("dict[Any, Any]", written)
        for key in members:
            if not isinstance(key, str):
                raise InvalidMatcher(f"the key {_shown(key)} must be a string; quote it", steps)
        return Members(written, {key: inner(member, (*steps, key)) for key, member in members.items()})
    if written is not None and not isinstance(written, (str, int, float)):
        raise InvalidMatcher(f"a value of JSON is needed here, not {type(written).__name__}", steps)
    if isinstance(written, float) and not math.isfinite(written):
        raise InvalidMatcher(f"{written} has no form in JSON", steps)
    return Scalar(written)


def _operator(operator: Operator, operand: Any, steps: Steps) -> Matcher:
    written = {str(operator): operand}
    match operator:
        case Operator.EQUALS:
            return Equals(written, _literally(operand, steps))
        case Operator.CONTAINS:
            part = _parse(operand, steps)
            return Contains(written, part.value if isinstance(part, Equals) else part)
        case Operator.NOT:
            return Not(written, _parse(operand, steps))
        case Operator.EACH:
            return Each(written, _parse(operand, steps))
        case Operator.ONE_OF:
            if not isinstance(operand, list) or not operand:
                raise InvalidMatcher("oneOf needs a list of what the value may be", steps)
            options = enumerate(cast("list[Any]", operand))
            return OneOf(written, tuple(_parse(option, (*steps, index)) for index, option in options))
        case Operator.ABSENT | Operator.PRESENT:
            if operand is not True:
                other = Operator.PRESENT if operator is Operator.ABSENT else Operator.ABSENT
                raise InvalidMatcher(f"write {{{operator}: true}}, or {{{other}: true}} for the opposite", steps)
            return Presence(written, wanted=operator is Operator.PRESENT)
        case Operator.GT | Operator.GTE | Operator.LT | Operator.LTE:
            if not _is_number(operand) or not math.isfinite(operand):
                raise InvalidMatcher(f"{operator} needs a number", steps)
            return Bound(written, operator, operand)
        case Operator.LENGTH:
            return Length(written, _length(operand, steps))
        case Operator.MATCHES:
            return Matches(written, _expression(operand, steps))
        case Operator.SCHEMA:
            return Schema(written, _validator(operand, steps))
        case Operator.SNAPSHOT:
            if not isinstance(operand, str) or not operand:
                raise InvalidMatcher("snapshot needs a name", steps)
            return Snapshot(written, operand)


def _length(operand: Any, steps: Steps) -> Matcher:
    matcher = _parse(operand, steps)
    if isinstance(matcher, (Entries, Members)) or (
        isinstance(matcher, Scalar) and not (_is_number(operand) and operand >= 0 and operand == int(operand))
    ):
        raise InvalidMatcher("length needs a whole number or a matcher such as {gt: 2}", steps)
    return matcher


def _expression(operand: Any, steps: Steps) -> re.Pattern[str]:
    if not isinstance(operand, str):
        raise InvalidMatcher("matches needs a regular expression in a string", steps)
    try:
        return re.compile(operand)
    except (re.error, OverflowError, RecursionError, Warning) as error:  # a warning where these are errors
        raise InvalidMatcher(f"matches needs a regular expression: {_printable(str(error))}", steps) from None


def _validator(operand: Any, steps: Steps) -> Any:
    """What checks values against a schema, and fetches nothing."""
    try:
        import jsonschema
        from referencing import Registry
    except ImportError:
        raise MissingExtra("the matcher schema needs jsonschema: pip install 'bespeak[test]'") from None
    draft: Any = jsonschema.Draft202012Validator
    try:
        draft.check_schema(operand, format_checker=draft.FORMAT_CHECKER)
    except jsonschema.SchemaError as error:
        place = reduce(join, error.absolute_path, "schema")
        raise InvalidMatcher(f"{place} is no JSON Schema: {_printable(error.message)}", steps) from None
    registry: Any = Registry  # an empty one: the usual one would fetch what a schema refers to
    return draft(operand, registry=registry())


# In messages


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _printable(text: str) -> str:
    """A text in a message: short, and nothing in it that a terminal would obey."""
    return f"{text if text.isprintable() else ascii(text)[1:-1]:.200}"


def _shown(value: Any) -> str:
    """A value in a message: as JSON, the beginning of it."""
    if value is ABSENT:
        return "nothing"
    said = json.dumps(value, ensure_ascii=False, default=repr)
    said = said if said.isprintable() else json.dumps(value, default=repr)
    return said if len(said) <= 80 else f"{said[:77]}..."


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    kinds = ((bool, "a boolean"), ((int, float), "a number"), (str, "a string"), (list, "a list"), (dict, "a map"))
    return next(name for kind, name in kinds if isinstance(value, kind))
