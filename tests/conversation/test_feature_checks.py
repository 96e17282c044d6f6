"""Calls are compared with what the server lists: its tools and their schemas, its prompts and their arguments."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from bespeak.conversation.connection import Connection
from bespeak.conversation.connection_settings import EVERYTHING
from bespeak.conversation.responses import Question
from bespeak.transports.interfaces import Ask, Outgoing
from tests.testing.canned import CACHED, Canned, error, told, written

Json = dict[str, Any]
NUMBER: Json = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


class Listing(Canned):
    """A server that counts how often its tools are listed, and may change them."""

    def __init__(self, *lists: Any) -> None:
        super().__init__(told(structuredContent={"n": 1}))
        self.lists = list(lists)
        self.read = 0

    async def exchange(self, request: Outgoing, notify: Callable[[bytes], None], ask: Ask | None = None) -> bytes:
        if request.method == "tools/list":
            self.read += 1
            self.tools = self.lists.pop(0) if len(self.lists) > 1 else self.lists[0]
        return await super().exchange(request, notify, ask)


async def rules(server: Canned, calls: int = 2) -> list[str]:
    async def nobody(question: Question) -> Any:
        raise AssertionError("nothing is asked")

    found: list[str] = []
    async with Connection(server, "auto", EVERYTHING, 5) as connection:
        for _ in range(calls):
            await connection.send("tools/call", {"name": "x"}, nobody)
            await connection.settle()
            found += [one.rule for one in connection.astray()]
    return found


def listed(output_schema: Json) -> list[Json]:
    return [{"name": "x", "inputSchema": {"type": "object"}, "outputSchema": output_schema}]


async def test_the_list_is_read_once_if_all_is_well() -> None:
    server = Listing(listed(NUMBER))
    assert await rules(server) == []
    assert server.read == 1


async def test_the_list_is_read_again_before_a_server_is_blamed() -> None:
    changed = Listing(listed({"type": "object", "required": ["m"]}), listed(NUMBER))
    assert await rules(changed) == ["output-schema"]  # by its own list, at the first call
    assert changed.read == 2

    wrong = Listing(listed({"type": "array"}))
    assert await rules(wrong) == ["output-schema", "output-schema"]
    assert wrong.read == 2


@pytest.mark.parametrize("tools", [None, 5, [None, {}, {"name": 5}], [{"name": "other"}]])
async def test_a_list_that_does_not_have_the_tool_proves_nothing(tools: Any) -> None:
    assert await rules(Listing(tools)) == []


class Paging(Canned):
    """A server whose tool is on the second page; or whose list is refused."""

    def __init__(self, refuses: bool) -> None:
        super().__init__(told(structuredContent={"n": "x"}))
        self.refuses = refuses

    async def exchange(self, request: Outgoing, notify: Callable[[bytes], None], ask: Ask | None = None) -> bytes:
        if request.method != "tools/list":
            return await super().exchange(request, notify, ask)
        message = json.loads(request.message)
        if self.refuses:
            return written(message["id"], error())
        last = "cursor" in message["params"]
        page: Json = {"tools": listed(NUMBER)} if last else {"tools": [], "nextCursor": ""}
        return written(message["id"], {**CACHED, **page})


@pytest.mark.parametrize(("refuses", "found"), [(False, ["output-schema"]), (True, [])])
async def test_all_pages_are_read_and_a_list_that_is_refused_proves_nothing(refuses: bool, found: list[str]) -> None:
    assert await rules(Paging(refuses), calls=1) == found


async def test_cursors_without_end_are_given_up() -> None:
    class Endless(Paging):
        async def exchange(self, request: Outgoing, notify: Callable[[bytes], None], ask: Ask | None = None) -> bytes:
            if request.method != "tools/list":
                return await super().exchange(request, notify, ask)
            return written(json.loads(request.message)["id"], {**CACHED, "tools": [], "nextCursor": "more"})

    assert await rules(Endless(refuses=False), calls=1) == []


# Errors for what is not listed


async def found(server: Canned, method: str = "tools/call", **params: Any) -> list[tuple[str, str]]:
    async def nobody(question: Question) -> Any:
        raise AssertionError("nothing is asked")

    async with Connection(server, "auto", EVERYTHING, 5) as connection:
        await connection.send(method, {"name": "x", **params}, nobody)
        await connection.settle()
        return [(one.rule, one.text) for one in connection.astray()]


class Prompting(Canned):
    """A server with one prompt, which answers every call with an error of this code."""

    def __init__(self, code: int, *prompts: Json) -> None:
        super().__init__(error(code=code))
        self.prompts = prompts

    async def exchange(self, request: Outgoing, notify: Callable[[bytes], None], ask: Ask | None = None) -> bytes:
        if request.method == "prompts/list":
            return written(json.loads(request.message)["id"], {**CACHED, "prompts": self.prompts})
        return await super().exchange(request, notify, ask)


@pytest.mark.parametrize("code", [-32600, -32601, -32603])
async def test_a_tool_that_is_not_listed_has_one_right_error(code: int) -> None:
    text = f"a call of 'x', which the server does not list, was answered with {code}"
    assert await found(Canned(error(code=code))) == [("unknown-tool", text)]


@pytest.mark.parametrize("code", [-32602, -32021, 7])
async def test_other_errors_of_a_tool_that_is_not_listed_may_be_right(code: int) -> None:
    assert await found(Canned(error(code=code))) == []


async def test_a_tool_that_is_listed_may_fail_in_any_way() -> None:
    server = Canned(error(code=-32603))
    server.tools = [{"name": "x", "inputSchema": NUMBER}]
    assert await found(server) == []


async def test_arguments_that_do_not_fit_are_not_a_protocol_error() -> None:
    server = Canned(error(code=-32602))
    server.tools = [{"name": "x", "inputSchema": NUMBER}]
    begin = "arguments of 'x' that do not match its schema were answered with -32602"
    assert await found(server) == [("argument-errors", f"{begin}: 'n' is a required property")]
    assert await found(server, arguments={"n": 1}) == []  # then something else is wrong
    assert await found(server, requestState="s") == []


async def test_a_prompt_that_is_not_listed_or_lacks_an_argument_has_one_right_error() -> None:
    needy: Json = {"name": "x", "arguments": [{"name": "a"}, {"name": "b", "required": True}]}
    text = "the prompt 'x', which the server does not list, was answered with -32603"
    assert await found(Prompting(-32603), "prompts/get") == [("unknown-prompt", text)]
    lacking = "the prompt 'x' without its argument 'b' was answered with -32603"
    assert await found(Prompting(-32603, needy), "prompts/get", arguments={"a": ""}) == [("unknown-prompt", lacking)]
    assert await found(Prompting(-32603, needy), "prompts/get", arguments={"b": ""}) == []
    assert await found(Prompting(-32602), "prompts/get") == []


async def test_a_list_that_cannot_be_read_to_its_end_does_not_say_what_is_missing() -> None:
    class Broken(Paging):
        async def replied(self, response: bytes) -> bytes:
            return written(json.loads(response)["id"], error(code=-32603))

    assert await found(Broken(refuses=True)) == []
