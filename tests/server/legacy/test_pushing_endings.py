"""How calls with pushed questions end (design section 5): outcomes, slips, faults, failures, silence, and cancellation."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any

import pytest
from mcp_types import ElicitRequestParams, ElicitResult

from bespeak import Client, Elicit, MCPServer, Resolve, ToolError
from bespeak.client import ClientRequestContext
from bespeak.protocol.messages import LegacyRequest
from tests.answering import Person, accept, text, unresolved
from tests.rules.consumers import (
    ask,
    serving,
    take_value,
)
from tests.server.legacy.older_client import (
    JUNE,
    NO,
    NOVEMBER,
    SILENCE,
    WIRES,
    Older,
    Sent,
    Thinking,
    ask_second,
    asks_nothing,
    over,
    take_even,
    yes,
)
from tests.waiting import eventually, turns

# The same ends as in rounds


async def test_a_result_has_nothing_of_a_round_in_it() -> None:
    async with Older(serving(take_value), {"ask": yes(value=3)}) as client:
        result = await client.call()
    assert result == {
        "content": [{"type": "text", "text": "3"}],
        "structuredContent": {"result": "3"},
        "isError": False,
    }


# Slips


async def test_each_try_is_a_question_with_an_id_of_its_own() -> None:
    async with Older(serving(take_even), {"ask_even": [yes(number=1), yes(number=4)]}) as client:
        await client.call()
    ids = [one["id"] for one in client.pushed]
    assert len(set(ids)) == len(ids) == 2


async def test_a_declined_second_try_is_a_decline() -> None:
    async with Older(serving(take_even), {"ask_even": [yes(number=1), NO]}) as client:
        assert (await client.failure()).endswith(unresolved("it", "decline"))


# The client's fault


@pytest.mark.parametrize(
    ("response", "fault"),
    [
        (yes(value="3"), "the answer to 'it' does not match the form: value: must be a whole number"),
        ({"result": {"action": "accept"}}, "the answer to 'it' was accepted without content"),
        ({"result": {"action": "accept", "content": [3]}}, "the content of the answer to 'it' is not an object"),
        ({"result": {}}, "the answer to 'it' is not an elicitation result: it has no valid action"),
        ({"result": "yes"}, "the answer to 'it' is not an object"),
    ],
)
async def test_an_answer_that_is_none_is_an_explicit_tool_error_and_nobody_is_asked_again(
    response: Sent, fault: str
) -> None:
    async def take(it: Annotated[int, Resolve(ask, key="it")]) -> str:
        raise AssertionError

    async with Older(serving(take), {"it": response}) as client:
        assert await client.failure() == f"Error executing tool take: {fault}"
    assert client.asked == ["it"]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ({"code": -1, "message": "the user said no"}, "the client answered with an error (-1): the user said no"),
        ({"code": -32601, "message": "x" * 5000}, f"the client answered with an error (-32601): {'x' * 200}"),
        ({"code": -32602}, "the client answered with an error (-32602): "),
        ("no", "the client answered with an error"),
    ],
)
async def test_an_error_in_reply_is_a_tool_error_that_names_the_resolver(error: Any, said: str) -> None:
    async with Older(serving(take_value), {"ask": {"error": error}}) as client:
        failure = await client.failure()
        assert failure == f"Error executing tool take: resolver 'ask' got no answer: {said}"
        assert (await client.request("ping"))["result"] == {}, "it is fatal to nothing else"


@pytest.mark.parametrize("mode", [NOVEMBER, JUNE])
async def test_a_callback_that_fails_ends_the_call_at_both_ends(mode: str) -> None:
    ended: list[bool] = []

    async def account() -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            ended.append(True)

    async def sure(account: Annotated[int, Resolve(account)]) -> Elicit[int]:
        return Elicit("Sure?", int)

    async def take(it: Annotated[int, Resolve(sure)]) -> str:
        raise AssertionError

    async def callback(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        raise LookupError("no terminal")

    async with Client(serving(take), mode=mode, elicitation_callback=callback) as client:
        with pytest.raises(Exception, match="LookupError: no terminal"):
            await client.call_tool("take")
        await eventually(lambda: ended)


async def test_answers_to_what_was_not_asked_or_is_answered_already_mean_nothing() -> None:
    async with Older(serving(take_value), {"ask": SILENCE}) as client:
        call = asyncio.create_task(client.call())
        await eventually(lambda: client.pushed)
        for id_ in ("q-0", "q-99", 1, None):
            await client.send({"id": id_, **yes(value=1)})
        assert not call.done()
        await client.send({"id": client.pushed[0]["id"], **yes(value=3)})
        await client.send({"id": client.pushed[0]["id"], **yes(value=4)})
        assert (await call)["content"][0]["text"] == "3"


async def test_one_client_cannot_answer_for_another() -> None:
    mcp = serving(take_value)
    async with Older(mcp, {"ask": SILENCE}) as one, Older(mcp, {"ask": SILENCE}) as other:
        call = asyncio.create_task(one.call())
        await eventually(lambda: one.pushed)
        await other.send({"id": one.pushed[0]["id"], **yes(value=666)})
        await turns(50)
        assert not call.done()
        await one.send({"id": one.pushed[0]["id"], **yes(value=3)})
        assert (await call)["content"][0]["text"] == "3"


# Declines and failures


async def test_after_a_decline_later_questions_are_never_pushed_and_later_resolvers_are_cancelled() -> None:
    cancelled = asyncio.Event()

    async def later() -> int | Elicit[int]:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return 1

    async def take(
        a: Annotated[int, Resolve(ask)], b: Annotated[int, Resolve(ask_second)], c: Annotated[int, Resolve(later)]
    ) -> str:
        raise AssertionError

    async with Older(serving(take), {"ask": NO, "ask_second": yes(value=1)}) as client:
        assert (await client.failure()).endswith(unresolved("a", "decline"))
    assert (client.asked, client.taken_back) == (["ask"], [])
    assert cancelled.is_set()


@pytest.mark.parametrize("wire", WIRES)
async def test_a_failing_resolver_takes_an_open_question_back_and_ends_the_call(wire: str) -> None:
    person = Thinking(accept(value=1))

    async def fails() -> int | Elicit[int]:
        await eventually(lambda: person.open)
        raise ToolError("no stock")

    async def take(a: Annotated[int, Resolve(ask)], b: Annotated[int, Resolve(fails)]) -> str:
        raise AssertionError

    async with over(wire, serving(take), elicitation_callback=person) as client:
        assert text(await client.call_tool("take")) == "Error executing tool take: no stock"
        await eventually(lambda: person.taken_back == ["ask"])


async def test_what_takes_a_question_back_names_its_id() -> None:
    release = asyncio.Event()

    async def fails() -> int | Elicit[int]:
        await release.wait()
        raise RuntimeError("secret")

    async def take(a: Annotated[int, Resolve(ask)], b: Annotated[int, Resolve(fails)]) -> str:
        raise AssertionError

    async with Older(serving(take), {"ask": SILENCE}) as client:
        call = asyncio.create_task(client.failure())
        await eventually(lambda: client.pushed)
        release.set()
        failure = await call
    assert "fails' failed" in failure
    assert "secret" not in failure
    assert client.taken_back == [client.pushed[0]["id"]]


# Silence


class Till:
    """A server whose tool holds something open while it asks, and whose body can be held up."""

    def __init__(self, **options: Any) -> None:
        self.mcp = MCPServer[Any]("till", **options)
        self.log: list[str] = []
        self.reached, self.go_on = asyncio.Event(), asyncio.Event()

        async def account() -> AsyncIterator[int]:
            try:
                yield 1
            except BaseException:
                self.log.append("account saw an exception")
                raise
            else:
                self.log.append("account finished")
            finally:
                self.log.append("account closed")

        async def sure(account: Annotated[int, Resolve(account)]) -> Elicit[int]:
            return Elicit("Sure?", int)

        @self.mcp.tool()
        async def take(account: Annotated[int, Resolve(account)], it: Annotated[int, Resolve(sure)]) -> str:
            self.reached.set()
            await self.go_on.wait()
            self.log.append("paid")
            return f"{it}"


@pytest.mark.timing
async def test_a_question_nobody_answers_in_time_ends_the_call_and_is_taken_back() -> None:
    till = Till(question_timeout=0.05)
    async with Older(till.mcp, {"sure": SILENCE}) as client:
        failure = await client.failure()
        assert failure.endswith("sure' got no answer: nobody answered within 0.05 s"), failure
        assert client.taken_back == [client.pushed[0]["id"]]
        assert till.log[-1] == "account closed"
        await client.send({"id": client.pushed[0]["id"], **yes(value=1)})
    assert "paid" not in till.log


async def test_each_question_has_its_own_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async def take(a: Annotated[int, Resolve(ask)], b: Annotated[int, Resolve(ask_second)]) -> str:
        return f"{a} {b}"

    mcp, given = MCPServer[Any]("slow people", question_timeout=123.0), list[float]()
    loop = asyncio.get_running_loop()
    call_later = loop.call_later

    def noted(delay: float, *work: Any, **options: Any) -> Any:
        given.append(delay)
        return call_later(delay, *work, **options)

    mcp.add_tool(take)
    async with Older(mcp, {"ask": yes(value=1), "ask_second": yes(value=2)}) as client:
        monkeypatch.setattr(loop, "call_later", noted)
        assert (await client.call())["content"][0]["text"] == "1 2"
    assert [delay for delay in given if delay == 123.0] == [123.0, 123.0]


@pytest.mark.parametrize("seconds", [0, -1])
def test_a_time_for_answers_must_be_positive(seconds: float) -> None:
    with pytest.raises(ValueError, match="question_timeout must be a positive number of seconds"):
        MCPServer("till", question_timeout=seconds)


# Cancellation


@pytest.mark.parametrize("wire", WIRES)
async def test_a_call_cancelled_while_a_question_is_open_closes_everything_and_takes_it_back(wire: str) -> None:
    till, person = Till(), Thinking(accept(value=1))
    async with over(wire, till.mcp, elicitation_callback=person) as client:
        call = asyncio.create_task(client.call_tool("take"))
        await eventually(lambda: person.open)
        call.cancel()
        await asyncio.wait({call})
        await eventually(lambda: "account closed" in till.log)
        await eventually(lambda: person.taken_back == ["sure"])
    assert "paid" not in till.log


@pytest.mark.parametrize("wire", WIRES)
async def test_a_call_cancelled_after_its_questions_are_answered_is_finished_all_the_same(wire: str) -> None:
    till = Till()
    async with over(wire, till.mcp, elicitation_callback=Person({"sure": accept(value=1)})) as client:
        call = asyncio.create_task(client.call_tool("take"))
        await asyncio.wait_for(till.reached.wait(), 5)
        call.cancel()
        await asyncio.wait({call})
        await client.list_tools()  # a whole exchange later
        assert till.log == []
        till.go_on.set()
        await eventually(lambda: len(till.log) == 3)
    assert till.log == ["paid", "account finished", "account closed"]


async def test_a_call_that_asked_nobody_is_cancelled_with_its_request() -> None:
    reached, log = asyncio.Event(), list[str]()

    async def take(it: Annotated[int, Resolve(asks_nothing)]) -> str:
        reached.set()
        try:
            await asyncio.Event().wait()
        finally:
            log.append("cancelled")
        return "never"

    async with Client(serving(take), mode=NOVEMBER) as client:
        call = asyncio.create_task(client.call_tool("take"))
        await asyncio.wait_for(reached.wait(), 5)
        call.cancel()
        await asyncio.wait({call})
        await eventually(lambda: log)


@pytest.mark.parametrize("wire", ["memory", "stdio"])
async def test_a_client_that_leaves_ends_what_it_was_asked(wire: str) -> None:
    till, person = Till(), Thinking(accept(value=1))
    async with over(wire, till.mcp, elicitation_callback=person) as client:
        call = asyncio.create_task(client.call_tool("take"))
        await eventually(lambda: person.open)
    await eventually(lambda: "account closed" in till.log)
    await asyncio.gather(call, return_exceptions=True)  # what it was told, if anything, depends on who was faster
    assert "paid" not in till.log


async def test_a_call_that_waits_for_a_person_does_not_hold_up_the_end_of_its_server() -> None:
    """Whoever mounts a server runs its lifespan, and nothing else tells the calls under way that it ends."""
    closed = asyncio.Event()

    async def hold() -> AsyncIterator[str]:
        try:
            yield "held"
        finally:
            closed.set()

    async def confirm(held: Annotated[str, Resolve(hold)]) -> Elicit[bool]:
        return Elicit("Sure?", bool)

    mcp = MCPServer("shop")

    @mcp.tool()
    async def pay(sure: Annotated[bool, Resolve(confirm)]) -> str:
        raise AssertionError("nobody was sure")

    pushed: list[bytes] = []

    class Way:
        has_reader = True

        def notify(self, message: bytes, /) -> None: ...
        def push(self, message: bytes, /) -> None:
            pushed.append(message)

        def pause(self) -> None: ...

        def when_gone(self, callback: Callable[[], object]) -> None: ...

    params: dict[str, Any] = {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": {}}
    began = asyncio.get_running_loop().time()
    async with mcp.running():
        peer = mcp.peer()
        peer.at_once(LegacyRequest(1, "initialize", params))
        calling = asyncio.create_task(peer.answer(LegacyRequest(2, "tools/call", {"name": "pay"}), Way()))
        await eventually(lambda: pushed)
    assert closed.is_set()
    assert asyncio.get_running_loop().time() - began < 10
    calling.cancel()
    await asyncio.wait({calling})
