"""Attacks on prompts, resources, completions, subscriptions, included servers and hooks: what is resolved stays the server's, and
what is approved for one thing is approved for nothing else."""

import asyncio
from typing import Annotated, Any

import pytest

from bespeak import Client, Complete, Context, Elicit, ElicitUrl, MCPError, MCPServer, Resolve
from bespeak.protocol.question_keys import bare_name
from bespeak.server import CacheHint
from bespeak.server.features.subscriptions import MOST_URIS
from tests.server.eras import NOVEMBER, Sent, both_eras, modern
from tests.server.legacy.older_client import Older
from tests.waiting import pass_time

YES: Sent = {"action": "accept", "content": {"value": True}}
NO: Sent = {"action": "decline"}
INVALID = -32602


async def approve() -> Elicit[bool]:
    return Elicit("Go on?", bool)


async def who() -> str:
    return "the server's"


async def refused(mcp: MCPServer[Any], method: str, params: Sent) -> Sent:
    response = await modern(mcp, method, params)
    assert response["error"]["code"] == INVALID, response
    return response["error"]


async def asked(mcp: MCPServer[Any], method: str, params: Sent) -> Sent:
    """The second round of a call: the same parameters, with the state, and with yes to everything."""
    result = (await modern(mcp, method, params))["result"]
    assert result["resultType"] == "input_required"
    return {"requestState": result["requestState"], "inputResponses": dict.fromkeys(result["inputRequests"], YES)}


# Values for resolved parameters


def resolving() -> MCPServer[Any]:
    mcp = MCPServer[Any]("resolving")

    def suggest(value: str, owner: Annotated[str, Resolve(who)], region: str = "none") -> list[str]:
        return [owner, region]

    @mcp.prompt()
    async def letter(
        title: Annotated[str, Complete(suggest)], owner: Annotated[str, Resolve(who)], region: str = ""
    ) -> str:
        return owner

    @mcp.resource("letters://{title}{?region}")
    async def read(title: str, owner: Annotated[str, Resolve(who)], region: str = "") -> str:
        return owner

    return mcp


@both_eras
async def test_a_prompt_argument_does_not_fill_a_resolved_parameter(respond: Any) -> None:
    sent = {"name": "letter", "arguments": {"title": "x", "owner": "mine", "who": "mine"}}
    assert (await respond(resolving(), "prompts/get", sent))["result"]["messages"][0]["content"][
        "text"
    ] == "the server's"


@both_eras
@pytest.mark.parametrize(
    "uri",
    [
        "letters://x?owner=mine",
        "letters://x?region=a&owner=mine",
        "letters://x?%6fwner=mine",
        "letters://x%3Fowner=mine",
    ],
)
async def test_a_uri_does_not_fill_a_resolved_parameter(respond: Any, uri: str) -> None:
    response = await respond(resolving(), "resources/read", {"uri": uri})
    assert "mine" not in str(response.get("result", {}).get("contents", [{}])[0].get("text")), response


@both_eras
async def test_a_completion_context_does_not_fill_a_resolved_parameter(respond: Any) -> None:
    sent = {
        "ref": {"type": "ref/prompt", "name": "letter"},
        "argument": {"name": "title", "value": ""},
        "context": {"arguments": {"owner": "mine", "region": "eu"}},
    }
    completion = (await respond(resolving(), "completion/complete", sent))["result"]["completion"]
    assert completion["values"] == ["the server's", "eu"]


# States


def approving() -> MCPServer[Any]:
    """A tool, a prompt and resources of the same name, which ask the same."""
    mcp = MCPServer[Any]("approving")

    async def run(number: str, ok: Annotated[bool, Resolve(approve, key="ok")]) -> str:
        return f"ran {number}"

    mcp.add_tool(run, name="same://1")
    mcp.prompt(name="same://1")(run)
    mcp.resource("same://{number}")(run)
    return mcp


SAME: list[tuple[str, Sent]] = [
    ("tools/call", {"name": "same://1", "arguments": {"number": "1"}}),
    ("prompts/get", {"name": "same://1", "arguments": {"number": "1"}}),
    ("resources/read", {"uri": "same://1"}),
]


@pytest.mark.parametrize("there", SAME, ids=str)
@pytest.mark.parametrize("here", SAME, ids=str)
async def test_a_state_is_for_one_method(here: tuple[str, Sent], there: tuple[str, Sent]) -> None:
    mcp = approving()
    retry = await asked(mcp, *here)
    method, params = there
    if here is there:
        assert "ran 1" in str((await modern(mcp, method, {**params, **retry}))["result"])
    else:
        assert "requestState" in (await refused(mcp, method, {**params, **retry}))["message"]


async def test_a_state_is_for_one_spelling_of_a_uri() -> None:
    mcp = approving()
    retry = await asked(mcp, "resources/read", {"uri": "same://1"})
    for uri in ("same://2", "same://%31"):
        await refused(mcp, "resources/read", {"uri": uri, **retry})


async def test_a_state_of_an_included_tool_is_not_one_of_the_same_tool_under_another_name() -> None:
    inner, outer = approving(), MCPServer[Any]("outer")
    outer.include(inner, prefix="shop")
    outer.include(inner)
    plain, prefixed = [{"name": name, "arguments": {"number": "1"}} for name in ("same://1", "shop_same://1")]
    for here, there in ((plain, prefixed), (prefixed, plain)):
        retry = await asked(outer, "tools/call", here)
        await refused(outer, "tools/call", {**there, **retry})
        await refused(inner, "tools/call", {**plain, **retry})
        assert "ran 1" in str((await modern(outer, "tools/call", {**here, **retry}))["result"])


@pytest.mark.parametrize(("method", "params"), SAME, ids=str)
async def test_a_final_request_that_is_sent_again_gets_the_first_result_and_runs_nothing(
    method: str, params: Sent
) -> None:
    ran: list[str] = []
    mcp = MCPServer[Any]("once")

    async def run(number: str, ok: Annotated[bool, Resolve(approve, key="ok")]) -> str:
        ran.append(number)
        return f"number {len(ran)}"

    mcp.add_tool(run, name="same://1")
    mcp.prompt(name="same://1")(run)
    mcp.resource("same://{number}")(run)
    final = {**params, **await asked(mcp, method, params)}
    results = await asyncio.gather(*(modern(mcp, method, final) for _ in range(20)))
    assert ran == ["1"]
    assert all(one == results[0] for one in results)
    assert "number 1" in str(results[0])
    no = {**final, "inputResponses": dict.fromkeys(final["inputResponses"], NO)}
    again = await modern(mcp, method, no)
    assert "settled with other answers" in str(again)
    assert again.get("error", {"code": INVALID})["code"] == INVALID
    assert ran == ["1"]


# Pages


@pytest.mark.parametrize(
    ("method", "params"), [("prompts/get", {"name": "pay"}), ("resources/read", {"uri": "pay://x"})]
)
async def test_to_say_that_a_page_was_opened_gives_no_value(method: str, params: Sent) -> None:
    mcp = MCPServer[Any]("bank")
    ran: list[str] = []

    async def account() -> str | ElicitUrl:
        return ElicitUrl("Sign in", "https://bank.example")

    async def pay(account: Annotated[str, Resolve(account, key="account")]) -> str:
        ran.append(account)
        return account

    mcp.prompt(name="pay")(pay)
    mcp.resource("pay://x")(pay)
    opened = {"action": "accept", "content": {"value": "mine", "account": "mine"}}
    retry = await asked(mcp, method, params)
    for _ in range(2):
        answers = dict.fromkeys(retry["inputResponses"], opened)
        waiting = asyncio.create_task(modern(mcp, method, {**params, **retry, "inputResponses": answers}))
        while not waiting.done():
            await pass_time(1.0)
        result = waiting.result()["result"]
        assert [bare_name(key) for key in result["inputRequests"]] == ["account"]
        retry["requestState"] = result["requestState"]
    assert ran == []


# Paths


@pytest.mark.parametrize(
    "path",
    [
        *(
            "../x",
            "a/../../x",
            "%2e%2e/x",
            "%2E%2E%2Fx",
            "..%2fx",
            "..%5cx",
            "..\\x",
            "a%5c..%5cx",
            "%2e./x",
            ".%2e%2fx",
        ),
        *("/etc", "%2fetc", "%5cetc", "\\\\host\\share", "%5c%5chost", "c:/x", "C%3a%5cx", "~/x", "%7eroot", "~root"),
        *("a%00.txt", "%00", "%c0%ae%c0%ae/x", "%e0%80%ae%e0%80%ae/x", "%ff", "a/..", "..", "a/%2e%2e"),
    ],
)
@pytest.mark.parametrize(
    ("template", "start"),
    [
        ("files://{+path}", "files://"),
        ("files://{path}", "files://"),
        ("files://at{/path*}", "files://at/"),
        ("files://at{?path}", "files://at?path="),
    ],
)
async def test_no_encoding_of_a_path_leads_elsewhere(template: str, start: str, path: str) -> None:
    mcp = MCPServer[Any]("files")
    read: list[str] = []

    @mcp.resource(template)
    async def file(path: str = "") -> str:
        read.append(path)
        return path

    await modern(mcp, "resources/read", {"uri": f"{start}{path}"})
    assert read == []


async def test_what_is_decoded_once_is_not_decoded_again() -> None:
    mcp = MCPServer[Any]("files")

    @mcp.resource("files://{+path}")
    async def file(path: str) -> str:
        return path

    response = await modern(mcp, "resources/read", {"uri": "files://%252e%252e%252fx"})
    assert response["result"]["contents"][0]["text"] == "%2e%2e%2fx"


# Hooks


async def test_a_hook_sees_what_was_sent_and_nothing_that_was_resolved() -> None:
    mcp = MCPServer[Any]("hooked")
    seen: list[tuple[dict[str, Any], str]] = []

    @mcp.on_call
    async def watch(call: Any, proceed: Any) -> Any:
        end = await proceed()
        seen.append((dict(call.arguments), repr(call)))
        return end

    async def password() -> str:
        return "hunter2"

    @mcp.tool()
    async def sign_in(
        name: str,
        ctx: Context[Any, Any],
        secret: Annotated[str, Resolve(password)],
        ok: Annotated[bool, Resolve(approve)],
    ) -> str:
        return "in"

    params = {"name": "sign_in", "arguments": {"name": "ann"}}
    retry = await asked(mcp, "tools/call", params)
    assert "result" in await modern(mcp, "tools/call", {**params, **retry})
    assert [arguments for arguments, _ in seen] == [{"name": "ann"}] * 2
    assert not any("hunter2" in shown for _, shown in seen)


# Caches


async def test_what_a_person_was_asked_for_is_not_cached_whatever_the_author_set() -> None:
    public = CacheHint(ttl_ms=60_000, scope="public")
    mcp = MCPServer[Any]("cached", cache_hints={"resources/read": public})

    async def run(ok: Annotated[bool, Resolve(approve)]) -> str:
        return "private"

    mcp.resource("own://hint", cache=public)(run)
    mcp.resource("server://hint")(run)
    for uri in ("own://hint", "server://hint"):
        retry = await asked(mcp, "resources/read", {"uri": uri})
        result = (await modern(mcp, "resources/read", {"uri": uri, **retry}))["result"]
        assert (result["ttlMs"], result["cacheScope"]) == (0, "private")


# Floods


async def test_an_older_client_subscribes_to_a_thousand_resources_and_no_more() -> None:
    mcp = resolving()
    async with Older(mcp, version=NOVEMBER) as client:
        for number in range(MOST_URIS):
            assert "result" in await client.request("resources/subscribe", {"uri": f"x://{number}"})
        over = await client.request("resources/subscribe", {"uri": "x://more"})
        assert over["error"]["code"] == INVALID
        assert "result" in await client.request("resources/subscribe", {"uri": "x://0"})
        assert "result" in await client.request("resources/unsubscribe", {"uri": "x://0"})
        assert "result" in await client.request("resources/subscribe", {"uri": "x://more"})


async def test_a_client_listens_to_a_thousand_resources_and_no_more() -> None:
    async with Client(resolving()) as client:
        for uris in ([f"x://{number}" for number in range(MOST_URIS + 1)], ["x" * 70_000]):
            with pytest.raises(MCPError, match="may subscribe to 1000 resources") as failed:
                await client.session.request("subscriptions/listen", {"notifications": {"resourceSubscriptions": uris}})
            assert failed.value.code == INVALID
