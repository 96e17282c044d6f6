"""Agno with `agno[mcp]`: its toolkit takes no callbacks, but a client that has them."""

import json
from typing import Any

from agno.agent import Agent
from agno.models.base import Model
from agno.models.response import ModelResponse
from agno.tools.mcp import MCPTools
from fastmcp import Client
from fastmcp.client.transports import StdioTransport

from frameworks.checks import (
    DECLINED,
    LEGACY,
    MODERN,
    NO_FORMS,
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
from frameworks.snippets import agno_desk


class Scripted(Model):
    """A model that calls one tool and then repeats what came back."""

    def __init__(self, tool: str, arguments: dict[str, Any] | None = None) -> None:
        super().__init__(id="scripted")
        self.call = {"name": tool, "arguments": json.dumps(arguments or {})}

    async def ainvoke(self, messages, *rest, **options) -> ModelResponse:
        if messages[-1].role == "tool":
            return ModelResponse(role="assistant", content=str(messages[-1].content))
        return ModelResponse(role="assistant", tool_calls=[{"id": "1", "type": "function", "function": self.call}])

    def invoke(self, *rest, **options):
        raise NotImplementedError

    def invoke_stream(self, *rest, **options):
        raise NotImplementedError

    def ainvoke_stream(self, *rest, **options):
        raise NotImplementedError

    def _parse_provider_response(self, response, **options):
        return response

    def _parse_provider_response_delta(self, response):
        return response


async def refund(target, person, arguments=REFUND) -> str:
    """What the model reads."""
    async with agno_desk.desk_agent(target, Scripted("refund_order", arguments), person) as agent:
        agent.telemetry = False
        return (await agent.arun("Refund it.")).content


async def called(tools: MCPTools, tool: str, arguments: dict[str, Any] | None = None) -> str:
    async with tools:
        agent = Agent(model=Scripted(tool, arguments), tools=[tools], telemetry=False)
        return (await agent.arun("Call it.")).content


async def speaks_both_eras(servers: Servers) -> None:
    for mode, expected in (("legacy", LEGACY), ("auto", MODERN)):
        async with MCPTools(url=servers.desk, protocol_mode=mode) as tools:
            equal(tools.session.protocol_version, expected)
    async with MCPTools(url=servers.desk) as tools:
        equal(tools.session.protocol_version, LEGACY)


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
    equal(json.loads(await refund(StdioTransport(command, arguments, keep_alive=False), person)), REFUNDED)
    equal(person.asked, [SCOPE, RESTOCK])


async def declines(servers: Servers) -> None:
    contains(await refund(servers.desk, Person(full=None)), DECLINED)


async def cannot_be_asked(servers: Servers) -> str:
    for mode in ("legacy", "auto"):
        said = await called(MCPTools(url=servers.desk, protocol_mode=mode), "refund_order", REFUND)
        contains(said, NO_FORMS)
        contains(said, "The MCP server may be unreachable or the request timed out.")
    return f"the model reads: {said}"


async def pushed(servers: Servers) -> None:
    person = Person()

    async def ask(message, response_type, params, context):
        return await person(message, params.requested_schema)

    async with Client(servers.desk, mode="legacy", elicitation_handler=ask) as client:
        equal(json.loads(await called(MCPTools(session=client), "refund_order", REFUND)), REFUNDED)
        equal(client.protocol_version, LEGACY)
    equal(person.asked, [SCOPE, RESTOCK])


async def sampling_and_roots(servers: Servers) -> None:
    async def sample(messages, params, context):
        return "hello"

    for mode in ("auto", "legacy"):
        async with Client(servers.questions, mode=mode, sampling_handler=sample, roots=["file:///desk"]) as client:
            equal(await called(MCPTools(session=client), "ask_the_model"), "hello")
            equal(await called(MCPTools(session=client), "ask_for_roots"), "file:///desk")


CHECKS = {
    "speaks 2025-11-25, 2026-07-28 on demand": speaks_both_eras,
    "no question": asks_nothing,
    "two questions": asks_twice,
    "two questions, stdio": asks_over_stdio,
    "declined": declines,
    "without a client of one's own": cannot_be_asked,
    "pushed questions": pushed,
    "sampling and roots": sampling_and_roots,
}

if __name__ == "__main__":
    main(CHECKS)
