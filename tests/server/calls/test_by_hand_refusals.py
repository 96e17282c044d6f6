"""What questions made by hand may not do, and asking in mid-call (design section 8): errors that say what to write instead."""

import logging
from typing import Annotated, Any

import pytest
from mcp_types import InputRequest, InputRequiredResult, ListRootsRequest, Tool
from pydantic import BaseModel

from bespeak import Context, MCPError, MCPServer, Resolve
from tests.answering import Person
from tests.conftest import Connect
from tests.server.calls.greeting_desk import Desk, asks, form, named, request, said, sampling, url

Sent = dict[str, Any]
FAILED = "Error executing tool greet"


class Guest(BaseModel):
    name: str


async def crash(connect: Connect, mcp: MCPServer[Any], caplog: pytest.LogCaptureFixture) -> str:
    """What the log says of a failure of which the client sees only which tool it was."""
    async with connect(mcp, elicitation_callback=Person()) as client:
        result = await request(client)
    assert (result["isError"], said(result)) == (True, FAILED)
    (record,) = [one for one in caplog.records if one.levelno >= logging.ERROR]
    assert record.exc_info is not None
    return str(record.exc_info[1])


# Malformed answers


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ([], "inputResponses must be an object"),
        ({"who": "yes"}, "inputResponses['who'] must be an object"),
        ({"who": {}}, "inputResponses['who'] is not a valid"),
        ({"who": {"action": "accept", "content": "x"}}, "inputResponses['who'] is not a valid ElicitResult"),
        ({"who": {"roots": "none"}}, "inputResponses['who'] is not a valid ListRootsResult"),
        ({"who": {"role": "assistant"}}, "inputResponses['who'] is not a valid CreateMessageResult"),
    ],
)
async def test_a_malformed_answer_is_an_error_of_the_protocol_and_may_be_corrected(
    in_memory: Connect, answers: Any, message: str
) -> None:
    desk = Desk()
    async with in_memory(desk.mcp, elicitation_callback=Person()) as client:
        token = (await request(client))["requestState"]
        with pytest.raises(MCPError) as raised:
            await request(client, requestState=token, inputResponses=answers)
        assert raised.value.code == -32602
        assert raised.value.message.startswith(message)
        assert said(await request(client, requestState=token, inputResponses=named("you"))) == "Hello you"


# Capabilities


@pytest.mark.asking_revisions
@pytest.mark.parametrize(
    ("questions", "missing", "names"),
    [
        ({"who": form()}, {"elicitation": {"form": {}}}, "elicitation.form"),
        ({"who": url()}, {"elicitation": {"url": {}}}, "elicitation.url"),
        ({"who": sampling()}, {"sampling": {}}, "sampling"),
        (
            {"who": sampling(tools=[Tool(name="t", input_schema={"type": "object"})])},
            {"sampling": {"tools": {}}},
            "sampling.tools",
        ),
        ({"who": ListRootsRequest()}, {"roots": {}}, "roots"),
        (
            {"who": form(), "page": url(), "where": ListRootsRequest()},
            {"elicitation": {"form": {}, "url": {}}, "roots": {}},
            "elicitation.form, elicitation.url, roots",
        ),
    ],
)
async def test_what_the_client_did_not_declare_is_not_asked_by_hand_either(
    in_memory: Connect, questions: dict[str, InputRequest], missing: Sent, names: str
) -> None:
    mcp = MCPServer[Any]("desk")

    @mcp.tool()
    async def greet() -> InputRequiredResult:
        return asks(None, **questions)

    async with in_memory(mcp) as client:
        with pytest.raises(MCPError) as raised:
            await request(client)
    assert (raised.value.code, raised.value.data) == (-32021, {"requiredCapabilities": missing})
    assert raised.value.message == f"the client must declare {names} for this call"


async def test_once_the_body_has_run_a_missing_capability_is_that_rounds_reply(connect: Connect) -> None:
    # A client that could have the body run again by declaring less would spend an approval as often as it likes.
    mcp, runs = MCPServer[Any]("desk"), list[int]()

    @mcp.tool()
    async def greet(ctx: Context) -> str | InputRequiredResult:
        runs.append(ctx.round)
        if ctx.round == 1:
            return asks("x", who=form())
        return asks("y", where=ListRootsRequest()) if ctx.round == 2 else "Hello"

    async def roots(context: Any) -> Any:
        raise AssertionError("nobody asks the callback here")

    async with (
        connect(mcp, elicitation_callback=Person()) as poor,
        connect(mcp, elicitation_callback=Person(), list_roots_callback=roots) as rich,
    ):
        token = (await request(poor))["requestState"]
        for _ in range(2):
            with pytest.raises(MCPError, match="the client must declare roots for this call") as raised:
                await request(poor, requestState=token, inputResponses=named("you"))
            assert raised.value.code == -32021
        with pytest.raises(MCPError, match="the client must declare roots for this call"):
            await request(rich, requestState=token, inputResponses=named("you"))
    assert runs == [1, 2]


# Results that ask what cannot be asked


@pytest.mark.parametrize("requests", [None, {}])
async def test_neither_requests_nor_a_state_is_an_error(
    in_memory: Connect, caplog: pytest.LogCaptureFixture, requests: Any
) -> None:
    mcp = MCPServer[Any]("desk")

    @mcp.tool()
    async def greet() -> InputRequiredResult:
        return InputRequiredResult.model_construct(input_requests=requests, request_state=None)

    reason = await crash(in_memory, mcp, caplog)
    assert reason == "'greet' returned an InputRequiredResult with neither input_requests nor request_state"


async def test_a_question_by_hand_beside_resolvers_is_an_error(
    in_memory: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    mcp = MCPServer[Any]("desk")

    async def stock() -> int:
        return 7

    @mcp.tool()
    async def greet(stock: Annotated[int, Resolve(stock)]) -> Any:
        return asks("x", who=form())

    reason = await crash(in_memory, mcp, caplog)
    assert reason == "'greet' has resolvers and returned an InputRequiredResult; ask in a resolver"


async def test_a_state_by_hand_over_the_budget_is_the_authors_fault_and_told_to_the_author(
    in_memory: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    desk = Desk("x" * 65_000)
    async with in_memory(desk.mcp, elicitation_callback=Person()) as client:
        result = await request(client)
    assert said(result) == "Error executing tool greet"
    assert "'greet' returned a request_state of 65000 characters; keep large data on the server" in caplog.text


async def test_a_call_without_a_client_that_asks_by_hand_says_how_to_test_it() -> None:
    with pytest.raises(
        RuntimeError, match=r"'greet' asks \('who'\), but there is no client to answer. In a test, connect a client"
    ):
        await Desk().mcp.call_tool("greet")


async def test_a_call_without_a_client_that_only_hands_out_a_state_says_so_too() -> None:
    mcp = MCPServer[Any]("desk")

    @mcp.tool()
    async def greet() -> InputRequiredResult:
        return asks("half done")

    with pytest.raises(RuntimeError, match=r"'greet' asks \(a state to be echoed\), but there is no client to answer"):
        await mcp.call_tool("greet")


# Asking in mid-call


@pytest.mark.parametrize(
    ("what", "resolver"),
    [
        (
            "ctx.elicit()",
            "    async def ask() -> Elicit[Guest]:\n"
            "        return Elicit('Who?', Guest)\n\n"
            "    async def greet(..., answer: Annotated[Guest, Resolve(ask)]): ...",
        ),
        (
            "ctx.elicit_url()",
            "    async def connected() -> Account | ElicitUrl:\n"
            "        return find_account() or ElicitUrl('Sign in', url)\n\n"
            "    async def greet(..., account: Annotated[Account, Resolve(connected)]): ...",
        ),
        (
            "ctx.session.create_message()",
            "    async def ask() -> Sample:\n"
            "        return Sample(messages, max_tokens=5)\n\n"
            "    async def greet(..., answer: Annotated[CreateMessageResult, Resolve(ask)]): ...",
        ),
        (
            "ctx.session.list_roots()",
            "    async def ask() -> ListRoots:\n"
            "        return ListRoots()\n\n"
            "    async def greet(..., answer: Annotated[ListRootsResult, Resolve(ask)]): ...",
        ),
    ],
)
async def test_asking_in_mid_call_is_an_error_that_shows_the_resolver_to_write(
    in_memory: Connect, caplog: pytest.LogCaptureFixture, what: str, resolver: str
) -> None:
    mcp = MCPServer[Any]("desk")

    @mcp.tool()
    async def greet(ctx: Context) -> str:
        if what == "ctx.elicit()":
            await ctx.elicit("Who?", Guest)
        elif what == "ctx.elicit_url()":
            await ctx.elicit_url("Sign in", "https://example.com", "e-1")
        elif what == "ctx.session.create_message()":
            await ctx.session.create_message([], max_tokens=5)
        else:
            await ctx.session.list_roots()
        return "unreachable"

    reason = await crash(in_memory, mcp, caplog)
    assert reason.startswith(f"'greet' called {what}, but a client of 2026-07-28 cannot be asked during a call")
    assert resolver in reason


async def test_asking_in_mid_call_without_a_client_says_how_to_answer_in_a_test() -> None:
    mcp = MCPServer[Any]("desk")

    @mcp.tool()
    async def greet(ctx: Context) -> str:
        await ctx.elicit("Who?", Guest)
        return "unreachable"

    with pytest.raises(Exception, match="greet") as raised:
        await mcp.call_tool("greet")
    reason = str(raised.value.__cause__ or raised.value)
    assert "In a test" in reason
