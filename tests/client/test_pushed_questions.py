"""Questions that an older server sends (protocol section 25.2): the answers, what is refused, and how many at a time."""

import asyncio
import json
import logging
from collections.abc import Mapping
from typing import Any

import pytest
from mcp_types import (
    ElicitRequestFormParams,
    ElicitResult,
    SamplingCapability,
    SamplingToolsCapability,
)

from bespeak import Client
from bespeak.client import CallbackFailed, ClientRequestContext, InvalidServerResponse
from tests.answering import accept, text
from tests.client.older_server import OldServer, Slow, asking_tool, plain, result_of
from tests.client.sample_questions import FORM, ROOTS, SAMPLE, SAMPLE_WITH_TOOLS, URL, list_roots, say_yes, write
from tests.waiting import eventually


async def replied(question: Mapping[str, Any], version: str = "2025-11-25", **callbacks: Any) -> Any:
    """What a client replies to one question in a call."""
    async with Client(OldServer(version, tool=asking_tool(question)), **callbacks) as client:
        (reply,) = json.loads(text(await client.call_tool("tool")))
    assert reply.pop("jsonrpc") == "2.0"
    assert reply.pop("id") == "q0"
    return reply


# Answers


@pytest.mark.parametrize(
    ("question", "callbacks", "result"),
    [
        (FORM, {"elicitation_callback": say_yes}, {"action": "accept", "content": {"sure": True}}),
        (URL, {"elicitation_callback": say_yes}, {"action": "accept"}),
        (
            SAMPLE,
            {"sampling_callback": write},
            {"role": "assistant", "content": {"type": "text", "text": "ho"}, "model": "m"},
        ),
        (ROOTS, {"list_roots_callback": list_roots}, {"roots": [{"uri": "file:///a", "name": "a"}]}),
        ({"method": "ping"}, {}, {}),
        ({"method": "ping", "params": {"_meta": {}}}, {}, {}),
    ],
)
async def test_the_callbacks_of_a_client_answer_an_older_server(
    question: dict[str, Any], callbacks: dict[str, Any], result: dict[str, Any]
) -> None:
    assert await replied(question, **callbacks) == {"result": result}


async def test_a_form_of_june_2025_is_answered() -> None:
    size = {"type": "string", "enum": ["s", "m"], "enumNames": ["Small", "Medium"]}
    schema = {"type": "object", "properties": {"size": size}, "required": ["size"]}

    async def answer(context: ClientRequestContext, params: ElicitRequestFormParams) -> ElicitResult:
        assert params.requested_schema["properties"]["size"]["enumNames"] == ["Small", "Medium"]
        return accept(size="m")

    question = {"method": "elicitation/create", "params": {"message": "Which?", "requestedSchema": schema}}
    reply = await replied(question, "2025-06-18", elicitation_callback=answer)
    assert reply == {"result": {"action": "accept", "content": {"size": "m"}}}


async def test_questions_of_one_call_are_answered_one_after_another() -> None:
    async with Client(OldServer(tool=asking_tool(FORM, URL, FORM)), elicitation_callback=say_yes) as client:
        replies = json.loads(text(await client.call_tool("tool")))
    assert [reply["id"] for reply in replies] == ["q0", "q1", "q2"]


@pytest.mark.parametrize("id_", [0, -5, 10**400, "", "1", "\u00e9\n\0", "x" * 100_000])
async def test_a_question_is_answered_by_its_own_id(id_: Any) -> None:
    async def tool(server: OldServer, message: dict[str, Any]) -> dict[str, Any]:
        return result_of(json.dumps((await server.ask(FORM, id_))["id"]))

    async with Client(OldServer(tool=tool), elicitation_callback=say_yes) as client:
        answered = json.loads(text(await client.call_tool("tool")))
    assert (type(answered), answered) == (type(id_), id_)


@pytest.mark.parametrize("id_", [None, True, 1.5, [1]])
async def test_a_question_with_an_invalid_id_is_not_answered(id_: Any, caplog: pytest.LogCaptureFixture) -> None:
    async def tool(server: OldServer, message: dict[str, Any]) -> dict[str, Any]:
        server.send({"id": id_, **FORM})
        return await plain(server, message)

    server = OldServer(tool=tool)
    async with Client(server, elicitation_callback=say_yes) as client:
        assert text(await client.call_tool("tool")) == "done"
        assert server.replies == []
    assert f"The server sent a request with the id {id_!r}, which is invalid or already in use." in caplog.text


async def test_a_second_question_with_the_id_of_an_open_one_is_ignored(caplog: pytest.LogCaptureFixture) -> None:
    slow = Slow()

    async def tool(server: OldServer, message: dict[str, Any]) -> dict[str, Any]:
        first = asyncio.create_task(server.ask(FORM, 1))
        await eventually(lambda: slow.asked)
        server.send({"id": 1, **FORM})
        second = asyncio.create_task(server.ask(FORM, "1"))  # another id: it is a string
        await eventually(lambda: slow.asked == 2)
        slow.answer.set()
        await asyncio.gather(first, second)
        await server.ask(FORM, 1)  # which is free again
        return await plain(server, message)

    server = OldServer(tool=tool)
    async with Client(server, elicitation_callback=slow) as client:
        await client.call_tool("tool")
    assert [reply["id"] for reply in server.replies] == [1, "1", 1]
    assert "The server sent a request with the id 1, which is invalid or already in use." in caplog.text


async def test_progress_and_logs_arrive_while_a_question_is_open() -> None:
    slow = Slow()
    got: list[Any] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        got.append((progress, message))

    async def on_log(params: Any) -> None:
        got.append(params.data)

    async def tool(server: OldServer, message: dict[str, Any]) -> dict[str, Any]:
        question = asyncio.create_task(server.ask(FORM))
        await eventually(lambda: slow.asked)
        server.note("progress", progressToken=message["params"]["_meta"]["progressToken"], progress=1, message="half")
        server.note("message", level="info", data="waiting")
        await eventually(lambda: len(got) == 2)
        slow.answer.set()
        await question
        return await plain(server, message)

    async with Client(OldServer(tool=tool), elicitation_callback=slow, logging_callback=on_log) as client:
        assert text(await client.call_tool("tool", progress_callback=on_progress)) == "done"
    assert got == [(1, "half"), "waiting"]


# What cannot be answered


async def refused(
    question: dict[str, Any], kind: type[Exception], mode: str = "auto", **callbacks: Any
) -> tuple[Any, str]:
    """The error replied to a question, and the one the call then fails with; it is not sent again."""
    server = OldServer("2025-11-25" if mode == "auto" else mode, tool=asking_tool(question))
    async with Client(server, mode=mode, **callbacks) as client:
        with pytest.raises(kind) as caught:
            await client.call_tool("tool")
    assert len(server.told("tools/call")) == 1
    (reply,) = server.replies
    return reply["error"], str(caught.value)


TOOLS = SamplingCapability(tools=SamplingToolsCapability())


@pytest.mark.parametrize(
    ("question", "mode", "callbacks", "code"),
    [
        (FORM, "auto", {}, -32602),
        (SAMPLE, "auto", {"elicitation_callback": say_yes}, -32601),
        (ROOTS, "auto", {"elicitation_callback": say_yes}, -32601),
        (FORM, "2025-03-26", {"elicitation_callback": say_yes}, -32602),
        (URL, "2025-06-18", {"elicitation_callback": say_yes}, -32602),
        (SAMPLE_WITH_TOOLS, "auto", {"sampling_callback": write}, -32601),
        (SAMPLE_WITH_TOOLS, "2025-06-18", {"sampling_callback": write, "sampling_capabilities": TOOLS}, -32601),
    ],
)
async def test_a_question_that_was_not_declared_is_refused_and_ends_the_call(
    question: dict[str, Any], mode: str, callbacks: dict[str, Any], code: int
) -> None:
    error, raised = await refused(question, InvalidServerResponse, mode, **callbacks)
    assert error["code"] == code
    assert raised == f"the server asked 'q0' ({question['method']}), but the client did not declare that capability"


async def test_sampling_with_context_needs_no_declaration_before_2026() -> None:
    question = {**SAMPLE, "params": {**SAMPLE["params"], "includeContext": "thisServer"}}
    assert "result" in await replied(question, "2025-06-18", sampling_callback=write)


@pytest.mark.parametrize(
    ("question", "callbacks"),
    [
        ({"method": "elicitation/create", "params": {"message": 5}}, {"elicitation_callback": say_yes}),
        ({**FORM, "params": {**FORM["params"], "mode": None}}, {"elicitation_callback": say_yes}),
        ({"method": "sampling/createMessage"}, {"sampling_callback": write}),
    ],
)
async def test_a_malformed_question_has_invalid_params_and_ends_the_call(
    question: dict[str, Any], callbacks: dict[str, Any]
) -> None:
    error, raised = await refused(question, InvalidServerResponse, **callbacks)
    assert error["code"] == -32602
    assert "the params of the question 'q0' are not valid" in raised


@pytest.mark.parametrize(
    ("question", "code", "message"),
    [
        ({"method": "tools/list"}, -32601, "unknown method 'tools/list'"),
        ({"method": ["ping"]}, -32601, "unknown method ['ping']"),
        ({**FORM, "params": [1]}, -32602, "params must be an object"),
    ],
)
async def test_a_request_that_is_not_a_question_is_refused_and_the_call_continues(
    question: dict[str, Any], code: int, message: str
) -> None:
    assert await replied(question, elicitation_callback=say_yes) == {"error": {"code": code, "message": message}}


async def raises(context: ClientRequestContext, *params: Any) -> Any:
    raise ValueError("hush")


async def test_a_callback_that_fails_refuses_the_question_without_saying_why_and_ends_the_call() -> None:
    named = {**FORM, "params": {**FORM["params"], "_meta": {"bespeak/key": "confirm#1"}}}
    for question, key in ((FORM, "q0"), (named, "confirm#1")):
        error, raised = await refused(question, CallbackFailed, elicitation_callback=raises)
        assert error == {"code": -1, "message": "the client could not answer this question"}
        said = f"the question '{key}' (elicitation/create) could not be answered: the callback raised ValueError: hush"
        assert raised == said


async def test_another_call_works_after_one_that_failed() -> None:
    server = OldServer(tool=asking_tool(FORM), plain=plain)
    async with Client(server, elicitation_callback=raises) as client:
        with pytest.raises(CallbackFailed):
            await client.call_tool("tool")
        assert text(await client.call_tool("plain")) == "done"


# How many at a time


async def crowd(server: OldServer, message: dict[str, Any]) -> dict[str, Any]:
    """A tool that asks five questions at once, and tells what was replied to each."""
    replies = await asyncio.gather(*(server.ask(FORM, f"q{number}") for number in range(5)))
    return result_of(json.dumps({reply["id"]: reply.get("error") for reply in replies}))


TOO_MANY = {"code": -1, "message": "the client answers at most 3 questions at a time, and 3 are open"}


async def test_questions_beyond_the_limit_are_refused_and_the_others_answered() -> None:
    slow = Slow()
    server = OldServer(tool=crowd)
    async with Client(server, elicitation_callback=slow, input_required_max_questions=3) as client:
        calling = asyncio.create_task(client.call_tool("tool"))
        await eventually(lambda: len(server.replies) == 2)
        assert slow.asked == 3
        slow.answer.set()
        replied = json.loads(text(await calling))
    assert replied == {"q0": None, "q1": None, "q2": None, "q3": TOO_MANY, "q4": TOO_MANY}


async def test_a_question_that_is_answered_makes_room_for_the_next() -> None:
    async def tool(server: OldServer, message: dict[str, Any]) -> dict[str, Any]:
        replies = [await server.ask(FORM, number) for number in range(5)]
        return result_of(json.dumps(["result" in reply for reply in replies]))

    async with Client(OldServer(tool=tool), elicitation_callback=say_yes, input_required_max_questions=1) as client:
        assert json.loads(text(await client.call_tool("tool"))) == [True] * 5


async def test_pings_are_answered_while_the_limit_of_open_questions_is_reached() -> None:
    slow = Slow()

    async def tool(server: OldServer, message: dict[str, Any]) -> dict[str, Any]:
        asked = asyncio.create_task(server.ask(FORM))
        await eventually(lambda: slow.asked)
        pong = await asyncio.wait_for(server.ask({"method": "ping"}, "p"), 5)
        slow.answer.set()
        await asked
        return result_of(json.dumps(pong["result"]))

    async with Client(OldServer(tool=tool), elicitation_callback=slow, input_required_max_questions=1) as client:
        assert json.loads(text(await client.call_tool("tool"))) == {}


async def test_a_flood_of_questions_is_not_refused_one_by_one_and_does_not_fill_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def tool(server: OldServer, message: dict[str, Any]) -> dict[str, Any]:
        for number in range(5000):
            server.send({"id": number, **FORM})
        await eventually(lambda: len(server.replies) > 50)
        return await plain(server, message)

    caplog.set_level(logging.WARNING)
    server = OldServer(tool=tool)
    slow = Slow()
    async with Client(server, elicitation_callback=slow) as client:
        assert text(await client.call_tool("tool")) == "done"
    assert slow.asked == 64
    assert len(server.replies) <= 100
    assert [record.getMessage() for record in caplog.records] == [
        "The server sends more requests than this client can process. Some are not answered."
    ]


# Questions that the server takes back, or that nobody waits for


PUSHED = {"jsonrpc": "2.0", "id": "q", **FORM}


async def test_a_question_that_is_taken_back_cancels_its_callback_and_gets_no_reply() -> None:
    slow = Slow()

    async def tool(server: OldServer, message: dict[str, Any]) -> dict[str, Any]:
        server.send(PUSHED)
        await eventually(lambda: slow.asked)
        server.note("cancelled", requestId="q", reason="never mind")
        await eventually(lambda: slow.cancelled)
        return await plain(server, message)

    server = OldServer(tool=tool)
    async with Client(server, elicitation_callback=slow) as client:
        assert text(await client.call_tool("tool")) == "done"
    assert server.replies == []


@pytest.mark.parametrize("params", [{"requestId": "other"}, {"requestId": [1]}, {}])
async def test_a_cancellation_of_an_unknown_question_is_ignored(params: dict[str, Any]) -> None:
    async def tool(server: OldServer, message: dict[str, Any]) -> dict[str, Any]:
        server.note("cancelled", **params)
        return result_of(json.dumps((await server.ask(FORM))["result"]["action"]))

    async with Client(OldServer(tool=tool), elicitation_callback=say_yes) as client:
        assert text(await client.call_tool("tool")) == '"accept"'


async def test_a_call_that_is_cancelled_while_a_question_is_open_ends_at_once_and_so_does_the_question() -> None:
    slow = Slow()
    server = OldServer(tool=asking_tool(FORM))
    async with Client(server, elicitation_callback=slow) as client:
        calling = asyncio.create_task(client.call_tool("tool"))
        await eventually(lambda: slow.asked)
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(calling, 5)
        await eventually(lambda: server.told("notifications/cancelled"))
        await eventually(lambda: slow.cancelled)


async def test_a_question_ends_with_its_call_though_it_was_not_answered() -> None:
    slow = Slow()

    async def tool(server: OldServer, message: dict[str, Any]) -> dict[str, Any]:
        server.send(PUSHED)
        await eventually(lambda: slow.asked)
        return result_of("never mind")

    async with Client(OldServer(tool=tool), elicitation_callback=slow) as client:
        assert text(await client.call_tool("tool")) == "never mind"
        await eventually(lambda: slow.cancelled)


# Several calls at once, and none


@pytest.mark.parametrize("question", [FORM, SAMPLE, ROOTS])
async def test_a_question_while_no_request_is_open_is_refused(question: dict[str, Any]) -> None:
    server = OldServer()
    slow = Slow()
    async with Client(server, elicitation_callback=slow):
        reply = await asyncio.wait_for(server.ask(question), 5)
    assert reply["error"] == {
        "code": -32602,
        "message": "questions are only allowed while a request of the client is open",
    }
    assert slow.asked == 0


async def test_a_ping_before_the_answer_to_initialize_is_answered() -> None:
    async def initialize(server: OldServer, message: dict[str, Any]) -> dict[str, Any]:
        assert (await server.ask({"method": "ping"}))["result"] == {}
        info = {"name": "old", "version": "1"}
        return {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": info}

    async with Client(OldServer(initialize=initialize)) as client:
        assert client.protocol_version == "2025-06-18"


async def test_calls_at_the_same_time_each_get_the_answers_to_their_questions() -> None:
    async def echo(context: ClientRequestContext, params: Any) -> ElicitResult:
        await asyncio.sleep(0)
        return accept(value=params.message)

    async def tool(server: OldServer, message: dict[str, Any]) -> dict[str, Any]:
        schema = {"type": "object", "properties": {"value": {"type": "string"}}}
        said = message["params"]["arguments"]["text"]
        question = {"method": "elicitation/create", "params": {"message": said, "requestedSchema": schema}}
        reply = await server.ask(question, f"q-{said}")
        return result_of(reply["result"]["content"]["value"])

    async with Client(OldServer(tool=tool), elicitation_callback=echo) as client:
        results = await asyncio.gather(*(client.call_tool("tool", {"text": f"{at}"}) for at in range(5)))
    assert [text(one) for one in results] == [f"{at}" for at in range(5)]
