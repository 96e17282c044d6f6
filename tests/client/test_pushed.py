"""Questions that an older server pushes (protocol section 25.2): who answers them, what is replied, whose time it takes."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Any

import pytest
from mcp_types import (
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ElicitResult,
    ErrorData,
    SamplingCapability,
    SamplingToolsCapability,
)

from bespeak import Client
from bespeak.client import CallbackContext, CallbackFailed, InvalidServerResponse
from bespeak.transports.interfaces import Ask, Outgoing
from bespeak.transports.stdio.client_requests import ClientRequests
from tests.answering import CANCEL, DECLINE, accept, text
from tests.client.test_callbacks import ROOTS, SAMPLE, SAMPLE_WITH_TOOLS, URL, list_roots, say_yes, write
from tests.client.test_session import FORM
from tests.waiting import eventually

Reply = dict[str, Any]
Tool = Callable[["OldServer", dict[str, Any]], Awaitable[Any]]


def result_of(value: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": value}]}


async def plain(server: "OldServer", message: dict[str, Any]) -> dict[str, Any]:
    return result_of("done")


class OldServer:
    """A transport to a server of an older revision that speaks in lines, as over stdio, within this process.

    What it answers comes from functions of itself and the message, by method and for calls by the name of the tool.
    """

    mirrors = False

    def __init__(self, version: str = "2025-11-25", **ways: Tool) -> None:
        self.version = version
        self.capabilities: dict[str, Any] = {"tools": {}}
        self._ways = ways
        self._open: dict[Any, asyncio.Future[Reply]] = {}
        self._serving: set[asyncio.Task[None]] = set()
        self.heard: list[dict[str, Any]] = []

    async def __aenter__(self) -> "OldServer":
        self._conversation = ClientRequests(self._write, 1_000_000)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._conversation.end(ConnectionError("the server was closed"))
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def exchange(self, request: Outgoing, notify: Callable[[bytes], None], ask: Ask | None = None) -> bytes:
        return await self._conversation.exchange(request, notify, ask)

    async def say(self, message: bytes, headers: Mapping[str, str]) -> None:
        await self._conversation.say(message)

    async def begin(self, headers: Mapping[str, str], notify: Callable[[bytes], None], ask: Ask) -> None:
        self._conversation.begin(notify, ask)

    async def _write(self, line: bytes) -> None:
        message = json.loads(line)
        self.heard.append(message)
        if "method" not in message:
            waiting = self._open.pop(message["id"], None)
            if waiting is not None:
                waiting.set_result(message)
        elif "id" in message:
            task = asyncio.create_task(self._serve(message))
            self._serving.add(task)
            task.add_done_callback(self._serving.discard)

    async def _serve(self, message: dict[str, Any]) -> None:
        method = message["method"]
        way = self._ways.get(message["params"]["name"] if method == "tools/call" else method.replace("/", "_"))
        if way is not None:
            answered = await way(self, message)
        elif method == "initialize":
            info = {"name": "old", "version": "1"}
            answered = {"protocolVersion": self.version, "capabilities": self.capabilities, "serverInfo": info}
        else:
            answered = {"code": -32601, "message": f"no method {method}"}
        if answered is not None:
            self.send({"id": message["id"], "error" if "code" in answered else "result": answered})

    # What it says and hears

    def send(self, message: Any) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", **message}))

    def write(self, line: str) -> None:
        self._conversation.feed(line.encode() + b"\n")

    async def ask(self, question: Mapping[str, Any], id_: Any = "q") -> Reply:
        """Push a question; the reply."""
        self._open[id_] = asyncio.get_running_loop().create_future()
        self.send({"id": id_, **question})
        return await self._open[id_]

    def note(self, method: str, **params: Any) -> None:
        self.send({"method": f"notifications/{method}", "params": params})

    @property
    def replies(self) -> list[Reply]:
        return [message for message in self.heard if "method" not in message]

    def told(self, method: str) -> list[dict[str, Any]]:
        return [message for message in self.heard if message.get("method") == method]


def asking(*questions: Mapping[str, Any]) -> Tool:
    """A tool that asks these one after another, and tells what was replied."""

    async def tool(server: OldServer, message: dict[str, Any]) -> dict[str, Any]:
        replies = [await server.ask(question, f"q{number}") for number, question in enumerate(questions)]
        return result_of(json.dumps(replies))

    return tool


async def replied(question: Mapping[str, Any], version: str = "2025-11-25", **callbacks: Any) -> Any:
    """What a client replies to one question in a call."""
    async with Client(OldServer(version, tool=asking(question)), **callbacks) as client:
        (reply,) = json.loads(text(await client.call_tool("tool")))
    assert reply.pop("jsonrpc") == "2.0"
    assert reply.pop("id") == "q0"
    return reply


class Slow:
    """An elicitation callback that answers when it is told to."""

    def __init__(self) -> None:
        self.asked = 0
        self.cancelled = 0
        self.answer = asyncio.Event()

    async def __call__(self, context: CallbackContext, params: Any) -> ElicitResult:
        self.asked += 1
        try:
            await self.answer.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return accept(sure=True)


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
        ({**ROOTS, "params": {}}, {"list_roots_callback": list_roots}, {"roots": [{"uri": "file:///a", "name": "a"}]}),
        ({"method": "ping"}, {}, {}),
        ({"method": "ping", "params": {"_meta": {}}}, {}, {}),
    ],
)
async def test_the_callbacks_of_a_client_answer_what_is_pushed(
    question: dict[str, Any], callbacks: dict[str, Any], result: dict[str, Any]
) -> None:
    assert await replied(question, **callbacks) == {"result": result}


@pytest.mark.parametrize("answer", [DECLINE, CANCEL])
async def test_a_person_may_decline_and_cancel_what_is_pushed(answer: ElicitResult) -> None:
    async def decide(context: CallbackContext, params: Any) -> ElicitResult:
        return answer

    assert await replied(FORM, elicitation_callback=decide) == {"result": {"action": answer.action}}


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        (FORM, ElicitRequestFormParams),
        ({**FORM, "params": {**FORM["params"], "mode": None}}, None),
        (
            {**FORM, "params": {key: value for key, value in FORM["params"].items() if key != "mode"}},
            ElicitRequestFormParams,
        ),
        (URL, ElicitRequestURLParams),
    ],
)
async def test_a_callback_gets_the_question_as_its_kind_whether_or_not_it_names_its_mode(
    question: dict[str, Any], kind: type | None
) -> None:
    got: list[Any] = []

    async def answer(context: CallbackContext, params: Any) -> ElicitResult:
        got.append((context.method, type(params), params.message))
        return accept(sure=True)

    if kind is None:  # null is no mode
        with pytest.raises(InvalidServerResponse):
            await replied(question, elicitation_callback=answer)
    else:
        await replied(question, elicitation_callback=answer)
        assert got == [("elicitation/create", kind, question["params"]["message"])]


async def test_a_form_of_june_2025_is_answered() -> None:
    size = {"type": "string", "enum": ["s", "m"], "enumNames": ["Small", "Medium"]}
    schema = {"type": "object", "properties": {"size": size}, "required": ["size"]}

    async def answer(context: CallbackContext, params: ElicitRequestFormParams) -> ElicitResult:
        assert params.requested_schema["properties"]["size"]["enumNames"] == ["Small", "Medium"]
        return accept(size="m")

    question = {"method": "elicitation/create", "params": {"message": "Which?", "requestedSchema": schema}}
    reply = await replied(question, "2025-06-18", elicitation_callback=answer)
    assert reply == {"result": {"action": "accept", "content": {"size": "m"}}}


async def test_questions_of_one_call_are_answered_one_after_another() -> None:
    async with Client(OldServer(tool=asking(FORM, URL, FORM)), elicitation_callback=say_yes) as client:
        replies = json.loads(text(await client.call_tool("tool")))
    assert [reply["id"] for reply in replies] == ["q0", "q1", "q2"]


@pytest.mark.parametrize("id_", [0, 1, -5, 2**53, 2**70, "", "1", "a b", "\u00e9\n"])
async def test_a_question_is_replied_to_by_its_own_id_whatever_that_is(id_: Any) -> None:
    async def tool(server: OldServer, message: dict[str, Any]) -> dict[str, Any]:
        return result_of(json.dumps((await server.ask(FORM, id_))["id"]))

    async with Client(OldServer(tool=tool), elicitation_callback=say_yes) as client:
        answered = json.loads(text(await client.call_tool("tool")))
    assert (type(answered), answered) == (type(id_), id_)


@pytest.mark.parametrize("id_", [None, True, 1.5, [1], {}])
async def test_a_question_whose_id_is_none_is_not_answered(id_: Any, caplog: pytest.LogCaptureFixture) -> None:
    async def tool(server: OldServer, message: dict[str, Any]) -> dict[str, Any]:
        server.send({"id": id_, **FORM})
        return await plain(server, message)

    server = OldServer(tool=tool)
    async with Client(server, elicitation_callback=say_yes) as client:
        assert text(await client.call_tool("tool")) == "done"
        assert server.replies == []
    assert f"the server sent a request with the id {id_!r}, which cannot be answered" in caplog.text


async def test_a_second_question_with_the_id_of_an_open_one_is_passed_over(caplog: pytest.LogCaptureFixture) -> None:
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
    assert "the server sent a request with the id 1, which cannot be answered" in caplog.text


# What cannot be answered


async def refused(
    question: dict[str, Any], kind: type[Exception], mode: str = "auto", **callbacks: Any
) -> tuple[Any, str]:
    """The error replied to a question, and the one the call then fails with; it is not sent again."""
    server = OldServer("2025-11-25" if mode == "auto" else mode, tool=asking(question))
    async with Client(server, mode=mode, **callbacks) as client:
        with pytest.raises(kind) as caught:
            await client.call_tool("tool")
    assert len(server.told("tools/call")) == 1
    (reply,) = server.replies
    return reply["error"], str(caught.value)


TOOLS = SamplingCapability(tools=SamplingToolsCapability())


@pytest.mark.parametrize(
    ("question", "callbacks", "code"),
    [
        (FORM, {}, -32602),
        (URL, {"sampling_callback": write}, -32602),
        (SAMPLE, {"elicitation_callback": say_yes}, -32601),
        (ROOTS, {"elicitation_callback": say_yes}, -32601),
    ],
)
async def test_a_question_that_was_not_declared_is_refused_and_ends_the_call(
    question: dict[str, Any], callbacks: dict[str, Any], code: int
) -> None:
    error, raised = await refused(question, InvalidServerResponse, **callbacks)
    assert error["code"] == code
    assert raised == f"the server asked 'q0' ({question['method']}), which was not declared"


@pytest.mark.parametrize(("question", "mode"), [(FORM, "2025-03-26"), (FORM, "2024-11-05"), (URL, "2025-06-18")])
async def test_what_a_revision_has_no_word_for_was_not_declared_in_it(question: dict[str, Any], mode: str) -> None:
    _, raised = await refused(question, InvalidServerResponse, mode, elicitation_callback=say_yes)
    assert "which was not declared" in raised


@pytest.mark.parametrize(("mode", "options"), [("auto", {}), ("2025-06-18", {"sampling_capabilities": TOOLS})])
async def test_sampling_with_tools_is_refused_unless_it_was_declared(mode: str, options: dict[str, Any]) -> None:
    _, raised = await refused(SAMPLE_WITH_TOOLS, InvalidServerResponse, mode, sampling_callback=write, **options)
    assert "which was not declared" in raised


async def test_sampling_with_context_needs_no_declaration_before_2026() -> None:
    question = {**SAMPLE, "params": {**SAMPLE["params"], "includeContext": "thisServer"}}
    assert "result" in await replied(question, "2025-06-18", sampling_callback=write)


@pytest.mark.parametrize(
    ("question", "callbacks"),
    [
        ({"method": "elicitation/create", "params": {"message": 5}}, {"elicitation_callback": say_yes}),
        ({"method": "elicitation/create"}, {"elicitation_callback": say_yes}),
        ({"method": "sampling/createMessage", "params": {"messages": 5}}, {"sampling_callback": write}),
        ({"method": "sampling/createMessage"}, {"sampling_callback": write}),
    ],
)
async def test_a_malformed_question_has_invalid_params_and_ends_the_call(
    question: dict[str, Any], callbacks: dict[str, Any]
) -> None:
    error, raised = await refused(question, InvalidServerResponse, **callbacks)
    assert error["code"] == -32602
    assert "the params of the question 'q0' are no valid" in raised


@pytest.mark.parametrize(
    ("question", "code", "message"),
    [
        ({"method": "tasks/get", "params": {}}, -32601, "unknown method 'tasks/get'"),
        ({"method": "tools/list"}, -32601, "unknown method 'tools/list'"),
        ({"method": 5}, -32601, "unknown method 5"),
        ({"method": ["ping"]}, -32601, "unknown method"),
        ({**FORM, "params": [1]}, -32602, "params must be an object"),
        ({**FORM, "params": "x"}, -32602, "params must be an object"),
    ],
)
async def test_what_is_no_question_is_refused_and_the_call_goes_on(
    question: dict[str, Any], code: int, message: str
) -> None:
    reply = await replied(question, elicitation_callback=say_yes)
    assert reply["error"]["code"] == code
    assert message in reply["error"]["message"]


async def raises(context: CallbackContext, *params: Any) -> Any:
    raise ValueError("hush")


async def refuses(context: CallbackContext, *params: Any) -> Any:
    return ErrorData(code=-32000, message="hush")


async def returns_nothing(context: CallbackContext, *params: Any) -> Any:
    return None


async def cancels_itself(context: CallbackContext, *params: Any) -> Any:
    raise asyncio.CancelledError


async def fills_in_nonsense(context: CallbackContext, params: Any) -> Any:
    return accept(sure="hush")


@pytest.mark.parametrize(
    ("question", "callbacks", "reason"),
    [
        (FORM, {"elicitation_callback": raises}, "the callback raised ValueError: hush"),
        (FORM, {"elicitation_callback": refuses}, "hush"),
        (FORM, {"elicitation_callback": returns_nothing}, "the callback returned NoneType, not ElicitResult"),
        (FORM, {"elicitation_callback": cancels_itself}, "the callback raised CancelledError"),
        (FORM, {"elicitation_callback": fills_in_nonsense}, "the answer does not match the form"),
        (SAMPLE, {"sampling_callback": raises}, "the callback raised ValueError: hush"),
        (ROOTS, {"list_roots_callback": raises}, "the callback raised ValueError: hush"),
    ],
)
async def test_a_callback_that_fails_refuses_the_question_without_saying_why_and_ends_the_call(
    question: dict[str, Any], callbacks: dict[str, Any], reason: str
) -> None:
    error, raised = await refused(question, CallbackFailed, **callbacks)
    assert error == {"code": -1, "message": "the client could not answer this question"}
    assert raised.startswith(f"the question 'q0' ({question['method']}) could not be answered: {reason}")


async def test_a_callback_s_own_exception_is_the_cause_of_the_call_s() -> None:
    async with Client(OldServer(tool=asking(FORM)), elicitation_callback=raises) as client:
        with pytest.raises(CallbackFailed) as caught:
            await client.call_tool("tool")
    assert isinstance(caught.value.__cause__, ValueError)


async def test_the_name_a_question_has_beside_its_id_is_the_key_of_its_errors() -> None:
    named = {**FORM, "params": {**FORM["params"], "_meta": {"bespeak/key": "confirm#1"}}}
    _, raised = await refused(named, CallbackFailed, elicitation_callback=raises)
    assert raised.startswith("the question 'confirm#1' (elicitation/create)")


async def test_another_call_works_after_one_that_failed() -> None:
    server = OldServer(tool=asking(FORM), plain=plain)
    async with Client(server, elicitation_callback=raises) as client:
        with pytest.raises(CallbackFailed):
            await client.call_tool("tool")
        assert text(await client.call_tool("plain")) == "done"
