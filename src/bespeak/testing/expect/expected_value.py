"""The value that an expectation describes, as near to the actual value as it allows, so that only real differences show."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from bespeak.conversation.match_operators import Contains, Entries, Equals, Matcher, Members, Snapshot
from bespeak.conversation.matchers import ABSENT

Kept = Callable[[str], Any]
"""Returns the snapshot with a name; `ABSENT` if there is none."""


def expected_value(matcher: Matcher, actual: Any, kept: Kept) -> Any:
    """Return the expected value. Where a matcher accepts the actual value, that is it; otherwise it is the matcher."""
    if isinstance(matcher, Snapshot):
        return kept(matcher.name)
    if isinstance(matcher, Equals):
        return matcher.value.written
    if isinstance(matcher, Contains) and isinstance(matcher.part, Members) and isinstance(actual, dict):
        matcher = replace(matcher.part, exact=False)
    if isinstance(matcher, Members) and isinstance(actual, dict):
        return _members(matcher, cast("dict[str, Any]", actual), kept)
    if isinstance(matcher, Entries) and isinstance(actual, list):
        found = cast("list[Any]", actual)
        values = [found[at] if at < len(found) else ABSENT for at in range(len(matcher.entries))]
        return [expected_value(entry, value, kept) for entry, value in zip(matcher.entries, values, strict=True)]
    return cast("Any", actual) if matcher.judge(actual) is None else matcher.written


def _members(matcher: Members, actual: dict[str, Any], kept: Kept) -> dict[str, Any]:
    told: dict[str, Any] = {}
    for key in [*(key for key in actual if key in matcher.members or not matcher.exact), *matcher.members]:
        if key in matcher.members:
            told[key] = expected_value(matcher.members[key], actual.get(key, ABSENT), kept)
        else:
            told[key] = actual[key]
    return {key: value for key, value in told.items() if value is not ABSENT}
