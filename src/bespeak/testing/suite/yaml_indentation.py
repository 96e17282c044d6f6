"""Indentation that does not fit: which lines of a YAML file it is compared with, and what to do."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_ENTRY = re.compile(r"-[ ]+(?=\S)")
_KEY = re.compile(r"""(?P<key>"[^"]*"|'[^']*'|[^\s#"'][^#]*?):(?:[ ]+(?P<value>\S.*))?$""")
"""A key at the beginning of a line, and its value there."""
_BLOCK_TEXT = re.compile(r"[|>][0-9+-]*\s*(#.*)?$")


@dataclass(frozen=True, slots=True)
class _Column:
    """Where something begins in a line: a list entry or what is in it."""

    line: int
    """Counts from 1."""
    column: int
    """Counts from 0, so it is the number of spaces before it."""
    is_entry: bool
    in_entry: bool = False
    """Whether the line begins with a dash before it."""


def misfit(lines: Sequence[str], line: int, column: int) -> str | None:
    """Return what is wrong with a line that belongs to no block above it; `None` if the indentation is not the reason.

    Lines count from 1, columns from 0.
    """
    text = lines[line - 1] if line <= len(lines) else ""
    if len(text) - len(text.lstrip(" ")) != column:
        return None
    above = [*_open_above(lines, line)]
    if not above:
        return None
    own = f"this line is indented by {_spaces(column)}"
    same = next((one for one in above if one.column == column), None)
    if same is not None:
        return _beside(own, text, same, above)
    more = min((one for one in above if one.column > column), key=lambda one: one.column, default=None)
    less = max((one for one in above if one.column < column), key=lambda one: one.column, default=None)
    if more is None and less is not None:
        return f"{own}, more than {_told(less)}, which has a value already; indent it by {_spaces(less.column)}"
    both = [f"less than {_told(more)}"] if more is not None else []
    both += [f"more than {_told(less)}"] if less is not None else []
    which = "like the lines that it belongs to" if len(both) > 1 else "like that line"
    return f"{own}, {' and '.join(both)}; indent it {which}"


def too_deep(lines: Sequence[str], line: int) -> str | None:
    """Return what is wrong with a line that would continue the value above it; `None` if it would not."""
    text = lines[line - 1] if line <= len(lines) else ""
    column = len(text) - len(text.lstrip(" "))
    number = next((at for at in range(line - 1, 0, -1) if _has_content(lines[at - 1])), None)
    if number is None:
        return None
    before = _columns(lines[number - 1], number)[-1]
    found = _KEY.match(lines[number - 1][before.column :])
    has_value = found is not None and found["value"] is not None and not _BLOCK_TEXT.match(found["value"])
    if column <= before.column or not has_value:
        return None
    own = f"this line is indented by {_spaces(column)}, more than {_told(before)}, which has a value already"
    return (
        f'{own}; indent it by {_spaces(before.column)}, or quote the text if both lines are one text that contains ": "'
    )


def _beside(own: str, text: str, same: _Column, above: Sequence[_Column]) -> str | None:
    """What is wrong with a line at the column of another one: only one of the two begins a list entry."""
    is_entry = text.lstrip().startswith("- ")
    if is_entry == same.is_entry:
        return None
    if is_entry:
        entry = next((one for one in above if one.is_entry), None)
        where = "" if entry is None else f"; the list entry on line {entry.line} is indented by {_spaces(entry.column)}"
        return f"{own} and begins a list entry, but line {same.line}, which is indented the same, does not{where}"
    return (
        f"{own}, like the list entry on line {same.line}; indent it more if it belongs to that entry, "
        'or begin it with "- " if it is the next one'
    )


def _open_above(lines: Sequence[str], line: int) -> Iterator[_Column]:
    """The lines above to whose blocks a line may belong, from the nearest one on."""
    least: int | None = None
    for number in range(line - 1, 0, -1):
        if not _has_content(lines[number - 1]):
            continue
        for one in reversed(_columns(lines[number - 1], number)):
            if least is None or one.column < least:
                yield one
                least = one.column


def _columns(text: str, line: int) -> list[_Column]:
    """Where a line and the contents of its list entries begin."""
    at = len(text) - len(text.lstrip(" "))
    found: list[_Column] = []
    while entry := _ENTRY.match(text, at):
        found.append(_Column(line, at, is_entry=True, in_entry=bool(found)))
        at = entry.end()
    return [*found, _Column(line, at, is_entry=text[at:].rstrip() == "-", in_entry=bool(found))]


def _has_content(text: str) -> bool:
    return bool(text.strip()) and not text.lstrip().startswith(("#", "---", "%"))


def _told(one: _Column) -> str:
    return f"line {one.line} ({_spaces(one.column)}{' with its dash' if one.in_entry else ''})"


def _spaces(count: int) -> str:
    return f"{count} space{'' if count == 1 else 's'}"
