"""Heartbeats while a question is pushed (older clients give up a silent request), and answers that come too late."""

import asyncio
import inspect
import logging
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from mcp_types import ElicitRequestParams, ElicitResult, SamplingMessage, TextContent

from bespeak import Client, Context, Elicit, MCPServer, Resolve, ToolError
from bespeak.client import ClientRequestContext
from bespeak.server.features.progress_notifications import ProgressNotifications
from tests.answering import accept, text
from tests.rules.consumers import ask, take_value
from tests.server.calls.greeting_desk import Desk
from tests.server.legacy.older_client import (
    FIRST,
    MARCH,
    SILENCE,
    WIRES,
    Older,
    Sent,
    Thinking,
    over,
    yes,
)
from tests.waiting import eventually, pass_time, turns

pytestmark = pytest.mark.timing

SHORT = 0.02
HELLO = SamplingMessage(role="user", content=TextContent(text="Hello"))
MESSAGE: Sent = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "Hi"}}
TOKEN: Sent = {"progressToken": "p"}
WAITING = "Waiting for an answer"


def serving(
    *tools: Callable[..., Any], question_heartbeat: float | None = SHORT, question_timeout: float = 600.0
) -> MCPServer[Any]:
    mcp = MCPServer[Any](
        "slow people", log_level="DEBUG", question_timeout=question_timeout, question_heartbeat=question_heartbeat
    )
    for tool in tools:
        mcp.add_tool(tool)
    return mcp


def progress(client: Older) -> list[Sent]:
    return [one["params"] for one in client.said if one["method"] == "notifications/progress"]


def beats(client: Older) -> list[float]:
    return [one["progress"] for one in progress(client) if one.get("message") == WAITING]


async def some_time() -> None:
    """Long enough for several heartbeats, if there were any."""
    await pass_time(10 * SHORT, steps=10)


async def elicit(ctx: Context) -> str:
    return (await ctx.elicit("Sure?", int)).action


async def sample(ctx: Context) -> str:
    return (await ctx.session.create_message([HELLO], max_tokens=5)).model


async def list_roots(ctx: Context) -> str:
    return f"{len((await ctx.session.list_roots()).roots)} roots"


async def elicit_url(ctx: Context) -> str:
    return (await ctx.elicit_url("Sign in", "https://example.com")).action


# Sent


class Patient:
    """Answers when a number of heartbeats have come."""

    def __init__(self, answer: ElicitResult, wanted: int = 3) -> None:
        self._answer = answer
        self._wanted = wanted
        self.heard: list[tuple[float, float | None, str | None]] = []

    async def __call__(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        await eventually(lambda: len(self.heard) >= self._wanted)
        return self._answer

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        self.heard.append((progress, total, message))


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("tool", [take_value, elicit], ids=["resolver", "body"])
async def test_while_a_question_is_open_the_client_hears_that_the_call_is_alive(
    wire: str, tool: Callable[..., Any]
) -> None:
    person = Patient(accept(value=3))
    async with over(wire, serving(tool), elicitation_callback=person) as client:
        result = await client.call_tool(tool.__name__, progress_callback=person.progress)
    assert text(result) == ("3" if tool is take_value else "accept")
    values, totals, messages = zip(*person.heard, strict=True)
    assert list(values) == pytest.approx([0.000001 * (number + 1) for number in range(len(values))], abs=1e-9)
    assert (set(totals), set(messages)) == ({None}, {WAITING})


@pytest.mark.parametrize("wire", WIRES)
async def test_a_question_made_by_hand_is_kept_alive_as_well(wire: str) -> None:
    person = Patient(accept(name="you"))
    desk = Desk(question_heartbeat=SHORT)
    async with over(wire, desk.mcp, elicitation_callback=person) as client:
        assert text(await client.call_tool("greet", progress_callback=person.progress)) == "Hello you"
    assert {message for _, _, message in person.heard} == {WAITING}


@pytest.mark.parametrize(
    ("tool", "answer", "result"),
    [
        (sample, {"result": MESSAGE}, "m"),
        (list_roots, {"result": {"roots": []}}, "0 roots"),
        (elicit_url, {"result": {"action": "accept"}}, "accept"),
    ],
)
async def test_every_kind_of_question_is_kept_alive(tool: Callable[..., Any], answer: Sent, result: str) -> None:
    async with Older(serving(tool), {tool.__name__: SILENCE}) as client:
        call = asyncio.create_task(client.call(tool.__name__, _meta=TOKEN))
        await eventually(lambda: len(beats(client)) > 2)
        await client.send({"id": client.pushed[0]["id"], **answer})
        assert (await call)["content"][0]["text"] == result


@pytest.mark.parametrize(("version", "said"), [(FIRST, {None}), (MARCH, {WAITING})])
async def test_before_2025_03_26_a_heartbeat_has_no_message(version: str, said: set[str | None]) -> None:
    async with Older(serving(list_roots), {"list_roots": SILENCE}, version=version) as client:
        call = asyncio.create_task(client.call("list_roots", _meta=TOKEN))
        await eventually(lambda: len(progress(client)) > 1)
        await client.send({"id": client.pushed[0]["id"], "result": {"roots": []}})
        await call
    assert {one.get("message") for one in progress(client)} == said


async def test_heartbeats_go_on_where_the_author_stopped_and_the_author_where_they_did() -> None:
    async def take(ctx: Context) -> str:
        await ctx.report_progress(2, 4, "half")
        await ctx.elicit("Sure?", int)
        await ctx.report_progress(2, 4, "half, and sure")
        await ctx.report_progress(4, 4, "all")
        return "taken"

    async with Older(serving(take), {"take": SILENCE}) as client:
        call = asyncio.create_task(client.call(_meta=TOKEN))
        await eventually(lambda: len(beats(client)) > 2)
        await client.send({"id": client.pushed[0]["id"], **yes(value=1)})
        await call
    sent = progress(client)
    values = [one["progress"] for one in sent]
    assert values == sorted(set(values))
    assert sent[0] == {**TOKEN, "progress": 2, "total": 4, "message": "half"}
    assert sent[-2]["message"] == "half, and sure"
    assert 2 < values[-2] < 2.01
    assert sent[-1] == {**TOKEN, "progress": 4, "total": 4, "message": "all"}
    assert all("total" not in one for one in sent if one["message"] == WAITING)


async def test_a_resolver_that_reports_beside_an_open_question_shares_the_heartbeats_values() -> None:
    go_on = asyncio.Event()

    async def beside(ctx: Context) -> int | Elicit[int]:
        await go_on.wait()
        await ctx.report_progress(0, message="beside")
        return 7

    async def take(a: Annotated[int, Resolve(ask)], b: Annotated[int, Resolve(beside)]) -> str:
        return f"{a} {b}"

    async with Older(serving(take), {"ask": SILENCE}) as client:
        call = asyncio.create_task(client.call(_meta=TOKEN))
        await eventually(lambda: beats(client))
        go_on.set()
        await eventually(
            lambda: progress(client)[-1]["message"] == WAITING and len(beats(client)) < len(progress(client))
        )
        await client.send({"id": client.pushed[0]["id"], **yes(value=1)})
        assert (await call)["content"][0]["text"] == "1 7"
    values = [one["progress"] for one in progress(client)]
    assert values == sorted(set(values))
    assert "beside" in [one["message"] for one in progress(client)]


async def test_the_silence_before_a_question_counts_as_the_client_counts_from_its_request_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else a slow resolver before the question, or several quick questions, would add up to a silence that is too long."""
    silences = iter([4000.0, 4000.0])

    def silence(_: ProgressNotifications) -> float:
        return next(silences, 0.0)

    monkeypatch.setattr(ProgressNotifications, "silence", silence)
    async with Older(serving(elicit, question_heartbeat=3600.0), {"elicit": SILENCE}) as client:
        call = asyncio.create_task(client.call("elicit", _meta=TOKEN))
        await eventually(lambda: beats(client))
        assert len(client.pushed) == 1, "the question itself comes first"
        await client.send({"id": client.pushed[0]["id"], **yes(value=1)})
        await call
    assert len(beats(client)) == 1


async def test_two_calls_of_a_client_have_heartbeats_of_their_own() -> None:
    async with Older(serving(elicit), {"elicit": SILENCE}) as client:
        calls = [asyncio.create_task(client.call("elicit", _meta={"progressToken": token})) for token in (1, 2)]
        await eventually(lambda: {one["progressToken"] for one in progress(client)} == {1, 2})
        await client.send({"id": client.pushed[0]["id"], **yes(value=1)})
        await asyncio.wait({calls[0]})
        client.said.clear()
        await eventually(lambda: len(progress(client)) > 1)
        assert {one["progressToken"] for one in progress(client)} == {2}
        await client.send({"id": client.pushed[1]["id"], **yes(value=1)})
        await calls[1]


# Not sent


async def test_without_a_progress_token_nothing_is_sent() -> None:
    async with Older(serving(elicit), {"elicit": SILENCE}) as client:
        call = asyncio.create_task(client.call("elicit"))
        await eventually(lambda: client.pushed)
        await some_time()
        await client.send({"id": client.pushed[0]["id"], **yes(value=1)})
        await call
    assert client.said == []


async def test_heartbeats_can_be_switched_off() -> None:
    async with Older(serving(elicit, question_heartbeat=None), {"elicit": SILENCE}) as client:
        call = asyncio.create_task(client.call("elicit", _meta=TOKEN))
        await eventually(lambda: client.pushed)
        await some_time()
        await client.send({"id": client.pushed[0]["id"], **yes(value=1)})
        await call
    assert client.said == []


async def test_an_answer_within_the_first_seconds_sends_no_heartbeat() -> None:
    async with Older(serving(elicit, question_heartbeat=15.0), {"elicit": yes(value=1)}) as client:
        await client.call("elicit", _meta=TOKEN)
    assert client.said == []


@pytest.mark.parametrize("seconds", [0, -1])
def test_a_heartbeat_must_be_positive(seconds: float) -> None:
    with pytest.raises(
        ValueError, match="question_heartbeat must be a positive number of seconds, or None for no heartbeats"
    ):
        MCPServer("till", question_heartbeat=seconds)


def test_the_heartbeat_is_15_seconds_unless_told_otherwise() -> None:
    assert inspect.signature(MCPServer).parameters["question_heartbeat"].default == 15.0


async def test_a_client_at_2026_07_28_gets_no_heartbeats() -> None:
    heard: list[float] = []

    async def person(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        await some_time()
        return accept(value=3)

    async def progress(progress: float, total: float | None, message: str | None) -> None:
        heard.append(progress)

    async with Client(serving(take_value), mode="2026-07-28", elicitation_callback=person) as client:
        await client.call_tool("take_value", progress_callback=progress)
    assert heard == []


# Stopped


async def stopped(client: Older) -> None:
    """Assert that there are no more heartbeats."""
    await asyncio.sleep(0)
    before = len(beats(client))
    await some_time()
    assert len(beats(client)) == before > 0


async def test_they_stop_when_the_answer_has_come_though_the_call_goes_on() -> None:
    go_on, reached = asyncio.Event(), asyncio.Event()

    async def take(it: Annotated[int, Resolve(ask)]) -> str:
        reached.set()
        await go_on.wait()
        return f"{it}"

    async with Older(serving(take), {"ask": SILENCE}) as client:
        call = asyncio.create_task(client.call(_meta=TOKEN))
        await eventually(lambda: beats(client))
        await client.send({"id": client.pushed[0]["id"], **yes(value=1)})
        await asyncio.wait_for(reached.wait(), 5)
        await stopped(client)
        go_on.set()
        await call


@pytest.mark.long
async def test_they_stop_when_the_question_is_taken_back_because_nobody_answered() -> None:
    async def take(ctx: Context) -> str:
        try:
            await ctx.elicit("Sure?", int)
        except ToolError:
            gave_up.set()
        await go_on.wait()
        return "without an answer"

    gave_up, go_on = asyncio.Event(), asyncio.Event()
    async with Older(serving(take, question_timeout=10 * SHORT), {"take": SILENCE}) as client:
        call = asyncio.create_task(client.call(_meta=TOKEN))
        await asyncio.wait_for(gave_up.wait(), 5)
        await stopped(client)
        go_on.set()
        await call


async def test_they_stop_when_another_resolver_has_ended_the_call() -> None:
    release = asyncio.Event()

    async def fails() -> int | Elicit[int]:
        await release.wait()
        raise ToolError("no stock")

    async def take(a: Annotated[int, Resolve(ask)], b: Annotated[int, Resolve(fails)]) -> str:
        raise AssertionError

    async with Older(serving(take), {"ask": SILENCE}) as client:
        call = asyncio.create_task(client.call(_meta=TOKEN))
        await eventually(lambda: beats(client))
        release.set()
        assert (await call)["isError"]
        await stopped(client)


async def test_they_stop_when_the_client_cancels_the_call() -> None:
    async with Older(serving(take_value), {"ask": SILENCE}) as client:
        call = asyncio.create_task(client.call("take_value", _meta=TOKEN))
        await eventually(lambda: beats(client))
        call.cancel()
        await asyncio.wait({call})
        await stopped(client)


async def test_they_stop_when_the_client_cancels_a_call_that_is_finished_all_the_same() -> None:
    """The body has an approval and goes on; what it asked meanwhile nobody is going to answer."""
    failures: list[str] = []

    async def take(it: Annotated[int, Resolve(ask)], ctx: Context) -> str:
        try:
            await ctx.elicit("And now?", int)
        except ToolError as error:
            failures.append(str(error))
        return "taken"

    async with Older(serving(take), {"ask": yes(value=1), "take": SILENCE}) as client:
        call = asyncio.create_task(client.call(_meta=TOKEN))
        await eventually(lambda: beats(client))
        await client.send({"method": "notifications/cancelled", "params": {"requestId": 101}})
        await eventually(lambda: failures)
        await stopped(client)
        assert client.taken_back == [client.pushed[1]["id"]]
        await call
    assert failures == ["the client no longer waits for this call"]


@pytest.mark.parametrize("wire", WIRES)
async def test_a_client_that_leaves_while_they_are_sent_does_no_harm(
    wire: str, caplog: pytest.LogCaptureFixture
) -> None:
    person, heard = Thinking(accept(value=1)), asyncio.Event()

    async def progress(progress: float, total: float | None, message: str | None) -> None:
        heard.set()

    async with over(wire, serving(take_value), elicitation_callback=person) as client:
        call = asyncio.create_task(client.call_tool("take_value", progress_callback=progress))
        await asyncio.wait_for(heard.wait(), 5)
    await asyncio.gather(call, return_exceptions=True)
    await some_time()
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "bespeak heartbeat"]
    assert [one for one in caplog.records if one.levelno >= logging.ERROR] == []


# Late answers


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING]


async def test_an_answer_after_the_question_was_given_up_changes_nothing_and_is_logged_once_without_its_content(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with Older(serving(elicit, question_timeout=0.05), {"elicit": SILENCE}) as client:
        assert await client.failure("elicit") == "Error executing tool elicit: nobody answered within 0.05 s"
        for _ in range(2):
            await client.send({"id": client.pushed[0]["id"], **yes(value=31337)})
    assert warnings(caplog) == [
        "the answer to question 'elicit' came too late and has no effect: the question was withdrawn because it took "
        "too long"
    ]
    assert "31337" not in caplog.text


async def test_an_answer_after_the_call_was_cancelled_changes_nothing_and_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with Older(serving(take_value), {"ask": SILENCE}) as client:
        call = asyncio.create_task(client.call("take_value"))
        await eventually(lambda: client.pushed)
        call.cancel()
        await asyncio.wait({call})
        await client.send({"id": client.pushed[0]["id"], **yes(value=3)})
    assert warnings(caplog) == [
        "the answer to question 'tests.rules.consumers:ask' came too late and has no effect: the question "
        "was withdrawn because the call has ended"
    ]


async def test_an_answer_to_a_question_never_asked_is_told_apart(caplog: pytest.LogCaptureFixture) -> None:
    async with Older(serving(elicit)) as client:
        await client.send({"id": "q-99", **yes(value=31337)})
    assert warnings(caplog) == []
    assert "the client answered 'q-99', which was not asked or was answered before" in caplog.messages
    assert "31337" not in caplog.text


async def test_an_error_in_reply_to_a_question_taken_back_is_no_late_answer(caplog: pytest.LogCaptureFixture) -> None:
    """The official Python SDK confirms so that it has stopped asking."""
    async with Older(serving(elicit, question_timeout=0.05), {"elicit": SILENCE}) as client:
        await client.failure("elicit")
        error = {"code": 0, "message": "Request cancelled"}
        await client.send({"id": client.pushed[0]["id"], "error": error})
    assert warnings(caplog) == []
    assert "the client answered question 'elicit' with an error after the question was withdrawn" in caplog.messages


@pytest.mark.long
async def test_of_many_questions_given_up_the_last_are_remembered() -> None:
    async with Older(serving(elicit), {"elicit": SILENCE}) as client:
        for _ in range(150):
            call = asyncio.create_task(client.call("elicit"))
            await turns(50)
            call.cancel()
            await asyncio.wait({call})
        peer: Any = client._transport._peer  # pyright: ignore[reportPrivateUsage] - memory has no other witness
        assert len(peer._questions._given_up) == 100
