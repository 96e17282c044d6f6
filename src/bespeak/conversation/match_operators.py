"""The matchers: one for each kind of plain value, and one for each operator."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import reduce
from operator import ge, gt, le, lt
from typing import Any, ClassVar, Protocol, cast

from bespeak.conversation.differences import ABSENT, Difference, both_shown, join, shown
from bespeak.conversation.json_values import is_number
from bespeak.conversation.patterns import Expression, InvalidPattern, PatternTimeout
from bespeak.terminal.safe_text import printable

NOT_EXPECTED = "was not expected"
"""Said of a member that should not be there."""
LONGEST_SEARCHED = 2**20
"""How many characters of a string `matches` searches."""


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


# What every matcher is


class Spelled(str, ABC):
    """A text with two spellings. It is shown in the first."""

    other: str

    @abstractmethod
    def is_written(self, text: str) -> bool:
        """Return whether a text is one of its spellings."""


class Snapshots(Protocol):
    """Values kept from an earlier run."""

    def check(self, name: str, actual: Any, path: str) -> Difference | None:
        """Return how a value, which has this path, differs from the snapshot with that name."""
        ...


@dataclass(frozen=True, slots=True)
class Matcher(ABC):
    """An expectation that a value is compared with."""

    written: Any
    reads_text: ClassVar[bool] = False
    """Whether it inspects a text itself instead of leaving that to inner matchers. Such a matcher accepts either spelling."""

    @property
    def about_presence(self) -> bool:
        """Whether it can judge a missing value."""
        return False

    def judge(self, actual: Any, path: str = "", snapshots: Snapshots | None = None) -> Difference | None:
        """Return the first difference; `None` if the value is as expected.

        A search that takes too long counts as a difference.
        """
        try:
            return self.check(actual, path, snapshots)
        except PatternTimeout as timeout:
            return Difference(timeout.path, str(timeout), self.written, timeout.actual, stopped=True)

    def check(self, actual: Any, path: str = "", snapshots: Snapshots | None = None) -> Difference | None:
        """Return the first difference; `None` if the value is as expected. Raises `PatternTimeout`.

        A stopped search has no result that `not` or `oneOf` could use, so it ends the whole check.
        """
        if actual is ABSENT and not self.about_presence:
            return self._differs("is missing", ABSENT, path)
        found = self._check(actual, path, snapshots)
        if found is not None and self.reads_text and isinstance(actual, Spelled):
            return found if self._check(actual.other, path, snapshots) else None
        return found

    @abstractmethod
    def _check(self, actual: Any, path: str, snapshots: Snapshots | None) -> Difference | None: ...

    def _differs(self, message: str, actual: Any, path: str) -> Difference:
        return Difference(path, message, self.written, actual)


# Plain values


@dataclass(frozen=True, slots=True)
class Scalar(Matcher):
    """Null, true, false, a number or a string. `true` is not 1, and 1 is 1.0."""

    def _check(self, actual: Any, path: str, snapshots: Snapshots | None) -> Difference | None:
        either = isinstance(self.written, bool) or isinstance(actual, bool)
        same = actual is self.written if either else actual == self.written
        if isinstance(actual, Spelled) and isinstance(self.written, str):
            same = actual.is_written(self.written)
        expected, came = ("", "") if same else both_shown(self.written, actual)
        return None if same else self._differs(f"expected {expected}, got {came}", actual, path)


@dataclass(frozen=True, slots=True)
class Entries(Matcher):
    """A list, entry by entry."""

    entries: tuple[Matcher, ...]

    def _check(self, actual: Any, path: str, snapshots: Snapshots | None) -> Difference | None:
        if not isinstance(actual, list):
            return self._differs(f"expected a list, got {shown(actual)}", actual, path)
        found = cast("list[Any]", actual)
        for index, entry in enumerate(self.entries):
            value = found[index] if index < len(found) else ABSENT
            if difference := entry.check(value, join(path, index), snapshots):
                return difference
        more = len(self.entries)
        if len(found) > more:
            wanted = f"should have {_count(more, 'entry')}" if more else "should be empty"
            message = f"was not expected; the list {wanted}, but has {len(found)}"
            return Difference(join(path, more), message, ABSENT, found[more])
        return None


@dataclass(frozen=True, slots=True)
class Members(Matcher):
    """A map, member by member."""

    members: Mapping[str, Matcher]
    exact: bool = True
    """Whether other members are forbidden."""

    def _check(self, actual: Any, path: str, snapshots: Snapshots | None) -> Difference | None:
        if not isinstance(actual, dict):
            return self._differs(f"expected a map, got {shown(actual)}", actual, path)
        found = cast("dict[str, Any]", actual)
        for key, member in self.members.items():
            if difference := member.check(found.get(key, ABSENT), join(path, key), snapshots):
                return difference
        extra = next((key for key in found if key not in self.members), None) if self.exact else None
        if extra is None:
            return None
        return Difference(join(path, extra), NOT_EXPECTED, ABSENT, found[extra])


# Operators


@dataclass(frozen=True, slots=True)
class Equals(Matcher):
    """Exactly this value."""

    value: Matcher

    def _check(self, actual: Any, path: str, snapshots: Snapshots | None) -> Difference | None:
        return self.value.check(actual, path, snapshots)


@dataclass(frozen=True, slots=True)
class Contains(Matcher):
    """A string that contains this text, a list with a matching entry, or a map with at least these members."""

    part: Matcher
    reads_text: ClassVar[bool] = True

    def _check(self, actual: Any, path: str, snapshots: Snapshots | None) -> Difference | None:
        part = self.part.written
        if isinstance(actual, str):
            if not isinstance(part, str):
                return self._differs(f"is a string, which cannot contain {shown(part)}", actual, path)
            holds = part in actual
        elif isinstance(actual, list):
            entries = cast("list[Any]", actual)
            holds = any(self.part.check(entry, join(path, i), snapshots) is None for i, entry in enumerate(entries))
        elif not isinstance(actual, dict):
            return self._differs(f"is {_kind(actual)}, but contains needs a string, a list or a map", actual, path)
        elif not isinstance(self.part, Members):
            return self._differs(f"is a map, which cannot contain {shown(part)}; name its members", actual, path)
        else:
            return replace(self.part, exact=False).check(actual, path, snapshots)
        return None if holds else self._differs(f"does not contain {shown(part)}: {shown(actual)}", actual, path)


@dataclass(frozen=True, slots=True)
class Matches(Matcher):
    """A string in which a regular expression is found."""

    expression: Expression
    reads_text: ClassVar[bool] = True

    def _check(self, actual: Any, path: str, snapshots: Snapshots | None) -> Difference | None:
        if not isinstance(actual, str):
            return self._differs(f"is {_kind(actual)}, but matches needs a string", actual, path)
        try:
            if self.expression.found_in(actual[:LONGEST_SEARCHED]):
                return None
        except PatternTimeout as timeout:
            timeout.path, timeout.actual = path, actual
            raise
        return self._differs(f"does not match {shown(self.expression.pattern)}: {shown(actual)}", actual, path)


@dataclass(frozen=True, slots=True)
class Schema(Matcher):
    """A value that is valid against a JSON Schema."""

    validator: Any
    reads_text: ClassVar[bool] = True

    def _check(self, actual: Any, path: str, snapshots: Snapshots | None) -> Difference | None:
        from referencing.exceptions import Unresolvable

        try:
            error: Any = next(self.validator.iter_errors(actual), None)
        except PatternTimeout as timeout:
            timeout.path, timeout.actual = path, actual
            raise
        except InvalidPattern as invalid:
            return self._differs(
                f"the schema has a pattern that cannot be used: {printable(str(invalid))}", actual, path
            )
        except Unresolvable as missing:
            message = f"the schema refers to {shown(missing.ref)}, which it does not contain; add it to its $defs"
            return self._differs(message, actual, path)
        except RecursionError:
            return self._differs("the schema refers to itself endlessly", actual, path)
        if error is None:
            return None
        place = reduce(join, error.absolute_path, path)
        return Difference(place, f"does not fit the schema: {printable(error.message)}", self.written, error.instance)


@dataclass(frozen=True, slots=True)
class OneOf(Matcher):
    """A value that matches at least one of these."""

    options: tuple[Matcher, ...]

    @property
    def about_presence(self) -> bool:
        return any(option.about_presence for option in self.options)

    def _check(self, actual: Any, path: str, snapshots: Snapshots | None) -> Difference | None:
        if any(option.check(actual, path, snapshots) is None for option in self.options):
            return None
        return self._differs(f"matches none of the {len(self.options)} options of oneOf: {shown(actual)}", actual, path)


@dataclass(frozen=True, slots=True)
class Not(Matcher):
    """A value that does not match this."""

    refused: Matcher

    @property
    def about_presence(self) -> bool:
        return self.refused.about_presence

    def _check(self, actual: Any, path: str, snapshots: Snapshots | None) -> Difference | None:
        if self.refused.check(actual, path, snapshots):
            return None
        return self._differs(f"must not match, but does: {shown(actual)}", actual, path)


@dataclass(frozen=True, slots=True)
class Presence(Matcher):
    """Whether there is a value at all."""

    wanted: bool

    @property
    def about_presence(self) -> bool:
        return True

    def _check(self, actual: Any, path: str, snapshots: Snapshots | None) -> Difference | None:
        if (actual is not ABSENT) == self.wanted:
            return None
        return self._differs("is missing" if self.wanted else f"should be absent: {shown(actual)}", actual, path)


_BOUNDS: Mapping[Operator, tuple[Callable[[Any, Any], bool], str]] = {
    Operator.GT: (gt, "greater than"),
    Operator.GTE: (ge, "at least"),
    Operator.LT: (lt, "less than"),
    Operator.LTE: (le, "at most"),
}


@dataclass(frozen=True, slots=True)
class Bound(Matcher):
    """A number above or below a bound."""

    operator: Operator
    bound: int | float

    def _check(self, actual: Any, path: str, snapshots: Snapshots | None) -> Difference | None:
        if not is_number(actual):
            return self._differs(f"is {_kind(actual)}, but {self.operator} needs a number", actual, path)
        holds, said = _BOUNDS[self.operator]
        if holds(actual, self.bound):
            return None
        return self._differs(f"must be {said} {self.bound}, but is {shown(actual)}", actual, path)


@dataclass(frozen=True, slots=True)
class Length(Matcher):
    """A string, list or map with a given length."""

    length: Matcher

    def _check(self, actual: Any, path: str, snapshots: Snapshots | None) -> Difference | None:
        if not isinstance(actual, (str, list, dict)):
            return self._differs(f"is {_kind(actual)}, which has no length", actual, path)
        count = len(cast("Sequence[Any]", actual))
        difference = self.length.check(count, path, snapshots)
        noun = "character" if isinstance(actual, str) else "entry" if isinstance(actual, list) else "member"
        message = f"the number of {_plural(noun)} {difference.message}" if difference else ""
        if difference and isinstance(self.length, Scalar):
            message = f"should have {_count(self.length.written, noun)}, but has {count}"
        return difference and self._differs(message, actual, path)


@dataclass(frozen=True, slots=True)
class Each(Matcher):
    """A list whose entries all match."""

    entry: Matcher

    def _check(self, actual: Any, path: str, snapshots: Snapshots | None) -> Difference | None:
        if not isinstance(actual, list):
            return self._differs(f"is {_kind(actual)}, but each needs a list", actual, path)
        entries = enumerate(cast("list[Any]", actual))
        return next((d for i, value in entries if (d := self.entry.check(value, join(path, i), snapshots))), None)


@dataclass(frozen=True, slots=True)
class Snapshot(Matcher):
    """A value equal to a named snapshot."""

    name: str

    def _check(self, actual: Any, path: str, snapshots: Snapshots | None) -> Difference | None:
        if snapshots is None:
            return self._differs("snapshots cannot be used here; write the expected value", actual, path)
        difference = snapshots.check(self.name, actual, path)
        if difference is None or not path:
            return difference
        between = "." if difference.path and not difference.path.startswith("[") else ""
        return replace(difference, path=f"{path}{between}{difference.path}")


@dataclass(frozen=True, slots=True)
class All(Matcher):
    """A value that matches all operators of one map."""

    parts: tuple[Matcher, ...]

    @property
    def about_presence(self) -> bool:
        return any(part.about_presence for part in self.parts)

    def _check(self, actual: Any, path: str, snapshots: Snapshots | None) -> Difference | None:
        return next((d for part in self.parts if (d := part.check(actual, path, snapshots))), None)


def _plural(noun: str) -> str:
    return f"{noun.removesuffix('y')}ies" if noun.endswith("y") else f"{noun}s"


def _count(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun if number == 1 else _plural(noun)}"


# Kinds of values


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    kinds = ((bool, "a boolean"), ((int, float), "a number"), (str, "a string"), (list, "a list"), (dict, "a map"))
    return next(name for kind, name in kinds if isinstance(value, kind))
