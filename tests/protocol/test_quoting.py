"""The other side's words in a message of ours."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.protocol.quoting import one_line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, Gr\u00fc\u00dfe", "plain, Gr\u00fc\u00dfe"),
        ("no\nERROR all is lost", "no\\nERROR all is lost"),
        ("\x1b[2J\x9b\u202e\u2066", "\\x1b[2J\\x9b\\u202e\\u2066"),
        ("x" * 500, "x" * 200),
        ("\n" * 500, "\\n" * 100),
        ("", ""),
    ],
)
def test_a_text_is_short_and_on_one_line(text: str, shown: str) -> None:
    assert one_line(text) == shown


@given(st.text(st.characters(exclude_categories=[])))
def test_no_text_breaks_a_line_or_steers_a_terminal(text: str) -> None:
    shown = one_line(text)
    assert len(shown) <= 200
    assert not {unicodedata.category(char) for char in shown} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
