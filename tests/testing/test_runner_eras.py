"""One fixture over questions that are pushed and over rounds: our servers in process, and servers of others.

testing.md section 2 (`eras:` runs one fixture over pushed questions and over rounds) and protocol section 6.
"""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import pytest
from mcp_types import CreateMessageResult, ListRootsResult, SamplingMessage, TextContent
from pydantic import BaseModel, field_validator

from bespeak import AcceptedElicitation, Context, Elicit, ElicitationResult, ListRoots, MCPServer, Resolve, Sample
from bespeak.testing import converse
from bespeak.testing.report.results import Kind, Result
from tests.testing.canned import JUNE, MODERN, NOVEMBER, Canned, Hold, Json, Pushing, form, messages, rules, run
from tests.testing.canned import hold as hold

ERAS = (MODERN, NOVEMBER, JUNE)
HEAD = f"""
version: 1
servers: {{desk: {{python: "{__name__}:mcp", timeout: 5}}}}
eras: [{", ".join(ERAS)}]
tests:
"""
mcp = MCPServer("desk")
tickets = itertools.count(1)


class City(BaseModel):
    city: str


class Units(BaseModel):
    units: str


class Even(BaseModel):
    number: int

    @field_validator("number")
    @classmethod
    def even(cls, value: int) -> int:
        if value % 2:
            raise ValueError("an even one, please")
        return value


async def ask_city() -> Elicit[City]:
    return Elicit("Which city?", City)


async def ask_units(city: Annotated[City, Resolve(ask_city, key="city")]) -> Elicit[Units]:
    return Elicit(f"Which units in {city.city}?", Units)


CityAnswer = Annotated[City, Resolve(ask_city, key="city")]


@mcp.tool()
async def forecast(day: str, city: CityAnswer, units: Annotated[Units, Resolve(ask_units, key="units")]) -> str:
    return f"{day} in {city.city} in {units.units}"


@mcp.tool()
async def maybe(city: Annotated[ElicitationResult[City], Resolve(ask_city, key="city")], ctx: Context) -> str:
    await ctx.info("thinking")
    return city.data.city if isinstance(city, AcceptedElicitation) else type(city).__name__


async def ask_even() -> Elicit[Even]:
    return Elicit("Which number?", Even)


@mcp.tool()
async def halve(number: Annotated[Even, Resolve(ask_even, key="number")]) -> str:
    return str(number.number // 2)


async def ask_model() -> Sample:
    return Sample([SamplingMessage(role="user", content=TextContent(type="text", text="Where?"))], max_tokens=9)


async def ask_roots() -> ListRoots:
    return ListRoots()


@mcp.tool()
async def look(
    said: Annotated[CreateMessageResult, Resolve(ask_model, key="model")],
    roots: Annotated[ListRootsResult, Resolve(ask_roots, key="roots")],
) -> str:
    assert isinstance(said.content, TextContent)
    return f"{said.content.text} {roots.roots[0].uri}"


def asks(number: int) -> Any:
    async def ask() -> Elicit[City]:
        return Elicit(f"City {number}?", City)

    return Resolve(ask, key=f"k{number}")


SIX = [asks(number) for number in range(6)]


@mcp.tool()
async def tour(
    a: Annotated[City, SIX[0]],
    b: Annotated[City, SIX[1]],
    c: Annotated[City, SIX[2]],
    d: Annotated[City, SIX[3]],
    e: Annotated[City, SIX[4]],
    f: Annotated[City, SIX[5]],
) -> str:
    return " ".join(one.city for one in (a, b, c, d, e, f))


@mcp.tool()
async def open_ticket() -> dict[str, int]:
    return {"ticket": next(tickets)}


closed: list[int] = []


@mcp.tool()
async def close_ticket(ticket: int) -> str:
    closed.append(ticket)
    return f"closed {ticket}"


async def held(tmp_path: Path, tests: str) -> list[Result]:
    path = tmp_path / "desk.bespeak.yaml"
    path.write_text(f"{HEAD}{tests}", encoding="utf-8")
    return await run(path)


def check(results: Sequence[Result], eras: Sequence[str] = ERAS) -> None:
    assert messages(results) == []
    assert [result.era for result in results] == list(eras)


# Our servers


async def test_one_fixture_answers_rounds_and_pushed_questions(tmp_path: Path) -> None:
    results = await held(
        tmp_path,
        "  - {name: a, tool: forecast, arguments: {day: today}, inputResponses: {city: Rome, units: C},"
        " expect: {text: today in Rome in C, asked: [city, units], rounds: 2}}",
    )
    check(results)
    for result in results:
        assert [one.asked for one in result.rounds] == [{"city": "Which city?"}, {"units": "Which units in Rome?"}]
    assert [result.title for result in results] == [f"a [{era}]" for era in ERAS]
    assert [[one.state for one in result.rounds] for result in results] == [[True, True], [False] * 2, [False] * 2]


async def test_notifications_are_the_same_at_every_revision(tmp_path: Path) -> None:
    expected = "[{method: notifications/message, params: {contains: {data: thinking}}}]"
    tests = f"  - {{name: a, tool: maybe, inputResponses: {{city: Rome}}, expect: {{notifications: {expected}}}}}"
    check(await held(tmp_path, tests))


async def test_models_and_roots_are_answered_at_every_revision(tmp_path: Path) -> None:
    answers = "{model: {sample: Paris}, roots: {roots: [file:///here]}}"
    tests = f"  - {{name: a, tool: look, inputResponses: {answers}, expect: {{text: Paris file:///here}}}}"
    check(await held(tmp_path, tests))


async def test_each_round_is_checked_at_every_revision(tmp_path: Path) -> None:
    tests = """
  - name: a
    tool: forecast
    arguments: {day: today}
    rounds:
      - expect: {asks: [city], messages: {city: "Which city?"}, methods: {city: elicitation/create}, state: present}
        answer: {city: Rome}
      - expect: {asks: [units], schemas: {units: {contains: {properties: {contains: {units: {present: true}}}}}}}
        answer: {units: C}
    expect: {text: today in Rome in C}
"""
    check(await held(tmp_path, tests))


async def test_a_slip_is_asked_again_at_every_revision(tmp_path: Path) -> None:
    tests = """
  - name: a
    tool: halve
    rounds:
      - {answer: {number: 3}}
      - {expect: {messages: {number: {contains: "an even one, please"}}}, answer: {number: 4}}
    expect: {text: "2", asked: [number, number]}
"""
    check(await held(tmp_path, tests))


async def test_six_questions_at_once_are_no_more_rounds_when_they_are_pushed(tmp_path: Path) -> None:
    answers = ", ".join(f"k{number}: c{number}" for number in range(6))
    tests = f"  - {{name: a, tool: tour, inputResponses: {{{answers}}}, expect: {{text: c0 c1 c2 c3 c4 c5}}}}"
    check(await held(tmp_path, tests))


async def test_a_question_without_an_answer_fails_at_every_revision_with_the_same_words(tmp_path: Path) -> None:
    tests = "  - {name: a, tool: forecast, arguments: {day: today}, inputResponses: {city: Rome}}\n  - {name: b, tool: open_ticket}"
    results = await held(tmp_path, tests)
    assert messages(results) == ["there is no answer to 'units' (Which units in Rome?)"] * 3
    assert {failure.hint for result in results[:3] for failure in result.failures} == {
        'inputResponses:\n  units: "..."'
    }
    assert all(result.passed for result in results[3:])  # and the server is none the worse for it


async def test_a_question_is_left_out_only_where_it_can_be_asked_again(tmp_path: Path) -> None:
    tests = "  - {name: a, tool: maybe, rounds: [{answer: {city: omit}}, {answer: {city: Rome}}], expect: {text: Rome}}"
    modern, *older = await held(tmp_path, tests)
    assert modern.passed
    assert messages(older) == ["'city' was asked during the call and cannot be omitted"] * 2


async def test_what_is_captured_at_one_revision_is_not_used_at_another(tmp_path: Path) -> None:
    closed.clear()
    tests = """
  - {name: first, tool: open_ticket, capture: {ticket: structuredContent.ticket}}
  - {name: second, tool: close_ticket, arguments: {ticket: "${ticket}"}, expect: {text: "closed ${ticket}"}}
"""
    assert messages(await held(tmp_path, tests)) == []
    assert len(set(closed)) == len(closed) == 3


async def test_an_overridden_resolver_asks_at_no_revision() -> None:
    with mcp.override(ask_city, value=City(city="Oslo")):
        for era in ERAS:
            talked = await converse(mcp, "forecast", {"day": "today"}, answers={"units": "C"}, era=era)
            assert (talked.text, talked.asked, talked.version) == ("today in Oslo in C", ["units"], era)


# Servers of others


FORM, TWO = form("Which?", city={"type": "string"}), form("Which?", a={"type": "string"}, b={"type": "string"})
PAGE: Json = {
    "method": "elicitation/create",
    "params": {"mode": "url", "message": "?", "url": "https://x.example", "elicitationId": "e"},
}
SAMPLE: Json = {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 9}}
ROOTS: Json = {"method": "roots/list"}


def keyed(key: Any) -> Json:
    return {**FORM, "params": {**FORM["params"], "_meta": {"bespeak/key": key}}}


@pytest.mark.parametrize(
    ("questions", "keys"),
    [
        ([FORM], ["city"]),
        ([TWO], ["form"]),
        ([PAGE], ["url"]),
        ([SAMPLE], ["sampling"]),
        ([ROOTS], ["roots"]),
        ([FORM, FORM, FORM], ["city", "city#2", "city#3"]),
        ([TWO, FORM, TWO, ROOTS], ["form", "city", "form#2", "roots"]),
        ([keyed("shop:where"), FORM], ["shop:where", "city"]),
        ([keyed(5)], ["city"]),
        ([keyed(None)], ["city"]),
    ],
)
async def test_a_question_that_is_pushed_without_a_key_gets_one(
    hold: Hold, questions: list[Json], keys: list[str]
) -> None:
    server = Pushing(*questions)
    tests = f"  - {{name: a, tool: x, expect: {{asked: {keys}}}, inputResponses: [{{otherwise: {{raw: {{}}}}}}]}}"
    assert messages(await hold(server, tests)) == []
    assert all("result" in answer for answer in server.answered)


async def test_the_keys_of_one_call_do_not_count_in_the_next(hold: Hold) -> None:
    tests = "  - {name: a, tool: x, inputResponses: {city: Rome}}\n  - {name: b, tool: x, inputResponses: {city: Oslo}}"
    server = Pushing(FORM)
    assert messages(await hold(server, tests)) == []
    assert [answer["result"]["content"]["city"] for answer in server.answered] == ["Rome", "Oslo"]


async def test_a_foreign_fixture_answers_rounds_and_pushed_questions(hold: Hold) -> None:
    tests = "  - {name: a, tool: x, inputResponses: {city: Rome}, expect: {text: ok, asked: [city], rounds: 1}}"
    rounds: Json = {"resultType": "input_required", "inputRequests": {"city": FORM}}
    done: Json = {"resultType": "complete", "content": [{"type": "text", "text": "ok"}]}
    servers = [Canned(rounds, done), Pushing(FORM), Pushing(FORM, version=JUNE)]
    for server in servers:
        assert messages(await hold(server, tests)) == []


@pytest.mark.parametrize(
    "question",
    [
        {"method": "elicitation/create", "params": {"message": "?"}},
        {"method": "elicitation/create", "params": {"requestedSchema": {"properties": {}}}},
        {"method": "elicitation/create"},
        {"method": "sampling/createMessage", "params": {"messages": []}},
    ],
)
async def test_a_pushed_question_that_is_invalid_is_found(hold: Hold, question: Json) -> None:
    results = await hold(Pushing(question), "  - {name: a, tool: x, inputResponses: [{otherwise: {raw: {}}}]}")
    assert rules(results) == ["question"]


async def test_a_server_that_pushes_for_ever_is_stopped(hold: Hold) -> None:
    server = Pushing(*[FORM] * 1000)
    results = await hold(server, "  - {name: a, tool: x, inputResponses: [{otherwise: Rome}]}")
    assert messages(results)[0].startswith("the server is still asking after ")
    assert len(server.answered) < 200


async def test_a_pushed_request_of_another_kind_is_refused_and_the_call_goes_on(hold: Hold) -> None:
    server = Pushing({"method": "tools/list"}, {"method": "ping"}, FORM)
    assert messages(await hold(server, "  - {name: a, tool: x, inputResponses: {city: Rome}}")) == []
    assert server.answered[0]["error"]["code"] == -32601
    assert server.answered[1] == {"result": {}}


async def test_forms_are_not_declared_where_there_were_none(hold: Hold) -> None:
    results = await hold(Pushing(FORM, version="2025-03-26"), "  - {name: a, tool: x, inputResponses: {city: Rome}}")
    assert rules(results) == ["undeclared"]


async def test_a_server_that_does_not_speak_a_revision_cannot_be_reached_at_it(hold: Hold) -> None:
    server = Pushing(FORM, version=JUNE)
    results = await hold(
        server, f"  - {{name: a, tool: x, eras: [{JUNE}, {NOVEMBER}], inputResponses: {{city: Rome}}}}"
    )
    assert [result.passed for result in results] == [True, False]
    (failure,) = results[1].failures
    assert failure.kind is Kind.UNREACHABLE
    assert failure.message == f"server 'desk' speaks {JUNE}, not {NOVEMBER}"
