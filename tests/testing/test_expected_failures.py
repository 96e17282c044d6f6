"""Tests that are skipped, and tests that are expected to fail."""

import pytest

from bespeak.testing.report.results import Failure, Kind, Outcome
from tests.testing.canned import Canned, Gone, Hold, error, messages, told
from tests.testing.canned import hold as hold


async def test_a_skipped_test_is_not_run(hold: Hold) -> None:
    server = Canned()
    (result,) = await hold(server, "  - {name: a, tool: x, skip: not ready, setup: [[sh, -c, exit 1]], tags: [slow]}\n")
    assert (result.outcome, result.reason, result.passed) == (Outcome.SKIPPED, "not ready", True)
    assert result.tags == ("slow",)
    assert server.entered == 0


async def test_a_test_that_fails_as_expected_does_not_fail_the_run(hold: Hold) -> None:
    (result,) = await hold(Canned(told("b")), "  - {name: a, tool: x, expect: {text: a}, xfail: says b}\n")
    assert (result.outcome, result.reason, result.passed) == (Outcome.XFAILED, "says b", True)
    assert messages([result]) == ['text: expected "a", got "b"']


async def test_a_test_that_passes_against_expectation_fails(hold: Hold) -> None:
    (result,) = await hold(Canned(told("a")), "  - {name: a, tool: x, expect: {text: a}, xfail: says b}\n")
    assert result.outcome is Outcome.FAILED
    assert messages([result]) == ["the test is marked xfail (says b), but it passed; remove xfail"]


async def test_a_rule_that_a_server_breaks_may_be_expected(hold: Hold) -> None:
    (result,) = await hold(Canned({"resultType": "odd"}), "  - {name: a, tool: x, xfail: odd}\n")
    assert result.outcome is Outcome.XFAILED


class Away(Canned):
    """A server that cannot be reached."""

    async def __aenter__(self) -> Canned:
        raise ConnectionError("nobody is there")


@pytest.mark.parametrize(
    ("more", "kind"),
    [
        ("server: gone", Kind.UNREACHABLE),
        ("setup: [[sh, -c, exit 3]]", Kind.SETUP),
        ("arguments: {a: '${env:BESPEAK_NOT_SET}'}", Kind.FAILED),
    ],
)
async def test_what_keeps_a_test_from_running_is_not_the_expected_failure(hold: Hold, more: str, kind: Kind) -> None:
    head = "version: 1\nserver: desk\nservers: {desk: {command: [desk]}, gone: {command: [desk], declare: {}}}\n"
    tests = f"  - {{name: a, tool: x, xfail: odd, {more}}}\n"
    (result,) = await hold(Away() if "gone" in more else Canned(), tests, head)
    assert result.outcome is Outcome.FAILED
    assert {failure.kind for failure in result.failures} == {kind}


async def test_a_connection_that_breaks_may_be_expected(hold: Hold) -> None:
    (result,) = await hold(Gone(), "  - {name: a, tool: x, xfail: crashes}\n")
    assert result.outcome is Outcome.XFAILED


CAPTURES = (
    "  - {{name: a, tool: x, capture: {{id: text}}, {more}}}\n  - {{name: b, tool: x, arguments: {{id: '${{id}}'}}}}\n"
)


@pytest.mark.parametrize(
    ("more", "how"), [("skip: not ready", "was skipped"), ("xfail: broken, expect: {text: z}", "failed")]
)
async def test_a_value_that_was_not_captured_is_missed(hold: Hold, more: str, how: str) -> None:
    _, second = await hold(Canned(told("i")), CAPTURES.format(more=more))
    assert messages([second]) == [f"${{id}} has no value: the test 'a', which captures it, {how}"]


async def test_a_case_can_be_skipped_or_be_expected_to_fail_by_itself(hold: Hold) -> None:
    cases = "[{name: a}, {name: b, skip: later}, {name: c, expect: {text: z}, xfail: says ok}]"
    results = await hold(Canned(told("ok")), f"  - {{name: t, tool: x, expect: {{text: ok}}, cases: {cases}}}\n")
    assert [result.outcome for result in results] == [Outcome.PASSED, Outcome.SKIPPED, Outcome.XFAILED]


async def test_more_failures_take_the_excuse_away(hold: Hold) -> None:
    results = await hold(Canned(error()), "  - {name: a, tool: x, xfail: no}\n  - {name: b, tool: x, skip: no}\n")
    assert [result.with_failures([]) for result in results] == results
    more = [result.with_failures([Failure("the floor is wet")]) for result in results]
    assert [result.outcome for result in more] == [Outcome.FAILED] * 2
    assert [result.failures[-1].message for result in more] == ["the floor is wet"] * 2
