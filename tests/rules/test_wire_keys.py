"""Wire keys name a question, not only the place that asks it (design section 4)."""

import re
import subprocess
import sys
from typing import Annotated, Any

import pytest
from mcp_types import ElicitResult
from pydantic_core import from_json

from bespeak import Client, Elicit, InvalidSignature, MCPServer, Resolve, ToolError
from bespeak.client import ClientRequestContext
from bespeak.protocol.question_keys import bare_name
from tests.answering import Person, accept, text
from tests.conftest import Connect

Sent = dict[str, Any]
YES: Sent = {"action": "accept", "content": {"value": True}}


class Shop:
    """A price that moves, a question that shows it, and what was charged."""

    def __init__(self, *, once: bool = False, moves: bool = True) -> None:
        self.price = 0
        self.charged: list[int] = []
        self.mcp = MCPServer[Any]("Shop")
        self.mcp.add_tool(self._tool(once, 100 if moves else 0), name="buy")

    def _tool(self, once: bool, step: int) -> Any:
        async def price() -> int:
            self.price = self.price + step or 100
            return self.price

        async def approve(price: Annotated[int, Resolve(price, once=once)]) -> bool | Elicit[bool]:
            return Elicit(f"Pay {price} EUR?", bool)

        async def buy(
            price: Annotated[int, Resolve(price, once=once)], ok: Annotated[bool, Resolve(approve, key="approve")]
        ) -> str:
            if not ok:
                raise ToolError("not approved")
            self.charged.append(price)
            return f"paid {price}"

        return buy


async def send(client: Client, answers: Sent | None = None, state: str | None = None) -> Sent:
    extra = {"inputResponses": answers} if answers is not None else {}
    state_ = {"requestState": state} if state is not None else {}
    return await client.session.request("tools/call", {"name": "buy", "arguments": {}, **extra, **state_})


def only_key(result: Sent) -> str:
    (key,) = result["inputRequests"]
    return key


@pytest.mark.parametrize("once", [False, True])
async def test_an_answer_kept_from_another_call_answers_nothing_when_the_price_has_moved(
    connect: Connect, once: bool
) -> None:
    shop = Shop(once=once)
    async with connect(shop.mcp, elicitation_callback=Person()) as client:
        suspended = await send(client)
        kept = {only_key(suspended): YES}
        anew = await send(client)
        again = await send(client, kept, anew["requestState"])
    assert suspended["inputRequests"][only_key(suspended)]["params"]["message"] == "Pay 100 EUR?"
    assert again["resultType"] == "input_required"
    assert shop.charged == []


@pytest.mark.parametrize("once", [False, True])
async def test_an_answer_kept_from_another_call_fits_when_the_price_has_stayed(in_memory: Connect, once: bool) -> None:
    shop = Shop(once=once, moves=False)
    async with in_memory(shop.mcp, elicitation_callback=Person()) as client:
        kept = {only_key(await send(client)): YES}
        anew = await send(client)
        done = await send(client, kept, anew["requestState"])
    assert done["structuredContent"] == {"result": "paid 100"}


async def test_without_a_state_no_resolvers_question_is_answered_by_any_key(connect: Connect) -> None:
    shop = Shop(moves=False)
    async with connect(shop.mcp, elicitation_callback=Person()) as client:
        full = only_key(await send(client))
        for key in (full, "approve"):
            assert (await send(client, {key: YES}))["resultType"] == "input_required"
    assert shop.charged == []


async def test_a_bare_name_answers_the_question_last_shown_under_it(in_memory: Connect) -> None:
    shop = Shop(once=True)
    async with in_memory(shop.mcp, elicitation_callback=Person()) as client:
        asked = await send(client)
        done = await send(client, {"approve": YES}, asked["requestState"])
    assert done["structuredContent"] == {"result": "paid 100"}


async def test_a_bare_name_answers_nothing_if_the_question_is_another_by_now(in_memory: Connect) -> None:
    shop = Shop()
    async with in_memory(shop.mcp, elicitation_callback=Person()) as client:
        asked = await send(client)
        again = await send(client, {"approve": YES}, asked["requestState"])
    assert again["resultType"] == "input_required"
    assert only_key(again) != only_key(asked)
    assert shop.charged == []


async def test_a_full_key_wins_over_a_bare_name(in_memory: Connect) -> None:
    shop = Shop(once=True)
    async with in_memory(shop.mcp, elicitation_callback=Person()) as client:
        asked = await send(client)
        answers = {"approve": YES, only_key(asked): {"action": "accept", "content": {"value": False}}}
        done = await send(client, answers, asked["requestState"])
    assert done["content"][0]["text"] == "Error executing tool buy: not approved"


async def test_a_full_key_with_another_suffix_answers_nothing_though_a_bare_name_would(in_memory: Connect) -> None:
    shop = Shop(once=True)
    async with in_memory(shop.mcp, elicitation_callback=Person()) as client:
        asked = await send(client)
        again = await send(client, {"approve~00000000": YES}, asked["requestState"])
    assert again["resultType"] == "input_required"
    assert shop.charged == []


async def test_an_approval_for_one_order_does_not_answer_for_another_though_the_question_reads_the_same(
    connect: Connect,
) -> None:
    mcp, paid = MCPServer[Any]("Shop"), list[str]()

    async def approve() -> Elicit[bool]:
        return Elicit("Pay 100 EUR?", bool)

    @mcp.tool()
    async def pay(order: str, ok: Annotated[bool, Resolve(approve, key="approve")]) -> str:
        paid.append(order)
        return order

    async def send(client: Client, order: str, **extra: Any) -> Sent:
        return await client.session.request("tools/call", {"name": "pay", "arguments": {"order": order}, **extra})

    async with connect(mcp, elicitation_callback=Person()) as client:
        kept = {only_key(await send(client, "A")): YES}
        other = await send(client, "B")
        again = await send(client, "B", requestState=other["requestState"], inputResponses=kept)
        assert again["resultType"] == "input_required"
        same = await send(client, "A")
        await send(client, "A", requestState=same["requestState"], inputResponses=kept)
    assert paid == ["A"]
    assert pay is not None


async def test_an_approval_for_one_tool_does_not_answer_for_another_though_the_question_reads_the_same(
    in_memory: Connect,
) -> None:
    mcp, ran = MCPServer[Any]("Shop"), list[str]()

    async def approve() -> Elicit[bool]:
        return Elicit("Go on?", bool)

    for name in ("look", "delete"):

        async def act(ok: Annotated[bool, Resolve(approve, key="approve")], name: str = name) -> str:
            ran.append(name)
            return name

        mcp.add_tool(act, name=name)
    async with in_memory(mcp, elicitation_callback=Person()) as client:
        request = client.session.request
        kept = {only_key(await request("tools/call", {"name": "look", "arguments": {}})): YES}
        asked = await request("tools/call", {"name": "delete", "arguments": {}})
        retry = {"name": "delete", "arguments": {}, "requestState": asked["requestState"], "inputResponses": kept}
        assert (await request("tools/call", retry))["resultType"] == "input_required"
    assert ran == []


def linked(seen: list[str], *, secret: int = 1) -> MCPServer[Any]:
    """Two questions, the second resting on the first and on a `once` value that nobody is shown."""
    mcp = MCPServer[Any]("Linked")

    async def hidden() -> int:
        return secret

    async def size() -> Elicit[int]:
        return Elicit("How many?", int)

    async def sure(
        size: Annotated[int, Resolve(size, key="size")], hidden: Annotated[int, Resolve(hidden, once=True)]
    ) -> Elicit[bool]:
        seen.append(f"{size} {hidden}")
        return Elicit("Sure?", bool)

    @mcp.tool()
    async def buy(sure: Annotated[bool, Resolve(sure, key="sure")]) -> str:
        return f"{sure}"

    _ = buy
    return mcp


async def second_key(mcp: MCPServer[Any], size: int) -> str:
    async with Client(mcp, elicitation_callback=Person()) as client:
        first = await send(client)
        answers = {only_key(first): {"action": "accept", "content": {"value": size}}}
        return only_key(await send(client, answers, first["requestState"]))


async def test_the_suffix_depends_on_the_answers_a_question_rests_on() -> None:
    assert await second_key(linked([]), 1) == await second_key(linked([]), 1) != await second_key(linked([]), 2)


async def test_the_suffix_never_depends_on_a_once_value_for_that_could_be_guessed_from_it() -> None:
    seen: list[str] = []
    assert await second_key(linked(seen, secret=1), 1) == await second_key(linked(seen, secret=2), 1)
    assert {*seen} == {"1 1", "1 2"}


@pytest.mark.asking_revisions
async def test_pushed_questions_carry_the_full_key_too(connect: Connect) -> None:
    shop = Shop(moves=False)
    keys: list[str] = []

    async def person(context: ClientRequestContext, params: Any) -> ElicitResult:
        keys.append(context.key)
        assert context.name == "approve"
        return accept(value=True)

    async with connect(shop.mcp, elicitation_callback=person) as client:
        assert text(await client.call_tool("buy")) == "paid 100"
    assert [bool(re.fullmatch("approve~[0-9a-f]{8}", key)) for key in keys] == [True]


PROGRAM = """
import asyncio, json
from typing import Annotated
from bespeak import Client, Elicit, MCPServer, Resolve
mcp = MCPServer("Shop")
async def approve() -> Elicit[bool]:
    return Elicit("Pay 100 EUR?", bool)
@mcp.tool()
async def buy(ok: Annotated[bool, Resolve(approve, key="approve")]) -> str: ...
async def never(context, params): ...
async def main():
    async with Client(mcp, elicitation_callback=never) as client:
        asked = await client.session.request("tools/call", {"name": "buy", "arguments": {}})
        print(json.dumps(list(asked["inputRequests"])))
asyncio.run(main())
"""


@pytest.mark.timing
@pytest.mark.long
def test_a_key_is_the_same_in_every_process() -> None:
    runs = [
        subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    (key,) = from_json(runs[0])
    assert runs[0] == runs[1]
    assert bare_name(key) == "approve"


async def test_messages_show_the_name_and_not_the_suffix(in_memory: Connect) -> None:
    shop = Shop(once=True)
    async with in_memory(shop.mcp, elicitation_callback=Person()) as client:
        asked = await send(client)
        bad = await send(client, {only_key(asked): {"action": "accept"}}, asked["requestState"])
    said = bad["content"][0]["text"]
    assert said == "Error executing tool buy: the answer to 'approve' was accepted without content"


def test_an_authors_key_has_no_tilde() -> None:
    async def approve() -> Elicit[bool]:
        return Elicit("Sure?", bool)

    async def buy(ok: Annotated[bool, Resolve(approve, key="approve~1")]) -> None: ...

    with pytest.raises(InvalidSignature, match=r"the key 'approve~1' contains '~'") as raised:
        MCPServer("Shop").add_tool(buy)
    assert raised.value.faults[0].fix == "write the key without '~'"
