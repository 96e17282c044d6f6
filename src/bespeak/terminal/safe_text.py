"""What a server says, made safe to show: nothing in it that a terminal would obey.

A person at a prompt is to read it, so `clean` takes out what cannot be seen. Who reads a report or a message looks for what
is wrong, so there every such character leaves a trace: `marked` puts a sign in its place, `printable` its number.
"""

import os
import re
import unicodedata
from collections.abc import Iterator
from typing import Any, TextIO

LONG, SHORT = 4_000, 200
"""How many characters are shown of a text that is to be read, and of a name."""
REPLACED = "\ufffd"
"""Stands for a character that is no text."""

_SEQUENCES = re.compile(
    r"(?:\x1b[PX^_\]]|[\x90\x98\x9d-\x9f])[^\x00-\x1f\x7f-\x9f]*(?:\x07|\x1b\\|\x9c)"  # titles, clipboards, strings
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours, the cursor, the screen
    r"|\x1b[ -/]*[0-~]?"
)
_OBEYED = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
"""Kinds of characters that steer a terminal, or the order of what is read, or are no text at all."""
_BREAKS = "\n\v\f\r\x85\u2028\u2029"
# Characters that no terminal shows, though Unicode does not say that they are for formatting.
_UNSEEN = frozenset(
    chr(code)
    for first, last in (
        *((0x034F, 0x034F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x3164, 0x3164)),
        *((0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0xE0100, 0xE01EF)),
    )
    for code in range(first, last + 1)
)


def clean(text: str, limit: int = LONG) -> str:
    """A server's text on one line: nothing in it that a terminal would obey or that cannot be seen, and not too long."""
    start = text[: 8 * limit]  # of what follows little could be seen, and it may be very long
    seen = "".join(map(_seen, _SEQUENCES.sub("", start.replace("\r\n", "\n"))))
    return seen if len(seen) <= limit and start == text else f"{seen[: limit - 1]}…"


def _seen(char: str) -> str:
    if char.isprintable():
        return "" if char in _UNSEEN else char
    if char in _BREAKS:
        return "⏎"
    category = unicodedata.category(char)
    if category == "Zs" or char == "\t":
        return " "
    return "" if category in ("Cc", "Cf") else REPLACED


def marked(text: str) -> str:
    """The text on one line, with a sign for each character that a terminal would obey or XML cannot carry."""
    if text.isprintable():
        return text
    return "".join(
        REPLACED if unicodedata.category(char) in _OBEYED or char in "\ufffe\uffff" else char for char in text
    )


def rows(line: str, width: int) -> Iterator[str]:
    """A line in pieces that fit: a terminal would start pieces of its own at the very left, where only we speak."""
    start, space, used = 0, 0, 0
    for at, char in enumerate(line):
        columns = _wide(char)
        while used + columns > width and at > start:
            end = space if space > start else at
            yield line[start:end]
            start, used = end, sum(map(_wide, line[end:at]))
        used += columns
        if char == " ":
            space = at + 1
    yield line[start:]


def _wide(char: str) -> int:
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def columns(stream: TextIO) -> int:
    """How many characters a line of a terminal has; 80 if that is not known."""
    try:
        found = os.get_terminal_size(stream.fileno()).columns
    except (AttributeError, OSError, ValueError):
        found = 0
    return found or 80


def printable(text: str) -> str:
    """A text in a message: short, and nothing in it that a terminal would obey."""
    return f"{text if text.isprintable() else ascii(text)[1:-1]:.200}"


def quoted(text: str) -> str:
    """A name of the server's in a message."""
    return f"'{printable(text)}'"


def text_at(value: Any) -> str:
    """The value where a text is due; empty if it is none."""
    return value if isinstance(value, str) else ""
