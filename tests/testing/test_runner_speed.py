"""Scripted conversations are quick (testing.md): a suite of hundreds takes seconds, not minutes."""

import time

import pytest

from tests.testing.conftest import Bench

pytestmark = pytest.mark.timing

TESTS = 200
LONGEST = 20.0
"""Seconds of this process's own time, which others on the machine do not lengthen much. It takes about two."""


@pytest.fixture
def many(bench: Bench) -> Bench:
    bench.suite(
        "\n".join(
            f"- {{name: number {number}, tool: forecast, arguments: {{loc: L{number}}}, "
            f"inputResponses: {{city: C{number}, units: C}}, expect: {{rounds: 2, text: C{number} in C}}}}"
            for number in range(TESTS)
        )
    )
    return bench


@pytest.mark.long
def test_two_hundred_tests_of_two_rounds_take_seconds_on_the_command_line(many: Bench) -> None:
    began = time.process_time()
    code, output = many.bespeak("test")
    seconds = time.process_time() - began
    print(f"\n{TESTS} tests of two rounds on the command line: {seconds:.2f} s")
    assert code == 0
    assert f"{TESTS} passed in " in output
    assert seconds < LONGEST
