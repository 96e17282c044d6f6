"""The other side's words in a message or a log line of ours: short, on one line, and nothing in them that cannot be seen."""

SHORT = 200


def one_line(text: str, most: int = SHORT) -> str:
    """The beginning of a text. Line breaks, control characters and what turns the order of reading show as escapes."""
    start = text[:most]
    return start if start.isprintable() else ascii(start)[1:-1][:most]
