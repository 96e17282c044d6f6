"""Completions, and resources read within a call, are closed to callers without the scopes of what they belong to."""

from typing import Annotated, Any

import pytest

from bespeak import Complete, Context, MCPError, MCPServer
from bespeak.protocol.headers import Headers
from bespeak.server.dispatch import find_completed
from bespeak.server.features.completions import CompletionRequest
from tests.server.auth.issuers import Issuer, protected_server, settings
from tests.transports.http.legacy.older_client import MARCH, Older, hello, request
from tests.transports.http.raw_requests import Response, lines, message, send
from tests.wires import Listening

ISSUED = Issuer()
CUSTOMER = ISSUED.token("alice", "shop")
STAFF = ISSUED.token("bob", "shop staff")
REFS = [{"type": "ref/prompt", "name": "refund"}, {"type": "ref/resource", "uri": "orders://{number}"}]


def numbers(value: str) -> list[str]:
    return [f"{value}7"]


def make_server() -> MCPServer[Any]:
    mcp = protected_server(ISSUED, auth=settings(required_scopes=["shop"]))

    @mcp.prompt(scopes=["staff"])
    def refund(number: Annotated[str, Complete(numbers)]) -> str:
        return number

    @mcp.resource("orders://{number}", scopes=["staff"])
    def order(number: Annotated[str, Complete(numbers)]) -> str:
        return f"order {number}"

    @mcp.tool()
    async def show(uri: str, ctx: Context) -> str:
        return str((await ctx.read_resource(uri))[0].content)

    return mcp


def completing(ref: dict[str, str]) -> dict[str, Any]:
    return {"ref": ref, "argument": {"name": "number", "value": "1"}}


async def ask(server: Listening, token: str, method: str, **params: Any) -> Response:
    return await send(server, message(method, **params), lines(method, authorization=f"Bearer {token}"))


@pytest.mark.parametrize("ref", REFS)
async def test_a_completion_without_the_scopes_is_challenged(ref: dict[str, str]) -> None:
    async with Listening(make_server().streamable_http_app()) as server:
        refused = await ask(server, CUSTOMER, "completion/complete", **completing(ref))
        assert refused.status == 403
        assert 'scope="shop staff"' in refused.headers["www-authenticate"]
        answered = await ask(server, STAFF, "completion/complete", **completing(ref))
        assert answered.json()["result"]["completion"]["values"] == ["17"]


@pytest.mark.parametrize("ref", REFS)
def test_what_a_caller_may_not_use_does_not_exist(ref: dict[str, str]) -> None:
    mcp = make_server()
    catalogue = mcp._catalogue  # pyright: ignore[reportPrivateUsage] - what dispatch is given
    wanted = CompletionRequest.read(completing(ref))
    assert find_completed(catalogue, wanted) is not None
    with pytest.raises(MCPError, match=r"^unknown (prompt 'refund'|resource 'orders://\{number\}')$"):
        find_completed(catalogue, wanted, Headers([]))


async def test_a_batch_of_an_older_client_with_one_of_them_is_challenged_as_a_whole() -> None:
    async with Listening(make_server().streamable_http_app()) as server:
        customer = f"Bearer {CUSTOMER}"
        reply = await Older(server.port).post(hello(MARCH), authorization=customer)
        older = Older(server.port, MARCH, reply.headers["mcp-session-id"])
        batch = [request("completion/complete", completing(ref), id_=number) for number, ref in enumerate(REFS)]
        refused = await older.post(batch, authorization=customer)
        assert refused.status == 403
        assert 'scope="shop staff"' in refused.headers["www-authenticate"]


async def test_a_tool_does_not_read_for_its_caller_what_the_caller_may_not_read() -> None:
    async with Listening(make_server().streamable_http_app()) as server:
        for token, said in ((CUSTOMER, "unknown resource 'orders://7'"), (STAFF, "order 7")):
            headers = lines("tools/call", authorization=f"Bearer {token}", mcp_name="show")
            body = message("tools/call", name="show", arguments={"uri": "orders://7"})
            response = (await send(server, body, headers)).json()
            told = response["error"]["message"] if "error" in response else response["result"]["content"][0]["text"]
            assert told == said
