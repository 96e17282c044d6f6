"""Elements of an HTML document. All text is escaped when they are written, so a server's text is never HTML."""

from collections.abc import Iterable
from xml.etree import ElementTree as ET

from bespeak.terminal.safe_text import marked

MOST_LINES = 14
"""From how many lines on a block is folded."""


def add(parent: ET.Element, tag: str, text: str = "", kind: str = "", **attributes: str) -> ET.Element:
    """Add an element with a text. `kind` is its class."""
    named = {"class": kind} if kind else {}
    element = ET.SubElement(parent, tag, named | attributes)
    element.text = shown(text)
    return element


def add_block(parent: ET.Element, lines: Iterable[str], kind: str = "", name: str = "") -> None:
    """Add lines of text, folded if there are many. `name` says what they are."""
    written = list(lines)
    if not written:
        return
    if len(written) > MOST_LINES:
        parent = add(parent, "details", kind="fold")
        add(parent, "summary", f"{name + ', ' if name else ''}{len(written)} lines")
    add(parent, "pre", "\n".join(written), kind)


def shown(text: str) -> str:
    """Return a text with a sign for each character that is not one to read, except line breaks."""
    return "\n".join(map(marked, text.split("\n")))
