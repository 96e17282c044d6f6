"""What is said of a line in a suite that is indented otherwise than the lines above it."""

import pytest

from bespeak.testing.suite.yaml_positions import YamlError, read_yaml

HEAD = "version: 1\ntests:\n  - name: one\n    tool: pay\n"
"""Four lines, of which the third and the fourth are indented."""
ONE_TEXT = ', or quote the text if both lines are one text that contains ": "'


def said(text: str) -> tuple[int, str]:
    """The line and the message of a mistake."""
    with pytest.raises(YamlError) as caught:
        read_yaml(text)
    return caught.value.line, caught.value.message


LIKE_THE_LINES = "indent it like the lines that it belongs to"


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (
            "   expect: {text: a}\n",
            f"by 3 spaces, less than line 4 (4 spaces) and more than line 3 (2 spaces); {LIKE_THE_LINES}",
        ),
        (
            " - name: two\n",
            f"by 1 space, less than line 3 (2 spaces) and more than line 2 (0 spaces); {LIKE_THE_LINES}",
        ),
        (
            "  expect: {text: a}\n",
            "by 2 spaces, like the list entry on line 3; indent it more if it belongs to that entry, "
            'or begin it with "- " if it is the next one',
        ),
        (
            "    - name: two\n",
            "by 4 spaces and begins a list entry, but line 4, which is indented the same, does not; "
            "the list entry on line 3 is indented by 2 spaces",
        ),
    ],
    ids=["between two keys", "an entry before the list", "a key beside entries", "an entry beside keys"],
)
def test_a_line_that_is_indented_too_little_is_compared_with_those_above(more: str, expected: str) -> None:
    assert said(HEAD + more) == (5, f"this line is indented {expected}")


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        (f"{HEAD}      expect: {{text: a}}\n", 5, f"6 spaces, more than line 4 (4 spaces){{}}4 spaces{ONE_TEXT}"),
        (f"{HEAD}\n  # a comment\n     b: c\n", 7, "5 spaces, more than line 4 (4 spaces){}4 spaces"),
        ("version: 1\n tests: []\n", 2, f"1 space, more than line 1 (0 spaces){{}}0 spaces{ONE_TEXT}"),
        ("- a: b\n   c: d\n", 2, f"3 spaces, more than line 1 (2 spaces with its dash){{}}2 spaces{ONE_TEXT}"),
        ("a: {b: c}\n  d: e\n", 2, "2 spaces, more than line 1 (0 spaces){}0 spaces"),
    ],
    ids=["a key", "after a comment", "at the top", "in an entry", "after a map in braces"],
)
def test_a_line_that_is_indented_too_far_names_the_value_above(text: str, line: int, expected: str) -> None:
    value = ", which has a value already; indent it by "
    assert said(text) == (line, f"this line is indented by {expected.format(value)}")


def test_a_file_whose_first_line_is_indented_is_compared_with_it() -> None:
    expected = "this line is indented by 0 spaces, less than line 1 (2 spaces); indent it like that line"
    assert said("  version: 1\ntests: []\n") == (2, expected)


@pytest.mark.parametrize(
    "text", [f"{HEAD}    skip: not: now\n", "a: b: c\n", "a:\n  b: c: d\n", "a: |\n  text\nb: c: d\n"]
)
def test_text_with_a_colon_is_to_be_quoted(text: str) -> None:
    assert said(text)[1] == 'mapping values are not allowed here (quote text that contains ": ")'
