"""Handles: what stands in a cassette for a key that is another whenever the wording changes."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.conversation.question_names import name_of
from bespeak.testing.cassettes.key_handles import KeyHandles, is_handle
from tests.testing.taping import Json, form


def turn(*keys: str, **more: Any) -> Json:
    """A turn that asks under these keys."""
    return {"asked": [{"key": key, "request": form("Which?")} for key in keys], **more}


def handles(*turns: Json, written: str = "") -> dict[str, str]:
    return dict(KeyHandles.of(turns, written).by_key)


def test_handles_are_numbered_by_name_in_the_order_of_their_first_appearance() -> None:
    turns = [turn("b~00000001"), turn("a~00000001", "b~00000002"), turn("b~00000001", "c")]
    assert handles(*turns) == {"b~00000001": "b~1", "a~00000001": "a~1", "b~00000002": "b~2"}


def test_ids_of_the_compatibility_dialect_have_handles_too() -> None:
    listed = [{"id": "city~00000001"}, {"id": 5}, "city~00000002", {}]
    assert handles({"listed": listed}) == {"city~00000001": "city~1"}


def test_a_key_without_an_end_has_no_handle() -> None:
    assert handles(turn("city", "city~1", "city~DEADBEEF", "~deadbeef", "")) == {}


def test_a_key_that_the_suite_writes_out_is_kept_as_it_is() -> None:
    turns = [turn("city~00000001", "city~00000002")]
    assert handles(*turns, written="answers\ncity~00000002") == {"city~00000001": "city~1"}


@pytest.mark.parametrize(
    "turns",
    [
        [turn("city~1"), turn("city~00000001", "city~00000002")],
        [turn("city~00000001", "city~00000002"), turn("city~1")],
    ],
)
def test_a_key_that_looks_like_a_handle_keeps_its_place(turns: list[Json]) -> None:
    assert handles(*turns) == {"city~00000001": "city~2", "city~00000002": "city~3"}


def test_a_handle_replaces_its_key_in_every_text() -> None:
    found = KeyHandles.of([turn("größe:ask~0000000a", "ask~0000000a", "ask~0000000b")], "")
    said = "ask~0000000b, größe:ask~0000000a and ask~0000000a; not xask~0000000c"
    assert found.stored(said) == "ask~2, größe:ask~1 and ask~1; not xask~0000000c"
    inside = json.dumps({"größe:ask~0000000a": ["ask~0000000b"]})
    assert found.stored({"ask~0000000b": [inside, 5, None]}) == {
        "ask~2": ['{"gr\\u00f6\\u00dfe:ask~1": ["ask~2"]}', 5, None]
    }


def test_without_keys_that_change_nothing_is_touched() -> None:
    turns = [turn("city", "city~1")]
    assert KeyHandles.of(turns, "").stored(turns) is turns


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        *((text, True) for text in ("city~1", "shop:ask#2~10", "a~1~2", "a\nb~1")),
        *((text, False) for text in ("city", "city~0", "city~01", "~1", "city~", "city~-1", "city~1\n", "city~٣", "")),
    ],
)
def test_a_handle_is_a_name_and_a_number(text: str, is_one: bool) -> None:
    assert is_handle(text) is is_one


def test_a_listed_handle_stands_for_a_key_of_the_same_name() -> None:
    listed = ["city~1", "city~2", "units~1"]
    found = KeyHandles.listed(listed, [turn(*listed, "other~1")])
    keys = [found.key(handle) for handle in listed]
    assert [name_of(key) for key in keys] == ["city", "city", "units"]
    assert len(set(keys)) == 3
    assert [found.stored(key) for key in keys] == listed
    assert found.key("other~1") == "other~1"
    assert [KeyHandles.listed(listed, []).key(handle) for handle in listed] == keys, "the same in every run"


def test_a_key_that_is_made_up_is_none_that_the_cassette_has() -> None:
    (made_up,) = KeyHandles.listed(["city~1"], []).by_key
    (another,) = KeyHandles.listed(["city~1"], [turn("city~1", made_up)]).by_key
    assert made_up != another
    assert name_of(another) == "city"


NAMES = st.sampled_from(["a", "b", "a~b", "xa", "a~00000000", "", "~1", "ü"])
ENDS = st.sampled_from(["", "~1", "~2", "~0000000a", "~0000000b"])
KEYS = st.tuples(NAMES, ENDS).map("".join)


@given(st.lists(st.lists(KEYS, max_size=4, unique=True), max_size=4))
def test_no_two_keys_of_a_conversation_are_stored_alike(rounds: list[list[str]]) -> None:
    turns = [turn(*keys) for keys in rounds]
    found = KeyHandles.of(turns, "")
    stored = found.stored(turns)
    keys = dict.fromkeys(key for keys in rounds for key in keys)
    by_key = {key: found.by_key.get(key, key) for key in keys}
    assert len(set(by_key.values())) == len(keys)
    assert [[one["key"] for one in asked["asked"]] for asked in stored] == [
        [by_key[key] for key in keys] for keys in rounds
    ]
