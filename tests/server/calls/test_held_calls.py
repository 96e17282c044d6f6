"""How many calls are held while their page is open, and how many of one holder."""

from contextlib import ExitStack

from bespeak.server.calls.held_calls import MOST_HELD, HeldCalls


def held(calls: HeldCalls, stack: ExitStack, holder: str | None, count: int) -> int:
    """Try to hold some calls, and return how many are held."""
    return sum(stack.enter_context(calls.hold(holder)) for _ in range(count))


def test_no_more_calls_are_held_than_the_bound_and_each_leaves_its_place() -> None:
    calls = HeldCalls()
    with ExitStack() as stack:
        assert held(calls, stack, None, MOST_HELD + 5) == MOST_HELD == 1024
        with calls.hold("address 192.0.2.1") as room:
            assert not room
    with ExitStack() as stack:
        assert held(calls, stack, None, MOST_HELD + 5) == MOST_HELD


def test_above_half_of_them_one_holder_has_a_tenth() -> None:
    calls = HeldCalls()
    with ExitStack() as stack:
        assert held(calls, stack, "principal ana", 600) == 513
        assert held(calls, stack, "principal ben", 600) == 102
        assert held(calls, stack, "address 192.0.2.1", 600) == 102
