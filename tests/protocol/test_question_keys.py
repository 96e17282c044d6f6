"""The name and the suffix in a question's key."""

import pytest

from bespeak.protocol.question_keys import bare_name, full_key


def test_a_full_key_is_the_name_and_eight_digits_of_the_digest():
    assert full_key("shop:confirm", "0123456789abcdef") == "shop:confirm~01234567"


@pytest.mark.parametrize("name", ["shop:confirm", "confirm", "shop:confirm#1", "a~b"])
def test_the_bare_name_of_a_full_key_is_the_name_it_was_made_from(name: str):
    assert bare_name(full_key(name, "0123456789abcdef")) == name


@pytest.mark.parametrize(
    "key", ["confirm", "", "confirm~", "confirm~1", "confirm~0123456", "confirm~012345678", "c~ABCDEF01"]
)
def test_a_key_without_such_a_suffix_is_its_own_name(key: str):
    assert bare_name(key) == key


def test_only_one_suffix_is_taken_off():
    assert bare_name("confirm~01234567~89abcdef") == "confirm~01234567"


def test_a_line_break_after_the_suffix_is_part_of_the_name():
    assert bare_name("confirm~01234567\n") == "confirm~01234567\n"
