"""`MockServer`: recorded conversations as clients of both eras see them, and what is said of a request that was not recorded."""

import asyncio
import itertools
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any

import pytest
from mcp_types import ElicitRequestParams, ElicitResult
from pydantic import BaseModel

from bespeak import Client, Context, Elicit, ElicitUrl, MCPError, MCPServer, Resolve
from bespeak.testing.cassettes.record_mode import RecordMode
from bespeak.testing.mock.mock_server import MockServer
from bespeak.testing.mock.tapes import load_tapes
from bespeak.testing.run_options import Options
from bespeak.testing.runner import Runner
from bespeak.testing.suite.loader import load_suite
from bespeak.testing.suite.plan import items_of
from bespeak.transports.interfaces import Outgoing
from bespeak.transports.memory import MemoryTransport

LEGACY, MODERN = "2025-11-25", "2026-07-28"
BOTH = pytest.mark.parametrize("era", [LEGACY, MODERN])
Json = dict[str, Any]


class City(BaseModel):
    city: str


class Units(BaseModel):
    units: str


async def ask_city(loc: str) -> Elicit[City]:
    return Elicit(f"Which city is {loc}?", City)


async def ask_units(city: Annotated[City, Resolve(ask_city, key="city")]) -> Elicit[Units]:
    return Elicit(f"Units in {city.city}?", Units)


OPENED = itertools.cycle([False, True])


async def ask_page() -> bool | ElicitUrl:
    return next(OPENED) or ElicitUrl("Sign in.", "https://shop.example/sign-in")


mcp = MCPServer("desk", version="1")


@mcp.tool()
async def forecast(
    loc: str,
    ctx: Context,
    city: Annotated[City, Resolve(ask_city, key="city")],
    units: Annotated[Units, Resolve(ask_units, key="units")],
) -> str:
    await ctx.report_progress(1, 2, "half")
    await ctx.info("looking")
    return f"{city.city} in {units.units}"


@mcp.tool()
async def sign_in(page: Annotated[bool, Resolve(ask_page, key="page")]) -> str:
    return "signed in"


COUNT = [0]


@mcp.tool()
async def count(step: int = 1) -> str:
    COUNT[0] += step
    return str(COUNT[0])


@mcp.prompt()
async def greet(name: str) -> str:
    return f"Hello {name}"


@mcp.resource("till://log")
async def log() -> str:
    return "empty"


SUITE = """
version: 1
servers: {desk: {python: "tests.testing.mock.test_mock_server:mcp"}}
eras: [2025-11-25, 2026-07-28]
redact: [arguments.secret]
tests:
  - {name: Rome, tool: forecast, arguments: {loc: SFO}, inputResponses: {city: Rome, units: C}}
  - {name: Oslo, tool: forecast, arguments: {loc: SFO}, inputResponses: {city: Oslo, units: F}}
  - {name: declined, tool: forecast, arguments: {loc: SFO}, inputResponses: {city: decline}, expect: {isError: true}}
  - {name: page, tool: sign_in, inputResponses: {page: {url: done}}}
  - name: counts
    tool: count
    arguments: {step: 1}
    verify: {tool: count, arguments: {step: 1}}
  - {name: greets, prompt: greet, arguments: {name: Ada}}
  - {name: reads, resource: "till://log"}
  - {name: fails, tool: nothing, expect: {error: {code: -32602}}}
  - {name: left, tool: forecast, arguments: {loc: LHR}, stop: {after: 1}}
"""
HOSTILE = """
version: 1
servers: {desk: {python: "tests.testing.mock.test_mock_server:mcp"}}
eras: [2026-07-28]
tests:
  - name: an altered state
    tool: forecast
    arguments: {loc: SFO}
    inputResponses: {city: Rome}
    tamper: {round: 1, requestState: flip}
  - name: a dropped state
    tool: forecast
    arguments: {loc: SFO}
    inputResponses: {city: Rome}
    tamper: {round: 1, requestState: drop}
  - name: a lost response
    tool: forecast
    arguments: {loc: SFO}
    inputResponses: {city: Rome, units: C}
    fault: {round: 2, drop: response}
    retry: 1
"""


def recorded(folder: Path, suite: str) -> Path:
    """The folder of the cassettes of a suite."""
    path = folder / "desk.bespeak.yaml"
    path.write_text(suite)
    options = Options(record=RecordMode.REWRITE, cassettes=folder / "tapes")

    async def record() -> None:
        runner = Runner(options)
        try:
            for item in items_of(load_suite(path)):
                result = await runner.run(item)
                assert result.passed, result
        finally:
            await runner.close()

    asyncio.run(record())
    return folder / "tapes"


def named(folder: Path, part: str) -> list[Path]:
    """The cassettes with this in their names."""
    return sorted(folder.glob(f"*{part}*.json"))


@pytest.fixture(scope="module")
def tapes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded(tmp_path_factory.mktemp("mock"), SUITE)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded(tmp_path_factory.mktemp("hostile"), HOSTILE)


@pytest.fixture
def mock(tapes: Path) -> MockServer:
    return MockServer(load_tapes([tapes]))


def answering(**answers: Any) -> Callable[..., Awaitable[ElicitResult]]:
    async def answer(context: Any, params: ElicitRequestParams) -> ElicitResult:
        schema: Any = getattr(params, "requested_schema", None)
        if schema is None:
            return ElicitResult(action="accept")
        field = next(iter(schema["properties"]))
        if answers[field] is None:
            return ElicitResult(action="decline")
        return ElicitResult(action="accept", content={field: answers[field]})

    return answer


def client(server: MockServer, era: str, **answers: Any) -> Client:
    return Client(server, mode=era, elicitation_callback=answering(**answers) if answers else None)


# Conversations


@BOTH
@pytest.mark.parametrize(
    ("answers", "said"),
    [({"city": "Rome", "units": "C"}, "Rome in C"), ({"city": "Oslo", "units": "F"}, "Oslo in F")],
)
async def test_recorded_conversations_are_held_again_and_the_answers_decide_which(
    mock: MockServer, era: str, answers: Json, said: str
) -> None:
    async with client(mock, era, **answers) as one:
        for _ in range(2):
            result = await one.call_tool("forecast", {"loc": "SFO"})
            assert result.structured_content == {"result": said}


@BOTH
async def test_a_recorded_decline_is_a_recorded_answer(mock: MockServer, era: str) -> None:
    async with client(mock, era, city=None) as one:
        assert (await one.call_tool("forecast", {"loc": "SFO"})).is_error


@BOTH
async def test_a_page_is_opened_again(mock: MockServer, era: str) -> None:
    async with client(mock, era, any="page") as one:
        assert (await one.call_tool("sign_in")).structured_content == {"result": "signed in"}


@BOTH
async def test_the_same_request_gets_the_recorded_responses_in_their_order_and_then_the_last(
    tapes: Path, era: str
) -> None:
    async with client(MockServer(load_tapes([tapes])), era) as one:
        said = [(await one.call_tool("count", {"step": 1})).structured_content for _ in range(3)]
    first = int(said[0]["result"])  # pyright: ignore[reportOptionalSubscript]
    assert [int(each["result"]) for each in said if each] == [first, first + 1, first + 1]


@BOTH
async def test_prompts_resources_and_errors_are_served(mock: MockServer, era: str) -> None:
    async with client(mock, era) as one:
        assert (await one.get_prompt("greet", {"name": "Ada"})).messages[0].content.text == "Hello Ada"  # pyright: ignore
        assert (await one.read_resource("till://log")).contents[0].text == "empty"  # pyright: ignore
        with pytest.raises(MCPError) as caught:
            await one.call_tool("nothing")
        assert caught.value.code == -32602
        assert "never recorded" not in str(caught.value)


# Lists


@BOTH
async def test_what_was_called_is_listed_with_the_types_of_its_arguments(mock: MockServer, era: str) -> None:
    async with client(mock, era) as one:
        assert one.protocol_version == era
        tools = {tool.name: tool.input_schema for tool in (await one.list_tools()).tools}
        assert tools["forecast"] == {
            "type": "object",
            "properties": {"loc": {"type": "string"}},
            "required": ["loc"],
        }
        assert tools["sign_in"] == {"type": "object", "properties": {}}
        assert tools["count"]["properties"] == {"step": {"type": "integer"}}
        (prompt,) = (await one.list_prompts()).prompts
        assert (prompt.name, [each.name for each in prompt.arguments or []]) == ("greet", ["name"])
        assert [str(each.uri) for each in (await one.list_resources()).resources] == ["till://log"]
        assert (await one.list_resource_templates()).resource_templates == []


@BOTH
async def test_what_nobody_recorded_is_not_declared_and_has_no_list(tapes: Path, era: str) -> None:
    async with client(MockServer(load_tapes(named(tapes, "declined"))), era) as one:
        assert one.server_capabilities is not None
        assert one.server_capabilities.prompts is None
        for listed in (one.list_prompts, one.list_resources, one.list_resource_templates):
            with pytest.raises(MCPError) as caught:
                await listed()
            assert caught.value.code == -32601


async def test_a_client_of_any_era_finds_what_was_recorded(tapes: Path) -> None:
    async with client(MockServer(load_tapes([tapes])), "auto") as one:
        assert one.protocol_version == MODERN
    older = MockServer(load_tapes(named(tapes, "2025")))
    async with client(older, "auto", city="Rome", units="C") as one:
        assert one.protocol_version == LEGACY
        assert (await one.call_tool("forecast", {"loc": "SFO"})).structured_content == {"result": "Rome in C"}


# What was not recorded


async def refused(server: MockServer, era: str, tool: str, arguments: Json, **answers: Any) -> MCPError:
    async with client(server, era, **answers) as one:
        with pytest.raises(MCPError) as caught:
            await one.call_tool(tool, arguments)
    return caught.value


@BOTH
async def test_a_tool_that_was_never_recorded_gets_a_list_of_what_was(mock: MockServer, era: str) -> None:
    error = await refused(mock, era, "pay", {})
    assert error.code == -32602
    assert error.message.startswith("never recorded: tools/call pay; recorded are ")
    assert {"tools/call forecast", "prompts/get greet"} <= set(error.message.partition("are ")[2].split(", "))


@BOTH
async def test_other_arguments_diverge_at_the_first_difference(mock: MockServer, era: str) -> None:
    error = await refused(mock, era, "forecast", {"loc": "OSL"})
    assert error.message.startswith("diverged at round 0: turns[0].sent.arguments.loc: expected ")
    assert ', got "OSL"; see desk-' in error.message
    assert set(error.data) == {"cassette", "path", "expected", "actual"}
    assert (error.data["path"], error.data["actual"]) == ("turns[0].sent.arguments.loc", "OSL")


async def test_a_question_that_was_left_unanswered_is_asked_and_no_answer_to_it_is_known(mock: MockServer) -> None:
    error = await refused(mock, LEGACY, "forecast", {"loc": "LHR"}, city="Rome")
    assert error.message.startswith("diverged at round 1: turns[0].answered: was never recorded")
    error = await refused(mock, MODERN, "forecast", {"loc": "LHR"}, city="Rome")
    assert error.message.startswith("never recorded: nothing follows the questions in desk-left-2026")


@BOTH
async def test_another_answer_diverges_at_its_round(mock: MockServer, era: str) -> None:
    error = await refused(mock, era, "forecast", {"loc": "SFO"}, city="Rome", units="K")
    assert error.message.startswith("diverged at round 2: turns[1].answered")
    assert 'expected "C", got "K"' in error.message


@BOTH
async def test_a_client_that_cannot_be_asked_is_told_what_to_declare(mock: MockServer, era: str) -> None:
    error = await refused(mock, era, "forecast", {"loc": "SFO"})
    assert error.code == -32021
    assert error.message == "the recorded server asks here; the client must declare elicitation.form"
    assert error.data == {"requiredCapabilities": {"elicitation": {"form": {}}}}


async def test_a_client_that_answers_a_pushed_question_with_an_error_diverges(mock: MockServer) -> None:
    async def failing(context: Any, params: Any) -> ElicitResult:
        raise RuntimeError("no terminal")

    async with Client(mock, mode=LEGACY, elicitation_callback=failing) as one:
        with pytest.raises(Exception, match=r"no terminal|answered the question"):
            await one.call_tool("forecast", {"loc": "SFO"})


@BOTH
async def test_a_method_that_was_never_recorded_is_unknown(mock: MockServer, era: str) -> None:
    async with client(mock, era) as one:
        with pytest.raises(MCPError) as caught:
            await one.session.request("completion/complete", {})
    assert caught.value.code == -32601
    assert caught.value.message.startswith("never recorded: completion/complete; recorded are ")


# Single messages


async def sent(
    server: MockServer, method: str, params: Json, version: str = MODERN, **meta: Any
) -> tuple[Json, list[Json]]:
    """The response to a modern request, and its notifications."""
    stamped: Json = {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
        **meta,
    }
    message: Json = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": stamped}}
    heard: list[Json] = []
    async with MemoryTransport(server) as transport:
        response = await transport.exchange(
            Outgoing(1, method, json.dumps(message).encode(), {}), lambda one: heard.append(json.loads(one))
        )
    return json.loads(response), heard


CALL: Json = {"name": "forecast", "arguments": {"loc": "SFO"}}


def accepted(params: Json, state: str | None, **content: Any) -> Json:
    """The retry of a round of one question."""
    (key,) = params["inputRequests"]
    told = {**CALL, "inputResponses": {key: {"action": "accept", "content": content}}}
    return told if state is None else {**told, "requestState": state}


async def last_round(server: MockServer, **meta: Any) -> tuple[Json, list[Json]]:
    first, _ = await sent(server, "tools/call", CALL)
    second, _ = await sent(
        server, "tools/call", accepted(first["result"], first["result"]["requestState"], city="Rome")
    )
    return await sent(
        server, "tools/call", accepted(second["result"], second["result"]["requestState"], units="C"), **meta
    )


async def test_each_state_is_new_and_says_nothing(mock: MockServer) -> None:
    states = [(await sent(mock, "tools/call", CALL))[0]["result"]["requestState"] for _ in range(2)]
    assert len(set(states)) == 2


async def test_a_state_that_the_mock_has_not_handed_out_is_refused(mock: MockServer) -> None:
    first, _ = await sent(mock, "tools/call", CALL)
    token = first["result"]["requestState"]
    for state in (token + "x", ""):
        said, _ = await sent(mock, "tools/call", accepted(first["result"], state, city="Rome"))
        assert said["error"]["message"] == "diverged: the requestState is not one that this mock has handed out"
        assert token not in json.dumps(said)


async def test_answers_without_their_state_are_refused(mock: MockServer) -> None:
    first, _ = await sent(mock, "tools/call", CALL)
    said, _ = await sent(mock, "tools/call", accepted(first["result"], None, city="Rome"))
    assert said["error"]["message"] == "diverged: the answers came without the requestState of the round they belong to"


async def test_a_state_without_answers_diverges(mock: MockServer) -> None:
    first, _ = await sent(mock, "tools/call", CALL)
    said, _ = await sent(mock, "tools/call", {**CALL, "requestState": first["result"]["requestState"]})
    assert said["error"]["message"].startswith("diverged at round 1: turns[0].answered: ")


async def test_notifications_go_to_those_who_asked_for_them(mock: MockServer) -> None:
    _, silence = await last_round(mock)
    assert silence == []
    _, heard = await last_round(mock, progressToken="p", **{"io.modelcontextprotocol/logLevel": "info"})
    assert [one["method"] for one in heard] == ["notifications/progress", "notifications/message"]
    assert heard[0]["params"]["progressToken"] == "p"
    _, fewer = await last_round(mock, **{"io.modelcontextprotocol/logLevel": "error"})
    assert fewer == []


async def test_a_revision_at_which_nothing_was_recorded_is_refused_with_those_that_were(tapes: Path) -> None:
    older = MockServer(load_tapes(named(tapes, "2025")))
    said, _ = await sent(older, "tools/call", CALL)
    assert said["error"]["code"] == -32022
    assert said["error"]["data"] == {"supported": [LEGACY], "requested": MODERN}
    found, _ = await sent(older, "server/discover", {})
    assert found["error"]["code"] == -32601


async def test_every_result_names_the_mock(mock: MockServer) -> None:
    said, _ = await sent(mock, "tools/list", {})
    assert said["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "bespeak-mock"


# Recorded attacks


async def test_recorded_attacks_are_answered_as_they_were(hostile: Path) -> None:
    server = MockServer(load_tapes([hostile]))
    first, _ = await sent(server, "tools/call", CALL)
    altered, _ = await sent(server, "tools/call", accepted(first["result"], "altered", city="Rome"))
    assert altered["error"]["code"] == -32602
    assert "diverged" not in altered["error"]["message"]
    dropped, _ = await sent(server, "tools/call", accepted(first["result"], None, city="Rome"))
    assert dropped["result"]["resultType"] == "input_required"


async def test_a_request_that_was_recorded_twice_may_be_sent_twice(hostile: Path) -> None:
    (lost,) = named(hostile, "lost")
    server = MockServer(load_tapes([lost]))
    first, _ = await sent(server, "tools/call", CALL)
    second, _ = await sent(
        server, "tools/call", accepted(first["result"], first["result"]["requestState"], city="Rome")
    )
    last = accepted(second["result"], second["result"]["requestState"], units="C")
    said = [(await sent(server, "tools/call", last))[0]["result"]["structuredContent"] for _ in range(2)]
    assert said == [{"result": "Rome in C"}] * 2


async def test_a_recording_that_ends_with_a_question_says_so(hostile: Path, tmp_path: Path) -> None:
    (altered,) = named(hostile, "altered")
    cassette: Json = json.loads(altered.read_text())
    cassette["turns"] = cassette["turns"][:1]
    (tmp_path / "half.json").write_text(json.dumps(cassette))
    server = MockServer(load_tapes([tmp_path]))
    first, _ = await sent(server, "tools/call", CALL)
    said, _ = await sent(server, "tools/call", accepted(first["result"], first["result"]["requestState"], city="Rome"))
    assert said["error"]["message"] == "never recorded: nothing follows the questions in half.json"
