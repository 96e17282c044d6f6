"""What a server says is shown without anything that a terminal would obey, at the prompt and in reports."""

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bespeak.terminal.safe_text import clean, escaped, marked


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("plain text, Gr\u00fc\u00dfe \U0001f600", "plain text, Gr\u00fc\u00dfe \U0001f600"),
        ("a\nb\r\nc\td", "a⏎b⏎c d"),
        ("\x1b[31;1mred\x1b[0m \x9b2Jx", "red x"),
        ("\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b\x1bPq\x9cc", "abc"),
        ("\x1bcreset\x1b(B\x1b7", "reset"),
        ("\x1b\x1b[2J[2J\x1b]0;open", "[2J0;open"),
        ("\u202eabc\u202c\u2066d\u2069\u200e", "abcd"),
        ("p\u200ba\u200dy\ufeff\u2060\u00ad\u034f\u3164\ufe0f\U000e0041", "pay"),
        ("a\u00a0b\u3000c", "a b c"),
        ("\ud800\ue000", "\ufffd\ufffd"),
        ("x" * 5000, "x" * 3999 + "…"),
        ("\x00" * 2**20 + "hidden far away", "…"),
    ],
)
def test_text_is_cleaned(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned


NASTY = st.sampled_from(["\x1b[", "\x1b]", "\x07", "\x9b", "\x1b\\", "\n", "\r", "\u202e", "\u200b", "2J", "\u2028"])


@given(st.lists(st.text(st.characters(exclude_categories=[])) | NASTY).map("".join))
@example("".join(map(chr, range(0x3000))))
def test_clean_text_has_nothing_that_a_terminal_obeys(text: str) -> None:
    cleaned = clean(text)
    assert not {unicodedata.category(char) for char in cleaned} & {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    assert not set(map(unicodedata.bidirectional, cleaned)) & {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "PDI"}
    assert len(cleaned) <= 4000
    assert clean(cleaned) == cleaned


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, Gr\u00fc\u00dfe \U0001f600", "plain text, Gr\u00fc\u00dfe \U0001f600"),
        ("a\nb\r\nc\td", "a\ufffdb\ufffd\ufffdc\ufffdd"),
        ("\x1b[31mred\x9b2J", "\ufffd[31mred\ufffd2J"),
        ("\u202eabc\u200b", "\ufffdabc\ufffd"),
        ("\ud800\ufffe\uffff", "\ufffd\ufffd\ufffd"),
        ("a\u00a0b\ue000", "a\u00a0b\ue000"),
        ("x" * 5000, "x" * 5000),
    ],
)
def test_in_a_report_each_character_that_a_terminal_would_obey_leaves_a_sign(text: str, shown: str) -> None:
    assert marked(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ttext\n\r\x1b[0m\x00\x7f, Gr\u00fc\u00dfe \U0001f600", None),
        ("\u0646\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 \U0001f469\u200d\U0001f680\ufe0f \u00a0\u00ad", None),
        ("\x802\x9b2J\x85\x9f", r"\u00802\u009b2J\u0085\u009f"),
        ("\u202eabc\u202c\u2066d\u2069\u200e\u200f\u061c", r"\u202eabc\u202c\u2066d\u2069\u200e\u200f\u061c"),
        ("a\u2028b\u2029", r"a\u2028b\u2029"),
        ("\ud800\udfff", r"\ud800\udfff"),
    ],
    ids=["ASCII", "joiners", "C1", "direction", "lines", "halves"],
)
def test_outside_a_terminal_only_control_characters_beyond_ascii_are_escaped(text: str, shown: str | None) -> None:
    assert escaped(text) == (text if shown is None else shown)
