"""The formats of text in forms (protocol 7.3): email, uri, date and date-time are checked; others are not known."""

import pytest

from bespeak.protocol.forms import check_content
from bespeak.protocol.text_formats import FORMATS, check_format

FITTING = {
    "email": ["a@b", "ada.lovelace+x@mail.example.com"],
    "uri": ["https://example.com/a?b=c#d", "urn:isbn:1", "mailto:a@b", "file:///a%20b"],
    "date": ["2026-07-28", "2024-02-29"],
    "date-time": ["2026-07-28T12:00:00Z", "2026-07-28t12:00:00.25+02:00", "2016-12-31T23:59:60Z"],
}
WRONG = {
    "email": ["", "a", "@b", "a@", "a b@c", "a@b@c", "a@b..c", "a@b\n"],
    "uri": ["", "example.com", "/a", "https://a b", "https:", "1a:b", "https://a%2", "https://[redacted]<"],
    "date": ["", "2026-7-28", "2026-02-30", "20260728", "2026-07-28T00:00:00Z"],
    "date-time": [
        "",
        "2026-07-28",
        "2026-07-28T12:00:00",
        "2026-07-28 12:00:00Z",
        "2026-02-30T12:00:00Z",
        "2026-07-28T25:00:00Z",
        "2026-07-28T12:00:61Z",
        "2026-07-28T12:00:00+24:00",
    ],
}


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in FITTING.items() for text in texts])
def test_a_text_fits_its_format(name: str, text: str) -> None:
    assert check_format(name, text) is None


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in WRONG.items() for text in texts])
def test_a_text_that_does_not_fit_its_format_is_told_what_fits(name: str, text: str) -> None:
    assert check_format(name, text) == FORMATS[name].problem


@pytest.mark.parametrize("name", list(FORMATS))
def test_the_example_of_a_format_fits_it(name: str) -> None:
    assert check_format(name, FORMATS[name].example) is None


@pytest.mark.parametrize("name", [None, "phone", 5, ["email"]])
def test_a_format_that_forms_do_not_have_is_not_checked(name: object) -> None:
    assert check_format(name, "anything") is None


def test_the_content_of_a_form_is_checked_for_its_formats_if_asked_for() -> None:
    schema = {"properties": {"to": {"type": "string", "format": "email"}, "on": {"type": "string", "format": "date"}}}
    assert check_content(schema, {"to": "a@b", "on": "2026-07-28"}, formats=True) == []
    assert check_content(schema, {"to": "me", "on": "today"}, formats=True) == [
        "to: must be an e-mail address",
        "on: must be a date, such as 2026-07-28",
    ]
    assert check_content(schema, {"to": "me", "on": "today"}) == []  # a server's own types decide
