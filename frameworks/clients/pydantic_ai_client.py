"""Pydantic AI with `pydantic-ai-slim[mcp]`: a callback answers while the tool waits, in both eras."""

import warnings
from typing import Any

from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent, CallDeferred
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.test import TestModel

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
    SlowPerson,
    contains,
    equal,
    main,
)
from frameworks.snippets import pydantic_ai_desk


def scripted(tool: str, arguments: dict[str, Any], returned: list[Any]) -> FunctionModel:
    """A model that calls one tool and keeps what came back."""

    async def respond(messages, info) -> ModelResponse:
        last = messages[-1].parts[-1]
        if isinstance(last, ToolReturnPart):
            returned.append(last.content)
            return ModelResponse(parts=[TextPart("Done.")])
        return ModelResponse(parts=[ToolCallPart(tool, arguments)])

    return FunctionModel(respond)


async def refund(target, person, arguments=REFUND) -> Any:
    """What the model reads."""
    returned: list[Any] = []
    agent = pydantic_ai_desk.desk_agent(target, scripted("refund_order", arguments, returned), person)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # see the check of the warning
        await agent.run("Refund it.")
    return returned[0]


async def called(toolset: MCPToolset, tool: str, arguments: dict[str, Any] | None = None) -> Any:
    returned: list[Any] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        await Agent(scripted(tool, arguments or {}, returned), toolsets=[toolset]).run("Call it.")
    return returned[0]


def handler(person):
    async def ask(message, response_type, params, context):
        content = await person(message, params.requested_schema)
        return ElicitResult(action="decline") if content is None else ElicitResult(action="accept", content=content)

    return ask


async def speaks_the_modern_era(servers: Servers) -> None:
    toolset = MCPToolset(servers.desk)
    async with toolset:
        equal(toolset.client.protocol_version, MODERN)


async def asks_nothing(servers: Servers) -> None:
    person = Person()
    equal(await refund(servers.desk, person, NOTHING_ASKED), NOTHING_ASKED_REFUNDED)
    equal(person.asked, [])


async def asks_twice(servers: Servers) -> None:
    person = Person()
    equal(await refund(servers.desk, person), REFUNDED)
    equal(person.asked, [SCOPE, RESTOCK])


async def asks_over_stdio(servers: Servers) -> None:
    person = Person()
    command, *arguments = servers.desk_command
    equal(await refund(StdioTransport(command, arguments), person), REFUNDED)
    equal(person.asked, [SCOPE, RESTOCK])


async def declines(servers: Servers) -> None:
    contains(await refund(servers.desk, Person(full=None)), DECLINED)


async def cannot_be_asked(servers: Servers) -> None:
    for mode in ("auto", "legacy"):
        contains(await called(MCPToolset(Client(servers.desk, mode=mode)), "refund_order", REFUND), NO_FORMS)


async def pushed(servers: Servers) -> None:
    person = Person()
    client = Client(servers.desk, mode="legacy", elicitation_handler=handler(person))
    equal(await called(MCPToolset(client), "refund_order", REFUND), REFUNDED)
    equal(person.asked, [SCOPE, RESTOCK])
    async with client:
        equal(client.protocol_version, LEGACY)


async def cannot_suspend(servers: Servers) -> str:
    """A handler cannot defer the call: the client turns what it raises into an error."""

    async def ask(message, response_type, params, context):
        raise CallDeferred

    said: list[str] = []
    for mode in ("auto", "legacy"):
        client = Client(servers.desk, mode=mode, elicitation_handler=ask)
        said.append(await called(MCPToolset(client), "refund_order", REFUND))
    contains(said[1], "the client answered with an error (-32603)")
    return f"the model reads {said[0]!r} at 2026-07-28"


async def takes_time(servers: Servers) -> str:
    """A person's time counts towards the timeout of a request if the question is pushed, and not if it ends a round."""
    modern = Client(servers.desk, timeout=2, elicitation_handler=handler(SlowPerson(3)))
    equal(await called(MCPToolset(modern), "refund_order", REFUND), REFUNDED)
    legacy = Client(servers.desk, timeout=2, mode="legacy", elicitation_handler=handler(SlowPerson(3)))
    said = await called(MCPToolset(legacy), "refund_order", REFUND)
    contains(said, "imed out")
    return f"2026-07-28: refunded; 2025-11-25: {said}"


async def warns_without_reason(servers: Servers) -> None:
    """At 2026-07-28 it warns that the handler will never be called. It is called."""
    person = Person()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        async with MCPToolset(servers.desk, elicitation_handler=handler(person)):
            pass
    contains([str(one.message) for one in caught], "`elicitation_handler` will never be called")


async def sampling_and_roots(servers: Servers) -> None:
    model = TestModel(custom_output_text="hello")
    for mode in ("auto", "legacy"):
        toolset = MCPToolset(Client(servers.questions, mode=mode, roots=["file:///desk"]))
        toolset.set_sampling_model(model)
        equal(await called(toolset, "ask_the_model"), "hello")
        equal(await called(toolset, "ask_for_roots"), "file:///desk")
    equal(await called(MCPToolset(servers.questions, sampling_model=model), "ask_the_model"), "hello")
    equal(await called(MCPToolset(servers.questions, roots=["file:///desk"]), "ask_for_roots"), "file:///desk")
    contains(await called(MCPToolset(servers.questions), "ask_the_model"), NO_SAMPLING)
    contains(await called(MCPToolset(servers.questions), "ask_for_roots"), NO_ROOTS)


CHECKS = {
    "speaks 2026-07-28": speaks_the_modern_era,
    "no question": asks_nothing,
    "two questions": asks_twice,
    "two questions, stdio": asks_over_stdio,
    "declined": declines,
    "no handler": cannot_be_asked,
    "pushed questions": pushed,
    "a handler that defers": cannot_suspend,
    "a person takes 3 s, a timeout of 2 s": takes_time,
    "a warning to ignore": warns_without_reason,
    "sampling and roots": sampling_and_roots,
}

if __name__ == "__main__":
    main(CHECKS)
