"""Prompts, resources and resource templates over every transport: they are listed, and they may ask, in both eras."""

import asyncio
from typing import Annotated, Any, Literal

import pytest
from mcp_types import TextContent, TextResourceContents
from pydantic import BaseModel

from bespeak import Client, Elicit, MCPError, MCPServer, Resolve
from tests.answering import DECLINE, Person, accept
from tests.conftest import Connect
from tests.waiting import eventually

Asking = Literal["prompt", "resource", "template"]
EVERY: tuple[Asking, ...] = ("prompt", "resource", "template")


class Size(BaseModel):
    size: int


class Sure(BaseModel):
    sure: bool


async def size() -> Elicit[Size]:
    return Elicit("Which size?", Size)


async def sure(size: Annotated[Size, Resolve(size)]) -> Elicit[Sure]:
    return Elicit(f"Size {size.size}, really?", Sure)


Chosen = Annotated[Size, Resolve(size)]
Confirmed = Annotated[Sure, Resolve(sure)]


def shop() -> MCPServer[Any]:
    mcp = MCPServer[Any]("shop")

    @mcp.prompt()
    async def fitting(shoe: str, size: Chosen, sure: Confirmed) -> str:
        return f"{shoe} {size.size} {sure.sure}"

    @mcp.resource("shop://last")
    async def last(size: Chosen, sure: Confirmed) -> str:
        return f"last {size.size} {sure.sure}"

    @mcp.resource("shop://shoes/{shoe}")
    async def shoe(shoe: str, size: Chosen, sure: Confirmed) -> str:
        return f"{shoe} {size.size} {sure.sure}"

    return mcp


async def ask(client: Client, what: Asking) -> str:
    if what == "prompt":
        content = (await client.get_prompt("fitting", {"shoe": "boot"})).messages[0].content
        assert isinstance(content, TextContent)
        return content.text
    uri = "shop://last" if what == "resource" else "shop://shoes/boot"
    (read,) = (await client.read_resource(uri)).contents
    assert isinstance(read, TextResourceContents)
    return read.text


@pytest.mark.asking_revisions
@pytest.mark.parametrize("what", EVERY)
async def test_two_questions_of_which_one_depends_on_the_other_are_answered(connect: Connect, what: Asking) -> None:
    person = Person({"size": accept(size=43), "sure": accept(sure=True)})
    async with connect(shop(), elicitation_callback=person) as client:
        assert await ask(client, what) == f"{'last' if what == 'resource' else 'boot'} 43 True"
    assert person.messages == ["Which size?", "Size 43, really?"]


@pytest.mark.asking_revisions
@pytest.mark.parametrize("what", EVERY)
async def test_a_person_who_declines_ends_the_request_with_an_error(connect: Connect, what: Asking) -> None:
    person = Person({"size": accept(size=43), "sure": DECLINE})
    async with connect(shop(), elicitation_callback=person) as client:
        with pytest.raises(MCPError, match="elicitation was decline"):
            await ask(client, what)


@pytest.mark.every_revision
async def test_prompts_resources_and_templates_are_listed(connect: Connect) -> None:
    async with connect(shop()) as client:
        assert [one.name for one in (await client.list_prompts()).prompts] == ["fitting"]
        assert [str(one.uri) for one in (await client.list_resources()).resources] == ["shop://last"]
        templates = (await client.list_resource_templates()).resource_templates
        assert [one.uri_template for one in templates] == ["shop://shoes/{shoe}"]


@pytest.mark.every_revision
@pytest.mark.parametrize("what", ["prompt", "resource"])
async def test_cancelling_the_task_that_waits_cancels_the_server_s_function(connect: Connect, what: str) -> None:
    mcp = MCPServer[Any]("shop")
    started, ended = asyncio.Event(), list[str]()

    async def wait() -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise
        return "never"

    mcp.prompt(name="slow")(wait)
    mcp.resource("shop://slow")(wait)
    async with connect(mcp) as client:
        work = client.get_prompt("slow") if what == "prompt" else client.read_resource("shop://slow")
        call = asyncio.create_task(work)
        await started.wait()
        call.cancel()
        await asyncio.wait({call})
        await eventually(lambda: ended)
    assert ended == ["cancelled"]


async def test_a_client_without_a_callback_is_told_what_to_pass(connect: Connect) -> None:
    async with connect(shop()) as client:
        for what in EVERY:
            with pytest.raises(MCPError) as refused:
                await ask(client, what)
            assert refused.value.code == -32021
            assert refused.value.__notes__ == [
                "a Client declares the capabilities it has callbacks for: pass elicitation_callback=, sampling_callback=, ..."
            ]
