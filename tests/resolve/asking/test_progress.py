"""Progress (design sections 2, 5 and 7): it travels between rounds unchanged, and knows what weighs most."""

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import to_json

from bespeak.resolve.asking.progress import Action, Kept, Progress, Settled, Shown

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
COUNT = st.integers(min_value=0, max_value=10)
PROGRESS = st.builds(
    Progress,
    st.dictionaries(TEXT, st.builds(Settled, TEXT, st.sampled_from(get_args(Action)), JSON), max_size=4),
    st.dictionaries(
        TEXT, st.builds(Shown, TEXT, TEXT, COUNT, COUNT, st.lists(TEXT, max_size=4).map(tuple)), max_size=4
    ),
    st.dictionaries(TEXT, st.builds(Kept, TEXT, JSON), max_size=4),
)


def same(one: Any, other: Any) -> bool:
    """Equal, and of the same types all the way down: `1`, `1.0` and `True` are three values."""
    return repr(one) == repr(other)


@given(PROGRESS)
@pytest.mark.long
def test_progress_travels_unchanged(progress: Progress) -> None:
    assert same(Progress.decode(progress.encode()), progress)


@given(PROGRESS)
def test_encoding_is_deterministic(progress: Progress) -> None:
    assert Progress.decode(progress.encode()).encode() == progress.encode()


def test_two_progresses_share_nothing() -> None:
    Progress().once["k"] = Kept("", 1)
    assert Progress().once == {}


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b"[{},{}]",
        b"[{},{},{},{}]",
        b"[[],{},{}]",
        b'[{"k":["pin","maybe",null]},{},{}]',
        b'[{"k":["pin","accept"]},{},{}]',
        b'[{"k":[1,"accept",null]},{},{}]',
        b'[{},{"k":["pin","rests",0,1]},{}]',
        b'[{},{"k":["pin","rests","many",1,[]]},{}]',
        b"[{},{},{}",
        b"\xff",
    ],
)
def test_anything_else_is_refused(raw: bytes) -> None:
    with pytest.raises(ValueError, match="not the progress of a call in this version"):
        Progress.decode(raw)


def test_the_heaviest_answer_is_named_with_its_size() -> None:
    content = {"text": "x" * 100}
    progress = Progress({"small": Settled("p", "accept", {"a": 1}), "large": Settled("p", "accept", content)})
    assert progress.heaviest() == f"the answer to 'large' ({len(to_json(content))} bytes)"


def test_a_once_value_can_be_the_heaviest() -> None:
    progress = Progress({"small": Settled("p", "accept", {"a": 1})}, once={"price_list": Kept("", "x" * 98)})
    assert progress.heaviest() == "the once=True value of 'price_list' (100 bytes)"


def test_without_answers_the_open_questions_weigh_most() -> None:
    progress = Progress(shown={"k": Shown("p", "r", renderings=("x" * 500,))})
    assert progress.heaviest() == "the set of open questions"
