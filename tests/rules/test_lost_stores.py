"""A shared store that has lost what it knew: nothing is run twice, whatever the clocks say, and nobody is told to start anew."""

import asyncio
import logging
import subprocess
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Annotated, Any

import pytest
from mcp_types import InputRequiredResult

from bespeak import Client, Context, Elicit, MCPError, MCPServer, RequestStateSecurity, Resolve
from bespeak.state.stores.sqlite_database import Database
from bespeak.state.stores.store import StoreUnavailable
from tests.rules.raw_calls import accept, nobody, said, send
from tests.state.stores.redis_servers import own_server
from tests.transports.http.legacy.older_client import until
from tests.waiting import eventually

pytestmark = pytest.mark.timing

KEYS = ["k" * 32]
NOW = 1_000_000.0
UNKNOWN = "the server no longer knows whether this call (id {}) took effect: its record of the call was lost"


class Place:
    """Where a store lies, and a way to lose it."""

    def __init__(self, url: str, lose: Callable[[], object]) -> None:
        self.url = url
        self.lose = lose
        """Called while no server runs."""


@pytest.fixture(params=["sqlite", pytest.param("redis", marks=pytest.mark.long)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Place]:
    if request.param == "sqlite":
        file = tmp_path / "till.db"
        yield Place(f"sqlite:{file}", file.unlink)
        return
    with own_server(tmp_path) as server:

        def restart() -> None:
            server.stop()
            server.start()

        yield Place(server.url, restart)


class Till:
    """Servers that share a store, each with a clock of its own."""

    def __init__(self, store: str) -> None:
        self.log: list[str] = []
        self.ids: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.reached = asyncio.Event()
        self._store = store

    def client(self, ahead: float = 0.0) -> Client:
        """A client of a new server whose clock is ahead by so many seconds."""
        security = RequestStateSecurity(keys=KEYS, clock=lambda: NOW + ahead)
        mcp = MCPServer[Any]("till", store=self._store, request_state_security=security)

        async def sure() -> Elicit[bool]:
            return Elicit("Sure?", bool)

        @mcp.tool()
        async def pay(context: Context[Any, Any], sure: Annotated[bool, Resolve(sure, key="sure")]) -> str:
            self.reached.set()
            await self.gate.wait()
            self.log.append("paid")
            self.ids.append(str(context.call_id))
            return "paid"

        @mcp.tool()
        async def pay_by_hand(context: Context[Any, Any]) -> str | InputRequiredResult:
            if context.input_responses is None:
                form: dict[str, Any] = {
                    "mode": "form",
                    "message": "Sure?",
                    "requestedSchema": {"type": "object", "properties": {}},
                }
                question: dict[str, Any] = {"method": "elicitation/create", "params": form}
                return InputRequiredResult.model_validate(
                    {"resultType": "input_required", "inputRequests": {"sure": question}, "requestState": "by hand"}
                )
            self.log.append("paid")
            self.ids.append(str(context.call_id))
            return "paid"

        return Client(mcp, elicitation_callback=nobody)


async def asked(client: Client, tool: str = "pay") -> tuple[str, dict[str, Any]]:
    result = await send(client, tool)
    answers = {key: accept(value=True) if tool == "pay" else accept() for key in result["inputRequests"]}
    return result["requestState"], answers


async def refusal(client: Client, tool: str, answers: dict[str, Any], state: str) -> MCPError:
    with pytest.raises(MCPError) as raised:
        await send(client, tool, answers, state)
    return raised.value


@pytest.mark.parametrize("tool", ["pay", "pay_by_hand"])
@pytest.mark.parametrize("ahead", [-60.0, 0.0, 30.0, 60.0])
async def test_a_lost_store_and_clocks_that_differ_spend_nothing_twice(place: Place, ahead: float, tool: str) -> None:
    till = Till(place.url)
    async with till.client(ahead) as asking, till.client() as running:
        state, answers = await asked(asking, tool)
        assert said(await send(running, tool, answers, state)) == "paid"
    place.lose()
    for difference in (0.0, ahead):
        async with till.client(difference) as again:
            error = await refusal(again, tool, answers, state)
            assert error.code == -32602
            assert error.message.startswith(UNKNOWN.format(till.ids[0]))
            assert "Check whether it took effect before you start a new call" in error.message
            new, answers_to_new = await asked(again, tool)  # a new call works
            assert said(await send(again, tool, answers_to_new, new)) == "paid"
    assert till.log == ["paid"] * 3
    assert len(set(till.ids)) == 3


async def test_a_call_that_went_on_when_its_store_was_lost_is_refused_in_its_next_round(place: Place) -> None:
    till = Till(place.url)
    async with till.client() as client:
        state, _ = await asked(client)
    place.lose()
    async with till.client() as client:
        error = await refusal(client, "pay", {}, state)
        assert error.message.startswith("the server no longer knows whether this call")


async def test_a_state_is_refused_that_began_without_a_shared_store_or_with_one_that_is_not_used_now(
    place: Place,
) -> None:
    async with Till("memory:").client() as client, Till(place.url).client() as other:
        for begun, meets in ((client, other), (other, client)):
            state, answers = await asked(begun)
            assert "no longer knows" in (await refusal(meets, "pay", answers, state)).message


@pytest.mark.long
@pytest.mark.parametrize("place", ["redis"], indirect=True)
async def test_who_repeats_a_call_whose_store_was_lost_in_mid_body_is_told_that_it_cannot_be_known(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    till = Till(place.url)
    till.gate.clear()
    async with till.client() as first, till.client() as second:
        state, answers = await asked(first)
        running = asyncio.create_task(send(first, "pay", answers, state))
        await till.reached.wait()
        place.lose()
        till.gate.set()
        assert said(await running) == "paid"
        for client in (first, second):
            assert (await refusal(client, "pay", answers, state)).message.startswith(UNKNOWN.format(till.ids[0]))
    assert till.log == ["paid"]
    lost = [one for one in caplog.records if "was lost before its result could be stored" in one.getMessage()]
    assert [one.levelno for one in lost] == [logging.ERROR]
    assert till.ids[0] in lost[0].getMessage()


@pytest.mark.long
@pytest.mark.parametrize("place", ["redis"], indirect=True)
async def test_the_renewal_of_a_claim_that_is_gone_is_an_error_in_the_log(
    place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("bespeak.state.ledger.LEASE_SECONDS", 0.3)
    till = Till(place.url)
    till.gate.clear()
    async with till.client() as client:
        state, answers = await asked(client)
        running = asyncio.create_task(send(client, "pay", answers, state))
        await till.reached.wait()
        place.lose()
        await eventually(lambda: "was lost while it ran" in caplog.text)
        till.gate.set()
        assert said(await running) == "paid"


async def test_while_the_disk_is_full_the_repeat_is_told_that_the_outcome_cannot_be_read_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bespeak.state.ledger.LEASE_SECONDS", 0.2)
    monkeypatch.setattr("bespeak.state.ledger.FINISH_PAUSES", (0.05, 0.05))
    till = Till(f"sqlite:{tmp_path / 'till.db'}")
    till.gate.clear()
    write = Database.write

    async def full(self: Database, work: Any) -> Any:
        raise StoreUnavailable("the store cannot be used: database or disk is full")

    async with till.client() as first, till.client() as second:
        state, answers = await asked(first)
        running = asyncio.create_task(send(first, "pay", answers, state))
        await till.reached.wait()
        monkeypatch.setattr(Database, "write", full)
        till.gate.set()
        assert said(await running) == "paid"
        for client in (first, second):
            text = said(await send(client, "pay", answers, state))
            assert "whether an earlier one took effect cannot be read now. Send the same request again later" in text
            assert "died" not in text
        monkeypatch.setattr(Database, "write", write)

        async def readable() -> bool:
            return said(await send(second, "pay", answers, state)) == "paid"

        await until(readable)
    assert till.log == ["paid"]


FULL = """
import asyncio, os, resource, sys
from bespeak.state.stores.sqlite import SQLiteStore
from bespeak.state.stores.store import Entry, StoreUnavailable

async def main():
    now = [0.0]
    store = SQLiteStore(sys.argv[1], steady=lambda: now[0])
    await store.start()
    incarnation = await store.check_room(None, 0.0)
    entry = Entry(b"answers.", b"request.", "me", 0.0, 0.0, 100.0, 1000.0, incarnation)
    await store.claim("call", entry, 15.0)
    now[0] = 16.0
    resource.setrlimit(resource.RLIMIT_FSIZE, (os.stat(sys.argv[1] + "-wal").st_size, resource.RLIM_INFINITY))
    try:
        await store.read("call", 0.0, 1000.0, incarnation)
    except StoreUnavailable as error:
        print("unavailable", error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print("lapsed", (await store.read("call", 0.0, 1000.0, incarnation)).lease_left < 0)
    await store.close()

asyncio.run(main())
"""


def test_a_claim_counts_as_lapsed_only_if_its_owner_could_have_renewed_it_on_this_disk(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path / "store.db")],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    unavailable, lapsed = done.stdout.splitlines()
    assert unavailable.startswith("unavailable the store sqlite:")
    assert lapsed == "lapsed True"
