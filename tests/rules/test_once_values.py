"""A `once` value that was computed from an answer does not survive another answer (design sections 5 and 6)."""

from typing import Annotated, Any

import httpx2
from mcp_types import ElicitResult

from bespeak import Client, Context, Elicit, ElicitationResult, MCPServer, NotAsked, Resolve
from bespeak.client import streamable_http_client
from tests.answering import Person, text
from tests.wires import Listening

Sent = dict[str, Any]
Outcome = ElicitationResult[bool] | NotAsked


def number(value: int) -> Sent:
    return {"action": "accept", "content": {"value": value}}


YES: Sent = {"action": "accept", "content": {"value": True}}
CALL: Sent = {"name": "buy", "arguments": {}}


async def test_a_once_value_computed_from_one_answer_is_computed_again_under_another() -> None:
    mcp, stock = MCPServer[Any]("Shop"), [9]

    async def quantity() -> Elicit[int]:
        return Elicit(f"How many? {stock[0]} left", int)

    async def quote(quantity: Annotated[int, Resolve(quantity, key="quantity")]) -> int:
        return quantity * 100

    async def confirm(quote: Annotated[int, Resolve(quote, once=True)]) -> Elicit[bool]:
        return Elicit(f"Pay {quote}?", bool)

    @mcp.tool()
    async def buy(
        quantity: Annotated[int, Resolve(quantity, key="quantity")],
        quote: Annotated[int, Resolve(quote, once=True)],
        ok: Annotated[bool, Resolve(confirm, key="confirm")],
    ) -> str:
        return f"{quantity} for {quote}"

    async with Client(mcp, elicitation_callback=Person()) as client:
        request = client.session.request
        first = await request("tools/call", CALL)
        second = await request(
            "tools/call", {**CALL, "requestState": first["requestState"], "inputResponses": {"quantity": number(1)}}
        )
        stock[0] = 60  # and so the first question is another one
        third = await request("tools/call", {**CALL, "requestState": second["requestState"]})
        fourth = await request(
            "tools/call", {**CALL, "requestState": third["requestState"], "inputResponses": {"quantity": number(50)}}
        )
        (question,) = fourth["inputRequests"].values()
        done = await request(
            "tools/call", {**CALL, "requestState": fourth["requestState"], "inputResponses": {"confirm": YES}}
        )
    assert question["params"]["message"] == "Pay 5000?"
    assert done["structuredContent"] == {"result": "50 for 5000"}
    assert buy is not None


async def test_a_once_value_read_from_a_header_stays_when_a_later_round_has_another_header() -> None:
    mcp = MCPServer[Any]("Archive")

    async def tenant(ctx: Context) -> str:
        return (ctx.headers or {})["x-tenant"]

    async def confirm(tenant: Annotated[str, Resolve(tenant, once=True)]) -> Elicit[bool]:
        return Elicit(f"Erase {tenant}?", bool)

    @mcp.tool()
    async def erase(
        tenant: Annotated[str, Resolve(tenant, once=True)], ok: Annotated[bool, Resolve(confirm)], ctx: Context
    ) -> str:
        return f"{tenant} {(ctx.headers or {})['x-tenant']}"

    async def person(context: Any, params: Any) -> ElicitResult:
        http.headers["X-Tenant"] = "blue"
        return ElicitResult(action="accept", content={"value": True})

    async with (
        Listening(mcp.streamable_http_app()) as listening,
        httpx2.AsyncClient(headers={"X-Tenant": "red"}) as http,
        Client(streamable_http_client(listening.url, http_client=http), elicitation_callback=person) as client,
    ):
        assert text(await client.call_tool("erase")) == "red blue"


async def test_a_once_value_never_keeps_that_the_client_could_not_be_asked() -> None:
    mcp = MCPServer[Any]("Shop")

    async def ask() -> Elicit[bool]:
        return Elicit("Sure?", bool)

    async def kept(answer: Annotated[Outcome, Resolve(ask, key="ask")]) -> str:
        return type(answer).__name__

    async def last(kept: Annotated[str, Resolve(kept, once=True)]) -> Elicit[int] | int:
        return Elicit(f"{kept}?", int) if kept != "NotAsked" else 0

    @mcp.tool()
    async def buy(
        kept: Annotated[str, Resolve(kept, once=True)], last: Annotated[int | None, Resolve(last, key="last")] = None
    ) -> str:
        return kept

    async with Client(mcp, elicitation_callback=Person()) as able, Client(mcp) as unable:
        assert (await unable.session.request("tools/call", CALL))["structuredContent"] == {"result": "NotAsked"}
        asked = await able.session.request("tools/call", CALL)
        no: Sent = {"ask": {"action": "decline"}}
        state = {"requestState": asked["requestState"]}
        after = await able.session.request("tools/call", {**CALL, **state, "inputResponses": no})
    assert [one["params"]["message"] for one in after["inputRequests"].values()] == ["DeclinedElicitation?"]
    assert buy is not None
