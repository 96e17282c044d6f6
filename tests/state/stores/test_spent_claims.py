"""Packed records of spent claims: what is put in comes out, whatever the bytes."""

from hypothesis import example, given
from hypothesis import strategies as st

from bespeak.state.stores.spent_claims import Spent, SpentClaims

KEYS = st.sampled_from([bytes([0, 0]) + bytes([low]) * 14 for low in range(4)]) | st.binary(min_size=16, max_size=16)
SPENT = st.builds(
    Spent,
    st.binary(min_size=8, max_size=8) | st.just(bytes(8)),
    st.binary(min_size=8, max_size=8) | st.just(bytes(8)),
    st.integers(0, 65535),
)


ONE, OTHER = bytes([0, 0]) + bytes(14), bytes([0, 0]) + bytes([1]) * 14
"""Two keys that are kept side by side."""


@example([(ONE, Spent(bytes(8), bytes(8), 1)), (OTHER, Spent(bytes(8), bytes(8), 2)), (ONE, None)])
@given(st.lists(st.tuples(KEYS, SPENT | st.none())))
def test_spent_claims_behave_like_a_dict(steps: list[tuple[bytes, Spent | None]]) -> None:
    packed, plain = SpentClaims(), dict[bytes, Spent]()
    for key, spent in steps:
        if spent is None:
            assert packed.pop(key) == plain.pop(key, None)
        elif key not in plain:
            packed.add(key, spent)
            plain[key] = spent
        assert len(packed) == len(plain)
        assert all(packed.get(one) == plain.get(one) for one, _ in steps)


def test_the_bytes_of_a_key_that_stand_across_two_fields_are_not_that_key() -> None:
    packed, key = SpentClaims(), bytes(range(16))
    first = bytes([0, 1]) + bytes(14)
    packed.add(first, Spent(key[:8], key[8:], 7))
    assert packed.get(key) is None
    packed.add(key, Spent(bytes(8), bytes(8), 9))
    assert packed.get(key) == Spent(bytes(8), bytes(8), 9)


def test_a_bucket_with_many_records_gives_them_all_and_lets_them_all_go() -> None:
    packed = SpentClaims()
    spent = {bytes([0, 0]) + number.to_bytes(14, "big"): Spent(bytes(8), bytes(8), number) for number in range(100)}
    for key, one in spent.items():
        packed.add(key, one)
    assert {key: packed.get(key) for key in spent} == spent
    for key in list(spent)[::3]:
        assert packed.pop(key) == spent.pop(key)
    assert {key: packed.get(key) for key in spent} == spent
    for key, one in spent.items():
        assert packed.pop(key) == one
        assert packed.get(key) is None
    assert len(packed) == 0
