"""Mistakes in `redact`: paths and patterns that cannot be used."""

from collections.abc import Iterator, Sequence

from bespeak.conversation.patterns import Expression, InvalidPattern
from bespeak.terminal.safe_text import printable
from bespeak.testing.suite.redact_keys import Redact
from bespeak.testing.suite.suite_values import Place
from bespeak.testing.suite.variables import has_holes
from bespeak.testing.value_paths import parse_path

TEXT_FOR_PEOPLE = ("message", "description")


def redact_mistakes(place: Place, redactions: Sequence[Redact]) -> Iterator[tuple[Place, str]]:
    """Yield each mistake in a list of redactions, and where it is."""
    for number, one in enumerate(redactions):
        what = "a path" if one.pattern is None else "a pattern"
        if has_holes(one.written):
            yield (*place, number), f"{what} cannot contain ${{...}}; write it out"
        else:
            try:
                (_check_path if one.pattern is None else _check_pattern)(one.written)
            except ValueError as error:
                yield (*place, number), str(error)


def _check_pattern(pattern: str) -> None:
    """Raises `ValueError` for a pattern that is not a regular expression, or that would replace text everywhere."""
    try:
        everywhere = Expression(pattern).found_in("")
    except InvalidPattern as error:
        raise ValueError(f"pattern needs a regular expression: {printable(str(error))}") from None
    if everywhere:
        raise ValueError(
            f"the pattern {pattern!r} also matches the empty text; write one that needs at least a character"
        )


def _check_path(written: str) -> None:
    """Raises `ValueError` for a path to a value that a replay needs."""
    path = parse_path(written)
    if path[0] == "resultType" or (path[0] == "inputRequests" and path[-1] not in TEXT_FOR_PEOPLE):
        told = ", ".join(TEXT_FOR_PEOPLE)
        raise ValueError(
            f"{written!r} cannot be redacted: a question needs it. In a question, only text for people can be "
            f"redacted: {told}"
        )
