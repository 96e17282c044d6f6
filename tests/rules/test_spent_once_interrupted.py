"""An approval is spent once (design section 7) though clients leave, leases lapse, room runs out and servers stop."""

import asyncio
import logging
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from bespeak import Client, Context, Elicit, MCPError, MCPServer, RequestStateSecurity, Resolve
from bespeak.server.calls import call_tasks
from bespeak.state.ledger import LEASE_SECONDS
from bespeak.state.stores.memory import MemoryStore
from tests.answering import Person
from tests.conftest import Connect
from tests.waiting import eventually, pass_time, turns

Sent = dict[str, Any]
KEY = "some key " * 8


class Approval(BaseModel):
    amount: int


YES: Sent = {"approve": {"action": "accept", "content": {"amount": 5}}}
NO: Sent = {"approve": {"action": "decline"}}


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


class Keeping(MemoryStore):
    """Shows what it was given to keep."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[bytes] = []

    async def finish(self, call: str, owner: str, result: bytes) -> bool:
        self.kept.append(result)
        return await super().finish(call, owner, result)


class Till:
    """A server whose tool can be held up in a resolver before the claim, in one after it, and in its body."""

    def __init__(
        self, store: MemoryStore | None = None, *, clock: Clock | None = None, idempotent: bool = False
    ) -> None:
        self.clock = clock or Clock()
        security = RequestStateSecurity(keys=[KEY], clock=self.clock)
        self.mcp = MCPServer[Any](
            "till", request_state_security=security, store=store or MemoryStore(steady=self.clock)
        )
        self.log: list[str] = []
        self.reached = {place: asyncio.Event() for place in ("phase one", "phase two", "body")}
        self.pass_ = {place: asyncio.Event() for place in self.reached}
        for gate in self.pass_.values():
            gate.set()

        async def approve() -> Elicit[Approval]:
            await self._through("phase one")
            return Elicit("Pay?", Approval)

        async def account() -> str:
            await self._through("phase two")
            return "account"

        @self.mcp.tool(idempotent=idempotent)
        async def pay(
            approval: Annotated[Approval, Resolve(approve, key="approve")],
            account: Annotated[str, Resolve(account)],
        ) -> str:
            await self._through("body")
            return f"paid {approval.amount}"

    async def _through(self, place: str) -> None:
        self.log.append(place)
        self.reached[place].set()
        try:
            await self.pass_[place].wait()
        except asyncio.CancelledError:
            self.log.append(f"{place} cancelled")
            raise

    def hold(self, place: str) -> None:
        self.reached[place].clear()
        self.pass_[place].clear()

    def count(self, what: str) -> int:
        return self.log.count(what)


async def request(client: Client, **retry: Any) -> Sent:
    return await client.session.request("tools/call", {"name": "pay", "arguments": {}, **retry})


async def asked(client: Client) -> str:
    result = await request(client)
    assert result["resultType"] == "input_required", result
    return result["requestState"]


async def answer(client: Client, state: str, answers: Sent = YES) -> str:
    result = await request(client, requestState=state, inputResponses=answers)
    (block,) = result["content"]
    return block["text"]


async def held(till: Till, client: Client, state: str, place: str) -> "asyncio.Task[str]":
    """A request that has come as far as a place and waits there."""
    till.hold(place)
    task = asyncio.create_task(answer(client, state))
    await asyncio.wait_for(till.reached[place].wait(), 5)
    return task


async def cancel(task: "asyncio.Task[str]") -> None:
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()


# Clients that leave


@pytest.mark.parametrize("place", ["phase two", "body"])
async def test_what_is_claimed_finishes_though_its_client_cancels(connect: Connect, place: str) -> None:
    till = Till()
    async with connect(till.mcp, elicitation_callback=Person()) as client:
        state = await asked(client)
        await cancel(await held(till, client, state, place))
        replay = asyncio.create_task(answer(client, state))
        await client.list_tools()  # a whole exchange later
        assert not replay.done()
        till.pass_[place].set()
        assert await replay == "paid 5"
        assert await answer(client, state) == "paid 5"
    assert (till.count("phase two"), till.count("body")) == (1, 1)
    assert not any(entry.endswith("cancelled") for entry in till.log)


async def test_a_timeout_of_the_client_does_not_end_a_claimed_body(connect: Connect) -> None:
    till = Till()
    async with connect(till.mcp, elicitation_callback=Person()) as client:
        state = await asked(client)
        till.hold("body")
        params = {"name": "pay", "arguments": {}, "requestState": state, "inputResponses": YES}
        calling = asyncio.create_task(client.session.request("tools/call", params, read_timeout_seconds=5))
        await asyncio.wait_for(till.reached["body"].wait(), 20)
        await pass_time(10)
        with pytest.raises(TimeoutError, match=r"no answer to tools/call within 5 s"):
            await calling
        till.pass_["body"].set()
        assert await answer(client, state) == "paid 5"
    assert till.count("body") == 1


async def test_what_is_not_claimed_is_cancelled_with_its_request_and_can_be_retried(connect: Connect) -> None:
    till = Till()
    async with connect(till.mcp, elicitation_callback=Person()) as client:
        state = await asked(client)
        await cancel(await held(till, client, state, "phase one"))
        await eventually(lambda: till.log[-1] == "phase one cancelled")
        till.pass_["phase one"].set()
        assert await answer(client, state) == "paid 5"
    assert till.count("body") == 1


async def test_a_replay_that_is_cancelled_while_it_waits_takes_nothing_with_it(connect: Connect) -> None:
    till = Till()
    async with connect(till.mcp, elicitation_callback=Person()) as client:
        state = await asked(client)
        first = await held(till, client, state, "body")
        replay = asyncio.create_task(answer(client, state))
        await client.list_tools()  # a whole exchange later
        await cancel(replay)
        till.pass_["body"].set()
        assert await first == "paid 5"
    assert till.count("body") == 1


# Servers that stop


async def leave_in_mid_body(connect: Connect, till: Till, mcp: MCPServer[Any] | None = None) -> None:
    """A client that has paid, did not wait for the result, and disconnects."""
    async with connect(mcp or till.mcp, elicitation_callback=Person()) as client:
        await cancel(await held(till, client, await asked(client), "body"))


async def test_the_last_client_to_leave_waits_for_claimed_bodies(connect: Connect) -> None:
    store = Keeping()
    till = Till(store)
    leaving = asyncio.create_task(leave_in_mid_body(connect, till))
    await asyncio.wait_for(till.reached["body"].wait(), 5)
    await turns(50)
    assert not leaving.done()
    till.pass_["body"].set()
    await asyncio.wait_for(leaving, 5)
    assert len(store.kept) == 1
    assert "body cancelled" not in till.log


async def test_a_client_that_is_not_the_last_leaves_at_once(connect: Connect) -> None:
    till = Till()
    async with till.mcp.running():
        await asyncio.wait_for(leave_in_mid_body(connect, till), 5)
        till.pass_["body"].set()
    assert "body cancelled" not in till.log


@pytest.mark.timing
async def test_a_body_that_does_not_end_is_abandoned_and_its_outcome_unknown(
    in_memory: Connect, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(call_tasks, "DRAIN_SECONDS", 0.02)
    till = Till()
    async with in_memory(till.mcp, elicitation_callback=Person()) as client:
        state = await asked(client)
        await cancel(await held(till, client, state, "body"))
    (record,) = [one for one in caplog.records if one.levelno == logging.ERROR]
    assert "pay did not finish within 0.02 s of shutdown and is abandoned" in record.getMessage()
    till.clock.now += LEASE_SECONDS
    async with in_memory(till.mcp, elicitation_callback=Person()) as client:
        assert "whether it took effect is unknown" in await answer(client, state)
    assert till.count("body") == 1


async def test_a_body_may_call_another_tool_while_the_server_waits_for_it(
    in_memory: Connect, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(call_tasks, "DRAIN_SECONDS", 30.0)
    mcp, go_on, reached, ended = MCPServer[Any]("till"), asyncio.Event(), asyncio.Event(), list[str]()

    async def approve() -> Elicit[Approval]:
        return Elicit("Pay?", Approval)

    @mcp.tool()
    async def note() -> str:
        return "noted"

    @mcp.tool()
    async def pay(approval: Annotated[Approval, Resolve(approve, key="approve")]) -> str:
        reached.set()
        await go_on.wait()
        await mcp.call_tool("note")
        ended.append("paid")
        return "paid"

    async def leave() -> None:
        async with in_memory(mcp, elicitation_callback=Person()) as client:
            paying = asyncio.create_task(answer(client, await asked(client)))
            await asyncio.wait_for(reached.wait(), 30)
            await cancel(paying)

    leaving = asyncio.create_task(leave())
    await asyncio.wait_for(reached.wait(), 30)
    await turns(50)
    go_on.set()
    await leaving
    assert ended == ["paid"], caplog.text


# Workers that die


@pytest.mark.parametrize("idempotent", [False, True])
async def test_a_call_whose_worker_died_runs_again_only_if_the_tool_is_idempotent(
    in_memory: Connect, idempotent: bool
) -> None:
    clock = Clock()
    store = MemoryStore(steady=clock)
    dying = Till(store, clock=clock, idempotent=idempotent)
    living = Till(store, clock=clock, idempotent=idempotent)
    async with (
        in_memory(dying.mcp, elicitation_callback=Person()) as one,
        in_memory(living.mcp, elicitation_callback=Person()) as two,
    ):
        state = await asked(one)
        stuck = await held(dying, one, state, "body")
        clock.now += LEASE_SECONDS
        reply = await answer(two, state)
        dying.pass_["body"].set()
        await stuck
    assert living.count("body") == (1 if idempotent else 0)
    unknown = (
        "Error executing tool pay: this call was started, and the server running it died or could not store the outcome: whether "
        "it took effect is unknown. It is not run again; check before starting a new call"
    )
    assert reply == ("paid 5" if idempotent else unknown)


async def test_another_worker_with_the_same_keys_and_store_knows_what_was_spent(in_memory: Connect) -> None:
    clock = Clock()
    store = MemoryStore(steady=clock)
    first, second = Till(store, clock=clock), Till(store, clock=clock)
    async with in_memory(first.mcp, elicitation_callback=Person()) as client:
        state = await asked(client)
        assert await answer(client, state) == "paid 5"
    async with in_memory(second.mcp, elicitation_callback=Person()) as client:
        assert await answer(client, state) == "paid 5"
        assert "already settled with other answers" in await answer(client, state, NO)
    assert (first.count("body"), second.count("body")) == (1, 0)


# Room


async def test_a_full_ledger_refuses_new_questions_until_old_claims_pass_their_deadline(in_memory: Connect) -> None:
    till = Till(MemoryStore(max_claims=1))
    full = "Error executing tool pay: the server cannot take more calls that ask questions now; try again later"
    async with in_memory(till.mcp, elicitation_callback=Person()) as client:
        state, late = await asked(client), await asked(client)
        assert await answer(client, state) == "paid 5"
        refused = await request(client)
        assert (refused["isError"], refused["content"][0]["text"]) == (True, full)
        assert await answer(client, late) == full
        assert await answer(client, state) == "paid 5", "what is settled is still known"
        till.clock.now += 3600
        assert await answer(client, await asked(client)) == "paid 5"
    assert till.count("body") == 2


async def test_an_approval_opened_in_time_and_settled_after_the_deadline_is_not_spent(in_memory: Connect) -> None:
    till = Till()
    async with in_memory(till.mcp, elicitation_callback=Person()) as client:
        state = await asked(client)
        till.clock.now += 599
        requests = [await held(till, client, state, "phase one") for _ in range(2)]
        till.clock.now += 3600
        till.pass_["phase one"].set()
        for request in requests:
            with pytest.raises(MCPError, match=r"no longer knows whether this call .* its time has run out"):
                await request
    assert till.count("body") == 0


async def test_stored_results_are_sealed(in_memory: Connect) -> None:
    store = Keeping()
    till = Till(store)
    async with in_memory(till.mcp, elicitation_callback=Person()) as client:
        await answer(client, await asked(client))
    (kept,) = store.kept
    assert b"paid" not in kept
    assert b"content" not in kept


# Ids and rounds


async def test_a_call_id_nobody_looked_at_before_the_question_is_the_same_ever_after(in_memory: Connect) -> None:
    mcp, ids = MCPServer[Any]("till"), list[str]()

    async def approve() -> Elicit[Approval]:
        return Elicit("Pay?", Approval)

    async def account(context: Context) -> str:
        ids.append(context.call_id)
        return "account"

    @mcp.tool()
    async def pay(
        context: Context,
        approval: Annotated[Approval, Resolve(approve, key="approve")],
        account: Annotated[str, Resolve(account)],
    ) -> str:
        ids.append(context.call_id)
        return context.call_id

    async with in_memory(mcp, elicitation_callback=Person()) as client:
        state = await asked(client)
        assert await answer(client, state) == await answer(client, state) == ids[0] == ids[1]
        assert await answer(client, await asked(client)) != ids[0]
