"""What a command says on standard error: a server's words in it cannot pass for a line of ours, nor steer the terminal."""

import unicodedata
from contextlib import redirect_stderr
from io import StringIO

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bespeak.cli.output import complain, result_lines

INDENT = " " * len("bespeak: ")
NASTY = st.sampled_from(
    [
        "\n",
        "\r",
        "\x1b[2J",
        "\x9b2J",
        "\x85",
        "\u2028",
        "\u202e",
        "\u2066",
        "bespeak: ",
        " " * 80,
        "\u8c8c" * 40,
        "\u034f",
    ]
)
SERVER_TEXT = st.lists(st.text(st.characters(exclude_categories=[])) | NASTY).map("".join)


class Terminal(StringIO):
    """A terminal of eighty columns."""

    def isatty(self) -> bool:
        return True


def complained(problem: str, stderr: StringIO) -> list[str]:
    with redirect_stderr(stderr):
        assert complain(problem, 3) == 3
    assert stderr.getvalue().endswith("\n")
    return stderr.getvalue()[:-1].split("\n")


def columns(row: str) -> int:
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in row)


def harmless(text: str) -> bool:
    """Nothing in it that a terminal obeys: no control characters, nothing that turns the order of what is read."""
    return not any(unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp") for char in text)


@given(SERVER_TEXT)
@example("no\nbespeak: the call was approved")
@example("no" + " " * 69 + "bespeak: the call was approved")
def test_no_line_of_a_complaint_but_the_first_starts_like_ours(text: str) -> None:
    for stderr in (StringIO(), Terminal()):
        first, *others = complained(f"the call failed: {text}", stderr)
        assert first.startswith("bespeak: the call failed: ")
        assert all(line.startswith(INDENT) for line in others)
        assert all(map(harmless, [first, *others]))


@given(SERVER_TEXT)
def test_at_a_terminal_no_line_of_a_complaint_is_wrapped_by_the_terminal(text: str) -> None:
    assert all(columns(line) <= 80 for line in complained(text, Terminal()))


def test_elsewhere_lines_stay_as_long_as_they_are() -> None:
    assert complained("x" * 500 + "\nsecond", StringIO()) == [f"bespeak: {'x' * 500}", f"{INDENT}second"]


@pytest.mark.parametrize(
    ("text", "what"), [("x" * 100_000, "100,000 characters"), ("x\n" * 20_000, "40,000 characters")]
)
def test_a_very_long_error_message_is_cut(text: str, what: str) -> None:
    lines = complained(text, Terminal())
    assert lines[-1] == f"{INDENT}(cut: the message has {what})"
    assert len(lines) <= 302
    assert sum(map(len, lines)) < 40_000


# Results at a terminal


@pytest.mark.parametrize("text", ["one\ntwo", "", "\n", f"{'x' * 500}\n  y  "])
def test_the_lines_of_a_result_are_shown_as_they_are(text: str) -> None:
    assert "\n".join(result_lines(text, Terminal())) == text


@given(SERVER_TEXT)
@example("fine\nbespeak: it failed")
@example("fine\n \tbespeak: it failed")
@example(f"{' ' * 80}bespeak: it failed")
@example("be\u034fspeak: it failed")
@example("\x1bbespeak:")
def test_no_line_of_a_result_starts_like_ours(text: str) -> None:
    rows = list(result_lines(text, Terminal()))
    assert all(map(harmless, rows))
    for row in rows:
        if "bespeak:" in row.replace("\u034f", ""):
            assert row.startswith(f"{INDENT} | ")
            assert columns(row) <= 80
