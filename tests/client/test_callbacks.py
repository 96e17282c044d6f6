"""Answering questions: what is declared, what a callback gets and may return, how many run at once, how they fail."""

import asyncio
from typing import Any

import pytest
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CreateMessageRequestParams,
    CreateMessageResult,
    CreateMessageResultWithTools,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ElicitResult,
    ErrorData,
    ListRootsResult,
    Root,
    SamplingCapability,
    SamplingToolsCapability,
    TextContent,
)

from bespeak import Client
from bespeak.client import CallbackFailed, ClientRequestContext, InvalidServerResponse
from tests.answering import CANCEL, DECLINE, accept, text
from tests.client.test_session import COMPLETE, FORM, Fake, asking

URL: dict[str, Any] = {
    "method": "elicitation/create",
    "params": {"mode": "url", "message": "Pay", "url": "https://example.com/pay", "elicitationId": "e"},
}
SAMPLE: dict[str, Any] = {
    "method": "sampling/createMessage",
    "params": {"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 9},
}
SAMPLE_WITH_TOOLS: dict[str, Any] = {**SAMPLE, "params": {**SAMPLE["params"], "tools": []}}
ROOTS: dict[str, Any] = {"method": "roots/list"}


async def say_yes(context: ClientRequestContext, params: Any) -> ElicitResult:
    return accept(sure=True)


async def write(context: ClientRequestContext, params: CreateMessageRequestParams) -> CreateMessageResult:
    return CreateMessageResult(role="assistant", content=TextContent(type="text", text="ho"), model="m")


async def list_roots(context: ClientRequestContext) -> ListRootsResult:
    return ListRootsResult(roots=[Root(uri="file:///a", name="a")])  # pyright: ignore[reportArgumentType] - read as a URL


async def answers_to(question: dict[str, Any], **callbacks: Any) -> Any:
    """What a client sends in answer to one question."""
    fake = Fake(asking({"q": question}), COMPLETE)
    async with Client(fake, **callbacks) as client:
        await client.call_tool("tool")
    return fake.params[1]["inputResponses"]["q"]


async def failing(question: dict[str, Any], **callbacks: Any) -> CallbackFailed:
    """How a client's call fails over one question; it must not be retried."""
    fake = Fake(asking({"q": question}), COMPLETE)
    async with Client(fake, **callbacks) as client:
        with pytest.raises(CallbackFailed) as caught:
            await client.call_tool("tool")
    assert len(fake.requests) == 1
    assert (caught.value.key, caught.value.method) == ("q", question["method"])
    assert str(caught.value).startswith(f"the question 'q' ({question['method']}) could not be answered: ")
    return caught.value


# What is declared


@pytest.mark.parametrize(
    ("callbacks", "declared"),
    [
        ({}, {}),
        ({"elicitation_callback": say_yes}, {"elicitation": {"form": {}, "url": {}}}),
        ({"sampling_callback": write}, {"sampling": {}}),
        (
            {
                "sampling_callback": write,
                "sampling_capabilities": SamplingCapability(tools=SamplingToolsCapability()),
            },
            {"sampling": {"tools": {}}},
        ),
        ({"sampling_capabilities": SamplingCapability()}, {}),
        ({"list_roots_callback": list_roots}, {"roots": {}}),
    ],
)
async def test_a_client_declares_what_it_has_callbacks_for(callbacks: dict[str, Any], declared: dict[str, Any]) -> None:
    fake = Fake(COMPLETE)
    async with Client(fake, **callbacks) as client:
        await client.call_tool("tool")
    assert fake.params[0]["_meta"][CLIENT_CAPABILITIES_META_KEY] == declared


@pytest.mark.parametrize(
    ("question", "callbacks"),
    [
        (FORM, {}),
        (URL, {"sampling_callback": write}),
        (SAMPLE, {"elicitation_callback": say_yes}),
        (SAMPLE_WITH_TOOLS, {"sampling_callback": write}),
        (ROOTS, {"elicitation_callback": say_yes}),
    ],
)
async def test_a_question_that_was_not_declared_is_refused(question: dict[str, Any], callbacks: dict[str, Any]) -> None:
    fake = Fake(asking({"q": question}), COMPLETE)
    async with Client(fake, **callbacks) as client:
        with pytest.raises(InvalidServerResponse, match=rf"asked 'q' \({question['method']}\), which was not declared"):
            await client.call_tool("tool")
    assert len(fake.requests) == 1


async def test_nobody_is_asked_anything_when_one_question_of_the_round_was_not_declared() -> None:
    asked: list[str] = []

    async def count(context: ClientRequestContext, params: Any) -> ElicitResult:
        asked.append(context.key)
        return accept(sure=True)

    async with Client(Fake(asking({"a": FORM, "b": ROOTS})), elicitation_callback=count) as client:
        with pytest.raises(InvalidServerResponse):
            await client.call_tool("tool")
    assert asked == []


# What a callback gets and gives


async def test_a_form_is_shown_and_its_answer_sent() -> None:
    seen: list[Any] = []

    async def answer(context: ClientRequestContext, params: Any) -> ElicitResult:
        seen.extend([context.key, context.method, context.session, params])
        return accept(sure=True)

    fake = Fake(asking({"q": FORM}), COMPLETE)
    async with Client(fake, elicitation_callback=answer) as client:
        await client.call_tool("tool")
        assert seen[2] is client.session
    assert seen[:2] == ["q", "elicitation/create"]
    assert isinstance(seen[3], ElicitRequestFormParams)
    assert seen[3].message == "Sure?"
    assert fake.params[1]["inputResponses"] == {"q": {"action": "accept", "content": {"sure": True}}}


async def test_a_question_without_a_mode_is_a_form() -> None:
    params = {name: value for name, value in FORM["params"].items() if name != "mode"}
    assert await answers_to({**FORM, "params": params}, elicitation_callback=say_yes) == {
        "action": "accept",
        "content": {"sure": True},
    }


async def test_a_url_is_shown_and_accepted_without_content() -> None:
    seen: list[Any] = []

    async def answer(context: ClientRequestContext, params: Any) -> ElicitResult:
        seen.append(params)
        return accept(leaked="secret")

    assert await answers_to(URL, elicitation_callback=answer) == {"action": "accept"}
    assert isinstance(seen[0], ElicitRequestURLParams)


@pytest.mark.parametrize("question", [FORM, URL])
@pytest.mark.parametrize("answer", [DECLINE, CANCEL, ElicitResult(action="decline", content={"sure": True})])
async def test_a_refusal_is_sent_without_content(question: dict[str, Any], answer: ElicitResult) -> None:
    async def refuse(context: ClientRequestContext, params: Any) -> ElicitResult:
        return answer

    assert await answers_to(question, elicitation_callback=refuse) == {"action": answer.action}


async def test_a_sampled_message_is_sent_bare() -> None:
    assert await answers_to(SAMPLE, sampling_callback=write) == {
        "role": "assistant",
        "content": {"type": "text", "text": "ho"},
        "model": "m",
    }


async def test_a_sampled_message_may_use_tools_when_that_was_declared() -> None:
    async def with_tools(context: ClientRequestContext, params: Any) -> CreateMessageResultWithTools:
        return CreateMessageResultWithTools(role="assistant", content=[TextContent(type="text", text="ho")], model="m")

    capabilities = SamplingCapability(tools=SamplingToolsCapability())
    answer = await answers_to(SAMPLE_WITH_TOOLS, sampling_callback=with_tools, sampling_capabilities=capabilities)
    assert answer["content"] == [{"type": "text", "text": "ho"}]


@pytest.mark.parametrize("question", [ROOTS, {**ROOTS, "params": {}}])
async def test_roots_are_sent_bare(question: dict[str, Any]) -> None:
    answer = await answers_to(question, list_roots_callback=list_roots)
    assert answer == {"roots": [{"uri": "file:///a", "name": "a"}]}


async def test_a_callback_need_not_be_async() -> None:
    def answer(context: ClientRequestContext, params: Any) -> ElicitResult:
        return DECLINE

    assert await answers_to(FORM, elicitation_callback=answer) == {"action": "decline"}


async def test_a_callback_may_call_the_server_itself() -> None:
    fake = Fake(asking({"q": FORM}), COMPLETE)

    async def answer(context: ClientRequestContext, params: Any) -> ElicitResult:
        await context.session.call_tool("other")
        return accept(sure=True)

    async with Client(fake, elicitation_callback=answer) as client:
        async with asyncio.timeout(1):
            await client.call_tool("tool")
    assert [params["name"] for params in fake.params] == ["tool", "other", "tool"]


# Answers are checked before they are sent


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ({}, "sure: is required"),
        ({"sure": "yes"}, "sure: must be true or false"),
        ({"sure": 1}, "sure: must be true or false"),
        ({"sure": None}, "sure: must be true or false"),
    ],
)
async def test_an_answer_that_does_not_match_the_form_is_not_sent(content: dict[str, Any], told: str) -> None:
    async def answer(context: ClientRequestContext, params: Any) -> ElicitResult:
        return ElicitResult(action="accept", content=content)

    failed = await failing(FORM, elicitation_callback=answer)
    assert f"the answer does not match the form: {told}" in str(failed)


async def test_an_accept_without_content_is_not_sent() -> None:
    async def answer(context: ClientRequestContext, params: Any) -> ElicitResult:
        return ElicitResult(action="accept")

    assert "the callback accepted without content" in str(await failing(FORM, elicitation_callback=answer))


async def test_a_form_without_fields_is_accepted_with_empty_content() -> None:
    async def answer(context: ClientRequestContext, params: Any) -> ElicitResult:
        return ElicitResult(action="accept")

    schema = {"type": "object", "properties": dict[str, Any]()}
    question = {**FORM, "params": {**FORM["params"], "requestedSchema": schema}}
    assert await answers_to(question, elicitation_callback=answer) == {"action": "accept", "content": {}}


async def test_a_number_json_does_not_know_is_not_sent() -> None:
    async def answer(context: ClientRequestContext, params: Any) -> ElicitResult:
        return accept(price=float("nan"))

    schema = {"type": "object", "properties": {"price": {"type": "number"}}}
    question = {**FORM, "params": {**FORM["params"], "requestedSchema": schema}}
    assert "price: must be a number" in str(await failing(question, elicitation_callback=answer))


# Callbacks that fail


@pytest.mark.parametrize(
    ("question", "name"),
    [(FORM, "elicitation_callback"), (SAMPLE, "sampling_callback"), (ROOTS, "list_roots_callback")],
)
async def test_a_callback_that_raises_ends_the_call_with_one_error_that_says_why(
    question: dict[str, Any], name: str
) -> None:
    async def crash(*_: Any) -> Any:
        raise KeyError("no screen")

    failed = await failing(question, **{name: crash})
    assert "the callback raised KeyError: 'no screen'" in str(failed)
    assert isinstance(failed.__cause__, KeyError)


@pytest.mark.parametrize(
    ("question", "name"),
    [(FORM, "elicitation_callback"), (SAMPLE, "sampling_callback"), (ROOTS, "list_roots_callback")],
)
async def test_a_callback_that_returns_an_error_ends_the_call(question: dict[str, Any], name: str) -> None:
    async def refuse(*_: Any) -> ErrorData:
        return ErrorData(code=-1, message="user rejected sampling")

    assert "could not be answered: user rejected sampling" in str(await failing(question, **{name: refuse}))


@pytest.mark.parametrize(
    ("question", "name", "wanted"),
    [
        (FORM, "elicitation_callback", "ElicitResult"),
        (SAMPLE, "sampling_callback", "CreateMessageResult or CreateMessageResultWithTools"),
        (ROOTS, "list_roots_callback", "ListRootsResult"),
    ],
)
async def test_a_callback_that_returns_something_else_ends_the_call(
    question: dict[str, Any], name: str, wanted: str
) -> None:
    async def confused(*_: Any) -> Any:
        return {"action": "accept"}

    assert f"the callback returned dict, not {wanted}" in str(await failing(question, **{name: confused}))


async def test_when_one_callback_fails_the_others_are_cancelled_and_nothing_is_sent() -> None:
    events: list[str] = []
    waiting = asyncio.Event()

    async def answer(context: ClientRequestContext, params: Any) -> ElicitResult:
        if context.key == "bad":
            await waiting.wait()
            raise KeyError("no screen")
        waiting.set()
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            events.append(f"{context.key} cancelled")
            raise
        return accept(sure=True)

    fake = Fake(asking({"a": FORM, "bad": FORM, "b": FORM}), COMPLETE)
    async with Client(fake, elicitation_callback=answer) as client:
        with pytest.raises(CallbackFailed, match="'bad'"):
            await client.call_tool("tool")
        assert sorted(events) == ["a cancelled", "b cancelled"]
    assert len(fake.requests) == 1


async def test_cancelling_the_call_cancels_its_callbacks() -> None:
    cancelled: list[str] = []
    started = asyncio.Event()

    async def answer(context: ClientRequestContext, params: Any) -> ElicitResult:
        started.set()
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            cancelled.append(context.key)
            raise
        return accept(sure=True)

    async with Client(Fake(asking({"a": FORM, "b": FORM})), elicitation_callback=answer) as client:
        call = asyncio.create_task(client.call_tool("tool"))
        await started.wait()
        await asyncio.sleep(0)
        call.cancel()
        await asyncio.wait({call})
        assert call.cancelled()
        assert sorted(cancelled) == ["a", "b"]


# Many at once, and slowly


async def test_five_thousand_questions_are_answered_eight_at_a_time() -> None:
    running, most = 0, 0

    async def answer(context: ClientRequestContext, params: Any) -> ElicitResult:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return accept(sure=context.key.endswith("7"))

    keys = [f"q{number}" for number in range(5000)]
    fake = Fake(asking(dict.fromkeys(keys, FORM)), COMPLETE)
    async with Client(fake, elicitation_callback=answer, input_required_max_questions=5000) as client:
        assert text(await client.call_tool("tool")) == "done"
    answers = fake.params[1]["inputResponses"]
    assert most == 8
    assert list(answers) == keys
    assert all(answers[key]["content"] == {"sure": key.endswith("7")} for key in keys)


async def test_a_person_s_time_does_not_count_against_the_read_timeout() -> None:
    async def ponder(context: ClientRequestContext, params: Any) -> ElicitResult:
        await asyncio.sleep(0.1)
        return accept(sure=True)

    async with Client(Fake(asking({"q": FORM}), COMPLETE), elicitation_callback=ponder) as client:
        assert text(await client.call_tool("tool", read_timeout_seconds=0.05)) == "done"
