"""Design section 7: above half full one principal, or one address without one, holds at most a tenth of the ledger."""

from typing import Annotated, Any

import pytest

from bespeak import Elicit, MCPServer, RequestStateSecurity, Resolve
from bespeak.client.client import Client
from bespeak.state.stores.memory import MemoryStore
from tests.answering import Person, accept, text, unresolved
from tests.conftest import Connect
from tests.transports.http.legacy.older_client import MODERN, Older, modern, served

USED_UP = (
    "Error executing tool pay: the server is busy, and too many recent calls that asked questions came from you or your "
    "address; try again later"
)
FULL = "Error executing tool pay: the server cannot take more calls that ask questions now; try again later"
FLOOD, HONEST = "127.0.0.2", "127.0.0.1"


async def approve() -> Elicit[bool]:
    return Elicit("Pay?", bool)


def till(store: MemoryStore, **options: Any) -> MCPServer[Any]:
    mcp = MCPServer[Any]("till", store=store, **options)

    @mcp.tool()
    async def pay(approval: Annotated[bool, Resolve(approve, key="approve")]) -> str:
        return f"paid {approval}"

    return mcp


async def pay(client: Client) -> str:
    return text(await client.call_tool("pay"))


async def test_one_principal_fills_half_the_ledger_and_another_is_served(in_memory: Connect) -> None:
    caller = "flood"
    security = RequestStateSecurity(bind_principal=lambda _: caller)
    async with in_memory(
        till(MemoryStore(max_claims=20), request_state_security=security),
        elicitation_callback=Person({"approve": accept(value=True)}),
    ) as client:
        assert {await pay(client) for _ in range(11)} == {"paid True"}
        assert await pay(client) == USED_UP
        caller = "honest"
        assert [await pay(client) for _ in range(3)] == ["paid True", "paid True", USED_UP]


async def test_calls_without_a_principal_or_an_address_have_no_share_and_the_whole_bound_only() -> None:
    async with Client(
        till(MemoryStore(max_claims=20)), elicitation_callback=Person({"approve": accept(value=True)})
    ) as client:
        assert {await pay(client) for _ in range(16)} == {"paid True"}
        assert await pay(client) == FULL


async def ask(client: Older, **headers: Any) -> dict[str, Any]:
    call = modern("tools/call", {"name": "pay", "arguments": {}})
    routed = {"mcp_protocol_version": MODERN, "mcp_method": "tools/call", "mcp_name": "pay", **headers}
    return (await client.post(call, **routed)).json["result"]


async def decline(client: Older, asked: dict[str, Any], **headers: Any) -> str:
    answers = {key: {"action": "decline"} for key in asked["inputRequests"]}
    params = {"name": "pay", "arguments": {}, "inputResponses": answers, "requestState": asked["requestState"]}
    routed = {"mcp_protocol_version": MODERN, "mcp_method": "tools/call", "mcp_name": "pay", **headers}
    return (await client.post(modern("tools/call", params), **routed)).text


DECLINED = f"Error executing tool pay: {unresolved('approval', 'decline')}"


async def test_declines_from_one_address_leave_room_for_another() -> None:
    async with served(till(MemoryStore(max_claims=20))) as server:
        flood, honest = server.stranger(address=FLOOD), server.stranger(address=HONEST)
        kept = [await ask(flood) for _ in range(20)]  # asked while there was room; none of them is claimed yet
        said = [await decline(flood, one) for one in kept]
        assert said == [DECLINED] * 11 + [USED_UP] * 9
        assert (await ask(flood))["content"][0]["text"] == USED_UP
        assert await decline(honest, await ask(honest)) == DECLINED


async def test_who_was_asked_before_the_flood_is_not_refused_after_answering() -> None:
    async with served(till(MemoryStore(max_claims=20))) as server:
        flood, honest = server.stranger(address=FLOOD), server.stranger(address=HONEST)
        asked = await ask(honest)
        for _ in range(11):
            await decline(flood, await ask(flood))
        assert (await ask(flood))["content"][0]["text"] == USED_UP
        assert await decline(honest, asked) == DECLINED


@pytest.mark.parametrize("trusted", [True, False])
async def test_behind_a_trusted_proxy_the_share_is_that_of_the_forwarded_address(trusted: bool) -> None:
    proxies = [HONEST] if trusted else []
    async with served(till(MemoryStore(max_claims=20)), trusted_proxies=proxies) as server:
        proxy = server.stranger(address=HONEST)
        for _ in range(11):
            await decline(proxy, await ask(proxy, x_forwarded_for="10.0.0.1"), x_forwarded_for="10.0.0.1")
        assert (await ask(proxy, x_forwarded_for="10.0.0.1"))["content"][0]["text"] == USED_UP
        other = await ask(proxy, x_forwarded_for="10.0.0.2")
        assert ("requestState" in other) is trusted
