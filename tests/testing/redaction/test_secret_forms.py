"""A secret is found in whatever form it stands in a text, and other texts are left alone."""

import base64
import json
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bespeak.testing.redaction.redactor import TOKEN, Redactor
from bespeak.testing.redaction.secret_forms import LONGEST_ESCAPED, SHORTEST_ENCODED

LABEL = "${env:KEY}"
SECRETS = st.text(min_size=SHORTEST_ENCODED, max_size=30).filter(lambda secret: secret not in LABEL)
AROUND = st.text(max_size=12) | st.text("\\%+/=25au0 \n", max_size=6)
BYTES = st.binary(max_size=12)


def redacted(secret: str, text: str) -> str:
    return Redactor((), {"KEY": secret}).text(text)


def urlsafe(text: str) -> str:
    return text.replace("+", "-").replace("/", "_")


# Base64


def wrapped(text: str) -> str:
    return "\n".join(text[at : at + 10] for at in range(0, len(text), 10))


CODINGS: dict[str, Callable[[str], str]] = {
    "standard": str,
    "urlsafe": urlsafe,
    "without padding": lambda text: text.rstrip("="),
    "urlsafe without padding": lambda text: urlsafe(text).rstrip("="),
    "in a URL": lambda text: quote(text, safe=""),
    "in a URL with small letters": lambda text: quote(text, safe="").replace("%2B", "%2b").replace("%2F", "%2f"),
    "in JSON": lambda text: text.replace("/", "\\/").replace("+", "\\u002b"),
    "in lines": wrapped,
    "in lines within JSON": lambda text: json.dumps(wrapped(text)),
}


def core(before: bytes, secret: str) -> str:
    """The digits that only the secret decides."""
    encoded = secret.encode()
    shift = len(before) % 3
    digits = base64.b64encode(bytes(shift) + encoded).decode()
    return digits[(8 * shift + 5) // 6 : 8 * (shift + len(encoded)) // 6]


@pytest.mark.parametrize("coding", CODINGS.values(), ids=CODINGS)
@given(SECRETS, BYTES, BYTES, AROUND, AROUND)
@example("s3cret", b"", b"", "", "")
@example("s3cret", b"a", b"", "x ", " x")
@example("s3cret\u00ff\u00ff", b"ab", b"c", "", "")
def test_no_secret_is_left_in_base64(
    coding: Callable[[str], str], secret: str, before: bytes, after: bytes, left: str, right: str
) -> None:
    form = coding(base64.b64encode(before + secret.encode() + after).decode())
    told = redacted(secret, f"{left}{form}{right}")
    assert LABEL in told
    assert coding(core(before, secret)) not in told
    assert core(before, secret) not in told


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        (b"", b"", LABEL),
        (b"", b"x", f"{LABEL}eA=="),
        (b"a", b"", f"Y{LABEL}"),
        (b"ab", b"", f"YW{LABEL}"),
        (b"abc", b"xyz", f"YWJj{LABEL}eHl6"),
        (b"user:", b"!", f"dXNlcj{LABEL}h"),
    ],
)
def test_the_digits_that_a_secret_shares_go_with_it(before: bytes, after: bytes, shown: str) -> None:
    assert redacted("s3cret", base64.b64encode(before + b"s3cret" + after).decode()) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("77%2B%2F77%2B%2F77%2B%2F77%2B%2F77%2B%2F77%2B%2F", LABEL),
        ("x 77+\\/77+\\/77+\\/77+\\/77+\\/77+\\/ y", f"x {LABEL} y"),
        ("77-_7\n7-_77\n-_77-_77-_77-_ x", f"{LABEL} x"),
        ("%77+/77+/77+/77+/77+/77+/", f"%{LABEL}"),
        ("x\n77+/77+/77+/77+/77+/77+/\ny", f"x\n{LABEL}\ny"),
        ("77\\u002b\\/77\\u002B\\/77+/77+/77+/77+/\\ny", f"{LABEL}\\ny"),
    ],
)
def test_escapes_and_breaks_in_base64_go_with_it(text: str, shown: str) -> None:
    secret = base64.b64decode("77+/" * 6).decode()
    assert redacted(secret, text) == shown


# Hex


@given(SECRETS, BYTES, AROUND, st.sampled_from([str.lower, str.upper, str.swapcase]))
def test_no_secret_is_left_in_hex(secret: str, before: bytes, around: str, case: Callable[[str], str]) -> None:
    digits = case((before + secret.encode()).hex())
    told = redacted(secret, f"{around}{digits}{around}")
    assert LABEL in told
    assert secret.encode().hex() not in told.lower()


# Escapes


def percent(char: str, upper: bool) -> str:
    encoded = "".join(f"%{byte:02x}" for byte in char.encode())
    return encoded.upper() if upper else encoded


def unicode_escape(char: str, upper: bool) -> str:
    units = char.encode("utf-16-be").hex()
    parts = [units[at : at + 4] for at in range(0, len(units), 4)]
    return "".join(f"\\u{part.upper() if upper else part}" for part in parts)


WAYS: list[Callable[[str], str]] = [
    lambda char: char if char not in '"\\' and char.isprintable() else json.dumps(char)[1:-1],
    lambda char: json.dumps(char)[1:-1],
    lambda char: percent(char, True),
    lambda char: percent(char, False),
    lambda char: percent(percent(char, True)[0], True) + percent(char, True)[1:],
    lambda char: unicode_escape(char, True),
    lambda char: unicode_escape(char, False),
    quote_plus,
    lambda char: char.replace("/", "\\/"),
    lambda char: repr(char)[1:-1],
    lambda char: json.dumps(json.dumps(char)[1:-1])[1:-1],
]


@given(SECRETS, AROUND, AROUND, st.data())
@example("%25%25%25", "%25", "%25", None)
@example('\\"\\"\\"', "\\", "\\", None)
def test_no_secret_is_left_with_some_of_its_characters_escaped(secret: str, left: str, right: str, data: Any) -> None:
    chosen = st.lists(st.sampled_from(WAYS), min_size=len(secret), max_size=len(secret))
    ways = data.draw(chosen) if data is not None else [WAYS[2], *WAYS[1:2] * (len(secret) - 1)]
    form = "".join(way(char) for way, char in zip(ways, secret, strict=True))
    told = redacted(secret, f"{left}{form}{right}")
    assert LABEL in told
    assert form not in told


WHOLE: dict[str, Callable[[str], str]] = {
    "plain": str,
    "JSON": lambda secret: json.dumps(secret)[1:-1],
    "JSON with other letters": lambda secret: json.dumps(secret, ensure_ascii=False)[1:-1],
    "JSON in JSON": lambda secret: json.dumps(json.dumps(secret))[1:-1],
    "JSON with slashes": lambda secret: json.dumps(secret)[1:-1].replace("/", "\\/"),
    "URL": lambda secret: quote(secret, safe=""),
    "URL with slashes": quote,
    "URL with small letters": lambda secret: "".join(percent(char, False) for char in secret),
    "form": quote_plus,
    "URL in a URL": lambda secret: quote(quote(secret, safe=""), safe=""),
    "Python": lambda secret: repr(secret)[1:-1],
    "ASCII": lambda secret: ascii(secret)[1:-1],
}


@pytest.mark.parametrize("write", WHOLE.values(), ids=WHOLE)
@given(SECRETS, AROUND, AROUND)
def test_no_secret_is_left_as_others_write_it(write: Callable[[str], str], secret: str, left: str, right: str) -> None:
    form = write(secret)
    told = redacted(secret, f"{left}{form}{right}")
    assert LABEL in told
    assert form not in told


OTHER = "abcdefgh %+\\/=\n0123456789"


@given(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters=OTHER), min_size=SHORTEST_ENCODED, max_size=30),
    st.text(OTHER, max_size=200),
)
def test_a_text_without_the_secret_is_left_alone(secret: str, text: str) -> None:
    assert redacted(secret, text) == text


ORDINARY = [
    "The quick brown fox jumps over the lazy dog. " * 50,
    json.dumps({"a": ["x\n", {"b": "\u00e9"}], "path": "C:\\new\\table"}),
    "https://example.com/a%20b?q=%C3%A9&plus=a+b",
    base64.b64encode(bytes(range(256)) * 8).decode(),
    bytes(range(256)).hex(),
]


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_is_left_alone(text: str) -> None:
    secrets = {
        "A": "s3cret",
        "B": "correct horse battery staple",
        "C": "\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9",
        "D": "aaaaaa",
    }
    assert Redactor((), secrets).text(text) == text


def test_a_very_short_secret_is_not_looked_for_in_codings() -> None:
    encoded = base64.b64encode(b"12345").decode()
    assert redacted("12345", f"{encoded} {b'12345'.hex()} 12345") == f"{encoded} {b'12345'.hex()} {LABEL}"


def test_a_very_long_secret_is_found_whole() -> None:
    secret = "a b" * LONGEST_ESCAPED
    assert redacted(secret, f"x{quote(secret)}y") == f"x{LABEL}y"
    assert redacted(secret, secret.encode().hex()) == LABEL


def test_bytes_of_the_environment_that_are_no_unicode_are_found_in_codings() -> None:
    raw = b"s3cret\xff"
    assert redacted(raw.decode("utf-8", "surrogateescape"), raw.hex()) == LABEL
    assert redacted(raw.decode("utf-8", "surrogateescape"), "s3cret%FF") == LABEL
    assert redacted("s3cret\ud800", "s3cret\\ud800") == LABEL


def test_the_token_of_a_state_is_found_in_codings() -> None:
    token = "v1.opaque-token"
    redaction = Redactor(tokens=[token])
    assert redaction.text(token.encode().hex()) == TOKEN
    assert redaction.text(base64.b64encode(token.encode()).decode()) == TOKEN


# Where a message was cut

LONG = "hunter2-is-the-password-hunter2"


@pytest.mark.parametrize("end", ["...", "…", "'", '"', ")", ""])
def test_what_is_left_of_a_secret_where_a_message_was_cut_goes_too(end: str) -> None:
    redaction = Redactor((), {"KEY": LONG})
    assert redaction.message(f"got {LONG[:20]}{end}") == f"got {LABEL}{end}"
    assert redaction.message(f"got {LONG}{end} {LONG[:6]}{end}") == f"got {LABEL}{end} {LABEL}{end}"


def test_what_only_begins_like_a_secret_is_left_alone() -> None:
    redaction = Redactor((), {"KEY": LONG, "B": "s3cret"})
    assert redaction.message("hunter2-is-the-name of s3cre...") == "hunter2-is-the-name of s3cre..."


# Speed

TEXTS = {
    "plain": "The quick brown fox jumps over the lazy dog. " * 23302,
    "escaped": json.dumps("\u00e9\n" * 131072),
    "percent": "%41b" * 262144,
    "base64": "QUJD" * 262144,
    "backslashes": "\\" * 1048576,
    "lines": "QUJD\n" * 209715,
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.long
def test_a_report_of_a_megabyte_is_searched_quickly(text: str) -> None:
    secrets = {f"K{number}": f"s3cret/{number}+correct horse \u00e9" for number in range(5)}
    redaction = Redactor((), secrets)
    redaction.text("%")
    began = time.perf_counter()
    assert redaction.text(text) == text
    assert time.perf_counter() - began < 20
