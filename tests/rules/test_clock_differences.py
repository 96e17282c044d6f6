"""Workers whose clocks differ: by up to 60 seconds nothing changes, and beyond that nothing is ever run twice."""

from pathlib import Path
from typing import Annotated, Any

import pytest

from bespeak import Client, Elicit, MCPError, MCPServer, RequestStateSecurity, Resolve
from tests.rules.raw_calls import accept, nobody, said, send

KEYS = ["k" * 32]
NOW = 1_000_000.0
UNKNOWN = "the server no longer knows whether this call"


class Clock:
    def __init__(self, difference: float) -> None:
        self.difference = difference
        self.passed = 0.0

    def __call__(self) -> float:
        return NOW + self.passed + self.difference


class Workers:
    """Two workers that share a store. The clock of the second is wrong."""

    def __init__(self, store: str, difference: float) -> None:
        self.log: list[str] = []
        self.clocks = Clock(0.0), Clock(difference)
        self.servers = [self._server(store, clock) for clock in self.clocks]

    def wait(self, seconds: float) -> None:
        for clock in self.clocks:
            clock.passed += seconds

    def clients(self) -> list[Client]:
        return [Client(server, elicitation_callback=nobody) for server in self.servers]

    def _server(self, store: str, clock: Clock) -> MCPServer[Any]:
        security = RequestStateSecurity(keys=KEYS, clock=clock)
        mcp = MCPServer[Any]("till", store=store, request_state_security=security)

        async def sure() -> Elicit[bool]:
            return Elicit("Sure?", bool)

        @mcp.tool()
        async def pay(sure: Annotated[bool, Resolve(sure, key="sure")]) -> str:
            self.log.append("paid")
            return "paid"

        return mcp


async def reply(client: Client, answers: dict[str, Any], state: str) -> str:
    try:
        return said(await send(client, "pay", answers, state))
    except MCPError as error:
        return error.message


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"sqlite:{tmp_path / 'till.db'}"


@pytest.mark.parametrize("difference", [-60.0, 60.0])
@pytest.mark.parametrize("first", [0, 1])
async def test_clocks_that_differ_by_60_seconds_change_nothing(store: str, difference: float, first: int) -> None:
    workers = Workers(store, difference)
    async with workers.clients()[first] as one, workers.clients()[1 - first] as two:
        asked = await send(one, "pay")
        answers = {key: accept(value=True) for key in asked["inputRequests"]}
        workers.wait(500.0)
        for client in (two, one, two):
            assert said(await send(client, "pay", answers, asked["requestState"])) == "paid"
    assert workers.log == ["paid"]


@pytest.mark.parametrize("difference", [-7200.0, -700.0, -300.0, 300.0, 700.0, 7200.0])
@pytest.mark.parametrize("first", [0, 1])
async def test_whatever_the_clocks_say_nothing_is_run_twice(store: str, difference: float, first: int) -> None:
    workers = Workers(store, difference)
    async with workers.clients()[first] as one, workers.clients()[1 - first] as two:
        for _ in range(3):
            begun = len(workers.log)
            try:
                asked = await send(one, "pay")
                answers = {key: accept(value=True) for key in asked["inputRequests"]}
            except KeyError:  # nobody is asked while a clock is behind what was forgotten
                continue
            for client in (one, two, one, two):
                workers.wait(100.0)
                text = await reply(client, answers, asked["requestState"])
                assert (
                    text
                    in (
                        "paid",
                        "invalid or expired requestState; if the call may have taken effect, check before you start it again",
                    )
                    or UNKNOWN in text
                )
            assert len(workers.log) <= begun + 1
