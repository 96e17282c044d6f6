"""State keys are replaced while servers run: no state is refused, and sessions of older clients go on (section 7)."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import pairwise, product
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bespeak import Client, MCPError
from bespeak.cli.commands import app
from bespeak.state.seal import KEYS_VARIABLE
from tests.rules.raw_calls import accept, nobody, said, send
from tests.transports.http.legacy.older_client import Desk, Older, Served, accepted, call, served

BEFORE = "o" * 43


@pytest.fixture
def rings() -> list[str]:
    """The values of the environment variable before a rotation, after each of its steps, and when the old key is removed."""
    printed = CliRunner(env={KEYS_VARIABLE: BEFORE}).invoke(app, ["keys", "rotate"]).stdout
    steps = [line.partition("=")[2] for line in printed.splitlines() if not line.startswith("#")]
    return [BEFORE, *steps, steps[-1].partition(",")[0]]


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"sqlite:{tmp_path / 'desk.db'}?durable=no"


@pytest.fixture
def worker(store: str, monkeypatch: pytest.MonkeyPatch) -> "Workers":
    return Workers(store, monkeypatch)


class Workers:
    """Makes workers that share one store, with the keys that the environment has when each of them starts."""

    def __init__(self, store: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self._store = store
        self._monkeypatch = monkeypatch

    def __call__(self, ring: str) -> Desk:
        self._monkeypatch.setenv(KEYS_VARIABLE, ring)
        return Desk(store=self._store)

    @asynccontextmanager
    async def serving(self, *rings: str) -> AsyncGenerator[list[Served]]:
        first, second = (self(ring) for ring in rings)
        async with served(first.mcp) as one, served(second.mcp) as other:
            yield [one, other]


YES = {"really": accept(value=True), "sure": accept(value=True)}


@pytest.mark.long
async def test_a_call_begun_in_one_step_finishes_in_the_next_or_the_last_one(
    rings: list[str], worker: Workers, caplog: pytest.LogCaptureFixture
) -> None:
    finished = 0
    for neighbours in pairwise(rings):
        both = [worker(ring).mcp for ring in neighbours]
        async with (
            Client(both[0], elicitation_callback=nobody) as one,
            Client(both[1], elicitation_callback=nobody) as other,
        ):
            for begins, goes_on, ends in product((one, other), repeat=3):
                asked = await send(begins, "approve_twice")
                again = await send(goes_on, "approve_twice", YES, asked["requestState"])
                done = await send(ends, "approve_twice", YES, again["requestState"])
                assert said(done) == "approved True and True"
                repeated = await send(begins, "approve_twice", YES, again["requestState"])
                assert said(repeated) == "approved True and True"
                finished += 1
    assert finished == 24
    assert "requestState" not in caplog.text, "no state was refused"


async def test_without_the_first_step_states_would_be_refused(rings: list[str], worker: Workers) -> None:
    before, _, second, _ = rings
    old, new = worker(before).mcp, worker(second).mcp
    async with Client(old, elicitation_callback=nobody) as one, Client(new, elicitation_callback=nobody) as other:
        asked = await send(other, "approve")
        with pytest.raises(MCPError, match="invalid or expired requestState"):
            await send(one, "approve", YES, asked["requestState"])


async def answered_elsewhere(asks: Older, answers: Older) -> str:
    """Call a tool, and have the answer to its question arrive at another worker. Return the result."""
    async with asks.open(call("approve")) as stream:
        question = await asks.asked(stream)
        assert (await answers.post(accepted(question["id"]))).status == 202
        return (await stream.message())["result"]["content"][0]["text"]


@pytest.mark.timing
@pytest.mark.long
async def test_a_session_of_an_older_client_goes_on_while_keys_are_replaced(rings: list[str], worker: Workers) -> None:
    before, first, second, after = rings
    async with worker.serving(before, first) as (one, _):
        client = await one.client()
    for neighbours in ((before, first), (first, second)):
        async with worker.serving(*neighbours) as both:
            one, other = (Older(served.port, client.version, client.session) for served in both)
            for asks, answers in product((one, other), repeat=2):
                assert await answered_elsewhere(asks, answers) == "approved True"
    async with worker.serving(second, after) as (with_old, without_old):
        last = Older(with_old.port, client.version, client.session)
        assert await answered_elsewhere(last, last) == "approved True"
        gone = await Older(without_old.port, client.version, client.session).post(call("echo"))
        assert gone.status == 404, "its record was sealed with the old key"
        anew = await with_old.client()
        both = [Older(served.port, anew.version, anew.session) for served in (with_old, without_old)]
        for asks, answers in product(both, repeat=2):
            assert await answered_elsewhere(asks, answers) == "approved True"
