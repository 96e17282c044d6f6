"""Text of a server, made safe to show: without control characters and escape sequences.

For a person at a prompt, `clean` removes what cannot be seen. In reports and messages such a character may be the fault that
the reader is looking for, so it leaves a trace: `marked` replaces it with a sign, `printable` with its number. What goes to
another program keeps its ASCII, and what a language or an emoji needs: `escaped` writes only the rest as its number.
"""

import os
import re
import unicodedata
from collections.abc import Iterator
from typing import Any, TextIO

LONG, SHORT = 4_000, 200
"""How many characters are shown of a message and of a name."""
REPLACED = "\ufffd"
"""Shown in place of a character that is not text."""

_SEQUENCES = re.compile(
    r"(?:\x1b[PX^_\]]|[\x90\x98\x9d-\x9f])[^\x00-\x1f\x7f-\x9f]*(?:\x07|\x1b\\|\x9c)"  # titles, clipboards, strings
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours, the cursor, the screen
    r"|\x1b[ -/]*[0-~]?"
)
_OBEYED = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
"""Unicode categories that control a terminal or the reading order, or that are not text."""
# C1, marks and overrides of the reading order, line separators, and halves of characters.
_BEYOND_ASCII = re.compile("[\x80-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
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
    """Return a server's text on one line, shortened, without control characters and invisible characters."""
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
    """Return the text on one line, with a sign for each character that controls a terminal or is not allowed in XML."""
    if text.isprintable():
        return text
    return "".join(
        REPLACED if unicodedata.category(char) in _OBEYED or char in "\ufffe\uffff" else char for char in text
    )


def escaped(text: str) -> str:
    """Return a text with the number in place of each control character outside ASCII, as JSON writes it."""
    return _BEYOND_ASCII.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def rows(line: str, width: int) -> Iterator[str]:
    """Return a line, wrapped.

    If the terminal wrapped it, a server's text could start at the left edge, where only our text may be.
    """
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
    """Return the width of a terminal; 80 if it is not known."""
    try:
        found = os.get_terminal_size(stream.fileno()).columns
    except (AttributeError, OSError, ValueError):
        found = 0
    return found or 80


def printable(text: str) -> str:
    """Return a text for use in a message: shortened, with control characters escaped."""
    return f"{text if text.isprintable() else ascii(text)[1:-1]:.200}"


def quoted(text: str) -> str:
    """Return a name from a server, quoted for use in a message."""
    return f"'{printable(text)}'"


def text_at(value: Any) -> str:
    """Return the value if it is a string, otherwise an empty string."""
    return value if isinstance(value, str) else ""
