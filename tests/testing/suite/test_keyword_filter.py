"""`-k`: which titles an expression selects."""

import shlex
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.testing.runner import Runner
from bespeak.testing.suite.keyword_filter import keyword
from bespeak.testing.suite.plan import items_of
from tests.testing.suite_files import GOOD, load


@pytest.mark.parametrize(
    ("expression", "title", "meant"),
    [
        ("refund", "asks what to Refund", True),
        ("refund", "a payment", False),
        ("what to refund", "asks what to refund", True),
        ("asks and refund", "asks what to refund", True),
        ("asks and not refund", "asks what to refund", False),
        ("not not pay", "pay", True),
        ("a and b or c", "c", True),
        ("a and (b or c)", "c", False),
        ("not (a or b)", "a", False),
        ("not a or b", "b", True),
        ('"one [b, 2025-11-25]"', "one [b, 2025-11-25]", True),
        ('"this and that"', "this and that", True),
        ("'not found'", "is not found", True),
        ('"f(x)"', "calls f(x) twice", True),
        ("it's", "it's there", True),
        ("AND or that", "that", None),
        ("this AND that", "that and this", True),
    ],
)
def test_an_expression_means_the_titles_it_fits(expression: str, title: str, meant: bool | None) -> None:
    if meant is None:
        with pytest.raises(ValueError, match="-k"):
            keyword(expression)
    else:
        assert keyword(expression)(title) is meant


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("", "a word is missing; write words with and, or, not and parentheses"),
        ("and", "a word is missing"),
        ("()", "a word is missing"),
        ("(a", "a parenthesis is not closed"),
        ("a)", "unexpected ')' in 'a)'"),
        ("a not b", "unexpected 'not' in 'a not b'"),
        ('""', "-k"),
        ('"', "-k"),
        ("(" * 5000 + "a" + ")" * 5000, "-k"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_an_expression_that_is_invalid_is_refused(expression: str, said: str) -> None:
    with pytest.raises(ValueError, match="-k: ") as caught:
        keyword(expression)
    assert said in str(caught.value)
    assert len(str(caught.value)) < 500


@given(st.text(max_size=30))
def test_no_expression_does_anything_but_choose_or_be_refused(expression: str) -> None:
    with suppress(ValueError):
        keyword(expression)("a title")


NAMES: list[Any] = [
    "this and that or not",
    'says "hello" twice',
    "it's there",
    "f(x)",
    "two  spaces",
    r"back\slash",
    "Größe",
    "[b, c]",
]


@pytest.mark.parametrize("name", NAMES)
async def test_the_command_that_runs_a_test_again_chooses_it(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BESPEAK_NOT_SET", raising=False)  # so that it fails at once, and no server is needed
    suite = load(
        tmp_path,
        GOOD.replace("one", "'" + name.replace("'", "''") + "'") + "    arguments: {a: '${env:BESPEAK_NOT_SET}'}\n",
    )
    (item,) = items_of(suite)
    result = await Runner().run(item)
    *_, option, expression = shlex.split(result.again)
    assert option == "-k"
    assert keyword(expression)(item.title)
    assert not keyword(expression)("another")
