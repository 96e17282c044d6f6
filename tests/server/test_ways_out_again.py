"""More ways around the rules, found by attacking what was changed after the first. Each was open once."""

import asyncio
import contextvars
import threading
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import date
from functools import singledispatch
from typing import Annotated, Any, Generic, TextIO, TypeVar

import anyio
import pytest
from mcp_types import ElicitResult
from pydantic import BaseModel, FutureDate, JsonValue, create_model
from typing_extensions import TypeAliasType

from bespeak import (
    Client,
    Context,
    DeclinedElicitation,
    Elicit,
    ElicitationResult,
    InvalidSignature,
    MCPServer,
    Resolve,
    ToolError,
)
from bespeak.aio.threads import THREADS
from bespeak.client import CallbackFailed
from bespeak.resolve.asking.form_schemas import FormError, form_of
from tests.answering import text
from tests.conftest import Connect

pytestmark = pytest.mark.every_revision

T = TypeVar("T")


async def fail_soon() -> None:
    await asyncio.sleep(0.01)
    raise ValueError("a worker died")


async def standard_workers() -> AsyncGenerator[int]:
    async with asyncio.TaskGroup() as group:
        group.create_task(fail_soon())
        yield 1


async def workers() -> AsyncGenerator[int]:
    async with anyio.create_task_group() as group:
        group.start_soon(fail_soon)
        yield 1


async def slow_to_open() -> AsyncGenerator[int]:
    await asyncio.sleep(0.1)
    yield 2


# Scopes held by generators


@pytest.mark.parametrize("held", [standard_workers, workers])
async def test_a_group_that_fails_before_the_body_is_a_failure_and_no_cancellation(
    connect: Connect, held: Callable[..., Any]
) -> None:
    mcp = MCPServer[Any]("shop")

    @mcp.tool()
    async def tool(a: Annotated[int, Resolve(held)], b: Annotated[int, Resolve(slow_to_open)]) -> str:
        return "never"

    async with connect(mcp) as client:
        told = text(await client.call_tool("tool"))
    assert f"resolver '{held.__name__}' ended the call: a scope it holds was cancelled" in told


@pytest.mark.parametrize("held", [standard_workers, workers])
async def test_a_group_that_fails_in_the_body_lets_the_other_cleanups_run(
    connect: Connect, held: Callable[..., Any]
) -> None:
    mcp = MCPServer[Any]("shop")
    closed: list[str] = []

    async def inner(a: Annotated[int, Resolve(held)]) -> AsyncGenerator[int]:
        try:
            yield a
        finally:
            closed.append("inner")

    async def outer() -> AsyncGenerator[int]:
        try:
            yield 0
        finally:
            closed.append("outer")

    @mcp.tool()
    async def tool(c: Annotated[int, Resolve(outer)], b: Annotated[int, Resolve(inner)]) -> str:
        await asyncio.sleep(1)
        return "never"

    async with connect(mcp) as client:
        assert (await client.call_tool("tool")).is_error
    assert closed == ["inner", "outer"]


async def test_a_group_of_exceptions_from_the_body_is_not_blamed_on_a_generator(connect: Connect) -> None:
    mcp = MCPServer[Any]("shop")

    @mcp.tool()
    async def tool(a: Annotated[int, Resolve(slow_to_open)]) -> str:
        raise ExceptionGroup("several", [ValueError()])

    async with connect(mcp) as client:
        assert text(await client.call_tool("tool")) == "Error executing tool tool"


async def test_a_generator_that_was_interrupted_does_not_hide_why(connect: Connect) -> None:
    mcp = MCPServer[Any]("shop")

    async def generator() -> AsyncGenerator[int]:
        try:
            await asyncio.sleep(1)
        except BaseException as error:
            raise RuntimeError("lost connection") from error
        yield 1

    async def refuses() -> int:
        await asyncio.sleep(0.01)
        raise ToolError("the real reason")

    @mcp.tool()
    async def tool(a: Annotated[int, Resolve(generator)], b: Annotated[int, Resolve(refuses)]) -> str:
        return "never"

    async with connect(mcp) as client:
        assert text(await client.call_tool("tool")) == "Error executing tool tool: the real reason"


@pytest.mark.parametrize(("opening", "beside"), [(0.01, 0.03), (0.03, 0.01)])
async def test_what_a_generator_sets_is_seen_whoever_is_faster(connect: Connect, opening: float, beside: float) -> None:
    mcp, variable = MCPServer[Any]("shop"), contextvars.ContextVar("variable", default="unset")

    async def sets() -> AsyncGenerator[int]:
        await asyncio.sleep(opening)
        variable.set("set")
        yield 1

    async def other() -> int:
        await asyncio.sleep(beside)
        return 1

    async def sees(a: Annotated[int, Resolve(sets)], b: Annotated[int, Resolve(other)]) -> str:
        return variable.get()

    @mcp.tool()
    async def tool(seen: Annotated[str, Resolve(sees)]) -> str:
        return seen

    async with connect(mcp) as client:
        assert text(await client.call_tool("tool")) == "set"


# Types that go round in circles, or are large


Text = TypeAliasType("Text", "dict[str, Text] | list[Text] | int")  # pyright: ignore[reportGeneralTypeIssues] - as authors write it


async def test_a_recursive_alias_written_as_text_is_read_once() -> None:
    mcp = MCPServer[Any]("shop")

    async def tool(a: Any) -> str:
        return "fine"

    tool.__annotations__["a"] = Text
    started = time.monotonic()
    with suppress(InvalidSignature):  # what pydantic makes of such an alias is its own affair
        mcp.add_tool(tool)
    assert time.monotonic() - started < 5


async def test_a_recursive_return_type_has_a_schema() -> None:
    mcp = MCPServer[Any]("shop")

    @mcp.tool()
    async def tool() -> JsonValue:
        return {"a": [1]}

    result = await mcp.call_tool("tool")
    assert result.structured_content == {"result": {"a": [1]}}


def test_a_recursive_field_is_no_form() -> None:
    class Anything(BaseModel):
        a: JsonValue

    with pytest.raises(FormError):
        form_of(Anything)


def test_a_model_with_many_ways_to_one_field_is_searched_once() -> None:
    model: Any = create_model("L0", x=(int, ...))
    for number in range(1, 19):
        model = create_model(f"L{number}", a=(model, ...), b=(model, ...))

    def tool(a: Any) -> str:
        return ""

    tool.__annotations__["a"] = model
    started = time.monotonic()
    MCPServer("shop").add_tool(tool)
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(("argument", "taken"), [(FutureDate, date), (date, FutureDate), (TextIO, str)])
def test_a_type_that_only_names_values_of_another_may_agree(argument: Any, taken: Any) -> None:
    async def given() -> Any:
        return None

    given.__annotations__["return"] = argument

    async def tool(it: Any) -> None: ...

    tool.__annotations__["it"] = Annotated[taken, Resolve(given)]
    MCPServer("shop").add_tool(tool)


@dataclass
class Repo(Generic[T]):
    title: str = "Dune"


async def test_a_parametrised_class_is_a_resolver(connect: Connect) -> None:
    mcp = MCPServer[Any]("shop")

    @mcp.tool()
    async def tool(title: str, repo: Annotated[Repo[int], Resolve(Repo[int])]) -> str:
        return repo.title

    async with connect(mcp) as client:
        assert text(await client.call_tool("tool", {"title": "Neuromancer"})) == "Neuromancer"


def test_a_function_that_dispatches_by_position_is_refused() -> None:
    @singledispatch
    def price(title: str) -> int:
        return 1

    async def tool(title: str, cents: Annotated[int, Resolve(price)]) -> None: ...

    with pytest.raises(InvalidSignature, match="it is a singledispatch function"):
        MCPServer("shop").add_tool(tool)


# Overriding with an outcome


async def ask() -> Elicit[bool]:
    return Elicit("Sure?", bool)


async def test_a_decline_given_as_an_override_is_a_decline() -> None:
    mcp = MCPServer[Any]("shop")

    @mcp.tool()
    async def looks(sure: Annotated[ElicitationResult[bool], Resolve(ask)]) -> str:
        return sure.action

    @mcp.tool()
    async def needs(sure: Annotated[bool, Resolve(ask)]) -> str:
        return "never"

    with mcp.override(ask, value=DeclinedElicitation()):
        assert text(await mcp.call_tool("looks")) == "decline"
        with pytest.raises(ToolError, match="'sure' could not resolve: elicitation was decline"):
            await mcp.call_tool("needs")


# Threads, lifespans, inboxes, callbacks


async def test_a_thread_that_cannot_start_gives_its_place_back(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    mcp = MCPServer[Any]("shop")

    def one() -> int:
        return 1

    @mcp.tool()
    async def tool(value: Annotated[int, Resolve(one)]) -> str:
        return "fine"

    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async with connect(mcp) as client:
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", refuse)
            for _ in range(THREADS + 1):
                assert (await client.call_tool("tool")).is_error
        async with asyncio.timeout(5):
            assert text(await client.call_tool("tool")) == "fine"


async def test_a_lifespan_that_fails_to_leave_does_not_keep_the_next_from_leaving() -> None:
    diary: list[str] = []

    @asynccontextmanager
    async def lifespan(_: MCPServer[None]) -> AsyncGenerator[None]:
        diary.append("enter")
        yield
        await asyncio.sleep(0.02)
        diary.append("leave")
        if diary.count("leave") == 1:
            raise ValueError("leaving")

    mcp = MCPServer("shop", lifespan=lifespan)

    async def use() -> None:
        async with mcp.running():
            await asyncio.sleep(0.01)

    first = asyncio.create_task(use())
    await asyncio.sleep(0.02)
    second = asyncio.create_task(use())
    await asyncio.sleep(0.005)
    second.cancel()
    await asyncio.gather(first, second, return_exceptions=True)
    await asyncio.sleep(0.1)
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "bespeak lifespan"]


async def test_a_handler_that_never_ends_does_not_outlive_a_cancelled_request(connect: Connect) -> None:
    mcp = MCPServer[Any]("shop")

    @mcp.tool()
    async def tool(ctx: Context) -> str:
        await ctx.report_progress(1)
        return "done"

    async def never(progress: float, total: float | None, message: str | None) -> None:
        await asyncio.sleep(100)

    async with connect(mcp) as client:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.call_tool("tool", progress_callback=never), 0.05)
    await asyncio.sleep(0)
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "bespeak notifications"]


async def test_a_callback_that_ends_in_a_cancellation_of_its_own_has_failed() -> None:
    mcp = MCPServer[Any]("shop")

    @mcp.tool()
    async def tool(sure: Annotated[bool, Resolve(ask)]) -> str:
        return "never"

    async def cancelled(context: Any, params: Any) -> ElicitResult:
        raise asyncio.CancelledError

    async with Client(mcp, elicitation_callback=cancelled) as client:
        with pytest.raises(CallbackFailed, match="the callback raised CancelledError"):
            await client.call_tool("tool")
