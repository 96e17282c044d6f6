"""The OpenAI Agents SDK: its servers take no callbacks, but a server of one's own may have them."""

import json
from typing import Any

from agents import AgentsException, Model, ModelResponse, Usage, set_tracing_disabled
from agents.mcp import MCPServerStdio, MCPServerStreamableHttp
from mcp import Client, StdioServerParameters
from mcp.types import CreateMessageResult, ListRootsResult, Root, TextContent
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

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
from frameworks.snippets import openai_agents_desk


class Scripted(Model):
    """A model that calls one tool and then repeats what came back."""

    def __init__(self, tool: str, arguments: dict[str, Any] | None = None) -> None:
        self._call = ResponseFunctionToolCall(
            call_id="1", name=tool, arguments=json.dumps(arguments or {}), type="function_call"
        )

    async def get_response(self, system_instructions, input, *rest, **options) -> ModelResponse:
        last = input[-1] if isinstance(input, list) else {}
        if last.get("type") != "function_call_output":
            return ModelResponse(output=[self._call], usage=Usage(), response_id=None)
        output = last["output"]
        text = output if isinstance(output, str) else "".join(part["text"] for part in output)
        said = ResponseOutputMessage(
            id="1",
            role="assistant",
            status="completed",
            type="message",
            content=[ResponseOutputText(text=text, type="output_text", annotations=[])],
        )
        return ModelResponse(output=[said], usage=Usage(), response_id=None)

    def stream_response(self, *rest, **options):
        raise NotImplementedError


async def called(server, tool: str, arguments: dict[str, Any] | None = None) -> str:
    """What the model reads."""
    set_tracing_disabled(True)  # it would be sent to the network
    return await openai_agents_desk.run(server, Scripted(tool, arguments), "Call it.")


def desk(target, person, **options):
    return openai_agents_desk.AskingServer(target, person, **options)


async def speaks_the_modern_era(servers: Servers) -> None:
    async with MCPServerStreamableHttp({"url": servers.desk}) as server:
        equal(server.session.protocol_version, MODERN)
    read = await called(MCPServerStreamableHttp({"url": servers.desk}), "refund_order", NOTHING_ASKED)
    equal(json.loads(read), NOTHING_ASKED_REFUNDED)


async def cannot_be_asked(servers: Servers) -> str:
    """The SDK's own servers: the model is told to try again, and the reason is kept from it."""
    command, *arguments = servers.desk_command
    own = [
        MCPServerStreamableHttp({"url": servers.desk}),
        MCPServerStdio({"command": command, "args": arguments}, client_session_timeout_seconds=30),
    ]
    for server in own:
        said = await called(server, "refund_order", REFUND)
        assert NO_FORMS not in said, said
    raising = MCPServerStreamableHttp({"url": servers.desk}, failure_error_function=None)
    try:
        await called(raising, "refund_order", REFUND)
    except AgentsException as error:
        contains(repr(error.__cause__ or error), NO_FORMS)
    else:
        raise AssertionError("nothing was raised")
    return f"the model reads: {said}"


async def asks_nothing(servers: Servers) -> None:
    person = Person()
    equal(json.loads(await called(desk(servers.desk, person), "refund_order", NOTHING_ASKED)), NOTHING_ASKED_REFUNDED)
    equal(person.asked, [])


async def asks_twice(servers: Servers) -> None:
    person = Person()
    equal(json.loads(await called(desk(servers.desk, person), "refund_order", REFUND)), REFUNDED)
    equal(person.asked, [SCOPE, RESTOCK])


async def asks_over_stdio(servers: Servers) -> None:
    person = Person()
    command, *arguments = servers.desk_command
    parameters = StdioServerParameters(command=command, args=arguments)
    equal(json.loads(await called(desk(parameters, person), "refund_order", REFUND)), REFUNDED)
    equal(person.asked, [SCOPE, RESTOCK])


async def declines(servers: Servers) -> None:
    contains(await called(desk(servers.desk, Person(full=None)), "refund_order", REFUND), DECLINED)


async def pushed(servers: Servers) -> None:
    person = Person()
    server = desk(servers.desk, person, mode="legacy")
    equal(json.loads(await called(server, "refund_order", REFUND)), REFUNDED)
    equal(person.asked, [SCOPE, RESTOCK])
    async with Client(servers.desk, mode="legacy") as client:
        equal(client.protocol_version, LEGACY)


async def sampling_and_roots(servers: Servers) -> None:
    async def sample(context, params):
        said = TextContent(type="text", text="hello")
        return CreateMessageResult(role="assistant", content=said, model="scripted")

    async def roots(context):
        return ListRootsResult(roots=[Root(uri="file:///desk")])

    for mode in ("auto", "legacy"):
        options = {"sampling_callback": sample, "list_roots_callback": roots, "mode": mode}
        equal(await called(desk(servers.questions, Person(), **options), "ask_the_model"), "hello")
        equal(await called(desk(servers.questions, Person(), **options), "ask_for_roots"), "file:///desk")


CHECKS = {
    "speaks 2026-07-28": speaks_the_modern_era,
    "with the servers of the SDK": cannot_be_asked,
    "no question": asks_nothing,
    "two questions": asks_twice,
    "two questions, stdio": asks_over_stdio,
    "declined": declines,
    "pushed questions": pushed,
    "sampling and roots": sampling_and_roots,
}

if __name__ == "__main__":
    main(CHECKS)
