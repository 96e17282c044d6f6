"""A response that was lost (design section 7): the same request again gets the result, whatever the call has changed."""

from typing import Annotated, Any

import pytest

from bespeak import Elicit, MCPServer, Resolve, ToolError
from tests.answering import Person, accept
from tests.conftest import Connect


class Till:
    """A balance, a payment a person must approve, and a guard that looks at a switch."""

    def __init__(self) -> None:
        self.balance = 10
        self.open = True
        self.paid = 0
        self.looked = 0
        self.mcp = MCPServer[Any]("Till")
        self.mcp.add_tool(self._tool(), name="pay")

    def _tool(self) -> Any:
        async def is_open() -> bool:
            self.looked += 1
            if not self.open:
                raise ToolError("the till is closed")
            return True

        async def approve(cents: int) -> bool | Elicit[bool]:
            return Elicit(f"Pay {cents} of {self.balance}?", bool)

        async def pay(
            cents: int,
            is_open: Annotated[bool, Resolve(is_open, guard=True)],
            approved: Annotated[bool, Resolve(approve, key="approve")],
        ) -> str:
            self.balance -= cents
            self.paid += 1
            return f"{self.balance} left"

        return pay


async def send(client: Any, **extra: Any) -> dict[str, Any]:
    return await client.session.request("tools/call", {"name": "pay", "arguments": {"cents": 8}, **extra})


async def approved(client: Any) -> dict[str, Any]:
    """The retry of a call that was asked and approved, ready to be sent."""
    asked = await send(client)
    answer = {"action": "accept", "content": {"value": True}}
    return {"requestState": asked["requestState"], "inputResponses": {"approve": answer}}


async def test_the_same_request_again_gets_the_result_though_its_question_would_now_be_another(
    connect: Connect,
) -> None:
    till = Till()
    async with connect(till.mcp, elicitation_callback=Person()) as client:
        retry = await approved(client)
        first, again = await send(client, **retry), await send(client, **retry)
    assert first == again
    assert first["structuredContent"] == {"result": "2 left"}
    assert till.paid == 1


async def test_a_settled_call_is_looked_up_before_guards_run(in_memory: Connect) -> None:
    till = Till()
    async with in_memory(till.mcp, elicitation_callback=Person()) as client:
        retry = await approved(client)
        first = await send(client, **retry)
        till.open = False
        again = await send(client, **retry)
    assert again == first
    assert till.looked == 2
    assert till.paid == 1


async def test_any_other_request_of_a_settled_call_meets_the_guards_first(in_memory: Connect) -> None:
    till = Till()
    async with in_memory(till.mcp, elicitation_callback=Person()) as client:
        retry = await approved(client)
        await send(client, **retry)
        till.open = False
        fork = await send(client, **{**retry, "inputResponses": {"approve": {"action": "decline"}}})
    assert fork["content"][0]["text"] == "Error executing tool pay: the till is closed"
    assert till.paid == 1


@pytest.mark.parametrize("answer", [{"action": "accept", "content": {"value": False}}, {"action": "decline"}])
async def test_nobody_is_asked_again_for_a_call_that_is_settled(in_memory: Connect, answer: dict[str, Any]) -> None:
    till = Till()
    async with in_memory(till.mcp, elicitation_callback=Person({"approve": accept(value=True)})) as client:
        retry = await approved(client)
        await send(client, **retry)
        fork = await send(client, **{**retry, "inputResponses": {"approve": answer}})
    # The balance has changed, and so has the question; but its answer could not be spent any more.
    assert fork["content"][0]["text"].endswith(
        "this call was already settled with other answers; check whether it took effect before you start a new one"
    )
    assert till.paid == 1
