"""Questions made by hand, pushed (design section 8): the framework asks them itself and runs the body again, 8 times at most."""

import asyncio
from typing import Any

import pytest
from mcp_types import CallToolResult, ElicitResult, InputRequiredResult, ListRootsRequest, ListRootsResult, TextContent

from bespeak import Client, Context, MCPServer, ToolError
from tests.answering import CANCEL, DECLINE, Person, accept, text
from tests.server.calls.greeting_desk import Desk, asks, form, sampling, url
from tests.server.legacy.older_client import (
    FIRST,
    JUNE,
    MARCH,
    MODERN,
    NO,
    NOVEMBER,
    SILENCE,
    Older,
    Sent,
    Thinking,
    yes,
)
from tests.waiting import eventually, turns

MESSAGE: Sent = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "Hi"}}


def choices() -> Any:
    """A form that clients of 2025-06-18 cannot be shown."""
    items = {"type": "string", "enum": ["a", "b"]}
    schema = {"type": "object", "properties": {"names": {"type": "array", "items": items}}}
    question = form()
    return question.model_copy(update={"params": question.params.model_copy(update={"requested_schema": schema})})


def desk(*asked: InputRequiredResult) -> tuple[MCPServer[Any], list[tuple[int, str | None, Any]]]:
    """A server whose tool returns these one after another, then "Hello"; and what it saw in every run."""
    mcp, seen = MCPServer[Any]("desk"), list[tuple[int, str | None, Any]]()

    @mcp.tool()
    async def greet(ctx: Context) -> str | InputRequiredResult:
        seen.append((ctx.round, ctx.request_state, ctx.input_responses))
        return asked[len(seen) - 1] if len(seen) <= len(asked) else "Hello"

    return mcp, seen


# Asking


@pytest.mark.parametrize("answer", [accept(name="you"), DECLINE, CANCEL], ids=["accept", "decline", "cancel"])
async def test_every_answer_ends_as_at_2026_07_28(answer: ElicitResult) -> None:
    ends: list[Any] = []
    for mode in (MODERN, NOVEMBER):
        one = Desk()
        async with Client(one.mcp, mode=mode, elicitation_callback=Person({"who": answer})) as client:
            ends.append((text(await client.call_tool("greet")), one.seen))
    assert ends[0] == ends[1]


async def test_several_questions_are_pushed_one_at_a_time_in_their_order() -> None:
    mcp, seen = desk(asks("x", b=form("B?"), a=form("A?"), c=ListRootsRequest()))
    answers: Sent = {"b": yes(name="b"), "a": NO, "c": {"result": {"roots": []}}}
    async with Older(mcp, {**answers, "b": SILENCE}) as client:
        call = asyncio.create_task(client.call("greet"))
        await eventually(lambda: client.pushed)
        await turns(50)
        assert client.asked == ["b"]
        await client.send({"id": client.pushed[0]["id"], **answers["b"]})
        await call
    assert client.asked == ["b", "a", "c"]
    assert seen[1] == (2, "x", {"b": accept(name="b"), "a": DECLINE, "c": ListRootsResult(roots=[])})


async def test_a_plain_tool_that_turns_out_to_ask_is_run_again_with_the_same_arguments() -> None:
    mcp, seen = MCPServer[Any]("desk"), list[list[str]]()

    def greet(names: list[str]) -> str:
        seen.append([*names])
        names.append("spoilt")
        asked: Any = asks("x", who=form())
        return "Hello" if len(seen) > 1 else asked

    mcp.add_tool(greet)
    async with Older(mcp, {"who": yes(name="you")}) as client:
        result = await client.call("greet", {"names": ["you"]})
    assert result["content"][0]["text"] == "Hello"
    assert seen == [["you"], ["you"]]


async def test_a_body_with_a_context_is_run_again_with_fresh_arguments() -> None:
    mcp, seen = MCPServer[Any]("desk"), list[list[str]]()

    @mcp.tool()
    async def greet(names: list[str], ctx: Context) -> str | InputRequiredResult:
        seen.append([*names])
        names.append("spoilt")
        return "Hello" if ctx.round > 2 else asks("x", who=form())

    async with Older(mcp, {"who": yes(name="you")}) as client:
        await client.call("greet", {"names": ["you"]})
    assert seen == [["you"]] * 3


async def test_each_run_sees_the_answers_and_the_state_of_the_one_before_and_no_others() -> None:
    mcp, seen = desk(asks("1", a=form()), asks("2", b=form()), asks(None, c=form()))
    async with Older(mcp, {key: yes(name=key) for key in "abc"}) as client:
        await client.call("greet")
    assert seen == [
        (1, None, None),
        (2, "1", {"a": accept(name="a")}),
        (3, "2", {"b": accept(name="b")}),
        (4, None, {"c": accept(name="c")}),
    ]


async def test_every_kind_of_question_can_be_asked_by_hand() -> None:
    mcp, seen = desk(asks("x", who=form(), page=url(), said=sampling(), where=ListRootsRequest()))
    answers = {
        "who": yes(name="you"),
        "page": {"result": {"action": "accept"}},
        "said": {"result": MESSAGE},
        "where": {"result": {"roots": [{"uri": "file:///home"}]}},
    }
    async with Older(mcp, answers) as client:
        await client.call("greet")
    assert {key: type(answer).__name__ for key, answer in seen[1][2].items()} == {
        "who": "ElicitResult",
        "page": "ElicitResult",
        "said": "CreateMessageResult",
        "where": "ListRootsResult",
    }
    assert [one["method"] for one in client.pushed] == [
        "elicitation/create",
        "elicitation/create",
        "sampling/createMessage",
        "roots/list",
    ]
    assert client.pushed[1]["params"]["elicitationId"] == "e-1", "the author's own id is kept"


# How often


async def test_a_body_that_asks_eight_times_is_served() -> None:
    mcp, seen = desk(*[asks("x", who=form())] * 8)
    async with Older(mcp, {"who": yes(name="you")}) as client:
        assert (await client.call("greet"))["content"][0]["text"] == "Hello"
    assert (len(seen), len(client.pushed)) == (9, 8)


async def test_a_body_that_still_asks_after_that_is_an_error() -> None:
    mcp, seen = desk(*[asks("x", who=form())] * 20)
    async with Older(mcp, {"who": yes(name="you")}) as client:
        failure = await client.failure("greet")
    assert failure == "Error executing tool greet: it is still asking after 8 runs"
    assert (len(seen), len(client.pushed)) == (9, 8)


async def test_a_state_without_questions_is_handed_back_after_a_moment() -> None:
    mcp, seen = desk(asks("half"), asks("most"))
    async with Older(mcp) as client:
        assert (await client.call("greet"))["content"][0]["text"] == "Hello"
    assert seen == [(1, None, None), (2, "half", None), (3, "most", None)]
    assert client.pushed == []


async def test_a_state_without_questions_counts_as_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bespeak.server.legacy.pushed_calls.PAUSES", (0.0, 0.0))
    mcp, seen = desk(*[asks("more")] * 20)
    async with Older(mcp) as client:
        assert (await client.failure("greet")).endswith("it is still asking after 8 runs")
    assert len(seen) == 9


async def test_a_state_is_not_sealed_because_it_never_leaves() -> None:
    one = Desk("x" * 100_000)
    async with Older(one.mcp, {"who": yes(name="you")}) as client:
        await client.call("greet")
    assert "xxx" not in str(client.pushed)
    assert one.seen[1][0] == "x" * 100_000


# Refused


@pytest.mark.parametrize("version", [FIRST, MARCH])
async def test_a_client_too_old_for_forms_is_not_asked_one_whatever_it_declares(version: str) -> None:
    one = Desk()
    async with Older(one.mcp, {"who": yes(name="you")}, version=version) as client:
        error = await client.error("greet")
    reason = f"this call asks the client for elicitation.form, but a client of {version} cannot be asked with a form"
    assert (error["code"], error["message"]) == (-32021, reason)
    assert (len(one.seen), client.pushed) == (1, [])


async def test_a_form_that_the_revision_has_no_words_for_is_said_before_anybody_is_asked() -> None:
    mcp, _ = desk(asks("x", who=form(), names=choices()))
    async with Older(mcp, {"who": yes(name="you"), "names": yes(names=["a"])}, version=JUNE) as client:
        error = await client.error("greet")
    assert error["code"] == -32021
    assert error["message"].endswith(
        "a client of 2025-06-18 does not support lists of choices, such as the field 'names'"
    )
    assert client.pushed == []


async def test_a_form_without_fields_is_asked_at_every_revision_that_has_forms() -> None:
    question = form()
    bare = question.model_copy(
        update={"params": question.params.model_copy(update={"requested_schema": {"type": "object", "properties": {}}})}
    )
    for version in (NOVEMBER, JUNE):
        mcp, _ = desk(asks("x", who=bare))
        async with Older(mcp, {"who": yes()}, version=version) as client:
            assert (await client.call("greet"))["content"][0]["text"] == "Hello"


@pytest.mark.parametrize(
    ("question", "method", "answer"),
    [
        (form(), "elicitation/create", {}),
        (form(), "elicitation/create", MESSAGE),
        (sampling(), "sampling/createMessage", {"action": "accept"}),
        (ListRootsRequest(), "roots/list", {"roots": 5}),
    ],
)
async def test_an_answer_of_another_kind_is_an_explicit_tool_error(question: Any, method: str, answer: Sent) -> None:
    mcp, seen = desk(asks("x", it=question))
    async with Older(mcp, {"it": {"result": answer}}) as client:
        failure = await client.failure("greet")
    assert failure == f"Error executing tool greet: the answer to 'it' is not a response to {method}"
    assert len(seen) == 1


async def test_an_answer_that_is_no_object_is_an_explicit_tool_error() -> None:
    async with Older(Desk().mcp, {"who": {"result": "you"}}) as client:
        assert await client.failure("greet") == "Error executing tool greet: the answer to 'who' is not an object"


async def test_an_error_in_reply_is_a_tool_error_that_names_the_question() -> None:
    async with Older(Desk().mcp, {"who": {"error": {"code": -1, "message": "no"}}}) as client:
        failure = await client.failure("greet")
    said = "question 'who' got no answer: the client answered with an error (-1): no"
    assert failure == f"Error executing tool greet: {said}"


@pytest.mark.timing
async def test_silence_is_a_tool_error_and_the_question_is_taken_back() -> None:
    one = Desk(question_timeout=0.05)
    async with Older(one.mcp, {"who": SILENCE}) as client:
        failure = await client.failure("greet")
        assert client.taken_back == [client.pushed[0]["id"]]
    assert failure == "Error executing tool greet: question 'who' got no answer: nobody answered within 0.05 s"
    assert len(one.seen) == 1


@pytest.mark.parametrize("failure", [ToolError("no greeting today"), RuntimeError("secret")])
async def test_a_body_that_fails_after_its_question_fails_as_any_other(failure: Exception) -> None:
    mcp = MCPServer[Any]("desk")

    @mcp.tool()
    async def greet(ctx: Context) -> str | InputRequiredResult:
        if ctx.input_responses is None:
            return asks("x", who=form())
        raise failure

    async with Older(mcp, {"who": yes(name="you")}) as client:
        said = await client.failure("greet")
    expected = ": no greeting today" if isinstance(failure, ToolError) else ""
    assert said == f"Error executing tool greet{expected}"


# What a client sends on its own


@pytest.mark.parametrize(
    "retry",
    [
        {"inputResponses": {"who": {"action": "accept", "content": {"name": "me"}}}},
        {"requestState": "my state", "inputResponses": {"who": {"action": "accept", "content": {"name": "me"}}}},
        {"requestState": 5, "inputResponses": 5},
    ],
)
async def test_what_later_revisions_send_with_a_retry_supplies_no_answer_and_no_state(retry: Sent) -> None:
    one = Desk()
    async with Older(one.mcp, {"who": yes(name="you")}) as client:
        result = await client.call("greet", **retry)
    assert result["content"][0]["text"] == "Hello you"
    assert one.seen == [(None, None), ("my state", {"who": accept(name="you")})]


# Cancellation


async def test_a_call_cancelled_while_a_question_is_open_takes_it_back_and_runs_nothing_more() -> None:
    one, person = Desk(), Thinking(accept(name="you"))
    async with Client(one.mcp, mode=NOVEMBER, elicitation_callback=person) as client:
        call = asyncio.create_task(client.call_tool("greet"))
        await eventually(lambda: person.open)
        call.cancel()
        await asyncio.wait({call})
        await eventually(lambda: person.taken_back == ["who"])
    assert len(one.seen) == 1


async def test_a_body_that_was_given_answers_is_finished_and_asks_nobody_who_is_gone() -> None:
    mcp, log = MCPServer[Any]("desk"), list[str]()
    reached, go_on = asyncio.Event(), asyncio.Event()

    @mcp.tool()
    async def greet(ctx: Context) -> str | InputRequiredResult:
        if ctx.input_responses is None:
            return asks("x", who=form())
        reached.set()
        await go_on.wait()
        log.append("greeted")
        return asks("y", who=form())

    person = Person({"who": accept(name="you")})
    async with Client(mcp, mode=NOVEMBER, elicitation_callback=person) as client:
        call = asyncio.create_task(client.call_tool("greet"))
        await asyncio.wait_for(reached.wait(), 5)
        call.cancel()
        await asyncio.wait({call})
        go_on.set()
        await eventually(lambda: log)
        await turns(50)
    assert (log, person.asked) == (["greeted"], ["who"])


async def test_a_result_after_a_question_by_hand_is_like_any_other() -> None:
    mcp = MCPServer[Any]("desk")

    @mcp.tool()
    async def greet(ctx: Context) -> CallToolResult | InputRequiredResult:
        if ctx.input_responses is None:
            return asks("x", who=form())
        return CallToolResult(content=[TextContent(text="Hi")], structured_content={"n": 1}, _meta={"mine": 1})

    async with Older(mcp, {"who": yes(name="you")}) as client:
        result = await client.call("greet")
    assert (result["structuredContent"], result["_meta"]) == ({"n": 1}, {"mine": 1})
    assert "resultType" not in result
