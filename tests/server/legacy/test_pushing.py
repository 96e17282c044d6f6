"""Questions pushed to older clients (design section 5, "Legacy era"): one at a time in graph order, and what goes on beside."""

import asyncio
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from mcp_types import ElicitRequestParams, ElicitResult

from bespeak import Client, Context, Elicit, MCPServer, Resolve
from bespeak.client import ClientRequestContext
from tests.answering import Person, accept, text
from tests.rules.consumers import ask, serving, take_value
from tests.server.legacy.older_client import (
    EVERYTHING,
    JUNE,
    MODERN,
    NOVEMBER,
    SILENCE,
    WIRES,
    Even,
    Older,
    Sent,
    Thinking,
    ask_second,
    over,
    slow_first,
    take_even,
    yes,
)
from tests.waiting import eventually, pass_time, turns

# Order


@pytest.mark.parametrize("wire", WIRES)
async def test_questions_are_pushed_in_graph_order_though_the_first_takes_longer_to_make(wire: str) -> None:
    async def take(a: Annotated[int, Resolve(slow_first)], b: Annotated[int, Resolve(ask_second)]) -> str:
        return f"{a} {b}"

    person = Person({"slow_first": accept(value=1), "ask_second": accept(value=2)})
    async with over(wire, serving(take), elicitation_callback=person) as client:
        assert text(await client.call_tool("take")) == "1 2"
    assert person.asked == ["slow_first", "ask_second"]


async def test_a_question_comes_after_those_it_depends_on_wherever_they_stand_in_the_signature() -> None:
    async def dependent(second: Annotated[int, Resolve(ask_second)]) -> Elicit[int]:
        return Elicit(f"After {second}?", int)

    async def take(a: Annotated[int, Resolve(dependent)], b: Annotated[int, Resolve(ask_second)]) -> str:
        return f"{a} {b}"

    person = Person({"dependent": accept(value=1), "ask_second": accept(value=2)})
    async with Client(serving(take), mode=NOVEMBER, elicitation_callback=person) as client:
        assert text(await client.call_tool("take")) == "1 2"
    assert person.messages == ["And then?", "After 2?"]


async def test_a_question_waits_for_an_earlier_resolver_that_might_ask_and_does_not() -> None:
    settled: list[bool] = []

    async def might() -> int | Elicit[int]:
        await turns(50)  # time for a question that does not wait
        settled.append(True)
        return 7

    async def take(a: Annotated[int, Resolve(might)], b: Annotated[int, Resolve(ask_second)]) -> str:
        return f"{a} {b}"

    async def callback(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        assert settled
        return accept(value=2)

    async with Client(serving(take), mode=NOVEMBER, elicitation_callback=callback) as client:
        assert text(await client.call_tool("take")) == "7 2"


@pytest.mark.parametrize("wire", WIRES)
async def test_one_question_of_a_call_is_open_at_a_time(wire: str) -> None:
    person, made = Thinking(accept(value=1)), asyncio.Event()

    async def made_late() -> Elicit[int]:
        await eventually(lambda: person.open)
        made.set()
        return Elicit("And last?", int)

    async def take(
        a: Annotated[int, Resolve(ask)], b: Annotated[int, Resolve(ask_second)], c: Annotated[int, Resolve(made_late)]
    ) -> str:
        return f"{a} {b} {c}"

    async with over(wire, serving(take), elicitation_callback=person) as client:
        call = asyncio.create_task(client.call_tool("take"))
        await asyncio.wait_for(made.wait(), 5)
        await turns(50)
        assert person.open == ["ask"]
        person.done.set()
        assert text(await call) == "1 1 1"
    assert (person.most, person.order) == (1, ["ask", "ask_second", "made_late"])


async def test_calls_of_one_client_do_not_wait_for_each_others_questions() -> None:
    person = Thinking(accept(value=1))
    async with Client(serving(take_value), mode=NOVEMBER, elicitation_callback=person) as client:
        calls = [asyncio.create_task(client.call_tool("take")) for _ in range(3)]
        await eventually(lambda: person.most == 3)
        person.done.set()
        assert [text(await call) for call in calls] == ["1", "1", "1"]


async def test_answers_of_concurrent_calls_are_not_mixed_up() -> None:
    async def which(number: int) -> Elicit[int]:
        return Elicit(f"{number}", int)

    async def take(number: int, same: Annotated[int, Resolve(which)]) -> str:
        return f"{number} {same}"

    async def callback(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        await turns(7 * int(params.message) % 5)
        return accept(value=int(params.message))

    async with Client(serving(take), mode=NOVEMBER, elicitation_callback=callback) as client:
        results = await asyncio.gather(*(client.call_tool("take", {"number": number}) for number in range(20)))
    assert [text(one) for one in results] == [f"{number} {number}" for number in range(20)]


async def test_other_resolvers_run_while_a_person_thinks() -> None:
    person, reached = Thinking(accept(value=1)), asyncio.Event()

    async def beside() -> int | Elicit[int]:
        await eventually(lambda: person.open)
        reached.set()
        return 7

    async def take(a: Annotated[int, Resolve(ask)], b: Annotated[int, Resolve(beside)]) -> str:
        return f"{a} {b}"

    async with Client(serving(take), mode=NOVEMBER, elicitation_callback=person) as client:
        call = asyncio.create_task(client.call_tool("take"))
        await asyncio.wait_for(reached.wait(), 5)
        assert person.open == ["ask"]
        person.done.set()
        assert text(await call) == "1 7"


async def test_the_time_a_question_waits_for_its_turn_does_not_count_towards_a_timeout() -> None:
    async def take(a: Annotated[int, Resolve(ask)], b: Annotated[int, Resolve(ask_second, timeout=5)]) -> str:
        return f"{a} {b}"

    async def callback(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        await pass_time(10)
        return accept(value=1)

    async with Client(serving(take), mode=NOVEMBER, elicitation_callback=callback) as client:
        assert text(await client.call_tool("take")) == "1 1"


# What is computed once, and what goes before


async def test_a_once_value_is_computed_once_and_the_question_shows_the_one_the_body_gets() -> None:
    made: list[int] = []

    async def number() -> int:
        made.append(len(made) + 1)
        return made[-1]

    async def sure(number: Annotated[int, Resolve(number, once=True)]) -> Elicit[Even]:
        return Elicit(f"Really {number}?", Even)

    async def take(number: Annotated[int, Resolve(number, once=True)], even: Annotated[Even, Resolve(sure)]) -> str:
        return f"{number} {even.number}"

    person = Person({"sure": [accept(number=1), accept(number=2)]})
    async with Client(serving(take), mode=NOVEMBER, elicitation_callback=person) as client:
        assert text(await client.call_tool("take")) == "1 2"
    assert made == [1]
    assert person.messages[0] == "Really 1?"


async def test_a_resolver_runs_once_though_its_question_is_asked_again() -> None:
    runs: list[int] = []

    async def even(ctx: Context) -> Elicit[Even]:
        runs.append(ctx.round)
        return Elicit("Which?", Even)

    async def take(it: Annotated[Even, Resolve(even)], ctx: Context) -> str:
        return f"{it.number} in round {ctx.round}, {ctx.protocol_version}"

    person = Person({"even": [accept(number=1), accept(number=2)]})
    async with Client(serving(take), mode=JUNE, elicitation_callback=person) as client:
        assert text(await client.call_tool("take")) == "2 in round 1, 2025-06-18"
    assert runs == [1]


# On the wire


async def test_a_form_at_2025_11_25_is_pushed_as_it_would_be_asked_in_a_round() -> None:
    async with Older(serving(take_even), {"ask_even": yes(number=2)}) as client:
        await client.call()
    (pushed,) = client.pushed
    async with Client(serving(take_even), mode=MODERN, elicitation_callback=Person()) as modern:
        asked = await modern.session.request("tools/call", {"name": "take", "arguments": {}})
    ((key, question),) = asked["inputRequests"].items()
    params = {**question["params"], "_meta": {"bespeak/key": key}}
    assert pushed == {"jsonrpc": "2.0", "id": pushed["id"], "method": "elicitation/create", "params": params}


async def test_ids_of_questions_are_never_used_twice_on_a_connection() -> None:
    async with Older(serving(take_value), {"ask": yes(value=3)}) as client:
        for _ in range(3):
            await client.call()
    assert len({one["id"] for one in client.pushed}) == 3


async def test_a_modern_request_is_never_pushed_anything_though_a_handshake_was_made() -> None:
    meta: Sent = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": EVERYTHING,
    }
    async with Older(serving(take_value), {"ask": yes(value=3)}) as client:
        assert (await client.call(_meta=meta))["resultType"] == "input_required"
    assert client.pushed == []


async def test_a_question_and_its_answer_take_few_turns_of_the_event_loop() -> None:
    """Under a flood, every turn of the loop makes an honest person wait for one request of each flooding connection."""

    async def ask() -> Elicit[bool]:
        return Elicit("Sure?", bool)

    async def take(sure: Annotated[bool, Resolve(ask)]) -> str:
        return str(sure)

    mcp = MCPServer[Any]("quick")
    mcp.add_tool(take)
    async with Older(mcp, {"ask": SILENCE}) as client:
        calling = asyncio.create_task(client.call())
        assert await turns_until(lambda: client.pushed) <= 3
        await client.send({"id": client.pushed[0]["id"], **yes(value=True)})
        assert await turns_until(calling.done) <= 3
    assert calling.result()["content"][0]["text"] == "True"


async def turns_until(happened: Callable[[], object]) -> int:
    for turn in range(20):
        if happened():
            return turn
        await asyncio.sleep(0)
    raise AssertionError("20 turns were not enough")
