"""Questions made by hand (design sections 7 and 8): a body that returns `InputRequiredResult` and reads the answers itself."""

from typing import Any

import pytest
from mcp_types import (
    CreateMessageResult,
    CreateMessageResultWithTools,
    ElicitResult,
    InputRequiredResult,
    ListRootsResult,
    Root,
)

from bespeak import Context, MCPError, MCPServer, ToolError
from bespeak.state.stores.memory import MemoryStore
from tests.answering import CANCEL, Person, accept, text
from tests.conftest import Connect
from tests.server.calls.greeting_desk import SCHEMA, Desk, Sent, asks, form, named, request, said

# Asking


@pytest.mark.asking_revisions
async def test_a_client_answers_a_question_made_by_hand_like_any_other(connect: Connect) -> None:
    desk = Desk()
    person = Person({"who": accept(name="you")})
    async with connect(desk.mcp, elicitation_callback=person) as client:
        assert text(await client.call_tool("greet")) == "Hello you"
    assert (person.asked, person.messages, person.schemas) == (["who"], ["Who?"], [SCHEMA])
    assert desk.seen == [(None, None), ("my state", {"who": accept(name="you")})]
    assert len({id_ for id_, _ in desk.ids}) == 1
    assert [round_ for _, round_ in desk.ids] == [1, 2]


async def test_the_authors_keys_and_questions_arrive_as_they_are(in_memory: Connect) -> None:
    async with in_memory(Desk().mcp, elicitation_callback=Person()) as client:
        asked = await request(client)
    question = {"mode": "form", "message": "Who?", "requestedSchema": SCHEMA}
    assert asked["inputRequests"] == {"who": {"method": "elicitation/create", "params": question}}


@pytest.mark.parametrize("state", ["my secret state", "", '{"json": "ключ"}'])
async def test_a_state_is_sealed_on_the_wire_and_plain_to_its_author(in_memory: Connect, state: str) -> None:
    desk = Desk(state)
    async with in_memory(desk.mcp, elicitation_callback=Person()) as client:
        token = (await request(client))["requestState"]
        assert token.startswith("b1.")
        assert not state or state not in token
        assert said(await request(client, requestState=token, inputResponses=named("you"))) == "Hello you"
    assert desk.seen[-1][0] == state


@pytest.mark.asking_revisions
async def test_a_question_without_a_state_gives_its_author_none_back(in_memory: Connect) -> None:
    desk = Desk(None)
    async with in_memory(desk.mcp, elicitation_callback=Person({"who": accept(name="you")})) as client:
        assert text(await client.call_tool("greet")) == "Hello you"
    assert desk.seen[-1] == (None, {"who": accept(name="you")})


async def test_a_question_may_be_answered_without_any_state(in_memory: Connect) -> None:
    desk = Desk()
    async with in_memory(desk.mcp) as client:
        assert said(await request(client, inputResponses=named("you"))) == "Hello you"
        assert said(await request(client, inputResponses=named("me"))) == "Hello me", "no state, nothing spent"
    assert [state for state, _ in desk.seen] == [None, None]


@pytest.mark.parametrize("state", ["my state", "", '"my state"', "b1.x.y"])
async def test_a_state_that_was_not_sealed_never_reaches_the_author(in_memory: Connect, state: str) -> None:
    desk = Desk()
    async with in_memory(desk.mcp, elicitation_callback=Person()) as client:
        with pytest.raises(
            MCPError,
            match="invalid or expired requestState; if the call may have taken effect, check before you start it again",
        ) as raised:
            await request(client, requestState=state, inputResponses=named("you"))
    assert raised.value.code == -32602
    assert desk.seen == []


async def test_missing_answers_are_asked_again_and_unknown_ones_are_the_authors_to_ignore(in_memory: Connect) -> None:
    async with in_memory(Desk().mcp, elicitation_callback=Person()) as client:
        token = (await request(client))["requestState"]
        again = await request(client, requestState=token, inputResponses={"other": {"action": "decline"}})
        assert list(again["inputRequests"]) == ["who"]
        assert said(await request(client, requestState=again["requestState"], inputResponses=named("you")))


async def test_an_answer_nobody_asked_for_in_that_round_does_not_reach_the_author(in_memory: Connect) -> None:
    desk = Desk()
    async with in_memory(desk.mcp, elicitation_callback=Person()) as client:
        state = (await request(client))["requestState"]
        await request(client, requestState=state, inputResponses={**named("you"), "approve": {"action": "accept"}})
    assert list(desk.seen[-1][1]) == ["who"]


@pytest.mark.asking_revisions
async def test_a_sync_body_may_ask_by_hand(in_memory: Connect) -> None:
    mcp = MCPServer[Any]("desk")

    @mcp.tool()
    def greet(ctx: Context) -> str | InputRequiredResult:
        return "Hello" if ctx.input_responses else asks("x", who=form())

    async with in_memory(mcp, elicitation_callback=Person({"who": CANCEL})) as client:
        assert text(await client.call_tool("greet")) == "Hello"


@pytest.mark.asking_revisions
async def test_a_body_that_asks_against_its_annotation_runs_once_before_the_answer_and_once_after(
    connect: Connect,
) -> None:
    mcp, asked = MCPServer[Any]("desk"), list[int]()

    @mcp.tool()
    async def greet() -> str:
        asked.append(len(person.asked))
        return "Hello" if person.asked else asks("x", who=form())  # pyright: ignore[reportReturnType]  # the mistake

    person = Person({"who": CANCEL})
    async with connect(mcp, elicitation_callback=person) as client:
        assert text(await client.call_tool("greet")) == "Hello"
    assert asked == [0, 1]


async def test_every_kind_of_answer_arrives_as_its_wire_type(in_memory: Connect) -> None:
    mcp, got = MCPServer[Any]("desk"), dict[str, Any]()

    @mcp.tool()
    async def greet(ctx: Context) -> str:
        got.update(ctx.input_responses or {})
        return "Hello"

    message: Sent = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "Hi"}}
    answers: Sent = {
        "form": {"action": "accept", "content": {"name": "you"}},
        "roots": {"roots": [{"uri": "file:///home"}]},
        "sample": message,
        "with tools": {**message, "content": [message["content"]]},
    }
    async with in_memory(mcp) as client:
        await request(client, inputResponses=answers)
    assert {key: type(answer) for key, answer in got.items()} == {
        "form": ElicitResult,
        "roots": ListRootsResult,
        "sample": CreateMessageResult,
        "with tools": CreateMessageResultWithTools,
    }
    assert got["roots"].roots == [Root.model_validate({"uri": "file:///home"})]


# Several rounds


@pytest.mark.asking_revisions
async def test_a_call_by_hand_goes_through_as_many_rounds_as_it_likes(connect: Connect) -> None:
    mcp, rounds = MCPServer[Any]("desk"), list[tuple[str, int, str | None]]()

    @mcp.tool()
    async def greet(ctx: Context) -> str | InputRequiredResult:
        rounds.append((ctx.call_id, ctx.round, ctx.request_state))
        if ctx.round <= 3:
            return asks(f"{ctx.request_state or ''}{ctx.round}", who=form(f"Round {ctx.round}?"))
        return "Hello"

    person = Person({"who": accept(name="you")})
    async with connect(mcp, elicitation_callback=person) as client:
        assert text(await client.call_tool("greet")) == "Hello"
    assert [(round_, state) for _, round_, state in rounds] == [(1, None), (2, "1"), (3, "12"), (4, "123")]
    assert len({id_ for id_, _, _ in rounds}) == 1


async def test_a_round_may_hand_out_a_state_and_ask_nothing(in_memory: Connect) -> None:
    mcp = MCPServer[Any]("desk")

    @mcp.tool()
    async def greet(ctx: Context) -> str | InputRequiredResult:
        assert ctx.input_responses is None
        return "Hello" if ctx.request_state == "half done" else asks("half done")

    async with in_memory(mcp) as client:
        shed = await request(client)
        assert shed.keys() == {"resultType", "requestState", "_meta"}
        assert said(await request(client, requestState=shed["requestState"])) == "Hello"
        assert text(await client.call_tool("greet")) == "Hello"


# Each state is spent once


async def test_a_replay_gets_that_rounds_reply_and_the_body_does_not_run_again(connect: Connect) -> None:
    desk = Desk()
    async with connect(desk.mcp, elicitation_callback=Person()) as client:
        token = (await request(client))["requestState"]
        first = await request(client, requestState=token, inputResponses=named("you"))
        assert await request(client, requestState=token, inputResponses=named("you")) == first
    assert len(desk.seen) == 2


async def test_a_replay_of_a_round_that_asked_on_gets_the_same_question_and_state(connect: Connect) -> None:
    mcp, runs = MCPServer[Any]("desk"), list[int]()

    @mcp.tool()
    async def greet(ctx: Context) -> str | InputRequiredResult:
        runs.append(ctx.round)
        return asks("x", who=form(f"Round {ctx.round}?")) if ctx.round <= 2 else "Hello"

    async with connect(mcp, elicitation_callback=Person()) as client:
        token = (await request(client))["requestState"]
        second = await request(client, requestState=token, inputResponses=named("you"))
        assert await request(client, requestState=token, inputResponses=named("you")) == second
        assert said(await request(client, requestState=second["requestState"], inputResponses=named("you"))) == "Hello"
        assert await request(client, requestState=token, inputResponses=named("you")) == second
    assert runs == [1, 2, 3]


@pytest.mark.parametrize("other", [named("somebody else"), {"who": {"action": "decline"}}, {}, None])
async def test_other_answers_to_a_spent_state_are_refused(in_memory: Connect, other: Sent | None) -> None:
    desk = Desk()
    async with in_memory(desk.mcp, elicitation_callback=Person()) as client:
        token = (await request(client))["requestState"]
        await request(client, requestState=token, inputResponses=named("you"))
        fork: Sent = {} if other is None else {"inputResponses": other}
        refused = await request(client, requestState=token, **fork)
    settled = (
        "Error executing tool greet: this call was already settled with other answers; check whether it took effect "
        "before you start a new one"
    )
    assert (refused["isError"], said(refused)) == (True, settled)
    assert len(desk.seen) == 2


@pytest.mark.parametrize("failure", [ToolError("no greeting today"), RuntimeError("secret"), MCPError(1234, "no", [1])])
async def test_a_failure_after_a_question_by_hand_is_spent_too(in_memory: Connect, failure: Exception) -> None:
    mcp, runs = MCPServer[Any]("desk"), list[int]()

    @mcp.tool()
    async def greet(ctx: Context) -> str | InputRequiredResult:
        runs.append(ctx.round)
        if ctx.round == 1:
            return asks("x", who=form())
        raise failure

    ends: list[Any] = []
    async with in_memory(mcp, elicitation_callback=Person()) as client:
        token = (await request(client))["requestState"]
        for _ in range(2):
            try:
                ends.append(await request(client, requestState=token, inputResponses=named("you")))
            except MCPError as error:
                ends.append((error.code, error.message, error.data))
    assert ends[0] == ends[1]
    assert runs == [1, 2]


async def test_a_client_that_wants_exceptions_gets_the_bodys_own_and_a_replay_the_stored_text(
    in_process: Connect,
) -> None:
    mcp = MCPServer[Any]("desk")

    @mcp.tool()
    async def greet(ctx: Context) -> str | InputRequiredResult:
        if ctx.round == 1:
            return asks("x", who=form())
        raise LookupError("nobody of that name")

    async with in_process(mcp, elicitation_callback=Person(), raise_exceptions=True) as client:
        token = (await request(client))["requestState"]
        with pytest.raises(LookupError, match="nobody of that name"):
            await request(client, requestState=token, inputResponses=named("you"))
        again = await request(client, requestState=token, inputResponses=named("you"))
    assert said(again) == "Error executing tool greet"


async def test_a_full_ledger_refuses_a_question_by_hand(in_memory: Connect) -> None:
    desk = Desk(store=MemoryStore(max_claims=1))
    async with in_memory(desk.mcp, elicitation_callback=Person()) as client:
        token = (await request(client))["requestState"]
        await request(client, requestState=token, inputResponses=named("you"))
        refused = await request(client)
    assert said(refused).endswith("the server cannot take more calls that ask questions now; try again later")
