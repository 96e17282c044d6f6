"""The suite for tills that is shipped: green against tills that keep the protocol, and each broken one is caught.

testing.md section 2 (hostile tests); every failure names the rule that was broken.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from bespeak.conversation.protocol_rules import RULES
from bespeak.testing.report.results import Result
from bespeak.testing.runner import Options, Runner
from bespeak.testing.suite.keyword_filter import keyword
from bespeak.testing.suite.loader import Suite, load_suite
from bespeak.testing.suite.plan import Item, items_of

pytestmark = pytest.mark.timing

ROOT = Path(__file__).parents[2]
SUITE = ROOT / "suites" / "hostile.bespeak.yaml"
PAID = "a payment is confirmed once and made once"


@pytest.fixture(scope="module")
def suite() -> Suite:
    return load_suite(SUITE)


async def run(suite: Suite, server: str | None = None, only: str = "") -> list[Result]:
    """The tests of the suite, all or some, against its own server or another."""
    wanted = keyword(only) if only else None
    items = [item for item in items_of(suite) if wanted is None or wanted(item.title)]
    options = Options(servers={} if server is None else {"till": server}, start=ROOT)

    async def some(items: Sequence[Item]) -> list[Result]:
        runner = Runner(options)
        try:
            return [await runner.run(item) for item in items]
        finally:
            await runner.close()

    first, second = await asyncio.gather(some(items[: len(items) // 2]), some(items[len(items) // 2 :]))
    return first + second


def broken(name: str) -> str:
    return f"python {ROOT / 'suites' / 'broken' / name}.py"


def impatient(suite: Suite) -> Suite:
    """The suite, with a shorter timeout for its tests."""
    tests = [test.model_copy(update={"timeout": 0.5}) for test in suite.model.tests]
    return Suite(suite.path, suite.model.model_copy(update={"tests": tests}), suite.document)


def failed(results: Sequence[Result]) -> dict[str, list[str]]:
    """What each failed test says."""
    return {result.name: [str(failure) for failure in result.failures] for result in results if not result.passed}


@pytest.mark.long
async def test_the_till_of_this_framework_passes(suite: Suite) -> None:
    results = await run(suite)
    assert failed(results) == {}
    assert len(results) == len(suite.model.tests) == 16


@pytest.mark.long
async def test_a_till_without_a_framework_passes(suite: Suite) -> None:
    assert failed(await run(suite, broken("good"))) == {}


LOST = "a lost response and the same request again pay once"
ALTERED = "an altered state is refused"
UNASKED = "who cannot be asked is told so, and nothing is paid"
PAGES = "a form is not sent to who can only open pages"
CAUGHT: dict[str, dict[str, tuple[str, str]]] = {
    "tampered": {
        ALTERED: ("state-verified", "accepted a requestState with one character altered"),
        "half a state is refused": ("state-verified", "accepted a requestState cut in half"),
        "an empty state is refused": ("state-verified", "accepted an empty requestState"),
        "an approval of one payment is none of another": ("state-verified", "issued for other arguments"),
    },
    "twice": {LOST: ("single-use", "the request was sent again: structuredContent")},
    "undeclared": {
        UNASKED: ("undeclared", "'confirm' asks for elicitation.form, which the client did not declare"),
        PAGES: ("undeclared", "'confirm' asks for elicitation.form, which the client did not declare"),
    },
    "listing": {PAID: ("dialect", "asks with an array of inputRequests and no resultType")},
    "printing": {PAID: ("stdout", "opening the drawer")},
}
"""What each broken till does wrong: the test that finds it, the rule, and what is said."""
WHOLE = ("tampered", "twice", "undeclared")
"""With these the whole suite is run: what they do right must not be held against them."""


@pytest.mark.parametrize("name", CAUGHT)
@pytest.mark.long
async def test_each_broken_till_is_caught_with_the_rule_it_broke_and_nothing_else(suite: Suite, name: str) -> None:
    only = "" if name in WHOLE else " or ".join(f'"{test}"' for test in CAUGHT[name])
    failures = failed(await run(suite, broken(name), only))
    assert set(failures) == set(CAUGHT[name])
    for test, (rule, said) in CAUGHT[name].items():
        assert said in failures[test][0]
        assert failures[test][0].endswith(f"({rule}: {RULES[rule]})")


@pytest.mark.parametrize(
    ("name", "test", "said"),
    [
        ("endless", LOST, "the server is still asking after 5 answered rounds; it asked:"),
        ("hanging", PAID, "server 'till' did not respond: no answer to tools/call within 0.5 s"),
    ],
)
@pytest.mark.long
async def test_a_till_that_never_ends_a_call_fails_but_is_not_said_to_break_a_rule(
    suite: Suite, name: str, test: str, said: str
) -> None:
    """The protocol limits neither the rounds of a call nor its time."""
    (failures,) = failed(await run(impatient(suite), broken(name), f'"{test}"')).values()
    assert failures[0].splitlines()[0] == said


@pytest.mark.long
async def test_a_till_that_hangs_is_started_again_for_the_next_test(suite: Suite) -> None:
    runner = Runner(Options(servers={"till": broken("hanging")}, start=ROOT))
    titles = [ALTERED, "two questions, one after the other"]
    items = [item for item in items_of(impatient(suite)) if item.test.name in titles]
    try:
        hung, next_ = [await runner.run(item) for item in items]
    finally:
        await runner.close()
    assert "server 'till' did not respond" in hung.failures[0].message
    assert next_.passed


async def test_a_failure_shows_its_line_its_rounds_and_how_to_run_it_again(suite: Suite) -> None:
    (result,) = await run(suite, broken("endless"), f'"{LOST}"')
    number = next(number for number, test in enumerate(suite.model.tests) if test.name == LOST)
    assert (result.suite, result.line) == ("suites/hostile.bespeak.yaml", suite.line("tests", number))
    assert [list(one.asked) for one in result.rounds] == [["confirm"]] * 5
    assert result.again.startswith("bespeak test suites/hostile.bespeak.yaml ")
    assert LOST in result.again
