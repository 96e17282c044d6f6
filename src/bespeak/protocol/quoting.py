"""Quotes text from the other side in errors and log lines: short, on one line, without invisible characters."""

SHORT = 200


def one_line(text: str, most: int = SHORT) -> str:
    """Return the beginning of a text. Line breaks, control characters and bidirectional marks become escapes."""
    start = text[:most]
    return start if start.isprintable() else ascii(start)[1:-1][:most]
