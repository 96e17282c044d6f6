"""The formats of text that a form may ask for: `email`, `uri`, `date` and `date-time`."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime

_EMAIL = re.compile(r"[^\s@]+@[^\s@.]+(\.[^\s@.]+)*")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DATE_TIME = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt]([0-9]{2}:[0-9]{2}):([0-5][0-9]|60)(\.[0-9]+)?"
    r"([Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
)


def _is_date(text: str) -> bool:
    try:
        return _DATE.fullmatch(text) is not None and bool(date.fromisoformat(text))
    except ValueError:
        return False


def _is_date_time(text: str) -> bool:
    found = _DATE_TIME.fullmatch(text)
    try:
        return found is not None and bool(datetime.fromisoformat(f"{found[1]}T{found[2]}"))
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class TextFormat:
    """A format: its check, what is said of a text that fails it, and a text that fits."""

    fits: Callable[[str], bool]
    problem: str
    example: str


FORMATS: Mapping[str, TextFormat] = {
    "email": TextFormat(lambda text: _EMAIL.fullmatch(text) is not None, "must be an e-mail address", "a@example.com"),
    "uri": TextFormat(
        lambda text: _URI.fullmatch(text) is not None,
        "must be a URI with a scheme, such as https://example.com",
        "https://example.com",
    ),
    "date": TextFormat(_is_date, "must be a date, such as 2026-07-28", "2026-07-28"),
    "date-time": TextFormat(
        _is_date_time,
        "must be a date and time with an offset, such as 2026-07-28T12:00:00Z",
        "2026-07-28T12:00:00Z",
    ),
}


def check_format(name: object, text: str) -> str | None:
    """Return how a text breaks a format; `None` if it does not, or if forms do not have the format."""
    if not isinstance(name, str) or name not in FORMATS:
        return None
    return None if FORMATS[name].fits(text) else FORMATS[name].problem
