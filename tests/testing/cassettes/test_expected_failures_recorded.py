"""Tests that are expected to fail are recorded and replayed like others."""

from pathlib import Path

import pytest

from bespeak.testing.report.results import Outcome
from tests.testing.desk import OURS
from tests.testing.taping import LEGACY, MODERN, Desk, Json, Trip, run_suite, stale, text, trip, write_suite


@pytest.fixture
def taped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    return Desk(tmp_path, monkeypatch)


WRONG: Json = trip(expect={"text": "Rainy."}, xfail="the forecast is wrong")
UNKNOWN: Json = {"name": "a trip", "tool": "forcast", "xfail": "there is no such tool"}


def unknown() -> Trip:
    return Trip(rounds=(), error={"code": -32602, "message": "Unknown tool: forcast"})


@pytest.mark.parametrize("mode", ["once", "new", "rewrite"])
@pytest.mark.parametrize(("test", "server"), [(WRONG, Trip()), (UNKNOWN, unknown())], ids=["expectation", "tool"])
async def test_an_expected_failure_is_recorded_replayed_and_verified(
    taped: Desk, test: Json, server: Trip, mode: str
) -> None:
    taped.server = server
    assert (await taped.run(test, record=mode)).outcome is Outcome.XFAILED
    assert (await taped.run(test, verify=True)).outcome is Outcome.XFAILED
    connected = taped.connections
    result = await taped.run(test, record="none" if mode == "rewrite" else mode)
    assert (result.outcome, result.notes, taped.connections) == (Outcome.XFAILED, [], connected)


@pytest.mark.parametrize("era", [MODERN, LEGACY])
async def test_a_question_without_an_answer_that_is_expected_is_replayed(tmp_path: Path, era: str) -> None:
    test = trip(inputResponses={"city": "Lisbon"}, xfail="no units yet")
    suite = write_suite(tmp_path, test, servers=OURS, eras=[era])
    for mode in ("once", "none"):
        (result,) = await run_suite(suite, record=mode)
        assert result.outcome is Outcome.XFAILED, result.failures
    (result,) = await run_suite(suite, verify=True)
    assert result.outcome is Outcome.XFAILED, result.failures


async def test_a_replay_that_no_longer_fails_says_so(taped: Desk) -> None:
    await taped.run(WRONG, record="once")
    result = await taped.run({**WRONG, "expect": {"text": "Sunny."}})
    assert [one.message for one in result.failures] == [
        "the test is marked xfail (the forecast is wrong), but it passed; remove xfail"
    ]


async def test_a_server_that_does_otherwise_is_no_expected_failure(taped: Desk) -> None:
    await taped.run(WRONG, record="once")
    taped.server = Trip(result=text("Foggy."))
    result = await taped.run(WRONG, verify=True)
    assert result.outcome is Outcome.FAILED
    assert stale(result).path == "turns[2].result.content[0].text"


async def test_turns_that_an_expected_failure_does_not_play_are_stale(taped: Desk) -> None:
    await taped.run(WRONG, record="once")
    result = await taped.run({**WRONG, "inputResponses": {}})
    assert result.outcome is Outcome.FAILED
    assert stale(result).message.startswith("2 recorded turns were never played")


async def test_a_failure_that_only_the_live_server_shows_is_not_recorded(taped: Desk) -> None:
    class Lost(Trip):
        """A server that breaks off in the middle of a call."""

        def reply(self, params: Json) -> Json:
            raise ConnectionError("the server has gone away")

    taped.server = Lost()
    result = await taped.run({**trip(xfail="it crashes"), "redact": []}, record="once")
    assert result.outcome is Outcome.XFAILED
    assert result.notes == [
        "trip.bespeak.yaml:1: not recorded: only the live server fails the test like this, and a replay would not"
    ]
    assert not taped.tapes.exists()


@pytest.mark.parametrize("mode", ["new", "rewrite"])
async def test_a_recording_with_a_plain_value_does_not_stay_because_no_new_one_is_possible(
    taped: Desk, mode: str
) -> None:
    await taped.run(WRONG, record="once")
    redact: list[Json] = [{"pattern": "Sunny"}]  # in a replay, any expectation of it is met
    (note,) = (await taped.run(WRONG, record=mode, redact=redact)).notes
    assert note.endswith("; the earlier recording had a value that is redacted now, and was removed")
    assert list(taped.tapes.iterdir()) == []
