"""Asking from within a body (design section 8), `resolve_arguments` in one, and sampling and roots, all pushed to older clients."""

import asyncio
from typing import Annotated, Any, Literal

import pytest
from mcp_types import (
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitResult,
    InputRequiredResult,
    ListRootsResult,
    Root,
    SamplingMessage,
    TextContent,
    Tool,
)

from bespeak import Client, Context, Elicit, ListRoots, MCPServer, Resolve, Sample
from bespeak.client import ClientRequestContext
from bespeak.server.resolve import build_resolver_plans, find_resolved_parameters, resolve_arguments
from tests.answering import CANCEL, DECLINE, Person, accept, text, unresolved
from tests.rules.consumers import ask, serving, take_value_or_default
from tests.server.legacy.older_client import (
    EVERYTHING,
    FIRST,
    JUNE,
    MARCH,
    MODERN,
    NO,
    NOVEMBER,
    SILENCE,
    WIRES,
    Even,
    Older,
    Sent,
    Thinking,
    ask_even,
    over,
    yes,
)
from tests.waiting import eventually

HELLO = SamplingMessage(role="user", content=TextContent(text="Hello"))
MESSAGE: Sent = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "Hi"}}
READ_HUNK = Tool(name="read_hunk", input_schema={"type": "object"})


def asking(*, question_timeout: float = 600.0) -> MCPServer[Any]:
    """Tools that ask from within their bodies."""
    mcp = MCPServer[Any]("bodies", question_timeout=question_timeout)

    @mcp.tool()
    async def elicit(ctx: Context) -> str:
        return repr(await ctx.elicit("Which?", Even))

    @mcp.tool()
    async def elicit_url(ctx: Context, id: str | None = None) -> str:
        answer = await ctx.elicit_url("Sign in", "https://example.com", id)
        return f"{type(answer).__name__} {answer.action}"

    @mcp.tool()
    async def sample(ctx: Context) -> str:
        return repr(await ctx.session.create_message([HELLO], max_tokens=5, system_prompt="Be brief"))

    @mcp.tool()
    async def sample_with_tools(ctx: Context) -> str:
        return type(await ctx.session.create_message([HELLO], max_tokens=5, tools=[READ_HUNK])).__name__

    @mcp.tool()
    async def roots(ctx: Context) -> str:
        return repr(await ctx.session.list_roots())

    _ = elicit, elicit_url, sample, sample_with_tools, roots
    return mcp


def said(result: Sent) -> str:
    assert not result["isError"], result
    return result["content"][0]["text"]


# Forms


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("mode", [NOVEMBER, JUNE])
async def test_a_form_asked_in_a_body_gives_a_typed_outcome(wire: str, mode: str) -> None:
    person = Person({"elicit": [accept(number=2), DECLINE, CANCEL]})
    async with over(wire, asking(), mode=mode, elicitation_callback=person) as client:
        outcomes = [text(await client.call_tool("elicit")) for _ in range(3)]
    assert outcomes == [
        "AcceptedElicitation(action='accept', data=Even(number=2))",
        "DeclinedElicitation(action='decline')",
        "CancelledElicitation(action='cancel')",
    ]
    assert person.messages == ["Which?"] * 3


async def test_a_single_value_can_be_asked_for_in_a_body() -> None:
    mcp = MCPServer[Any]("bodies")

    @mcp.tool()
    async def count(ctx: Context) -> str:
        answer = await ctx.elicit("How many?", int)
        return f"{answer.data + 1}" if answer.action == "accept" else "none"

    async with Older(mcp, {"count": yes(value=3)}) as client:
        assert said(await client.call("count")) == "4"


async def test_a_slip_in_a_body_is_asked_again_with_the_validators_message_and_not_for_ever() -> None:
    person = Person({"elicit": [accept(number=1), accept(number=2)]})
    async with Client(asking(), mode=NOVEMBER, elicitation_callback=person) as client:
        assert "number=2" in text(await client.call_tool("elicit"))
    assert "an even number, please" in person.messages[1]
    async with Older(asking(), {"elicit": yes(number=1)}) as client:
        failure = await client.failure("elicit")
    assert failure.startswith("Error executing tool elicit: no valid answer to 'elicit' after 3 attempts: ")
    assert len(client.pushed) == 3


@pytest.mark.parametrize(
    ("response", "fault"),
    [
        ({"result": 5}, "the answer to 'elicit' is not an object"),
        ({"error": {"code": -1, "message": "no"}}, "the client answered with an error (-1): no"),
    ],
)
async def test_a_bad_answer_in_a_body_is_an_explicit_tool_error(response: Sent, fault: str) -> None:
    async with Older(asking(), {"elicit": response}) as client:
        assert await client.failure("elicit") == f"Error executing tool elicit: {fault}"


@pytest.mark.parametrize(
    ("response", "fault"),
    [
        (yes(number="2"), "the answer to 'elicit' does not match the form: number: must be a whole number"),
        (yes(number=1), "no valid answer to 'elicit' after 3 attempts: "),
        ({"result": {"action": "accept"}}, "the answer to 'elicit' was accepted without content"),
    ],
)
async def test_an_answer_that_breaks_the_schema_is_a_value_error_in_the_body_as_in_the_official_sdk(
    response: Sent, fault: str
) -> None:
    mcp = MCPServer[Any]("bodies")

    @mcp.tool()
    async def elicit(ctx: Context) -> str:
        try:
            await ctx.elicit("Which?", Even)
        except ValueError as error:
            return f"caught {error}"
        return "nothing to catch"

    async with Older(mcp, {"elicit": response}) as client:
        assert said(await client.call("elicit")).startswith(f"caught {fault}")


@pytest.mark.timing
async def test_a_question_in_a_body_waits_no_longer_than_others_and_is_taken_back() -> None:
    async with Older(asking(question_timeout=0.05), {"elicit": SILENCE}) as client:
        failure = await client.failure("elicit")
        assert client.taken_back == [client.pushed[0]["id"]]
    assert failure == "Error executing tool elicit: nobody answered within 0.05 s"


async def test_a_cancelled_body_takes_its_question_back() -> None:
    person = Thinking(accept(number=2))
    async with Client(asking(), mode=NOVEMBER, elicitation_callback=person) as client:
        call = asyncio.create_task(client.call_tool("elicit"))
        await eventually(lambda: person.open)
        call.cancel()
        await asyncio.wait({call})
        await eventually(lambda: person.taken_back == ["elicit"])


async def test_a_body_that_outlives_its_request_can_ask_nobody() -> None:
    mcp, failures = MCPServer[Any]("bodies"), list[str]()
    reached, go_on = asyncio.Event(), asyncio.Event()

    @mcp.tool()
    async def pay(sure: Annotated[int, Resolve(ask)], ctx: Context) -> str:
        reached.set()
        await go_on.wait()
        try:
            await ctx.elicit("And now?", int)
        except Exception as error:
            failures.append(str(error))
            raise
        return "paid"

    async with Client(mcp, mode=NOVEMBER, elicitation_callback=Person({"ask": accept(value=1)})) as client:
        call = asyncio.create_task(client.call_tool("pay"))
        await asyncio.wait_for(reached.wait(), 5)
        call.cancel()
        await asyncio.wait({call})
        go_on.set()
        await eventually(lambda: failures)
    assert failures == ["the client no longer waits for this call"]


# URLs


async def test_a_url_question_has_an_id_of_its_own_unless_the_author_gives_one() -> None:
    async with Older(asking(), {"elicit_url": [{"result": {"action": "accept"}}, NO, NO]}) as client:
        assert said(await client.call("elicit_url")) == "ElicitResult accept"
        assert said(await client.call("elicit_url")) == "ElicitResult decline"
        await client.call("elicit_url", {"id": "mine"})
    params = [one["params"] for one in client.pushed]
    ids = [one["elicitationId"] for one in params]
    assert all(isinstance(id_, str) and id_ for id_ in ids)
    assert len(set(ids)) == 3
    assert ids[2] == "mine"
    assert (params[0]["mode"], params[0]["message"], params[0]["url"]) == ("url", "Sign in", "https://example.com")


@pytest.mark.parametrize("answer", [{}, {"action": "perhaps"}])
async def test_a_url_answer_that_is_none_is_an_explicit_tool_error(answer: Sent) -> None:
    async with Older(asking(), {"elicit_url": {"result": answer}}) as client:
        failure = await client.failure("elicit_url")
    assert failure == "Error executing tool elicit_url: the answer to 'elicit_url' is not a valid ElicitResult"


# Capabilities


@pytest.mark.parametrize(
    ("tool", "version", "declares", "missing"),
    [
        ("elicit", NOVEMBER, {}, {"elicitation": {"form": {}}}),
        ("elicit", NOVEMBER, {"elicitation": {"url": {}}}, {"elicitation": {"form": {}}}),
        ("elicit_url", NOVEMBER, {"elicitation": {}}, {"elicitation": {"url": {}}}),
        ("elicit_url", JUNE, EVERYTHING, {"elicitation": {"url": {}}}),
        ("sample", NOVEMBER, {"elicitation": {}}, {"sampling": {}}),
        ("sample_with_tools", NOVEMBER, {"sampling": {}}, {"sampling": {"tools": {}}}),
        ("sample_with_tools", JUNE, EVERYTHING, {"sampling": {"tools": {}}}),
        ("roots", NOVEMBER, {"sampling": {}}, {"roots": {}}),
    ],
)
async def test_what_a_client_did_not_declare_is_not_asked_in_a_body_either(
    tool: str, version: str, declares: Sent, missing: Sent
) -> None:
    async with Older(asking(), version=version, declares=declares) as client:
        error = await client.error(tool)
    assert (error["code"], error["data"]) == (-32021, {"requiredCapabilities": missing})
    assert client.pushed == []


@pytest.mark.parametrize("version", [MARCH, FIRST])
async def test_clients_before_forms_are_asked_none_and_told_why(version: str) -> None:
    async with Older(asking(), {"elicit": yes(number=2)}, version=version) as client:
        error = await client.error("elicit")
    assert error["code"] == -32021
    assert error["message"].endswith(f", but a client of {version} cannot be asked with a form")
    assert client.pushed == []


async def test_a_resolver_that_asks_as_a_body_does_lacks_the_same_capability() -> None:
    async def inner(ctx: Context) -> str:
        return repr(await ctx.elicit("How many?", int))

    async def take(it: Annotated[str, Resolve(inner)]) -> str:
        raise AssertionError

    async with Older(serving(take), declares={}) as client:
        assert (await client.error())["code"] == -32021


async def test_a_list_of_choices_cannot_be_asked_in_a_body_at_2025_06_18() -> None:
    mcp = MCPServer[Any]("bodies")
    wanted: Any = list[Literal["a", "b"]]

    @mcp.tool()
    async def choose(ctx: Context) -> str:
        return repr(await ctx.elicit("Which?", wanted))

    async with Older(mcp, {"choose": yes(value=["a"])}, version=JUNE) as client:
        error = await client.error("choose")
    assert error["message"].endswith(
        "a client of 2025-06-18 does not support lists of choices, such as the field 'value'"
    )
    async with Older(mcp, {"choose": yes(value=["a"])}) as client:
        assert "data=['a']" in said(await client.call("choose"))


# Sampling and roots


async def sampler(context: ClientRequestContext, params: CreateMessageRequestParams) -> CreateMessageResult:
    return CreateMessageResult(role="assistant", model=f"{params.max_tokens}", content=TextContent(text="Hi"))


async def rooted(context: ClientRequestContext) -> ListRootsResult:
    return ListRootsResult(roots=[Root.model_validate({"uri": "file:///home"})])


@pytest.mark.parametrize("mode", [NOVEMBER, JUNE, MARCH, FIRST])
async def test_sampling_and_roots_work_in_bodies_at_every_older_revision(mode: str) -> None:
    async with Client(asking(), mode=mode, sampling_callback=sampler, list_roots_callback=rooted) as client:
        assert text(await client.call_tool("sample")).startswith("CreateMessageResult(")
        assert "file:///home" in text(await client.call_tool("roots"))


async def test_with_tools_a_body_gets_the_result_that_has_them() -> None:
    answer = {**MESSAGE, "content": [MESSAGE["content"]]}
    async with Older(asking(), {"sample_with_tools": {"result": answer}}) as client:
        assert said(await client.call("sample_with_tools")) == "CreateMessageResultWithTools"


@pytest.mark.parametrize("tool", ["sample", "roots"])
@pytest.mark.parametrize("answer", [{}, {"roots": 5, "role": 5}])
async def test_an_answer_of_another_kind_is_an_explicit_tool_error_in_a_body(tool: str, answer: Sent) -> None:
    async with Older(asking(), {tool: {"result": answer}}) as client:
        assert f"the answer to '{tool}' is not a" in await client.failure(tool)


async def ask_model() -> Sample:
    several: Any = [TextContent(text="one"), TextContent(text="two")]
    return Sample([SamplingMessage(role="user", content=several), HELLO], max_tokens=5, system_prompt="Be brief")


async def ask_roots() -> ListRoots:
    return ListRoots()


async def take(
    said: Annotated[CreateMessageResult, Resolve(ask_model)], where: Annotated[ListRootsResult, Resolve(ask_roots)]
) -> str:
    assert isinstance(said.content, TextContent)
    return f"{said.content.text} {[str(root.uri) for root in where.roots]}"


@pytest.mark.parametrize("version", [NOVEMBER, JUNE, MARCH, FIRST])
async def test_messages_of_several_blocks_are_split_before_2025_11_25(version: str) -> None:
    answers: Sent = {"ask_model": {"result": MESSAGE}, "ask_roots": {"result": {"roots": []}}}
    async with Older(serving(take), answers, version=version) as client:
        await client.call()
    sent, roots = client.pushed
    texts: list[Any] = [
        [block["text"] for block in one["content"]] if isinstance(one["content"], list) else one["content"]["text"]
        for one in sent["params"]["messages"]
    ]
    assert texts == ([["one", "two"], "Hello"] if version == NOVEMBER else ["one", "two", "Hello"])
    assert sent["params"]["systemPrompt"] == "Be brief"
    assert roots["method"] == "roots/list"


async def test_a_model_that_refuses_is_a_tool_error_that_names_the_resolver() -> None:
    async with Older(serving(take), {"ask_model": {"error": {"code": -1, "message": "rejected"}}}) as client:
        failure = await client.failure()
    assert failure.endswith("resolver 'ask_model' got no answer: the client answered with an error (-1): rejected")


# resolve_arguments in a body


def by_hand(consumer: Any) -> MCPServer[Any]:
    """A server whose one tool resolves the parameters of a function itself."""
    mcp = MCPServer[Any]("shop")
    resolved = find_resolved_parameters(consumer)
    plans = build_resolver_plans(resolved, set())

    @mcp.tool(name="take")
    async def tool(ctx: Context) -> str | InputRequiredResult:
        values = await resolve_arguments(resolved, plans, {}, ctx)
        return values if isinstance(values, InputRequiredResult) else await consumer(**values)

    return mcp


async def ask_next(first: Annotated[int, Resolve(ask)]) -> Elicit[Even]:
    return Elicit(f"After {first}?", Even)


async def chained(a: Annotated[Even, Resolve(ask_next)], b: Annotated[Even, Resolve(ask_even)]) -> str:
    return f"{a.number} {b.number}"


async def choose_any() -> Elicit[Any]:
    return Elicit("Which?", list[Literal["a", "b"]])


async def choosing(it: Annotated[Any, Resolve(choose_any)] = "nothing") -> str:
    return f"{it}"


@pytest.mark.parametrize("slips", [0, 2])
async def test_resolving_by_hand_ends_as_it_does_at_2026_07_28(slips: int) -> None:
    ends: list[Any] = []
    for mode in (MODERN, NOVEMBER, JUNE):
        tries: list[ElicitResult] = [*[accept(number=1)] * slips, accept(number=4)]
        person = Person({"ask": accept(value=3), "ask_next": tries, "ask_even": accept(number=2)})
        async with Client(by_hand(chained), mode=mode, elicitation_callback=person) as client:
            ends.append((text(await client.call_tool("take")), sorted(person.asked), sorted(person.messages)))
    assert ends == [ends[0]] * 3
    assert ends[0][0] == "4 2"


async def test_a_decline_ends_a_call_resolved_by_hand() -> None:
    async with Older(by_hand(chained), {"ask": NO, "ask_even": yes(number=2)}) as client:
        assert (await client.failure()).endswith(unresolved("first", "decline"))


@pytest.mark.parametrize("version", [MARCH, FIRST])
async def test_resolving_by_hand_says_why_a_client_cannot_be_asked(version: str) -> None:
    async with Older(by_hand(chained), version=version) as client:
        error = await client.error()
    assert (error["code"], error["data"]) == (-32021, {"requiredCapabilities": {"elicitation": {"form": {}}}})
    assert error["message"].endswith(f"a client of {version} cannot be asked with a form")


@pytest.mark.parametrize(("tool", "expected"), [(take_value_or_default, "-1"), (choosing, "nothing")])
async def test_what_cannot_be_asked_is_cancelled_where_everybody_can_do_without(tool: Any, expected: str) -> None:
    version = MARCH if tool is take_value_or_default else JUNE
    for mcp in (serving(tool), by_hand(tool)):
        async with Older(mcp, version=version) as client:
            assert said(await client.call()) == expected
        assert client.pushed == []
