"""After an altered state was accepted, the request is sent once more without any state. That request may crash the server."""

import pytest

from bespeak.testing.report.results import Outcome
from tests.testing.canned import Canned, Hold, Json, asking, told
from tests.testing.canned import hold as hold

TEST = "  - {{name: a, tool: pay, inputResponses: {{ok: x}}, tamper: {{round: 1, requestState: flip}}{more}}}\n"
ACCEPTED = "the server accepted a requestState with one character altered; it must answer with an error"
CRASHED = "the server did not answer the same request without any requestState: the server has hung up"


class Fragile(Canned):
    """A server that takes any state, and crashes if there is none."""

    def __init__(self, *replies: Json, error: Exception | None = None) -> None:
        super().__init__(*replies)
        self._error = error or ConnectionError("the server has hung up")

    async def replied(self, response: bytes) -> bytes:
        if len(self.sent) > 1 and "requestState" not in self.params[-1]:
            raise self._error
        return response


async def test_an_accepted_state_is_reported_even_if_the_next_request_crashes_the_server(hold: Hold) -> None:
    (result,) = await hold(Fragile(asking("ok"), told("Paid.")), TEST.format(more=""))
    (failure,) = result.failures
    assert (failure.message, failure.rule, failure.hint) == (ACCEPTED, "state-verified", CRASHED)
    assert result.notes == []


async def test_a_request_that_is_not_answered_in_time_hides_nothing_either(hold: Hold) -> None:
    server = Fragile(asking("ok"), told("Paid."), error=TimeoutError("no response within 5 s"))
    (result,) = await hold(server, TEST.format(more=""))
    assert [one.message for one in result.failures] == [ACCEPTED]


async def test_an_expected_finding_does_not_hide_the_crash(hold: Hold) -> None:
    (result,) = await hold(Fragile(asking("ok"), told("Paid.")), TEST.format(more=", xfail: takes any state"))
    assert result.outcome is Outcome.XFAILED
    (note,) = result.notes
    assert note.endswith(f"/desk.bespeak.yaml:4: {CRASHED}")


@pytest.mark.parametrize("more", ["", ", xfail: takes any state"])
async def test_a_crash_alone_is_not_the_expected_finding(hold: Hold, more: str) -> None:
    server = Fragile(asking("ok"), told("No.", isError=True))
    (result,) = await hold(server, TEST.format(more=f", expect: {{isError: true}}{more}"))
    assert result.outcome is Outcome.FAILED
    assert [one.message for one in result.failures] == [CRASHED]
