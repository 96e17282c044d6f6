"""Whether results keep the schemas of their tools: protocol.md sections 10 and 21."""

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from bespeak.conversation.connection import Connection
from bespeak.conversation.connection_settings import EVERYTHING
from bespeak.conversation.json_schemas import Uncheckable, first_error
from bespeak.conversation.responses import Question
from bespeak.conversation.tool_schemas import input_findings, output_findings
from bespeak.transports.interfaces import Ask, Outgoing
from tests.testing.canned import CACHED, Canned, error, told, written

Json = dict[str, Any]
NUMBER: Json = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def output(schema: Any, **result: Any) -> list[str]:
    return [one.text for one in output_findings("x", {"outputSchema": schema}, result)]


@pytest.mark.parametrize("value", [{"n": 1}, {"n": 1.0}, {"n": 1, "more": None}])
def test_a_result_that_matches_is_right(value: Any) -> None:
    assert output(NUMBER, structuredContent=value) == []


def test_a_result_that_does_not_match_is_found_with_its_place() -> None:
    assert output(NUMBER, structuredContent={"n": "1"}) == [
        "the structuredContent of 'x' does not match at n: '1' is not of type 'integer'"
    ]
    assert output({"type": "array"}, structuredContent=None) == [
        "the structuredContent of 'x' does not match: None is not of type 'array'"
    ]


def test_a_long_reason_is_cut() -> None:
    assert len(output({"type": "array"}, structuredContent="x" * 10_000)[0]) < 500


def test_structured_content_that_is_missing_is_found_unless_the_call_failed() -> None:
    text = "the tool 'x' has an outputSchema, but no structuredContent came"
    assert output(NUMBER) == output(NUMBER, isError=False) == [text]
    assert output(NUMBER, isError=True) == []
    assert output_findings("x", {}, {}) == output_findings("x", {"outputSchema": 5}, {}) == []


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nothing"},
        {"$schema": "https://example.com/mine", "type": "array"},
        {"$schema": 5, "type": "array"},
        {"$ref": "https://example.com/schema.json"},
        {"$ref": "#/$defs/none"},
        {"$ref": "#"},
        {"pattern": "("},
    ],
)
def test_a_schema_that_cannot_be_used_proves_nothing(schema: Json) -> None:
    assert output(schema, structuredContent="x") == []


def test_a_schema_that_takes_for_ever_is_given_up() -> None:
    hard: Json = {"$defs": {"a0": {"type": "string"}}, "$ref": "#/$defs/a60"}
    for number in range(60):
        again = {"$ref": f"#/$defs/a{number}"}
        hard["$defs"][f"a{number + 1}"] = {"allOf": [again, again]}
    began = time.monotonic()
    with pytest.raises(Uncheckable, match="takes too long"):
        first_error(hard, "x", seconds=0.1)
    assert time.monotonic() - began < 30


def test_a_schema_may_name_an_older_dialect() -> None:
    old: Json = {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]}
    assert output(old, structuredContent=["a", 1]) == []
    assert output(old, structuredContent=[1]) == [
        "the structuredContent of 'x' does not match at [0]: 1 is not of type 'string'"
    ]


@pytest.mark.parametrize(
    ("tool", "text"),
    [
        ({}, ["the tool 'x' has no inputSchema"]),
        ({"inputSchema": None}, ["the tool 'x' has an inputSchema whose type is not object"]),
        ({"inputSchema": {"type": "string"}}, ["the tool 'x' has an inputSchema whose type is not object"]),
        ({"inputSchema": {"type": "object"}}, []),
    ],
)
def test_arguments_are_an_object(tool: Json, text: list[str]) -> None:
    assert [one.text for one in input_findings("x", tool)] == text


# The list


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
