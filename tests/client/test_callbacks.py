"""What a client declares follows from its callbacks; a question of any other kind is refused."""

from typing import Any

import pytest
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    ElicitResult,
    SamplingCapability,
    SamplingToolsCapability,
)

from bespeak import Client
from bespeak.client import ClientRequestContext, InvalidServerResponse
from tests.answering import accept
from tests.client.sample_questions import FORM, ROOTS, SAMPLE, SAMPLE_WITH_TOOLS, URL, list_roots, say_yes, write
from tests.client.scripted_transport import COMPLETE, Fake, asking


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
        with pytest.raises(
            InvalidServerResponse,
            match=rf"asked 'q' \({question['method']}\), but the client did not declare that capability",
        ):
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


def test_the_name_of_a_question_is_its_key_without_the_suffix() -> None:
    session: Any = None
    assert ClientRequestContext(session, "shop:confirm~0123abcd", "elicitation/create").name == "shop:confirm"
