"""The timeline of a conversation: everything that is sent, in its order, without tokens and secrets."""

import json
from typing import Any

import pytest

from bespeak.conversation.connection_pool import Pool
from bespeak.testing.report.pretty_report import describe
from bespeak.testing.report.results import Result
from tests.testing.canned import (
    HEAD,
    MODERN,
    NOVEMBER,
    TOKEN,
    Canned,
    Gone,
    Hold,
    Json,
    Pushing,
    asking,
    error,
    form,
    hold,
    listing,
    told,
)

__all__ = ["hold"]

NOTE: Json = {"method": "notifications/message", "params": {"level": "info", "data": "on the way"}}
TEST = "  - {name: a, tool: forecast, arguments: {loc: SFO}, inputResponses: {city: Rome}%s}\n"


def steps(result: Any) -> list[str]:
    return [f"{one['from']} {one['event']}" for one in result.as_json()["conversation"]]


async def test_a_round_is_a_call_a_question_an_answer_and_a_result(hold: Hold) -> None:
    server = Canned(asking("city"), told("Sunny."), notifications=[NOTE])
    (result,) = await hold(server, TEST % "")
    assert result.as_json()["conversation"] == [
        {
            "from": "client",
            "event": "call",
            "method": "tools/call",
            "body": {"name": "forecast", "arguments": {"loc": "SFO"}},
        },
        {"from": "server", "event": "notification", "method": NOTE["method"], "body": {"params": NOTE["params"]}},
        {"from": "server", "event": "asks", "state": True, "body": {"inputRequests": {"city": form()}}},
        {
            "from": "client",
            "event": "answers",
            "method": "tools/call",
            "state": True,
            "body": {"inputResponses": {"city": {"action": "accept", "content": {"value": "Rome"}}}},
        },
        {"from": "server", "event": "notification", "method": NOTE["method"], "body": {"params": NOTE["params"]}},
        {"from": "server", "event": "result", "body": {"content": [{"type": "text", "text": "Sunny."}]}},
    ]
    assert TOKEN not in json.dumps(result.as_json())


async def test_a_token_that_the_server_repeats_is_not_in_the_timeline(hold: Hold) -> None:
    (result,) = await hold(Canned(asking("city"), told(f"I know {TOKEN}")), TEST % "")
    assert TOKEN not in json.dumps(result.as_json())
    assert "I know [requestState]" in json.dumps(result.as_json())


async def test_pushed_questions_are_in_the_timeline(hold: Hold) -> None:
    (result,) = await hold(Pushing(form(city={"type": "string"})), TEST % f", eras: [{NOVEMBER}]")
    assert steps(result) == ["client call", "server asks", "client answer", "server result"]


async def test_a_question_without_an_answer_has_an_empty_answer(hold: Hold) -> None:
    (result,) = await hold(Pushing(form()), f"  - {{name: a, tool: t, eras: [{NOVEMBER}]}}")
    assert steps(result)[:3] == ["client call", "server asks", "client answer"]
    assert result.as_json()["conversation"][2]["body"] == {}


@pytest.mark.parametrize("answers", ["{}", "{city: 5}"], ids=["none", "wrong"])
async def test_a_client_that_cannot_answer_gives_up_and_the_server_is_not_blamed(hold: Hold, answers: str) -> None:
    city = form(city={"type": "string"})
    tests = f"  - {{name: a, tool: t, inputResponses: {answers}, eras: [ERA]}}"
    for server, era, before in (
        (Pushing(city), NOVEMBER, ["client call", "server asks", "client answer"]),
        (Canned(asking(city=city)), MODERN, ["client call", "server asks"]),
    ):
        (result,) = await hold(server, tests.replace("ERA", era))
        assert steps(result) == [*before, "client gives up"]
        assert result.as_json()["conversation"][-1]["body"] == {"reason": result.failures[0].message}


async def test_a_request_that_is_sent_again_is_told_apart(hold: Hold) -> None:
    server = Canned(asking("city"), told(), told())
    (result,) = await hold(server, TEST % ", fault: {round: 1, drop: response}, retry: 1")
    assert steps(result) == [
        "client call",
        "server asks",
        "client answers",
        "server result",
        "client sent again",
        "server result",
    ]


async def test_other_arguments_of_an_attack_are_shown(hold: Hold) -> None:
    tamper = ", tamper: {round: 1, requestState: other-arguments, arguments: {loc: LHR}}"
    (result,) = await hold(Canned(asking("city"), error()), TEST % tamper)
    sent = result.as_json()["conversation"][2]["body"]
    assert sent["arguments"] == {"loc": "LHR"}
    assert steps(result)[-1] == "server error"


async def test_calls_made_afterwards_are_in_the_timeline(hold: Hold) -> None:
    (result,) = await hold(Canned(told()), "  - {name: a, tool: t, verify: {tool: balance}}")
    assert steps(result) == ["client call", "server result"] * 2


@pytest.mark.parametrize(
    ("server", "reason"),
    [(Gone(), "the server has hung up"), (Canned(b'{"jsonrpc": "2.0", "id": 1, "result": 5}'), "cannot be read")],
)
async def test_a_missing_response_is_in_the_timeline(hold: Hold, server: Canned, reason: str) -> None:
    (result,) = await hold(server, "  - {name: a, tool: t}")
    last = result.as_json()["conversation"][-1]
    assert last["event"] == "no response"
    assert reason in last["body"]["reason"]


async def test_the_compatibility_dialect_is_in_the_timeline(hold: Hold) -> None:
    (result,) = await hold(Canned(listing("city"), told()), TEST % ", wire: any")
    assert steps(result) == ["client call", "server asks", "client answers", "server result"]


# The error of the tool


@pytest.mark.parametrize("expect", ["{isError: false}", "{text: ok}", "{structuredContent: {a: 1}}", "{rounds: 2}"])
async def test_the_text_of_a_tool_that_failed_is_always_told(hold: Hold, expect: str) -> None:
    (result,) = await hold(
        Canned(told("database is down", isError=True)), f"  - {{name: a, tool: t, expect: {expect}}}"
    )
    assert result.ended == "the tool failed: database is down"


async def test_the_message_of_an_error_is_told_where_another_error_was_expected(hold: Hold) -> None:
    (result,) = await hold(Canned(error("no such tool")), "  - {name: a, tool: t, expect: {error: {code: -1}}}")
    assert result.ended == "the call ended with an error: no such tool (-32602)"


STRAY: Json = {"method": "notifications/tools/list_changed", "params": {}}


@pytest.mark.parametrize(
    ("reply", "expect", "told_"),
    [
        (error("gone", -32099), "{error: {}}", False),
        (error("gone", -32099), "{error: {code: -32099}, rounds: 0}", False),
        (error("gone", -32099), "{error: {code: -32602}}", True),
        (error("gone", -32099), "{isError: true}", True),
        (told("gone", isError=True), "{isError: true}", False),
    ],
)
async def test_an_expected_error_is_not_told_beside_a_broken_rule(
    hold: Hold, reply: Json, expect: str, told_: bool
) -> None:
    (result,) = await hold(Canned(reply, notifications=[STRAY]), f"  - {{name: a, tool: t, expect: {expect}}}")
    assert result.failures[0].rule == "unsubscribed"
    assert result.ended is not None
    assert (result.ended in describe(result)) is told_
    again = Result.from_json(result.as_json())
    assert (again.tells_ended, again.fails_rightly) == (told_, not told_)


async def test_the_yaml_to_paste_is_told_beside_what_the_server_printed(
    hold: Hold, monkeypatch: pytest.MonkeyPatch
) -> None:
    def printed(*_: object) -> str:
        return "Traceback: oops"

    monkeypatch.setattr(Pool, "printed", printed)
    (result,) = await hold(
        Pushing(form(city={"type": "string"})), f"  - {{name: a, tool: t, eras: [{NOVEMBER}]}}", HEAD
    )
    (failure,) = result.failures
    assert failure.hint == 'inputResponses:\n  city: "..."\nthe server printed:\n  Traceback: oops'
