"""Matchers as a suite writes them: parsed into objects that find the first difference.

A plain value matches an equal value, at every level. A map whose keys are all operators is a matcher instead, at any
depth; use `equals` to expect such a map itself. Only `absent` and `present` accept a missing value: every other matcher
needs a value, because otherwise `not` would match for any misspelt name.
"""

import math
from collections.abc import Callable
from typing import Any, cast

from bespeak.conversation.differences import ABSENT, Difference, join, shown
from bespeak.conversation.json_schemas import InvalidSchema, validator_of
from bespeak.conversation.json_values import is_number
from bespeak.conversation.match_operators import (
    LONGEST_SEARCHED,
    All,
    Bound,
    Contains,
    Each,
    Entries,
    Equals,
    Length,
    Matcher,
    Matches,
    Members,
    Not,
    OneOf,
    Operator,
    Presence,
    Scalar,
    Schema,
    Snapshot,
    Snapshots,
)
from bespeak.conversation.patterns import Expression, InvalidPattern
from bespeak.terminal.safe_text import printable

__all__ = [
    "ABSENT",
    "LONGEST_SEARCHED",
    "Difference",
    "InvalidMatcher",
    "Matcher",
    "Operator",
    "Snapshots",
    "equal_to",
    "join",
    "parse_matcher",
]

Steps = tuple[str | int, ...]
_Parse = Callable[[Any, Steps], Matcher]
_OPERATORS = frozenset(Operator)


class InvalidMatcher(ValueError):
    """The matcher is not valid. `steps` is the path to the fault."""

    def __init__(self, message: str, steps: Steps = ()) -> None:
        super().__init__(message)
        self.steps = steps


def parse_matcher(written: Any) -> Matcher:
    """Parse a matcher. Raises `InvalidMatcher`, a `ValueError`."""
    return _parse(written, ())


def equal_to(value: Any) -> Matcher:
    """Return a matcher for exactly this value: nothing in it is an operator."""
    return _plain(value, (), _literally)


def _parse(written: Any, steps: Steps) -> Matcher:
    if isinstance(written, dict):
        members = cast("dict[Any, Any]", written)
        operators = [key for key in members if key in _OPERATORS]
        if operators and len(operators) < len(members):
            other = next(key for key in members if key not in _OPERATORS)
            message = f"{operators[0]} is an operator and {shown(other)} is not; "
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
                raise InvalidMatcher(f"the key {shown(key)} must be a string; quote it", steps)
        return Members(written, {key: inner(member, (*steps, key)) for key, member in members.items()})
    if written is not None and not isinstance(written, (str, int, float)):
        raise InvalidMatcher(f"must be a JSON value, not {type(written).__name__}", steps)
    if isinstance(written, float) and not math.isfinite(written):
        raise InvalidMatcher(f"{written} cannot be written as JSON", steps)
    return Scalar(written)


def _operator(operator: Operator, operand: Any, steps: Steps) -> Matcher:
    written = {str(operator): operand}
    match operator:
        case Operator.EQUALS:
            return Equals(written, _literally(operand, steps))
        case Operator.CONTAINS:
            return _contains(operand, steps)
        case Operator.NOT:
            return Not(written, _parse(operand, steps))
        case Operator.EACH:
            return Each(written, _parse(operand, steps))
        case Operator.ONE_OF:
            if not isinstance(operand, list) or not operand:
                raise InvalidMatcher("oneOf needs a list of possible values", steps)
            options = enumerate(cast("list[Any]", operand))
            return OneOf(written, tuple(_parse(option, (*steps, index)) for index, option in options))
        case Operator.ABSENT | Operator.PRESENT:
            if operand is not True:
                other = Operator.PRESENT if operator is Operator.ABSENT else Operator.ABSENT
                raise InvalidMatcher(f"write {{{operator}: true}}, or {{{other}: true}} for the opposite", steps)
            return Presence(written, wanted=operator is Operator.PRESENT)
        case Operator.GT | Operator.GTE | Operator.LT | Operator.LTE:
            if not is_number(operand) or not math.isfinite(operand):
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


def _contains(operand: Any, steps: Steps) -> Matcher:
    """A list names several things, all of which must be contained, in any order."""
    written = {str(Operator.CONTAINS): operand}
    if isinstance(operand, list):
        if not operand:
            raise InvalidMatcher("contains: [] accepts everything; name what must be contained", steps)
        parts = enumerate(cast("list[Any]", operand))
        return All(written, tuple(_contained(part, (*steps, index)) for index, part in parts))
    return _contained(operand, steps)


def _contained(operand: Any, steps: Steps) -> Matcher:
    part = _parse(operand, steps)
    return Contains({str(Operator.CONTAINS): operand}, part.value if isinstance(part, Equals) else part)


def _length(operand: Any, steps: Steps) -> Matcher:
    matcher = _parse(operand, steps)
    if isinstance(matcher, (Entries, Members)) or (
        isinstance(matcher, Scalar) and not (is_number(operand) and operand >= 0 and operand == int(operand))
    ):
        raise InvalidMatcher("length needs a whole number or a matcher such as {gt: 2}", steps)
    return matcher


def _expression(operand: Any, steps: Steps) -> Expression:
    if not isinstance(operand, str):
        raise InvalidMatcher("matches needs a regular expression, written as a string", steps)
    try:
        return Expression(operand)
    except InvalidPattern as error:
        raise InvalidMatcher(f"matches needs a regular expression: {printable(str(error))}", steps) from None


def _validator(operand: Any, steps: Steps) -> Any:
    try:
        return validator_of(operand)
    except InvalidSchema as error:
        raise InvalidMatcher(str(error), steps) from None
