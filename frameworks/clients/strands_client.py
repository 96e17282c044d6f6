"""Strands Agents: a callback answers while the tool waits. With mcp 1.x installed it speaks the older revisions only."""

import asyncio
import json
from typing import Any

import mcp
from mcp import ClientSession, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitResult
from strands import Agent
from strands.models import Model
from strands.tools.mcp import MCPClient

from frameworks.checks import (
    DECLINED,
    LEGACY,
    MODERN,
    NO_FORMS,
    NO_ROOTS,
    NO_SAMPLING,
    NOTHING_ASKED,
    NOTHING_ASKED_REFUNDED,
    REFUND,
    REFUNDED,
    RESTOCK,
    SCOPE,
    Person,
    Servers,
    contains,
    equal,
    main,
)
from frameworks.snippets import strands_desk

OLDER = not hasattr(mcp, "Client")
"""Whether mcp 1.x is installed."""


class Scripted(Model):
    """A model that calls one tool and then repeats what came back."""

    def __init__(self, tool: str, arguments: dict[str, Any] | None = None) -> None:
        self._tool = tool
        self._arguments = json.dumps(arguments or {})

    def update_config(self, **config):
        pass

    def get_config(self):
        return {}

    def structured_output(self, *rest, **options):
        raise NotImplementedError

    async def stream(self, messages, *rest, **options):
        last = messages[-1]["content"][-1]
        called = "toolResult" in last
        if called:
            start, delta = {}, {"text": "".join(part.get("text", "") for part in last["toolResult"]["content"])}
        else:
            start, delta = {"toolUse": {"toolUseId": "1", "name": self._tool}}, {"toolUse": {"input": self._arguments}}
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": start}}
        yield {"contentBlockDelta": {"delta": delta}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn" if called else "tool_use"}}


def desk_agent(target, model, person):
    """The snippet's. Fields of mcp 1.x are written as on the wire."""
    if not OLDER:
        return strands_desk.desk_agent(target, model, person)

    async def ask(context, params):
        content = await person(params.message, params.requestedSchema)
        return ElicitResult(action="decline") if content is None else ElicitResult(action="accept", content=content)

    return Agent(model=model, tools=[MCPClient(url=target, elicitation_callback=ask)])


async def refund(target, person, arguments=REFUND) -> str:
    """What the model reads."""
    return await said(desk_agent(target, Scripted("refund_order", arguments), person))


async def said(agent: Agent) -> str:
    try:
        return str(await agent.invoke_async("Call it.")).strip()
    finally:
        await asyncio.to_thread(agent.cleanup)


async def called(client: MCPClient, tool: str, arguments: dict[str, Any] | None = None) -> str:
    return await said(Agent(model=Scripted(tool, arguments), tools=[client], callback_handler=None))


async def speaks_the_modern_era(servers: Servers) -> None:
    revisions: list[str] = []

    def connect() -> None:
        with MCPClient(url=servers.desk) as client:
            revisions.append(client._background_thread_session.protocol_version)

    await asyncio.to_thread(connect)
    equal(revisions, [MODERN])


async def speaks_the_older_era(servers: Servers) -> None:
    async with (
        streamable_http_client(servers.desk) as (reading, writing, _),
        ClientSession(reading, writing) as session,
    ):
        equal((await session.initialize()).protocolVersion, LEGACY)


async def asks_nothing(servers: Servers) -> None:
    person = Person()
    equal(json.loads(await refund(servers.desk, person, NOTHING_ASKED)), NOTHING_ASKED_REFUNDED)
    equal(person.asked, [])


async def asks_twice(servers: Servers) -> None:
    person = Person()
    equal(json.loads(await refund(servers.desk, person)), REFUNDED)
    equal(person.asked, [SCOPE, RESTOCK])


async def asks_over_stdio(servers: Servers) -> None:
    person = Person()
    command, *arguments = servers.desk_command

    async def ask(context, params):
        schema = params.requestedSchema if OLDER else params.requested_schema
        return ElicitResult(action="accept", content=await person(params.message, schema))

    parameters = StdioServerParameters(command=command, args=arguments)
    client = MCPClient(lambda: stdio_client(parameters), elicitation_callback=ask)
    equal(json.loads(await called(client, "refund_order", REFUND)), REFUNDED)
    equal(person.asked, [SCOPE, RESTOCK])


async def declines(servers: Servers) -> None:
    contains(await refund(servers.desk, Person(full=None)), DECLINED)


async def cannot_be_asked(servers: Servers) -> None:
    contains(await called(MCPClient(url=servers.desk), "refund_order", REFUND), NO_FORMS)


async def no_sampling_no_roots(servers: Servers) -> None:
    """There is no option for either."""
    contains(await called(MCPClient(url=servers.questions), "ask_the_model"), NO_SAMPLING)
    contains(await called(MCPClient(url=servers.questions), "ask_for_roots"), NO_ROOTS)


CHECKS = {
    **({"speaks 2025-11-25": speaks_the_older_era} if OLDER else {"speaks 2026-07-28": speaks_the_modern_era}),
    "no question": asks_nothing,
    "two questions": asks_twice,
    "two questions, stdio": asks_over_stdio,
    "declined": declines,
    "no callback": cannot_be_asked,
    "no sampling, no roots": no_sampling_no_roots,
}

if __name__ == "__main__":
    main(CHECKS)
