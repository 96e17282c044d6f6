"""The refund desk as a client must find it: what is called, what is answered, and what has to come back.

Knows no SDK: a client is whatever has the methods below, and both Python clients do.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

from mcp_types import (
    CONNECTION_CLOSED,
    REQUEST_TIMEOUT,
    CallToolResult,
    CompleteResult,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitResult,
    EmptyResult,
    ErrorData,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PromptReference,
    ReadResourceResult,
    ResourceTemplateReference,
    TextContent,
)

ResultT = TypeVar("ResultT")
Progress = Callable[[float, float | None, str | None], Awaitable[None]]

MODERN = "2026-07-28"
MISSING_CAPABILITY = -32021
NO_ANSWER = (REQUEST_TIMEOUT, CONNECTION_CLOSED)
SCOPE = (
    "full",
    "ORD-7002 has 2 lines: LAMP-9 (Desk lamp, $45.50), BULB-2 (Light bulb, $6.50). Refund all of it?",
)
RESTOCK = ("restock", "Put Desk lamp and Light bulb back on the shelf?")
# How the text begins. Each server may add what a model should make of it.
DECLINED = (
    "Error executing tool refund_order: Resolver for parameter 'scope' could not resolve: elicitation was decline"
)

ACCEPT = {
    "full": ElicitResult(action="accept", content={"full": True}),
    "restock": ElicitResult(action="accept", content={"restock": True}),
}
DECLINE = ElicitResult(action="decline")


@dataclass(frozen=True, slots=True)
class Expected:
    """What is not the same of every desk."""

    revision: str
    any_refusal: bool
    """Before 2026-07-28 no revision says how a client that cannot be asked is refused: every server has its own way."""
    same_program: bool = True
    """Whether the server runs the program of this name, and not another one that was written after it."""
    subscriptions: bool = True
    """Whether the server tells clients what has changed."""


class Person:
    """Answers a form by its first field, and remembers what was asked."""

    def __init__(self, **answers: ElicitResult) -> None:
        self._answers = {**ACCEPT, **answers}
        self.asked: list[tuple[str, str]] = []

    def will_say(self, **answers: ElicitResult) -> None:
        """Answer these forms so from now on."""
        self._answers |= answers

    async def __call__(self, context: Any, params: ElicitRequestParams) -> ElicitResult:
        assert isinstance(params, ElicitRequestFormParams), f"not a form: {params!r}"
        field = next(iter(params.requested_schema["properties"]))
        self.asked.append((field, params.message))
        return self._answers[field]


class Desk(Protocol):
    """A connected client."""

    @property
    def protocol_version(self) -> str: ...

    async def list_tools(self) -> ListToolsResult: ...

    async def call_tool(
        self, name: str, arguments: dict[str, Any], /, *, progress_callback: Progress | None = None
    ) -> CallToolResult: ...

    async def list_prompts(self) -> ListPromptsResult: ...

    async def get_prompt(self, name: str, arguments: dict[str, str] | None = None, /) -> GetPromptResult: ...

    async def list_resources(self) -> ListResourcesResult: ...

    async def list_resource_templates(self) -> ListResourceTemplatesResult: ...

    async def read_resource(self, uri: str, /) -> ReadResourceResult: ...

    async def complete(
        self,
        ref: ResourceTemplateReference | PromptReference,
        argument: dict[str, str],
        context_arguments: dict[str, str] | None = None,
    ) -> CompleteResult: ...

    def listen(
        self, *, tools_list_changed: bool = False, resource_subscriptions: Sequence[str] = ()
    ) -> AbstractAsyncContextManager[AsyncIterator[object]]: ...

    async def subscribe_resource(self, uri: str, /) -> EmptyResult: ...

    async def unsubscribe_resource(self, uri: str, /) -> EmptyResult: ...


@runtime_checkable
class Refusal(Protocol):
    """An exception that carries a JSON-RPC error."""

    @property
    def error(self) -> ErrorData: ...


class Connect(Protocol):
    """Connects a client whose questions a person answers, or one that cannot be asked. `options` are other options of it."""

    def __call__(self, person: Person | None, /, **options: Any) -> AbstractAsyncContextManager[Desk]: ...


async def check(connect: Connect, refusal: type[Exception], expected: Expected) -> None:
    """Go through all of it, saying what held. Raises `AssertionError` at the first thing that does not."""
    connected = at_revision(connect, expected.revision)
    for what, checking in CHECKS.items():
        await checking(connected)
        print(what, flush=True)
    await capability_missing(connected, refusal, expected)
    print("capability missing", flush=True)


def at_revision(connect: Connect, revision: str) -> Connect:
    """Connects the same, and checks every connection for its revision."""

    @asynccontextmanager
    async def connected(person: Person | None, /, **options: Any) -> AsyncGenerator[Desk]:
        async with connect(person, **options) as desk:
            equal(desk.protocol_version, revision)
            yield desk

    return connected


async def sees_only_the_arguments(connect: Connect) -> None:
    async with connect(None) as desk:
        (tool,) = (await desk.list_tools()).tools
        equal(tool.name, "refund_order")
        equal(set(tool.input_schema["properties"]), {"order_id", "reason"})


async def asks_nothing(connect: Connect) -> None:
    person = Person()
    async with connect(person) as desk:
        refunded(await refund(desk, "ORD-7001"), order_id="ORD-7001", cents=1299, restocked=False)
    equal(person.asked, [])


async def asks_twice(connect: Connect) -> None:
    person = Person()
    async with connect(person) as desk:
        refunded(await refund(desk, "ORD-7002"), order_id="ORD-7002", cents=5200, restocked=True)
    equal(person.asked, [SCOPE, RESTOCK])


async def scope_declined(connect: Connect) -> None:
    person = Person(full=DECLINE)
    async with connect(person) as desk:
        result = await refund(desk, "ORD-7002")
    equal((result.is_error, text(result)[: len(DECLINED)]), (True, DECLINED))
    equal(person.asked, [SCOPE])


async def restock_declined(connect: Connect) -> None:
    person = Person(restock=DECLINE)
    async with connect(person) as desk:
        refunded(await refund(desk, "ORD-7002"), order_id="ORD-7002", cents=5200, restocked=False)
    equal(person.asked, [SCOPE, RESTOCK])


CHECKS: dict[str, Callable[[Connect], Awaitable[None]]] = {
    "tools/list": sees_only_the_arguments,
    "no question": asks_nothing,
    "two questions": asks_twice,
    "scope declined": scope_declined,
    "restock declined": restock_declined,
}


async def capability_missing(connect: Connect, refusal: type[Exception], expected: Expected) -> None:
    async with connect(None) as desk:
        refunded(await refund(desk, "ORD-7001"), order_id="ORD-7001", cents=1299, restocked=False)
        await refused_for_want_of_forms(refund(desk, "ORD-7002"), refusal, expected)


async def refused_for_want_of_forms(
    call: Awaitable[CallToolResult], refusal: type[Exception], expected: Expected
) -> None:
    """Check that a client that cannot be asked is told so."""
    error = await refused(call, refusal)
    if expected.any_refusal:
        assert error is None or error.code not in NO_ANSWER, f"not refused, but {error!r}"
        return
    lacks_forms(error)


def lacks_forms(error: ErrorData | None) -> None:
    """Check that an error says which capability the client must have."""
    assert error is not None, "expected a JSON-RPC error, found none"
    equal(error.code, MISSING_CAPABILITY)
    equal(error.data, {"requiredCapabilities": {"elicitation": {"form": {}}}})


async def refund(desk: Desk, order_id: str) -> CallToolResult:
    return await desk.call_tool("refund_order", {"order_id": order_id, "reason": "changed my mind"})


async def refused(call: Awaitable[CallToolResult], refusal: type[Exception]) -> ErrorData | None:
    """The JSON-RPC error the call ended with, or `None` if it was an error of the tool."""
    results: list[CallToolResult] = []
    error = await error_of(call, refusal, results.append)
    assert error or results[0].is_error, f"expected an error, found {results!r}"
    return error


async def error_of(
    request: Awaitable[ResultT], refusal: type[Exception], take: Callable[[ResultT], object] = lambda result: None
) -> ErrorData | None:
    """The JSON-RPC error that a request ended with, or `None` if it had a result. `take` gets that."""
    try:
        take(await request)
    except refusal as raised:
        if isinstance(raised, Refusal):
            return raised.error
        raise
    return None


def refunded(result: CallToolResult, **expected: Any) -> None:
    equal(result.structured_content, {"reason": "changed my mind", **expected})
    assert not result.is_error


def text(result: CallToolResult) -> str:
    """The text of a result that is one block of text."""
    (block,) = result.content
    assert isinstance(block, TextContent), f"not a text: {block!r}"
    return block.text


def equal(found: object, expected: object) -> None:
    assert found == expected, f"expected {expected!r}, found {found!r}"
