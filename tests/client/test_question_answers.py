"""Answering questions: what a callback gets and may return, what is checked before it is sent, how callbacks fail."""

import asyncio
from typing import Any

import pytest
from mcp_types import (
    CreateMessageResultWithTools,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ElicitResult,
    ErrorData,
    SamplingCapability,
    SamplingToolsCapability,
    TextContent,
)

from bespeak import Client
from bespeak.client import CallbackFailed, ClientRequestContext, InvalidServerResponse
from tests.answering import CANCEL, DECLINE, accept
from tests.client.sample_questions import FORM, ROOTS, SAMPLE, SAMPLE_WITH_TOOLS, URL, list_roots, say_yes, write
from tests.client.scripted_transport import (
    COMPLETE,
    Fake,
    asking,
)


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


# What a callback gets and returns


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


@pytest.mark.parametrize(
    ("question", "callbacks", "answer"),
    [
        (
            SAMPLE,
            {"sampling_callback": write},
            {"role": "assistant", "content": {"type": "text", "text": "ho"}, "model": "m"},
        ),
        (ROOTS, {"list_roots_callback": list_roots}, {"roots": [{"uri": "file:///a", "name": "a"}]}),
        ({**ROOTS, "params": {}}, {"list_roots_callback": list_roots}, {"roots": [{"uri": "file:///a", "name": "a"}]}),
    ],
)
async def test_a_sampled_message_and_roots_are_sent_without_members_of_a_response(
    question: dict[str, Any], callbacks: dict[str, Any], answer: dict[str, Any]
) -> None:
    assert await answers_to(question, **callbacks) == answer


async def test_a_sampled_message_may_use_tools_when_that_was_declared() -> None:
    async def with_tools(context: ClientRequestContext, params: Any) -> CreateMessageResultWithTools:
        return CreateMessageResultWithTools(role="assistant", content=[TextContent(type="text", text="ho")], model="m")

    capabilities = SamplingCapability(tools=SamplingToolsCapability())
    answer = await answers_to(SAMPLE_WITH_TOOLS, sampling_callback=with_tools, sampling_capabilities=capabilities)
    assert answer["content"] == [{"type": "text", "text": "ho"}]


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
        async with asyncio.timeout(20):
            await client.call_tool("tool")
    assert [params["name"] for params in fake.params] == ["tool", "other", "tool"]


# Answers are checked before they are sent


@pytest.mark.parametrize(
    ("field", "content", "told"),
    [
        ({"type": "boolean"}, {}, "sure: is required"),
        ({"type": "boolean"}, {"sure": "yes"}, "sure: must be true or false"),
        ({"type": "boolean"}, {"sure": None}, "sure: must be true or false"),
        ({"type": "number"}, {"sure": float("nan")}, "sure: must be a number"),
    ],
)
async def test_an_answer_that_does_not_match_the_form_is_not_sent(
    field: dict[str, Any], content: dict[str, Any], told: str
) -> None:
    async def answer(context: ClientRequestContext, params: Any) -> ElicitResult:
        return ElicitResult(action="accept", content=content)

    schema = {"type": "object", "properties": {"sure": field}, "required": ["sure"]}
    question = {**FORM, "params": {**FORM["params"], "requestedSchema": schema}}
    failed = await failing(question, elicitation_callback=answer)
    assert f"the answer does not match the form: {told}" in str(failed)


async def test_an_accept_without_content_is_only_sent_for_a_form_without_fields() -> None:
    async def answer(context: ClientRequestContext, params: Any) -> ElicitResult:
        return ElicitResult(action="accept")

    assert "the callback accepted without content" in str(await failing(FORM, elicitation_callback=answer))
    schema = {"type": "object", "properties": dict[str, Any]()}
    question = {**FORM, "params": {**FORM["params"], "requestedSchema": schema}}
    assert await answers_to(question, elicitation_callback=answer) == {"action": "accept", "content": {}}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "object", "properties": ["sure"]}, True),
        ({"type": "object", "properties": {"sure": {"type": "boolean"}}, "required": 5}, True),
        ({"type": "object", "properties": {"sure": {"type": "string", "enum": 5}}}, "a"),
        ({"type": "object", "properties": {"sure": {"type": "integer", "minimum": "few"}}}, 1),
        ({"type": "object", "properties": {"sure": {"type": "array", "items": [5]}}}, ["a"]),
    ],
)
async def test_a_schema_that_is_not_a_flat_form_is_the_server_s_fault(schema: dict[str, Any], value: Any) -> None:
    async def answer(context: ClientRequestContext, params: Any) -> ElicitResult:
        return ElicitResult(action="accept", content={"sure": value})

    question = {**FORM, "params": {**FORM["params"], "requestedSchema": schema}}
    async with Client(Fake(asking({"q": question}), COMPLETE), elicitation_callback=answer) as client:
        with pytest.raises(InvalidServerResponse, match="'q'"):
            await client.call_tool("tool")


async def test_a_form_under_another_name_is_the_server_s_fault() -> None:
    params = {"message": "Sure?", "requested_schema": FORM["params"]["requestedSchema"]}
    async with Client(Fake(asking({"q": {**FORM, "params": params}})), elicitation_callback=say_yes) as client:
        with pytest.raises(InvalidServerResponse, match="'q'"):
            await client.call_tool("tool")


# Callbacks that fail


async def raises(*_: Any) -> Any:
    raise KeyError("no screen")


async def refuses(*_: Any) -> ErrorData:
    return ErrorData(code=-1, message="user rejected sampling")


async def returns_a_dict(*_: Any) -> Any:
    return {"action": "accept"}


async def cancels_itself(*_: Any) -> Any:
    raise asyncio.CancelledError


@pytest.mark.parametrize(
    ("question", "name", "wanted"),
    [
        (FORM, "elicitation_callback", "ElicitResult; write `return ElicitResult(action='accept', content={...})`"),
        (SAMPLE, "sampling_callback", "CreateMessageResult or CreateMessageResultWithTools"),
        (ROOTS, "list_roots_callback", "ListRootsResult"),
    ],
)
async def test_a_callback_that_fails_ends_the_call_with_one_error_that_says_why(
    question: dict[str, Any], name: str, wanted: str
) -> None:
    failed = await failing(question, **{name: raises})
    assert "the callback raised KeyError: 'no screen'" in str(failed)
    assert isinstance(failed.__cause__, KeyError)
    assert "could not be answered: user rejected sampling" in str(await failing(question, **{name: refuses}))
    assert f"the callback returned dict, not {wanted}" in str(await failing(question, **{name: returns_a_dict}))
    assert "the callback raised CancelledError" in str(await failing(question, **{name: cancels_itself}))


async def test_when_one_callback_fails_the_others_are_cancelled_and_nothing_is_sent() -> None:
    events: list[str] = []
    waiting = asyncio.Event()

    async def answer(context: ClientRequestContext, params: Any) -> ElicitResult:
        if context.key == "bad":
            await waiting.wait()
            raise KeyError("no screen")
        waiting.set()
        try:
            await asyncio.Event().wait()
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
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(context.key)
            raise
        return accept(sure=True)

    async with Client(Fake(asking({"a": FORM, "b": FORM})), elicitation_callback=answer) as client:
        call = asyncio.create_task(client.call_tool("tool"))
        await started.wait()
        await asyncio.sleep(0)  # both have started
        call.cancel()
        await asyncio.wait({call})
        assert call.cancelled()
        assert sorted(cancelled) == ["a", "b"]
