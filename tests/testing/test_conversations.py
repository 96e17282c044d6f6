"""Conversations in code (testing.md sections 1, 2 and 5): `converse` and its fixture, scripted answers, both eras, any server."""

import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import pytest
from mcp_types import CreateMessageResult, ListRootsResult, SamplingMessage, TextContent
from pydantic import BaseModel

from bespeak import Context, Elicit, ElicitationResult, ListRoots, MCPServer, Resolve, Sample, StdioServerParameters
from bespeak.resolve.errors import ToolError
from bespeak.testing import ConversationFailed, Conversed, Profile
from bespeak.testing import converse as hold
from tests.testing.canned import TOKEN, Canned, Gone, Silent, asking, error, form, listing, told

Converse = Callable[..., Awaitable[Conversed]]
LEGACY, MODERN = "2025-11-25", "2026-07-28"


class City(BaseModel):
    city: str


class Stay(BaseModel):
    nights: int
    room: str = "single"


async def look_up(loc: str) -> str:
    return f"the town of {loc}"


async def ask_city(place: Annotated[str, Resolve(look_up)]) -> Elicit[City]:
    return Elicit(f"Which city is {place}?", City)


async def ask_stay(city: Annotated[City, Resolve(ask_city, key="city")]) -> Elicit[Stay]:
    return Elicit(f"How long in {city.city}?", Stay)


async def ask_model() -> Sample:
    return Sample([SamplingMessage(role="user", content=TextContent(type="text", text="Well?"))], max_tokens=9)


async def ask_roots() -> ListRoots:
    return ListRoots()


def desk() -> MCPServer[Any]:
    mcp = MCPServer("desk", version="1")

    @mcp.tool()
    async def book(
        loc: str,
        city: Annotated[City, Resolve(ask_city, key="city")],
        stay: Annotated[Stay, Resolve(ask_stay, key="stay")],
    ) -> dict[str, Any]:
        return {"city": city.city, "nights": stay.nights, "room": stay.room}

    @mcp.tool()
    async def visit(city: Annotated[ElicitationResult[City], Resolve(ask_city, key="city")], loc: str) -> str:
        return city.action

    @mcp.tool()
    async def think(answer: Annotated[CreateMessageResult, Resolve(ask_model, key="model")]) -> str:
        assert isinstance(answer.content, TextContent)
        return answer.content.text

    @mcp.tool()
    async def where(roots: Annotated[ListRootsResult, Resolve(ask_roots, key="roots")]) -> str:
        return " ".join(str(root.uri) for root in roots.roots)

    @mcp.tool()
    async def fail(ctx: Context) -> str:
        await ctx.info("about to fail")
        raise ToolError("there is no room")

    return mcp


def booking(**more: Any) -> dict[str, Any]:
    return {"arguments": {"loc": "SFO"}, "answers": {"city": "Rome", "stay": {"accept": {"nights": 2}}}, **more}


# Both eras


async def test_one_script_serves_both_eras(converse: Converse, bespeak_era: str) -> None:
    held = await converse(desk(), "book", **booking())
    assert held.structured == {"city": "Rome", "nights": 2, "room": "single"}
    assert held.asked == ["city", "stay"]
    assert [list(one.asked.values()) for one in held.rounds] == [
        ["Which city is the town of SFO?"],
        ["How long in Rome?"],
    ]
    assert (held.version, held.is_error, held.error) == (bespeak_era, False, None)


async def test_every_way_to_answer_works_in_both_eras(converse: Converse) -> None:
    mcp = desk()
    said = [
        await converse(mcp, "visit", {"loc": "a"}, answers={"city": {"accept": {"city": "Rome"}}}),
        await converse(mcp, "visit", {"loc": "a"}, answers={"city": "decline"}),
        await converse(mcp, "visit", {"loc": "a"}, answers={"city": "cancel"}),
        await converse(mcp, "think", answers={"model": {"sample": "hm"}}),
        await converse(mcp, "where", answers={"roots": {"roots": ["file:///a", {"uri": "file:///b", "name": "b"}]}}),
        await converse(mcp, "visit", {"loc": "a"}, answers=[{"id": "city", "value": "Rome"}]),
        await converse(mcp, "visit", {"loc": "a"}, answers=[{"otherwise": "decline"}]),
        await converse(
            mcp, "visit", {"loc": "a"}, answers=[{"when": {"message": {"matches": "(?i)CITY"}}, "answer": "Rome"}]
        ),
    ]
    expected = "accept decline cancel hm file:///a file:///b accept decline accept"
    assert " ".join(one.text for one in said) == expected


@pytest.mark.parametrize(
    ("era", "spoken"),
    [("auto", MODERN), ("modern", MODERN), ("legacy", LEGACY), ("2025-06-18", "2025-06-18"), (LEGACY, LEGACY)],
)
async def test_an_era_is_a_revision_or_a_word_for_one(era: str, spoken: str) -> None:
    assert (await hold(desk(), "book", **booking(), era=era)).version == spoken


@pytest.mark.parametrize("era", ["1999", "", "MODERN"])
async def test_an_unknown_era_is_refused_with_what_there_is(era: str) -> None:
    with pytest.raises(ValueError, match=rf"modern, legacy .*2025-06-18.*not {era!r}"):
        await hold(desk(), "book", **booking(), era=era)


@pytest.mark.bespeak_eras("2025-06-18")
async def test_a_mark_says_at_which_revisions(converse: Converse, bespeak_era: str) -> None:
    assert bespeak_era == "2025-06-18"
    assert (await converse(desk(), "book", **booking())).version == "2025-06-18"


@pytest.mark.bespeak_eras(LEGACY)
async def test_a_single_call_may_be_held_at_another_revision(converse: Converse) -> None:
    assert (await converse(desk(), "book", **booking(), era=MODERN)).version == MODERN


# Strict both ways


async def test_a_question_without_an_answer_fails_and_says_what_to_write(converse: Converse) -> None:
    with pytest.raises(ConversationFailed, match=r"there is no answer to 'stay' \(How long in Rome\?\)") as failed:
        await converse(desk(), "book", {"loc": "SFO"}, answers={"city": "Rome"})
    assert "answers={'stay': {'accept': {'nights': 0" in str(failed.value)


async def test_a_missing_answer_comes_with_the_names_of_those_that_were_not_used(converse: Converse) -> None:
    with pytest.raises(ConversationFailed) as failed:
        await converse(desk(), "book", {"loc": "SFO"}, answers={"city": "Rome", "stray": 2})
    assert "(How long in Rome?); not used so far: 'stray'; answers={'stay': " in str(failed.value)


async def test_an_answer_without_a_question_fails(converse: Converse) -> None:
    with pytest.raises(
        ConversationFailed, match=r"the answer 'units' \(answers\) was not used: the server never asked for it"
    ):
        await converse(desk(), "visit", {"loc": "a"}, answers={"city": "Rome", "units": "C"})


async def test_a_rule_that_was_never_needed_fails_but_one_for_the_rest_may_stay_unused(converse: Converse) -> None:
    rules = [{"when": {"key": "city"}, "answer": "Rome"}, {"when": {"key": "units"}, "answer": "C"}]
    with pytest.raises(ConversationFailed, match=r"the answer answers\[1\] was not used: no question fits it"):
        await converse(desk(), "visit", {"loc": "a"}, answers=rules)
    await converse(desk(), "visit", {"loc": "a"}, answers=[rules[0], {"otherwise": "decline"}])


async def test_an_answer_that_does_not_fit_is_not_sent(converse: Converse) -> None:
    with pytest.raises(ConversationFailed, match=r"'stay' does not fit its form: nights: must be a whole number"):
        await converse(desk(), "book", **booking(answers={"city": "Rome", "stay": {"accept": {"nights": "two"}}}))


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ("Rome", "answers are a map of key to answer, or a list"),
        ({"city": None}, "city: an answer is a value, decline, .*null is not an answer"),
        ([{"city": "Rome"}], r"\[0\]: a rule is"),
    ],
)
async def test_answers_that_are_invalid_are_refused(answers: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        await hold(desk(), "visit", {"loc": "a"}, answers=answers)


async def test_what_the_call_ended_with_is_not_hidden_by_answers_nobody_asked_for(converse: Converse) -> None:
    for tool, reason in (("bok", "unknown tool 'bok'"), ("fail", "there is no room")):
        with pytest.raises(ConversationFailed, match="was not used: the server never asked for it") as failed:
            await converse(desk(), tool, answers={"city": "Rome"})
        assert reason in str(failed.value)


async def test_questions_beyond_the_cap_fail_and_all_rounds_are_reported() -> None:
    with pytest.raises(ConversationFailed, match="the server is still asking after 1 answered round;") as failed:
        await hold(desk(), "book", **booking(), max_rounds=1)
    assert 'round 1: city (Which city is the town of SFO?) -> {"action": "accept"' in str(failed.value)
    assert "round 2: stay (How long in Rome?)" in str(failed.value)


# What a server must not do


@pytest.mark.parametrize(
    ("replies", "message"),
    [
        ([listing("city"), told()], r"asks with an array of inputRequests .*\(dialect: "),
        ([{"resultType": "perhaps"}], r"resultType .perhaps. \(result-type: "),
        ([{"resultType": "input_required"}], r"neither inputRequests nor requestState \(empty: "),
        ([asking(city={"params": {}})], r"the question 'city' has no method \(question: "),
        ([{"resultType": "complete"}], r"the result has no content \(content: .*; see schema\)"),
        ([b"nonsense"], r"the response is not valid JSON \(envelope: "),
        ([b'{"jsonrpc": "2.0", "id": 77, "result": {"resultType": "complete"}}'], r"has the id 77, .*\(envelope: "),
        ([{"result": told(), **error()}], r"both a result and an error \(envelope: "),
    ],
    ids=["dialect", "result type", "empty", "question", "complete", "no JSON", "id", "both"],
)
async def test_whatever_the_protocol_does_not_allow_fails_with_its_rule(replies: list[Any], message: str) -> None:
    with pytest.raises(ConversationFailed, match=message):
        await hold(Canned(*replies), "any", answers=[{"otherwise": "Rome"}])


@pytest.mark.timing
async def test_a_server_that_never_answers_fails() -> None:
    with pytest.raises(
        ConversationFailed, match=r"^the server did not respond: no answer to tools/call within 0.05 s$"
    ):
        await hold(Silent(), "any", timeout=0.05)


async def test_a_connection_that_breaks_is_reported_as_it_is() -> None:
    with pytest.raises(ConnectionError, match="the server has hung up"):
        await hold(Gone(), "any")


PRINTS = """
import json, sys

for line in sys.stdin:
    request = json.loads(line)
    found = {"supportedVersions": ["2026-07-28"], "capabilities": {}, "ttlMs": 0, "cacheScope": "private"}
    result = {"resultType": "complete", "content": [], **found}
    if request["method"] == "tools/call":
        print("hello" if request["params"]["name"] == "print" else '{"jsonrpc": "2.0", "id": 1, "method": "ping"}')
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"""


@pytest.mark.timing
@pytest.mark.parametrize(
    ("tool", "message"),
    [("print", r"the server wrote .hello., .*\(stdout: "), ("push", r"the server sent the request .ping. \(pushed: ")],
)
async def test_what_a_server_writes_out_of_place_fails(tmp_path: Path, tool: str, message: str) -> None:
    (tmp_path / "prints.py").write_text(PRINTS)
    with pytest.raises(ConversationFailed, match=message):
        await hold(StdioServerParameters(sys.executable, [str(tmp_path / "prints.py")]), tool)


async def test_no_failure_shows_a_state() -> None:
    told_off: list[str] = []
    for server in (
        Canned(asking("city"), asking("city"), told()),
        Canned(asking("town")),
        Canned(listing("city"), told()),
    ):
        with pytest.raises(ConversationFailed) as failed:
            await hold(server, "any", answers={"city": "decline"}, max_rounds=1)
        told_off.append(str(failed.value))
    assert [TOKEN in one for one in told_off] == [False] * 3
    assert TOKEN not in repr(await hold(Canned(asking("city"), told()), "any", answers={"city": "Rome"}))


# What comes of it


async def test_an_error_of_the_protocol_is_a_result_to_look_at(converse: Converse) -> None:
    held = await converse(desk(), "nonsuch")
    assert held.error is not None
    assert (held.error["code"], held.error["message"]) == (-32602, "unknown tool 'nonsuch'")
    assert (held.is_error, held.result, held.text, held.structured) == (True, {}, "", None)


async def test_a_tool_that_fails_is_a_result_to_look_at(converse: Converse) -> None:
    held = await converse(desk(), "fail")
    assert (held.is_error, held.error, "there is no room" in held.text) == (True, None, True)
    assert [one["params"]["data"] for one in held.notifications] == ["about to fail"]


async def test_a_server_is_reported_what_is_declared(converse: Converse) -> None:
    held = await converse(desk(), "book", {"loc": "a"}, declare={})
    assert held.error is not None
    assert held.error["code"] == -32021
    assert held.error["data"] == {"requiredCapabilities": {"elicitation": {"form": {}}}}


async def test_each_retry_carries_its_own_answers_the_state_and_the_arguments() -> None:
    server = Canned(asking("city"), asking("units", state=""), asking("days", state=None), told())
    await hold(server, "any", {"loc": "SFO"}, answers={"city": "Rome", "units": "C", "days": "3"})
    assert [sorted(one.get("inputResponses", {})) for one in server.params] == [[], ["city"], ["units"], ["days"]]
    assert [one.get("requestState") for one in server.params] == [None, TOKEN, "", None]
    assert [one["arguments"] for one in server.params] == [{"loc": "SFO"}] * 4
    assert len({one["id"] for one in server.sent}) == 4


async def test_a_server_is_running_as_long_as_the_conversation_however_it_ends(converse: Converse) -> None:
    log: list[str] = []

    @asynccontextmanager
    async def lifespan(server: MCPServer[Any]) -> AsyncGenerator[None]:
        log.append("began")
        yield
        log.append("ended")

    mcp = MCPServer[None]("kept", lifespan=lifespan)
    with pytest.raises(ConversationFailed):
        await converse(mcp, "nonsuch", answers={"city": "Rome"})
    assert log == ["began", "ended"]


# What is called


async def test_a_conversation_has_exactly_one_of_tool_prompt_and_resource() -> None:
    mcp = MCPServer[Any]("desk")

    @mcp.tool()
    async def plain() -> str:
        return "ok"

    said = await hold(mcp, "plain", era="2025-11-25")
    assert said.text == "ok"
    with pytest.raises(TypeError, match="pass exactly one of tool, prompt= and resource="):
        await hold(mcp)
    with pytest.raises(TypeError, match="pass exactly one of tool, prompt= and resource="):
        await hold(mcp, "plain", prompt="p")


async def test_prompts_and_resources_are_conversed_with_too() -> None:
    mcp = MCPServer[Any]("desk")
    for said in (await hold(mcp, prompt="p"), await hold(mcp, resource="file:///r")):
        assert said.error is not None
        assert said.error["code"] in (-32601, -32602)


async def test_an_answer_that_nobody_asked_a_prompt_for_fails() -> None:
    with pytest.raises(ConversationFailed, match=r"the answer 'k' \(answers\) was not used"):
        await hold(MCPServer[Any]("desk"), prompt="p", answers={"k": 1})


# Profiles


async def test_a_profile_plays_a_conversation_in_code() -> None:
    first, second = asking(confirm=form("Pay 100 EUR?")), asking(confirm=form("Pay 200 EUR?"))
    with pytest.raises(ConversationFailed, match="stale-answer"):
        await hold(Canned(first, second, told()), "pay", answers={"confirm": "yes"}, profile="langgraph")
    said = await hold(Canned(first, told()), "pay", answers={"confirm": "yes"}, profile=Profile)
    assert said.text == "ok"


async def test_answers_are_not_missed_by_a_profile_that_gives_its_own() -> None:
    server = Canned(asking("confirm"), told())
    said = await hold(server, "pay", answers={"confirm": "yes"}, profile="silent")
    assert said.rounds[0].answered == {"confirm": {"action": "decline"}}


async def test_a_profile_that_needs_rounds_is_refused_at_revisions_without_them() -> None:
    with pytest.raises(ValueError, match="this profile answers rounds, which revision 2025-11-25 does not have"):
        await hold(desk(), "book", {"loc": "SFO"}, era=LEGACY, profile="langgraph")
