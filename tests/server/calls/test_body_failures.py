"""How failing calls look to the client and to the log (design 5, 8): tool errors, protocol errors, and everything else."""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any, cast

import pytest
from mcp_types import SamplingMessage
from pydantic import BaseModel

from bespeak import Elicit, MCPError, MCPServer, Resolve, Sample, ToolError
from tests.answering import Person, accept, text
from tests.conftest import Connect
from tests.waiting import pass_time


class Consent(BaseModel):
    ok: bool


async def confirm() -> Consent | Elicit[Consent]:
    return Elicit("Really?", Consent)


def shop(price: Callable[..., Any], *, asks: bool = False) -> MCPServer[Any]:
    """A server with a tool `pay` whose `total` rests on `price`, and which may ask first."""
    mcp = MCPServer("Shop")

    async def total(price: Annotated[int, Resolve(price)]) -> int:
        return price * 2

    async def pay(total: Annotated[int, Resolve(total)]) -> str:
        return f"paid {total}"

    async def asking_pay(ok: Annotated[Consent, Resolve(confirm)], total: Annotated[int, Resolve(total)]) -> str:
        return f"paid {total}"

    mcp.add_tool(asking_pay if asks else pay, name="pay")
    return mcp


def yes() -> Person:
    return Person({"confirm": accept(ok=True)})


async def no_price() -> int:
    raise ToolError("no price for 'Dune'")


def no_price_in_a_thread() -> int:
    raise ToolError("no price for 'Dune'")


async def no_price_to_open() -> AsyncIterator[int]:
    raise ToolError("no price for 'Dune'")
    yield 1


@pytest.mark.asking_revisions
@pytest.mark.parametrize("price", [no_price, no_price_in_a_thread, no_price_to_open])
@pytest.mark.parametrize("asks", [False, True])
async def test_the_text_of_a_resolvers_tool_error_reaches_the_client(
    in_memory: Connect, price: Callable[..., Any], asks: bool
) -> None:
    async with in_memory(shop(price, asks=asks), elicitation_callback=yes()) as client:
        result = await client.call_tool("pay")
    assert result.is_error
    assert text(result) == "Error executing tool pay: no price for 'Dune'"


async def crash() -> int:
    raise LookupError("password is hunter2")


def crash_in_a_thread() -> int:
    raise LookupError("password is hunter2")


async def crash_opening() -> AsyncIterator[int]:
    raise LookupError("password is hunter2")
    yield 1


async def crash_closing() -> AsyncIterator[int]:
    yield 1
    raise LookupError("password is hunter2")


@pytest.mark.asking_revisions
@pytest.mark.parametrize(
    ("price", "reason"),
    [
        (crash, "failed"),
        (crash_in_a_thread, "failed"),
        (crash_opening, "failed"),
        (crash_closing, "failed in its cleanup"),
    ],
)
@pytest.mark.parametrize("asks", [False, True])
async def test_of_any_other_exception_the_client_sees_only_the_resolver_and_its_path_and_the_log_has_the_traceback(
    in_memory: Connect, caplog: pytest.LogCaptureFixture, price: Callable[..., Any], reason: str, asks: bool
) -> None:
    async with in_memory(shop(price, asks=asks), elicitation_callback=yes()) as client:
        result = await client.call_tool("pay")
    name, tool = price.__name__, "asking_pay" if asks else "pay"
    assert result.is_error
    assert text(result) == (
        f"Error executing tool pay: resolver '{name}' {reason} ({tool} -> total -> total -> price -> {name})"
    )
    assert "LookupError: password is hunter2" in caplog.text
    assert "Traceback" in caplog.text


@pytest.mark.every_revision
async def test_of_a_bodys_exception_the_client_sees_only_the_tool(
    connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    mcp = MCPServer("Shop")

    @mcp.tool()
    async def pay() -> str:
        raise LookupError("password is hunter2")

    async with connect(mcp) as client:
        result = await client.call_tool("pay")
    assert result.is_error
    assert text(result) == "Error executing tool pay"
    assert "tool 'pay' failed" in caplog.text
    assert "LookupError: password is hunter2" in caplog.text


@pytest.mark.every_revision
@pytest.mark.parametrize(
    "raised",
    [SystemExit(3), GeneratorExit(), StopIteration(1), TimeoutError(), BaseExceptionGroup("g", [SystemExit(1)])],
)
@pytest.mark.parametrize("where", ["body", "resolver", "sync body", "sync resolver"])
async def test_what_an_author_raises_is_a_failure_of_the_tool_and_not_of_the_server(
    in_memory: Connect, where: str, raised: BaseException
) -> None:
    mcp = MCPServer[Any]("shop")

    async def fails() -> int:
        raise raised

    def fails_in_a_thread() -> int:
        raise raised

    async def works() -> int:
        return 1

    resolver = {"resolver": fails, "sync resolver": fails_in_a_thread}.get(where, works)
    body: Any = {"body": fails, "sync body": fails_in_a_thread}.get(where, works)

    if "body" in where:
        mcp.add_tool(body, name="tool")
    else:

        @mcp.tool()
        async def tool(value: Annotated[int, Resolve(resolver)]) -> str:
            return "never"

    async with in_memory(mcp) as client:
        assert text(await client.call_tool("tool")).startswith("Error executing tool tool")


@pytest.mark.asking_revisions
async def test_a_failure_is_logged_once(in_memory: Connect, caplog: pytest.LogCaptureFixture) -> None:
    async with in_memory(shop(crash, asks=True), elicitation_callback=yes()) as client:
        await client.call_tool("pay")
    assert len([record for record in caplog.records if record.levelno >= logging.ERROR]) == 1


async def throttled() -> int:
    raise MCPError(1234, "come back later", {"seconds": 5})


@pytest.mark.asking_revisions
@pytest.mark.parametrize("asks", [False, True])
async def test_an_mcp_error_of_a_resolver_is_a_json_rpc_error(in_memory: Connect, asks: bool) -> None:
    async with in_memory(shop(throttled, asks=asks), elicitation_callback=yes()) as client:
        with pytest.raises(MCPError) as error:
            await client.call_tool("pay")
    assert (error.value.code, error.value.message, error.value.data) == (1234, "come back later", {"seconds": 5})


@pytest.mark.every_revision
async def test_an_mcp_error_of_a_guard_is_a_json_rpc_error_and_nobody_is_asked(connect: Connect) -> None:
    mcp, person = MCPServer("Shop"), yes()

    async def allowed() -> None:
        raise MCPError(1403, "not you")

    @mcp.tool()
    async def pay(
        ok: Annotated[Consent, Resolve(confirm)], allowed: Annotated[None, Resolve(allowed, guard=True)]
    ) -> str:
        return "paid"

    async with connect(mcp, elicitation_callback=person) as client:
        with pytest.raises(MCPError, match="not you"):
            await client.call_tool("pay")
    assert person.asked == []


async def test_an_mcp_error_of_a_cleanup_is_a_json_rpc_error(in_memory: Connect) -> None:
    async def price() -> AsyncIterator[int]:
        yield 1
        raise MCPError(1234, "not saved")

    async with in_memory(shop(price)) as client:
        with pytest.raises(MCPError, match="not saved"):
            await client.call_tool("pay")


async def ends_in_a_cancellation_of_its_own() -> int:
    gone = asyncio.get_running_loop().create_future()
    gone.cancel()
    return await gone


@pytest.mark.every_revision
async def test_a_bodys_cancellation_of_its_own_is_a_failure_of_the_tool(connect: Connect) -> None:
    mcp = MCPServer("Shop")

    @mcp.tool()
    async def pay() -> str:
        return str(await ends_in_a_cancellation_of_its_own())

    async with connect(mcp) as client:
        call = asyncio.ensure_future(client.call_tool("pay"))
        await asyncio.wait({call})
    assert not call.cancelled()
    assert text(call.result()) == "Error executing tool pay"


@pytest.mark.timing
@pytest.mark.every_revision
async def test_a_timeout_names_the_resolver_to_the_client(connect: Connect) -> None:
    mcp = MCPServer("Shop")

    async def warehouse() -> int:
        await asyncio.Event().wait()
        return 1

    @mcp.tool()
    async def stock(copies: Annotated[int, Resolve(warehouse, timeout=0.02)]) -> str:
        return str(copies)

    async with connect(mcp) as client:
        result = await client.call_tool("stock")
    assert text(result) == (
        "Error executing tool stock: resolver 'warehouse' took longer than 0.02 s (stock -> copies -> warehouse)"
    )


@pytest.mark.asking_revisions
async def test_the_time_a_person_takes_does_not_count_towards_the_timeout(in_memory: Connect) -> None:
    mcp = MCPServer("Shop")

    async def slow_person(context: Any, params: Any) -> Any:
        await pass_time(10)
        return accept(ok=True)

    @mcp.tool()
    async def pay(ok: Annotated[Consent, Resolve(confirm, timeout=5)]) -> str:
        return "paid"

    async with in_memory(mcp, elicitation_callback=slow_person) as client:
        assert text(await client.call_tool("pay")) == "paid"


@pytest.mark.parametrize("sort", ["async", "sync"])
async def test_two_independent_resolvers_run_at_the_same_time_end_to_end(in_memory: Connect, sort: str) -> None:
    """Neither returns before the other has begun, so two that take 200 ms each take 200 ms together."""
    mcp = MCPServer("Shop")
    meeting, meeting_of_threads = asyncio.Barrier(2), threading.Barrier(2, timeout=20)

    async def waits() -> int:
        await meeting.wait()
        return 1

    async def waits_too() -> int:
        await meeting.wait()
        return 2

    def blocks() -> int:
        meeting_of_threads.wait()
        return 1

    def blocks_too() -> int:
        meeting_of_threads.wait()
        return 2

    one, two = (waits, waits_too) if sort == "async" else (blocks, blocks_too)

    @mcp.tool()
    async def add(one: Annotated[int, Resolve(one)], two: Annotated[int, Resolve(two)]) -> int:
        return one + two

    async with in_memory(mcp) as client:
        assert text(await asyncio.wait_for(client.call_tool("add"), 20)) == "3"


@pytest.mark.every_revision
async def test_what_was_to_be_sampled_is_not_told_to_the_client(
    in_memory: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    mcp = MCPServer[Any]("shop")

    async def sample() -> Sample:
        return Sample(cast("list[SamplingMessage]", ["secret text"]), max_tokens=5)

    @mcp.tool()
    async def tool(said: Annotated[Any, Resolve(sample)]) -> str:
        return "never"

    async with in_memory(mcp) as client:
        told = text(await client.call_tool("tool"))
    assert (
        told
        == "Error executing tool tool: resolver 'sample' returned a question that cannot be sent (tool -> said -> sample)"
    )
    assert "secret text" in caplog.text
