"""Ways around the rules that hostile clients and careless authors have found. Each was open once."""

import asyncio
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import date
from typing import Annotated, Any, cast

import pytest
from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult, SamplingMessage
from pydantic import AliasChoices, BaseModel, ConfigDict, Field
from pydantic.json_schema import SkipJsonSchema

from bespeak import Context, Elicit, MCPServer, RequestStateSecurity, Resolve, Sample, ToolError
from bespeak.aio.threads import THREADS
from bespeak.client import Client
from bespeak.resolve.asking.form_schemas import form_of
from tests.answering import Person, accept, text
from tests.conftest import Connect

ACCEPT: dict[str, Any] = {"action": "accept", "content": {"value": True}}


async def send(client: Client, name: str, **extra: Any) -> dict[str, Any]:
    return await client.session.request("tools/call", {"name": name, "arguments": {}, **extra})


def asks(key: str, state: str | None = None) -> InputRequiredResult:
    form = ElicitRequestFormParams(message=key, requested_schema={"type": "object", "properties": {}})
    return InputRequiredResult(input_requests={key: ElicitRequest(params=form)}, request_state=state)


# Nothing runs without what it waits for


async def cancels_itself() -> bool:
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().call_later(0.01, task.cancel)
    await asyncio.sleep(1)
    raise ToolError("not allowed")


async def takes_a_while() -> bool:
    await asyncio.sleep(0.03)
    return True


@pytest.mark.every_revision
@pytest.mark.parametrize("guard", [True, False])
async def test_a_resolver_whose_task_was_cancelled_by_somebody_is_a_failure(connect: Connect, guard: bool) -> None:
    mcp = MCPServer[Any]("shop")
    ran: list[Any] = []

    @mcp.tool()
    async def refund(
        allowed: Annotated[bool, Resolve(cancels_itself, guard=guard)],
        exists: Annotated[bool, Resolve(takes_a_while, guard=guard)],
    ) -> str:
        ran.append(allowed)
        return "refunded"

    async with connect(mcp) as client:
        result = await client.call_tool("refund")
    assert "resolver 'cancels_itself' raised CancelledError although nothing cancelled it" in text(result)
    assert ran == []


@pytest.mark.every_revision
@pytest.mark.parametrize("raised", [SystemExit(3), GeneratorExit(), BaseExceptionGroup("g", [SystemExit(1)])])
@pytest.mark.parametrize("where", ["body", "resolver", "sync body", "sync resolver"])
async def test_what_an_author_raises_is_a_failure_of_the_tool_and_not_of_the_server(
    connect: Connect, where: str, raised: BaseException
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

    async with connect(mcp) as client:
        assert text(await client.call_tool("tool")).startswith("Error executing tool tool")


# Questions made by hand


async def test_declaring_less_does_not_have_a_body_run_again(connect: Connect) -> None:
    mcp = MCPServer[Any]("shop")
    charged: list[int] = []

    @mcp.tool()
    async def pay(ctx: Context) -> str | InputRequiredResult:
        if ctx.request_state is None:
            return asks("pay", "1")
        charged.append(ctx.round)
        return asks("receipt", "2")

    async with connect(mcp, elicitation_callback=Person()) as able, connect(mcp) as unable:
        state = (await send(able, "pay"))["requestState"]
        for _ in range(3):
            with pytest.raises(Exception, match=r"must declare elicitation\.form"):
                await send(unable, "pay", requestState=state, inputResponses={"pay": {"action": "accept"}})
    assert charged == [2]


async def test_an_answer_nobody_asked_for_in_that_round_does_not_reach_the_author(connect: Connect) -> None:
    mcp = MCPServer[Any]("shop")

    @mcp.tool()
    async def pay(ctx: Context) -> str | InputRequiredResult:
        if ctx.request_state is None:
            return asks("amount", "1")
        return ", ".join(ctx.input_responses or {})

    async with connect(mcp, elicitation_callback=Person()) as client:
        state = (await send(client, "pay"))["requestState"]
        answers = {"amount": {"action": "accept"}, "approve": {"action": "accept"}}
        result = await send(client, "pay", requestState=state, inputResponses=answers)
    assert result["structuredContent"] == {"result": "amount"}


# Spent once, whatever the clock does


async def test_a_clock_that_jumps_forth_and_back_does_not_spend_an_approval_twice(connect: Connect) -> None:
    now = [1000.0]
    mcp = MCPServer[Any]("shop", request_state_security=RequestStateSecurity(clock=lambda: now[0]))
    paid: list[int] = []

    async def ask() -> Elicit[bool]:
        return Elicit("Pay?", bool)

    @mcp.tool()
    async def pay(sure: Annotated[bool, Resolve(ask, key="ask")]) -> str:
        paid.append(1)
        return "paid"

    async with connect(mcp, elicitation_callback=Person()) as client:
        retry = {"requestState": (await send(client, "pay"))["requestState"], "inputResponses": {"ask": ACCEPT}}
        await send(client, "pay", **retry)
        now[0] += 7200
        await send(client, "pay")  # another call comes to its question, and old claims are forgotten
        now[0] -= 7200
        again = await send(client, "pay", **retry)
    assert again["content"][0]["text"].endswith("the time for this call has run out; start a new call")
    assert paid == [1]


def seven(_: Any) -> int:
    return 7


async def test_a_principal_that_is_no_text_is_told_in_the_log(
    connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    security = RequestStateSecurity(bind_principal=cast("Any", seven))
    mcp = MCPServer[Any]("shop", request_state_security=security)

    async def ask() -> Elicit[bool]:
        return Elicit("Pay?", bool)

    @mcp.tool()
    async def pay(sure: Annotated[bool, Resolve(ask)]) -> str:
        return "paid"

    async with connect(mcp, elicitation_callback=Person()) as client:
        assert (await send(client, "pay"))["isError"]
    assert "bind_principal must return text or None, not int" in caplog.text


# Forms read only what they show


class Skipping(BaseModel):
    ok: bool
    approver: SkipJsonSchema[str] = "nobody"


class ByNameToo(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    ok: bool
    approver: str = Field("nobody", alias="by")


class SeveralNames(BaseModel):
    ok: bool
    approver: str = Field("nobody", validation_alias=AliasChoices("by", "approver"))


class Open(BaseModel):
    model_config = ConfigDict(extra="allow", populate_by_name=True)
    ok: bool
    approver: str = Field("nobody", alias="by")


@pytest.mark.parametrize("model", [Skipping, ByNameToo, SeveralNames, Open])
def test_a_name_the_form_does_not_show_fills_no_field(model: Any) -> None:
    assert form_of(model).value({"ok": True, "approver": "somebody"}).approver == "nobody"


def test_an_open_model_keeps_what_is_no_field_of_its_own() -> None:
    assert form_of(Open).value({"ok": True, "more": 1}).model_extra == {"more": 1}


@pytest.mark.parametrize("wanted", [float])
def test_a_number_no_float_can_hold_does_not_become_infinite(wanted: Any) -> None:
    assert form_of(wanted).faults({"value": 10**400}) == ["value: must be a number of ordinary size"]


# Nothing of an author's values reaches the client


@pytest.mark.every_revision
async def test_what_was_to_be_sampled_is_not_told_to_the_client(
    connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    mcp = MCPServer[Any]("shop")

    async def sample() -> Sample:
        return Sample(cast("list[SamplingMessage]", ["secret text"]), max_tokens=5)

    @mcp.tool()
    async def tool(said: Annotated[Any, Resolve(sample)]) -> str:
        return "never"

    async with connect(mcp) as client:
        told = text(await client.call_tool("tool"))
    assert told == "Error executing tool tool: resolver 'sample' asked what cannot be asked (tool -> said -> sample)"
    assert "secret text" in caplog.text


@pytest.mark.asking_revisions
async def test_the_default_of_one_call_is_not_the_default_of_the_next(connect: Connect) -> None:
    mcp = MCPServer[Any]("shop")

    async def ask() -> Elicit[bool]:
        return Elicit("Sure?", bool)

    @mcp.tool()
    async def tool(who: str, seen: Annotated[Any, Resolve(ask)] = Field(default_factory=list)) -> list[str]:  # noqa: B008
        seen.append(who)
        return seen

    async with connect(
        mcp, elicitation_callback=Person({"ask": [cast("Any", DECLINED), cast("Any", DECLINED)]})
    ) as client:
        for who in ("one", "two"):
            result = await client.call_tool("tool", {"who": who})
            assert result.structured_content == {"result": [who]}


DECLINED = accept().model_copy(update={"action": "decline", "content": None})


# Threads


async def test_clients_who_hang_up_do_not_pile_up_threads(connect: Connect, caplog: pytest.LogCaptureFixture) -> None:
    go_on = threading.Event()
    held: list[int] = []

    def slow() -> int:
        held.append(1)
        go_on.wait(30)
        held.pop()
        return 1

    mcp = MCPServer[Any]("shop")

    @mcp.tool()
    async def tool(value: Annotated[int, Resolve(slow)]) -> str:
        return "never"

    async with connect(mcp) as client:
        for _ in range(3):
            calls = [asyncio.create_task(client.call_tool("tool")) for _ in range(THREADS)]
            await asyncio.sleep(0.05)
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
        piled = len(held)
        go_on.set()
        assert piled <= THREADS
        # The places are free again when the threads have ended.
        async with asyncio.timeout(5):
            assert text(await client.call_tool("tool")) == "never"


# Results and arguments


@pytest.mark.every_revision
@pytest.mark.parametrize("value", ["\ud800", ToolError("\ud800")])
async def test_a_result_json_cannot_carry_is_a_failure_of_the_tool(connect: Connect, value: Any) -> None:
    mcp = MCPServer[Any]("shop")

    @mcp.tool()
    async def tool() -> str:
        if isinstance(value, Exception):
            raise value
        return value

    async with connect(mcp) as client:
        assert text(await client.call_tool("tool")) == "Error executing tool tool"


async def test_without_a_client_arguments_need_not_be_json() -> None:
    mcp = MCPServer[Any]("shop")

    async def ask(day: date) -> bool | Elicit[bool]:
        return True

    @mcp.tool()
    async def tool(day: date, sure: Annotated[bool, Resolve(ask)]) -> str:
        return day.isoformat()

    assert text(await mcp.call_tool("tool", {"day": date(2026, 7, 28)})) == "2026-07-28"


@pytest.mark.every_revision
async def test_a_parameter_named_like_a_renamed_one_keeps_its_own_value(connect: Connect) -> None:
    mcp = MCPServer[Any]("shop")

    @mcp.tool()
    async def tool(_x: str = "d", parameter_0: str = "e") -> str:
        return _x + parameter_0

    async with connect(mcp) as client:
        assert text(await client.call_tool("tool", {"_x": "1", "parameter_0": "2"})) == "12"


async def test_a_schema_changed_after_registration_changes_nothing() -> None:
    mcp, schema = MCPServer[Any]("shop"), cast("dict[str, Any]", {"type": "object", "properties": {}})

    @mcp.tool(input_schema=schema)
    async def tool(stock: Annotated[bool, Resolve(takes_a_while)]) -> str:
        return "x"

    schema["properties"]["stock"] = {"type": "boolean"}
    assert (await mcp.list_tools())[0].input_schema["properties"] == {}


async def test_a_lifespan_begun_while_another_ends_is_left_though_its_user_was_cancelled() -> None:
    diary: list[str] = []
    leaving = asyncio.Event()

    @asynccontextmanager
    async def lifespan(_: MCPServer[None]) -> AsyncGenerator[None]:
        diary.append("enter")
        try:
            yield
        finally:
            leaving.set()
            await asyncio.sleep(0.02)
            diary.append("exit")

    mcp = MCPServer("shop", lifespan=lifespan)

    async def use() -> None:
        async with mcp.running():
            pass

    first = asyncio.create_task(use())
    await leaving.wait()
    second = asyncio.create_task(use())
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.gather(first, second, return_exceptions=True)
    await asyncio.sleep(0.05)
    assert diary.count("enter") == diary.count("exit")


def test_keys_made_for_the_process_do_not_ask_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BESPEAK_STATE_KEYS", "short")
    assert RequestStateSecurity.ephemeral().shared is False
    with pytest.raises(ValueError, match="a state key needs at least 32 bytes"):
        RequestStateSecurity()
