"""Capabilities a question takes (design section 5, protocol 5.3 and 5.5); sampling and roots end to end."""

from typing import Annotated, Any

import pytest
from mcp_types import (
    CreateMessageRequestParams,
    CreateMessageResult,
    CreateMessageResultWithTools,
    ElicitRequest,
    ElicitRequestFormParams,
    InputRequiredResult,
    ListRootsResult,
    Root,
    SamplingCapability,
    SamplingMessage,
    SamplingToolsCapability,
    TextContent,
    Tool,
)
from pydantic_core import from_json

from bespeak import (
    Client,
    Elicit,
    ElicitationResult,
    ListRoots,
    MCPError,
    MCPServer,
    NotAsked,
    Resolve,
    Sample,
)
from bespeak.client import ClientRequestContext
from bespeak.protocol.messages import write_request
from bespeak.protocol.question_keys import bare_name
from tests.answering import Person, accept, text
from tests.conftest import Connect
from tests.rules.consumers import (
    ask,
    serving,
    take_accepted,
    take_accepted_or_default,
    take_clear,
    take_outcome,
    take_outcome_or_not_asked,
    take_refusal,
    take_value,
    take_value_or_default,
)
from tests.serving import serve

HELLO = SamplingMessage(role="user", content=TextContent(type="text", text="hello"))
READ_HUNK = Tool(name="read_hunk", input_schema={"type": "object"})


async def sample() -> Sample:
    return Sample([HELLO], max_tokens=9)


async def sample_with_tools() -> Sample:
    return Sample([HELLO], max_tokens=9, tools=[READ_HUNK])


async def sample_with_context() -> Sample:
    return Sample([HELLO], max_tokens=9, include_context="thisServer")


async def roots() -> ListRoots:
    return ListRoots()


NOT_ASKED = "NotAsked(reason='not_declared', missing={'elicitation': {'form': {}}})"


async def take_value_or_not_asked(it: Annotated[int | NotAsked, Resolve(ask)]) -> str:
    return f"{it!r}"


async def take_not_asked_before_its_default(it: Annotated[int | NotAsked, Resolve(ask)] = -1) -> str:
    return f"{it!r}"


# Capabilities


def names(questions: dict[str, Any]) -> list[str]:
    return [bare_name(key) for key in questions]


async def raw(mcp: MCPServer, capabilities: dict[str, Any], **params: Any) -> dict[str, Any]:
    """The response to one `tools/call` from a client that declares exactly this."""
    meta: dict[str, Any] = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    }
    async with mcp.running():
        message = write_request(1, "tools/call", {"name": "take", "arguments": {}, "_meta": meta, **params})
        response = await serve(mcp, message, lambda _: None)
    assert response is not None
    return from_json(response)


@pytest.mark.parametrize(
    ("capabilities", "asks"),
    [
        ({}, False),
        ({"elicitation": {}}, True),
        ({"elicitation": {"form": {}}}, True),
        ({"elicitation": {"url": {}}}, False),
        ({"elicitation": None}, False),
    ],
)
async def test_a_form_is_sent_only_to_a_client_that_declared_forms(capabilities: dict[str, Any], asks: bool) -> None:
    response = await raw(serving(take_value), capabilities)
    if asks:
        assert response["result"]["resultType"] == "input_required"
    else:
        assert response["error"]["code"] == -32021
        assert response["error"]["data"] == {"requiredCapabilities": {"elicitation": {"form": {}}}}
        assert response["error"]["message"] == "the client must declare elicitation.form for this call"


async def take_all(
    number: Annotated[int, Resolve(ask)],
    tools: Annotated[CreateMessageResultWithTools, Resolve(sample_with_tools)],
    context: Annotated[CreateMessageResult, Resolve(sample_with_context)],
    places: Annotated[ListRootsResult, Resolve(roots)],
) -> str:
    return f"{number} {tools.model} {context.model} {places.roots}"


@pytest.mark.parametrize(
    ("capabilities", "missing"),
    [
        ({}, {"elicitation": {"form": {}}, "sampling": {"tools": {}, "context": {}}, "roots": {}}),
        ({"elicitation": {}}, {"sampling": {"tools": {}, "context": {}}, "roots": {}}),
        ({"elicitation": {}, "roots": {}, "sampling": {}}, {"sampling": {"tools": {}, "context": {}}}),
        ({"elicitation": {}, "roots": {}, "sampling": {"tools": {}}}, {"sampling": {"context": {}}}),
    ],
)
async def test_the_error_names_all_that_is_missing_of_all_open_questions(
    capabilities: dict[str, Any], missing: dict[str, Any]
) -> None:
    response = await raw(serving(take_all), capabilities)
    assert response["error"]["code"] == -32021
    assert response["error"]["data"]["requiredCapabilities"] == missing


async def test_capabilities_are_those_of_the_current_request_and_their_lack_is_not_final() -> None:
    async def again(it: Annotated[int, Resolve(ask, key="it")]) -> Elicit[int]:
        return Elicit(f"More than {it}?", int)

    async def take(it: Annotated[int, Resolve(ask, key="it")], more: Annotated[int, Resolve(again, key="more")]) -> str:
        return f"{it} {more}"

    mcp = serving(take)
    forms: dict[str, Any] = {"elicitation": {}}
    state = (await raw(mcp, forms))["result"]["requestState"]
    answers = {"it": {"action": "accept", "content": {"value": 1}}}
    refused = await raw(mcp, {}, requestState=state, inputResponses=answers)
    assert refused["error"]["code"] == -32021
    second = (await raw(mcp, forms, requestState=state, inputResponses=answers))["result"]
    assert names(second["inputRequests"]) == ["more"]
    answers = {"more": {"action": "accept", "content": {"value": 2}}}
    done = await raw(mcp, {}, requestState=second["requestState"], inputResponses=answers)
    assert done["result"]["content"][0]["text"] == "1 2"


@pytest.mark.every_revision
@pytest.mark.parametrize(
    ("consumer", "expected"),
    [
        (take_value_or_default, "-1"),
        (take_accepted_or_default, "None"),
        (take_value_or_not_asked, NOT_ASKED),
        (take_outcome_or_not_asked, NOT_ASKED),
        (take_not_asked_before_its_default, NOT_ASKED),
    ],
    ids=lambda one: getattr(one, "__name__", None),
)
async def test_without_the_capability_a_consumer_gets_not_asked_if_it_names_that_and_else_its_default(
    in_memory: Connect, consumer: Any, expected: str
) -> None:
    async with in_memory(serving(consumer)) as client:
        assert text(await client.call_tool("take")) == expected


@pytest.mark.every_revision
@pytest.mark.parametrize(
    "consumer", [take_value, take_accepted, take_clear, take_outcome, take_refusal], ids=lambda one: one.__name__
)
async def test_one_consumer_that_cannot_live_with_it_is_enough_for_the_error(in_memory: Connect, consumer: Any) -> None:
    async def take(
        inner: Annotated[str, Resolve(consumer)], it: Annotated[ElicitationResult[int] | None, Resolve(ask)] = None
    ) -> str:
        return f"{inner} {it!r}"

    async with in_memory(serving(take)) as client:
        with pytest.raises(MCPError, match=r"elicitation\.form") as caught:
            await client.call_tool("take")
    assert caught.value.code == -32021


async def test_that_a_client_cannot_be_asked_is_decided_anew_in_each_round_and_never_recorded() -> None:
    async def take(
        it: Annotated[ElicitationResult[int] | NotAsked, Resolve(ask, key="it")],
        places: Annotated[ListRootsResult, Resolve(roots, key="roots")],
    ) -> str:
        return f"{it!r} {len(places.roots)}"

    mcp = serving(take)
    first = (await raw(mcp, {"roots": {}}))["result"]
    assert names(first["inputRequests"]) == ["roots"]
    everything: dict[str, Any] = {"roots": {}, "elicitation": {}}
    answers: dict[str, Any] = {"roots": {"roots": []}, "it": {"action": "accept", "content": {"value": 1}}}
    second = (await raw(mcp, everything, requestState=first["requestState"], inputResponses=answers))["result"]
    assert names(second["inputRequests"]) == ["it"]
    done = await raw(mcp, {"roots": {}}, requestState=second["requestState"])
    assert done["result"]["content"][0]["text"] == f"{NOT_ASKED} 0"


@pytest.mark.every_revision
async def test_questions_made_by_hand_need_the_capability_too(connect: Connect) -> None:
    async def take() -> str | InputRequiredResult:
        form = ElicitRequestFormParams(message="?", requested_schema={"type": "object", "properties": {}})
        return InputRequiredResult(input_requests={"k": ElicitRequest(params=form)})

    async with connect(serving(take)) as client:
        with pytest.raises(MCPError, match=r"elicitation\.form") as caught:
            await client.call_tool("take")
    assert caught.value.code == -32021
    assert caught.value.data == {"requiredCapabilities": {"elicitation": {"form": {}}}}


# Sampling and roots


class Model:
    """A sampling callback that remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[CreateMessageRequestParams] = []

    async def __call__(
        self, context: ClientRequestContext, params: CreateMessageRequestParams
    ) -> CreateMessageResult | CreateMessageResultWithTools:
        self.asked.append(params)
        content = TextContent(type="text", text=f"said {bare_name(context.key)}")
        return CreateMessageResult(role="assistant", content=content, model="small")


async def home(context: ClientRequestContext) -> ListRootsResult:
    return ListRootsResult(roots=[Root.model_validate({"uri": "file:///srv", "name": "srv"})])


@pytest.mark.every_revision
async def test_a_sampled_message_is_injected(connect: Connect) -> None:
    async def take(it: Annotated[CreateMessageResult, Resolve(sample, key="said")]) -> str:
        assert isinstance(it.content, TextContent)
        return f"{type(it).__name__} {it.content.text} {it.model}"

    model = Model()
    async with connect(serving(take), sampling_callback=model) as client:
        assert text(await client.call_tool("take")) == "CreateMessageResult said said small"
    assert [(one.max_tokens, one.messages, one.tools) for one in model.asked] == [(9, [HELLO], None)]


async def test_a_message_sampled_with_tools_is_injected_as_such(in_memory: Connect) -> None:
    async def take(it: Annotated[CreateMessageResultWithTools, Resolve(sample_with_tools)]) -> str:
        return type(it).__name__

    able = SamplingCapability(tools=SamplingToolsCapability())
    model = Model()
    async with in_memory(serving(take), sampling_callback=model, sampling_capabilities=able) as client:
        assert text(await client.call_tool("take")) == "CreateMessageResultWithTools"
    assert [tool.name for one in model.asked for tool in one.tools or ()] == ["read_hunk"]


@pytest.mark.every_revision
async def test_tools_are_not_sent_to_a_model_that_did_not_declare_them(in_memory: Connect) -> None:
    async def take(it: Annotated[CreateMessageResultWithTools, Resolve(sample_with_tools)]) -> str:
        return it.model

    async with in_memory(serving(take), sampling_callback=Model()) as client:
        with pytest.raises(MCPError, match=r"must declare sampling\.tools") as caught:
            await client.call_tool("take")
    assert caught.value.data == {"requiredCapabilities": {"sampling": {"tools": {}}}}


@pytest.mark.every_revision
async def test_roots_are_injected(connect: Connect) -> None:
    async def take(it: Annotated[ListRootsResult, Resolve(roots)]) -> str:
        return f"{[(str(root.uri), root.name) for root in it.roots]}"

    async with connect(serving(take), list_roots_callback=home) as client:
        assert text(await client.call_tool("take")) == "[('file:///srv', 'srv')]"


@pytest.mark.asking_revisions
async def test_questions_of_all_kinds_travel_together_and_survive_rounds(connect: Connect) -> None:
    async def summary(
        number: Annotated[int, Resolve(ask, key="number")],
        said: Annotated[CreateMessageResult, Resolve(sample, key="said")],
        places: Annotated[ListRootsResult, Resolve(roots, key="roots")],
    ) -> Elicit[bool]:
        return Elicit(f"{number}, {said.model}, {len(places.roots)}?", bool)

    async def take(
        ok: Annotated[bool, Resolve(summary, key="summary")],
        said: Annotated[CreateMessageResult, Resolve(sample, key="said")],
    ) -> str:
        return f"{ok} {said.model}"

    person = Person({"number": accept(value=4), "summary": accept(value=True)})
    model = Model()

    def connected() -> Client:
        return connect(serving(take), elicitation_callback=person, sampling_callback=model, list_roots_callback=home)

    async with connected() as client:
        assert text(await client.call_tool("take")) == "True small"
    assert person.messages == ["How many?", "4, small, 1?"]
    assert len(model.asked) == 1


@pytest.mark.every_revision
async def test_sampling_and_roots_have_no_decline_but_a_default_serves_a_client_without_them(
    in_memory: Connect,
) -> None:
    async def take(
        said: Annotated[CreateMessageResult | None, Resolve(sample)] = None,
        places: Annotated[ListRootsResult | None, Resolve(roots)] = None,
    ) -> str:
        return f"{said} {places}"

    async with in_memory(serving(take), elicitation_callback=Person()) as client:
        assert text(await client.call_tool("take")) == "None None"
