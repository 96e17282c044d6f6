"""An approval is spent once (design section 7): replays, forks, and which ends of a call are final."""

import asyncio
import logging
from typing import Annotated, Any

import pytest
from mcp_types import CallToolResult
from pydantic import BaseModel

from bespeak import Client, Context, Elicit, ElicitationResult, MCPError, MCPServer, Resolve, ToolError
from bespeak.state import ledger
from tests.answering import Person, unresolved
from tests.conftest import Connect
from tests.waiting import turns

Sent = dict[str, Any]
DECLINE: Sent = {"action": "decline"}
OTHERWISE = (
    "Error executing tool pay: this call was already settled with other answers; check whether it took effect "
    "before you start a new one"
)


class Approval(BaseModel):
    amount: int


def accept(**content: Any) -> Sent:
    return {"action": "accept", "content": content}


async def approve() -> Elicit[Approval]:
    return Elicit("Pay?", Approval)


Approved = Annotated[Approval, Resolve(approve, key="approve")]


async def request(client: Client, **retry: Any) -> Sent:
    return await client.session.request("tools/call", {"name": "pay", "arguments": {}, **retry})


async def asked(client: Client) -> str:
    result = await request(client)
    assert result["resultType"] == "input_required", result
    return result["requestState"]


async def answer(client: Client, state: str, **answers: Sent) -> Sent:
    return await request(client, requestState=state, inputResponses=answers)


def said(result: Sent) -> str:
    assert result["resultType"] == "complete", result
    (block,) = result["content"]
    return block["text"]


class Till:
    """A server whose one tool pays what was approved, and counts how often it did."""

    def __init__(self, failure: BaseException | None = None) -> None:
        self.mcp = MCPServer[Any]("till")
        self.runs = 0
        self.failure = failure

        @self.mcp.tool()
        async def pay(approval: Approved) -> str:
            self.runs += 1
            await turns(3)
            if self.failure is not None:
                raise self.failure
            return f"paid {approval.amount}, payment {self.runs}"


@pytest.mark.long
async def test_one_approval_sent_a_hundred_times_at_once_by_two_clients_pays_once(connect: Connect) -> None:
    till = Till()
    async with (
        connect(till.mcp, elicitation_callback=Person()) as one,
        connect(till.mcp, elicitation_callback=Person()) as two,
    ):
        state = await asked(one)
        sent = [answer(client, state, approve=accept(amount=5)) for client in (one, two) for _ in range(50)]
        results = await asyncio.gather(*sent)
    assert till.runs == 1
    assert {said(result) for result in results} == {"paid 5, payment 1"}
    assert {str(result["structuredContent"]) for result in results} == {str({"result": "paid 5, payment 1"})}


async def test_a_replay_after_the_end_gets_the_stored_result(connect: Connect) -> None:
    till = Till()
    async with connect(till.mcp, elicitation_callback=Person()) as client:
        state = await asked(client)
        first = await answer(client, state, approve=accept(amount=5))
        again = await answer(client, state, approve=accept(amount=5))
    assert first == again
    assert till.runs == 1


async def test_answers_nobody_asked_for_make_no_other_claim(in_memory: Connect) -> None:
    till = Till()
    async with in_memory(till.mcp, elicitation_callback=Person()) as client:
        state = await asked(client)
        first = await answer(client, state, approve=accept(amount=5))
        assert await answer(client, state, approve=accept(amount=5), other=DECLINE) == first
    assert till.runs == 1


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (accept(amount=5), accept(amount=500)),
        (accept(amount=5), DECLINE),
        (DECLINE, accept(amount=5)),
        (DECLINE, {"action": "cancel"}),
    ],
)
async def test_other_answers_are_refused_once_a_call_is_settled(in_memory: Connect, first: Sent, second: Sent) -> None:
    till = Till()
    async with in_memory(till.mcp, elicitation_callback=Person()) as client:
        state = await asked(client)
        before = await answer(client, state, approve=first)
        runs = till.runs
        other = await answer(client, state, approve=second)
        assert other["isError"] is True
        assert said(other) == OTHERWISE
        assert till.runs == runs
        assert await answer(client, state, approve=first) == before, "the first answers still get their own end"


async def test_of_different_answers_sent_at_once_one_is_paid_and_the_others_are_refused(connect: Connect) -> None:
    till = Till()
    async with connect(till.mcp, elicitation_callback=Person()) as client:
        state = await asked(client)
        amounts = range(1, 21)
        results = await asyncio.gather(*[answer(client, state, approve=accept(amount=one)) for one in amounts])
    texts = sorted(said(result) for result in results)
    assert till.runs == 1
    assert texts[:19] == [OTHERWISE] * 19
    assert texts[19].startswith("paid ")


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_an_abort_is_final_and_its_replay_gets_the_same(connect: Connect, action: str) -> None:
    till = Till()
    async with connect(till.mcp, elicitation_callback=Person()) as client:
        state = await asked(client)
        first = await answer(client, state, approve={"action": action})
        again = await answer(client, state, approve={"action": action})
    ended = f"Error executing tool pay: {unresolved('approval', action)}"
    assert first == again
    assert (said(first), first["isError"], till.runs) == (ended, True, 0)


async def test_a_decline_beside_another_answer_is_the_same_claim_whatever_the_timing(in_memory: Connect) -> None:
    mcp = MCPServer[Any]("till")
    pauses = {"first": 0, "second": 0}

    async def first() -> Elicit[bool]:
        await turns(pauses["first"])
        return Elicit("First?", bool)

    async def second() -> Elicit[bool]:
        await turns(pauses["second"])
        return Elicit("Second?", bool)

    @mcp.tool()
    async def pay(
        one: Annotated[bool, Resolve(first, key="first")], two: Annotated[bool, Resolve(second, key="second")]
    ) -> str:
        return "paid"

    async with in_memory(mcp, elicitation_callback=Person()) as client:
        state = await asked(client)
        pauses["second"] = 20
        before = await answer(client, state, first=DECLINE, second=accept(value=True))
        pauses.update(first=20, second=0)
        again = await answer(client, state, first=DECLINE, second=accept(value=True))
    assert "elicitation was decline. " in said(before)
    assert again == before


async def test_a_decline_the_tool_can_live_with_is_spent_once_too(in_memory: Connect) -> None:
    mcp, runs = MCPServer[Any]("till"), list[str]()

    @mcp.tool()
    async def pay(approval: Annotated[ElicitationResult[Approval], Resolve(approve, key="approve")]) -> str:
        runs.append(approval.action)
        return approval.action

    async with in_memory(mcp, elicitation_callback=Person()) as client:
        state = await asked(client)
        assert said(await answer(client, state, approve=DECLINE)) == "decline"
        assert said(await answer(client, state, approve=DECLINE)) == "decline"
        assert said(await answer(client, state, approve=accept(amount=1))) == OTHERWISE
    assert runs == ["decline"]


# Failures that are final


@pytest.mark.parametrize(
    ("failure", "text"),
    [
        (ToolError("the bank is closed"), "Error executing tool pay: the bank is closed"),
        (KeyError("secret"), "Error executing tool pay"),
    ],
)
async def test_a_failure_of_the_body_is_stored_like_a_result(in_memory: Connect, failure: Exception, text: str) -> None:
    till = Till(failure)
    async with in_memory(till.mcp, elicitation_callback=Person()) as client:
        state = await asked(client)
        first = await answer(client, state, approve=accept(amount=5))
        till.failure = None
        again = await answer(client, state, approve=accept(amount=5))
    assert first == again
    assert (said(first), first["isError"], till.runs) == (text, True, 1)


@pytest.mark.parametrize("data", [None, {"balance": 3}])
async def test_a_protocol_error_of_the_body_is_stored_with_all_its_parts(connect: Connect, data: Any) -> None:
    till = Till(MCPError(1234, "no funds", data))
    async with connect(till.mcp, elicitation_callback=Person()) as client:
        state = await asked(client)
        for _ in range(2):
            with pytest.raises(MCPError) as raised:
                await answer(client, state, approve=accept(amount=5))
            assert (raised.value.code, raised.value.message, raised.value.data) == (1234, "no funds", data)
    assert till.runs == 1


async def test_a_failure_of_phase_two_is_final(in_memory: Connect) -> None:
    mcp, runs = MCPServer[Any]("till"), list[str]()

    async def account() -> str:
        runs.append("account")
        raise LookupError("secret")

    @mcp.tool()
    async def pay(approval: Approved, account: Annotated[str, Resolve(account)]) -> str:
        raise AssertionError

    async with in_memory(mcp, elicitation_callback=Person()) as client:
        state = await asked(client)
        assert runs == []
        first = await answer(client, state, approve=accept(amount=5))
        assert await answer(client, state, approve=accept(amount=5)) == first
    assert "account" in said(first)
    assert "secret" not in said(first)
    assert runs == ["account"]


@pytest.mark.timing
@pytest.mark.parametrize("amount", [1, 2])
async def test_a_result_that_cannot_be_sent_is_an_end_like_any_other(
    in_memory: Connect, monkeypatch: pytest.MonkeyPatch, amount: int
) -> None:
    monkeypatch.setattr(ledger, "LEASE_SECONDS", 0.05)
    mcp, runs = MCPServer[Any]("till"), list[int]()

    @mcp.tool()
    async def pay(approval: Approved) -> CallToolResult:
        runs.append(approval.amount)
        if approval.amount == 1:
            raise MCPError(1234, "no funds", {"not JSON": object()})
        return CallToolResult.model_validate({"content": [], "_meta": {"not JSON": object()}})

    async with in_memory(mcp, elicitation_callback=Person()) as client:
        state = await asked(client)
        first = await answer(client, state, approve=accept(amount=amount))
        assert said(first) == "Error executing tool pay"
        assert await answer(client, state, approve=accept(amount=amount)) == first
    assert runs == [amount]


# Ends that are not final


async def test_a_failing_resolver_of_phase_one_may_be_retried_with_the_same_state(
    in_memory: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    mcp, up = MCPServer[Any]("till"), [True]

    async def balance() -> int:
        if not up[0]:
            raise ConnectionError("secret host")
        return 7

    async def confirm(balance: Annotated[int, Resolve(balance)]) -> Elicit[Approval]:
        return Elicit(f"Pay? You have {balance}.", Approval)

    @mcp.tool()
    async def pay(approval: Annotated[Approval, Resolve(confirm, key="approve")]) -> str:
        return "paid"

    async with in_memory(mcp, elicitation_callback=Person()) as client:
        state = await asked(client)
        up[0] = False
        failed = await answer(client, state, approve=accept(amount=5))
        assert said(failed).startswith("Error executing tool pay: resolver ")
        assert "secret host" not in said(failed)
        up[0] = True
        assert said(await answer(client, state, approve=accept(amount=5))) == "paid"
    assert "secret host" in caplog.text


@pytest.mark.every_revision
async def test_a_call_that_asks_nothing_is_not_claimed_and_runs_as_often_as_it_is_sent(connect: Connect) -> None:
    mcp, ids = MCPServer[Any]("till"), list[str]()

    async def amount() -> int:
        return 5

    @mcp.tool()
    async def pay(context: Context, amount: Annotated[int, Resolve(amount)]) -> str:
        ids.append(context.call_id)
        return "paid"

    async with connect(mcp) as client:
        await request(client)
        await request(client)
    assert len(set(ids)) == 2


async def test_what_the_ledger_says_is_no_crash_in_the_log(
    in_memory: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    till = Till()
    async with in_memory(till.mcp, elicitation_callback=Person()) as client:
        state = await asked(client)
        await answer(client, state, approve=accept(amount=5))
        await answer(client, state, approve=DECLINE)
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []
