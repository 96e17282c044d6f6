"""Single requests: fresh ids, metadata, questions by hand, time limits, cancellation and lost responses."""

import asyncio
from typing import Annotated, Any

import pytest
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    LOG_LEVEL_META_KEY,
    PROTOCOL_VERSION_META_KEY,
    CallToolResult,
    ElicitRequestParams,
    ElicitResult,
    Implementation,
    InputRequiredResult,
)
from pydantic import BaseModel

from bespeak import Client, Context, Elicit, MCPServer, Resolve
from bespeak.client import ClientRequestContext, Lost
from tests.answering import accept, text
from tests.client.sample_questions import FORM
from tests.client.scripted_transport import (
    COMPLETE,
    REGION,
    Fake,
    Wire,
    asking,
    listing,
    lost,
)
from tests.conftest import Connect
from tests.waiting import eventually, pass_time

# What is sent


async def test_every_request_has_a_fresh_id_and_the_full_metadata() -> None:
    fake = Fake(COMPLETE)
    info = Implementation(name="tester", version="9")
    async with Client(fake, client_info=info, log_level="warning") as client:
        await client.call_tool("tool", {"a": 1}, meta={"com.example/x": 1})
        await client.call_tool("tool")
    first, second = fake.requests
    assert first["id"] != second["id"]
    assert first["jsonrpc"] == "2.0"
    assert first["method"] == "tools/call"
    assert first["params"]["name"] == "tool"
    assert first["params"]["arguments"] == {"a": 1}
    standing = {
        PROTOCOL_VERSION_META_KEY: "2026-07-28",
        CLIENT_CAPABILITIES_META_KEY: {},
        CLIENT_INFO_META_KEY: {"name": "tester", "version": "9"},
        LOG_LEVEL_META_KEY: "warning",
    }
    assert first["params"]["_meta"] == {**standing, "com.example/x": 1}
    assert second["params"]["_meta"] == standing


async def test_a_caller_s_metadata_cannot_displace_the_protocol_s() -> None:
    fake = Fake(COMPLETE)
    async with Client(fake) as client:
        await client.call_tool("tool", meta={PROTOCOL_VERSION_META_KEY: "1999-01-01", CLIENT_CAPABILITIES_META_KEY: 5})
    assert fake.params[0]["_meta"][PROTOCOL_VERSION_META_KEY] == "2026-07-28"
    assert fake.params[0]["_meta"][CLIENT_CAPABILITIES_META_KEY] == {}


CIRCLE: dict[str, Any] = {}
CIRCLE["again"] = CIRCLE


@pytest.mark.parametrize("value", [object(), "\ud800", float("nan"), CIRCLE])
async def test_an_argument_that_json_cannot_carry_is_a_type_error_with_its_name_and_nothing_is_sent(value: Any) -> None:
    wire = Wire(listing(REGION), COMPLETE)
    async with Client(wire) as client:
        await client.list_tools()
        for name, arguments, told in [
            (
                "buy",
                {"sent": [1], "other": value},
                "the argument 'other' of tools/call cannot be sent: JSON cannot carry it",
            ),
            ("buy", {"region": value}, "the argument 'region' of tools/call cannot be sent: JSON cannot carry it"),
            ("buy\ud800", {}, "the params of tools/call cannot be sent: JSON cannot carry them"),
        ]:
            with pytest.raises(TypeError, match=told):
                await client.call_tool(name, arguments)
    assert wire.calls == []


# By hand


async def test_a_session_returns_the_question_instead_of_answering_it() -> None:
    fake = Fake(asking({"q": FORM}, "s1"), COMPLETE)
    async with Client(fake) as client:
        asked = await client.session.call_tool("tool", {"a": 1}, allow_input_required=True)
        assert isinstance(asked, InputRequiredResult)
        assert asked.request_state == "s1"
        answers = {"q": ElicitResult(action="accept", content={"sure": True})}
        done = await client.session.call_tool("tool", {"a": 1}, input_responses=answers, request_state="s1")
    assert isinstance(done, CallToolResult)
    assert fake.params[1]["inputResponses"] == {"q": {"action": "accept", "content": {"sure": True}}}
    assert fake.params[1]["requestState"] == "s1"


async def test_a_question_that_the_caller_does_not_expect_is_an_error() -> None:
    async with Client(Fake(asking({"q": FORM}))) as client:
        with pytest.raises(
            RuntimeError, match=r"'tool' requires input; pass allow_input_required=True or use Client\.call_tool"
        ):
            await client.session.call_tool("tool")


async def test_raw_answers_and_an_empty_state_are_sent_as_they_are() -> None:
    fake = Fake(COMPLETE)
    async with Client(fake) as client:
        await client.session.call_tool("tool", input_responses={"q": {"raw": None}}, request_state="")
        await client.session.call_tool("tool")
    assert (fake.params[0]["inputResponses"], fake.params[0]["requestState"]) == ({"q": {"raw": None}}, "")
    assert not {"inputResponses", "requestState"} & fake.params[1].keys()


# Time


async def never(request: Any, notify: Any) -> Any:
    await asyncio.Event().wait()


@pytest.mark.timing
@pytest.mark.parametrize(("own", "per_call"), [(5, 0.01), (0.01, None)])
async def test_the_time_limit_is_that_of_the_call_or_of_the_client(own: float, per_call: float | None) -> None:
    async with Client(Fake(never), read_timeout_seconds=own) as client:
        with pytest.raises(TimeoutError, match=r"no answer to tools/call within 0\.01 s"):
            await client.call_tool("tool", read_timeout_seconds=per_call)


async def test_a_timeout_of_the_transport_s_own_is_left_as_it_is() -> None:
    def fail(request: Any, notify: Any) -> Any:
        raise TimeoutError("connect timed out")

    async with Client(Fake(fail), read_timeout_seconds=5) as client:
        with pytest.raises(TimeoutError, match="connect timed out"):
            await client.call_tool("tool")


@pytest.mark.timing
@pytest.mark.every_revision
@pytest.mark.parametrize("how", ["cancel", "timeout"])
async def test_a_call_that_is_cancelled_or_times_out_cancels_the_server_s_handler(connect: Connect, how: str) -> None:
    mcp = MCPServer("shop")
    ended: list[str] = []
    started = asyncio.Event()

    @mcp.tool()
    async def tool() -> None:
        started.set()
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    async with connect(mcp) as client:
        call = asyncio.create_task(client.call_tool("tool", read_timeout_seconds=0.05 if how == "timeout" else None))
        starting = asyncio.create_task(started.wait())
        await asyncio.wait({call, starting}, return_when=asyncio.FIRST_COMPLETED)
        while not started.is_set():  # on a busy machine the time may be up before the server has begun
            call = asyncio.create_task(client.call_tool("tool", read_timeout_seconds=1))
            await asyncio.wait({call, starting}, return_when=asyncio.FIRST_COMPLETED)
        if how == "cancel":
            call.cancel()
        await asyncio.wait({call})
        await eventually(lambda: ended)
        assert ended == ["cancelled"]


@pytest.mark.timing
@pytest.mark.long
async def test_a_timeout_counts_each_request_and_never_the_time_a_callback_takes(connect: Connect) -> None:
    mcp = MCPServer("shop")

    class Sure(BaseModel):
        sure: bool

    async def confirm() -> Elicit[Sure]:
        return Elicit("Sure?", Sure)

    @mcp.tool()
    async def buy(sure: Annotated[Sure, Resolve(confirm)], ctx: Context) -> str:
        await ctx.report_progress(1, 1)
        return f"{sure.sure}"

    seen: list[float] = []

    async def slow_person(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        await pass_time(10)
        return accept(sure=True)

    async def slow_progress(progress: float, total: float | None, message: str | None) -> None:
        await asyncio.sleep(1.2)  # the answer arrives meanwhile, which takes real time
        seen.append(progress)

    async with connect(mcp, elicitation_callback=slow_person, read_timeout_seconds=1) as client:
        assert text(await client.call_tool("buy", progress_callback=slow_progress)) == "True"
    assert seen == [1]


# Lost responses


@pytest.mark.parametrize("method", ["tools/list", "server/discover"])
async def test_a_request_that_only_reads_is_sent_again_once_with_an_id_of_its_own(method: str) -> None:
    wire = Wire(lost, listing(REGION))
    async with Client(wire) as client:
        if method == "server/discover":
            wire._discovered = lost  # pyright: ignore[reportPrivateUsage] - it connects first
            with pytest.raises(Lost):
                await client.session.discover()
        else:
            assert (await client.list_tools()).tools[0].name == "buy"
    first, second = wire.sent[1:]
    assert (first.method, second.method) == (method, method)
    assert first.id != second.id
    assert first.headers == second.headers


@pytest.mark.parametrize(("method", "times"), [("tools/list", 2), ("tools/call", 1)])
async def test_a_response_that_is_lost_again_or_of_a_call_that_may_have_acted_is_an_error(
    method: str, times: int
) -> None:
    wire = Wire(lost)
    async with Client(wire) as client:
        with pytest.raises(Lost, match=r"the connection broke before the response arrived; whether .* is not known"):
            await client.session.request(method, {})
    assert wire.methods[1:] == [method] * times


@pytest.mark.parametrize("error", [ConnectionError("cannot connect"), TimeoutError("went silent")])
async def test_what_is_not_lost_is_not_sent_again(error: Exception) -> None:
    def fail(request: Any, notify: Any) -> Any:
        raise error

    wire = Wire(fail)
    async with Client(wire) as client:
        with pytest.raises(type(error), match=str(error)):
            await client.list_tools()
    assert wire.methods[1:] == ["tools/list"]
