"""Refunds three ways, checking itself: nothing to ask, everything asked, and two kinds of no.

Run it with `make demo`, or `python -m examples.refund_desk.client`.
"""

import asyncio
from collections import Counter

from mcp_types import CallToolResult, ElicitRequestParams, ElicitResult, TextContent

from bespeak import Client
from bespeak.client import CallbackContext
from bespeak.transports.memory import MemoryTransport
from examples.refund_desk.narrator import NarratedTransport
from examples.refund_desk.server import mcp

ACCEPT_ALL = {
    "refund_scope": ElicitResult(action="accept", content={"full": True}),
    "ask_restock": ElicitResult(action="accept", content={"restock": True}),
}
DECLINE = ElicitResult(action="decline")


class Person:
    """Answers by the name of the resolver that asks, and counts how often each has asked."""

    def __init__(self, **answers: ElicitResult) -> None:
        self._answers = {**ACCEPT_ALL, **answers}
        self.asked: Counter[str] = Counter()

    async def __call__(self, context: CallbackContext, params: ElicitRequestParams) -> ElicitResult:
        resolver = context.key.rpartition(":")[2]
        self.asked[resolver] += 1
        return self._answers[resolver]


async def refund(title: str, order_id: str, person: Person) -> CallToolResult:
    print(f"\n{title}")
    async with Client(NarratedTransport(MemoryTransport(mcp)), elicitation_callback=person) as client:
        return await client.call_tool("refund_order", {"order_id": order_id, "reason": "changed my mind"})


async def main() -> None:
    async with Client(mcp) as client:
        (tool,) = (await client.list_tools()).tools
    assert set(tool.input_schema["properties"]) == {"order_id", "reason"}, "the model sees the amount"
    assert set(tool.input_schema["required"]) == {"order_id", "reason"}
    print(f"The model sees {tool.name}({', '.join(tool.input_schema['properties'])}); the amount is not its to say.")

    person = Person()
    result = await refund("One line: nothing to ask.", "ORD-7001", person)
    assert result.structured_content == {
        "order_id": "ORD-7001",
        "cents": 1299,
        "reason": "changed my mind",
        "restocked": False,
    }
    assert not person.asked

    person = Person()
    result = await refund("Two lines: the scope is asked once, though two resolvers need it.", "ORD-7002", person)
    assert result.structured_content is not None
    assert result.structured_content["cents"] == 5200
    assert result.structured_content["restocked"] is True
    assert person.asked == {"refund_scope": 1, "ask_restock": 1}

    one_line = ElicitResult(action="accept", content={"full": False, "sku": "BULB-2"})
    result = await refund("One line of two, typed by a person.", "ORD-7002", Person(refund_scope=one_line))
    assert result.structured_content is not None
    assert result.structured_content["cents"] == 650

    typo = ElicitResult(action="accept", content={"full": False, "sku": "BULB-3"})
    result = await refund("A SKU that is not in the order.", "ORD-7002", Person(refund_scope=typo))
    assert said(result).endswith("ORD-7002 has no line 'BULB-3'; it has LAMP-9, BULB-2")

    person = Person(refund_scope=DECLINE)
    result = await refund("Declining the scope ends the call.", "ORD-7002", person)
    assert said(result) == (
        "Error executing tool refund_order: Resolver for parameter 'scope' could not resolve: elicitation was decline"
    )
    assert person.asked == {"refund_scope": 1}

    result = await refund("Declining to restock still refunds.", "ORD-7002", Person(ask_restock=DECLINE))
    assert result.structured_content is not None
    assert result.structured_content["cents"] == 5200
    assert result.structured_content["restocked"] is False

    print("\nEverything is as it should be.")


def said(result: CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, TextContent)
    assert result.is_error
    return block.text


if __name__ == "__main__":
    asyncio.run(main())
