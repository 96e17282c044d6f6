"""One test after the other, each to a result: what is expected, captured and verified, and what ends a conversation.

testing.md section 2 (strict both ways, `capture:`, `verify:`, `wire:`, timeouts) and section 5.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bespeak.conversation.responses import Question
from bespeak.terminal.prompt_types import Action, Asker, Reply
from bespeak.testing.report.pretty_report import describe
from bespeak.testing.report.results import Kind, Result
from bespeak.testing.runner import Options, Runner, run_items
from bespeak.testing.suite.loader import load_suite
from bespeak.testing.suite.plan import items_of
from bespeak.transports.interfaces import Ask, Outgoing
from tests.testing.canned import (
    CACHED,
    FOUND,
    HEAD,
    Canned,
    Gone,
    Hold,
    Json,
    Pushing,
    Silent,
    asking,
    error,
    form,
    listing,
    messages,
    rules,
    run,
    told,
)
from tests.testing.canned import hold as hold
from tests.waiting import pass_time

NOW = "version: 1\nservers: {desk: {command: [desk], timeout: 0.05}}\n"


# What a call comes to


async def test_a_test_that_expects_nothing_passes_if_nothing_is_wrong(hold: Hold) -> None:
    (result,) = await hold(Canned(told("sunny")), "  - {name: a, tool: forecast, arguments: {day: today}}")
    assert result.passed
    assert (result.name, result.case, result.era, result.server, result.line) == ("a", None, None, "desk", 4)


@pytest.mark.parametrize(
    ("target", "method", "params"),
    [
        ("tool: forecast, arguments: {day: today}", "tools/call", {"name": "forecast", "arguments": {"day": "today"}}),
        ("prompt: greet, arguments: {who: Ada}", "prompts/get", {"name": "greet", "arguments": {"who": "Ada"}}),
        ("resource: 'file:///a'", "resources/read", {"uri": "file:///a"}),
    ],
)
async def test_all_three_methods_that_may_ask_are_answered(hold: Hold, target: str, method: str, params: Json) -> None:
    server = Canned(asking("city"), {**CACHED, "content": [], "messages": [], "contents": []})
    (result,) = await hold(server, f"  - {{name: a, {target}, inputResponses: {{city: Rome}}, expect: {{rounds: 1}}}}")
    assert result.passed
    assert [sent["method"] for sent in server.sent] == [method, method]
    answers = {"city": {"action": "accept", "content": {"value": "Rome"}}}
    assert server.params == [
        params,
        {**params, "inputResponses": answers, "requestState": server.params[1]["requestState"]},
    ]


async def test_a_question_without_an_answer_fails_with_the_yaml_to_paste(hold: Hold) -> None:
    server = Canned(asking("city", units=form("Which units?", units={"type": "string", "enum": ["C", "F"]})))
    ((failure,),) = [one.failures for one in await hold(server, "  - {name: a, tool: x, inputResponses: {city: Rome}}")]
    assert failure.message == "there is no answer to 'units' (Which units?)"
    assert failure.hint == "inputResponses:\n  units: C"


async def test_an_error_that_is_not_expected_fails(hold: Hold) -> None:
    results = await hold(Canned(error("there is no such tool")), "  - {name: a, tool: x, inputResponses: {city: Rome}}")
    assert messages(results)[0] == "the call ended with an error: there is no such tool (-32602)"


@pytest.mark.parametrize("how", [{"error": None}, {"error": "boom"}, {"error": []}, {"result": None}, {"result": []}])
async def test_a_response_that_is_invalid_is_not_a_passed_test(hold: Hold, how: Json) -> None:
    results = await hold(Canned(how), "  - {name: a, tool: x}")
    assert rules(results) == ["envelope"]


@pytest.mark.parametrize("error", [{}, {"code": None}, {"message": "no"}, {"code": -1}])
async def test_an_error_that_says_little_is_reported_as_it_is(hold: Hold, error: Json) -> None:
    results = await hold(Canned({"error": error}), "  - {name: a, tool: x}")
    assert len(messages(results)) == 1
    assert "None" not in messages(results)[0]


@pytest.mark.parametrize("question", [{"id": "a"}, {"id": "a", "description": ""}])
async def test_a_question_that_says_nothing_fails_like_any_other(hold: Hold, question: Json) -> None:
    server = Canned({"inputRequests": [question], "requestState": "s"})
    results = await hold(server, "  - {name: a, tool: x, wire: any}")
    assert messages(results) == ["there is no answer to 'a'"]


async def test_a_result_that_is_nested_too_deep_fails_its_test_and_not_the_run(hold: Hold) -> None:
    deep = b'{"a":' * 700 + b"1" + b"}" * 700
    response = (
        b'{"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","content":[],"structuredContent":' + deep + b"}}"
    )
    (result,) = await hold(Canned(response), "  - {name: a, tool: x, expect: {structuredContent: {a: 1}}}")
    assert messages([result]) == ["the response is nested more than 200 levels deep"]


# Captures


CAPTURING = "  - {name: first, tool: open, capture: {id: 'structuredContent.orders[0].id'}}\n"
ORDER = told(structuredContent={"orders": [{"id": 7, "note": None, "lines": [1, 2]}]})


async def test_what_one_test_captures_another_uses_as_it_is(hold: Hold) -> None:
    server = Canned(ORDER, told("order 7"))
    tests = (
        "  - {name: second, tool: look, arguments: {id: '${id}', said: 'no. ${id}'}, expect: {text: 'order ${id}'}}\n"
    )
    results = await hold(server, CAPTURING + tests)
    assert messages(results) == []
    assert server.params[1]["arguments"] == {"id": 7, "said": "no. 7"}


async def test_a_test_that_is_run_alone_has_what_it_needs_captured_first(tmp_path: Path, hold: Hold) -> None:
    server = Canned(ORDER)
    tests = "  - {name: second, tool: look, arguments: {id: '${id}'}}\n"
    await hold(server, CAPTURING + tests)
    server.sent.clear()
    runner = Runner()
    items = items_of(load_suite(tmp_path / "desk.bespeak.yaml"))
    results = [await runner.run(items[1]), await runner.run(items[1])]
    await runner.close()
    assert [result.passed for result in results] == [True, True]
    assert [params["name"] for params in server.params] == ["open", "look", "look"]


async def test_a_path_that_leads_to_nothing_fails_the_test_that_captures(hold: Hold) -> None:
    results = await hold(Canned(told()), CAPTURING)
    assert messages(results) == ["capture: the result has nothing at 'structuredContent.orders[0].id'"]
    assert (results[0].failures[0].hint or "").startswith("the result has 'resultType', 'content'")
    assert "expected null" not in describe(results[0])


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("structuredContent.idd", "structuredContent has 'id', 'lines', 'none'"),
        ("structuredContent.none.id", "structuredContent.none has no members"),
        ("structuredContent.lines[2]", "structuredContent.lines is a list with 1 entry"),
        ("structuredContent.lines[0].id", "structuredContent.lines[0] has 'cents'"),
        ("structuredContent.id.x", "structuredContent.id is a value without members"),
        ("secret.x", "secret is a value without members"),
    ],
)
async def test_what_there_is_instead_of_what_is_captured_is_listed(hold: Hold, path: str, hint: str) -> None:
    order: Json = {"id": "A7", "lines": [{"cents": 5}], "none": {}}
    server = Canned(told("ok", structuredContent=order, secret={"of": "nobody"}))
    (result,) = await hold(server, f"  - {{name: a, tool: t, capture: {{id: '{path}'}}, redact: [secret]}}\n")
    assert [one.hint for one in result.failures] == [hint]


@pytest.mark.parametrize("fails", [", expect: {text: no}", ", verify: [{tool: look, expect: {text: no}}]"])
async def test_a_test_that_needs_what_a_failed_one_captures_says_so(hold: Hold, fails: str) -> None:
    first = CAPTURING.replace("}}\n", f"}}{fails}}}\n")
    server = Canned(ORDER)
    _, second = await hold(server, f"{first}  - {{name: second, tool: sell, arguments: {{id: '${{id}}'}}}}\n")
    assert messages([second]) == ["${id} has no value: the test 'first', which captures it, failed"]
    assert "sell" not in [params["name"] for params in server.params]


@pytest.mark.parametrize(
    ("path", "use"),
    [
        ("structuredContent.orders[0].id", "tool: '${id}'"),
        ("structuredContent.orders[0].note", "tool: x, inputResponses: {city: '${id}'}"),
        ("structuredContent.orders[0]", "tool: x, inputResponses: {city: '${id}'}"),
        ("structuredContent.orders[0].id", "tool: x, expect: {text: {matches: '${id}'}}"),
    ],
)
async def test_what_does_not_fit_where_it_is_used_fails_its_test_and_not_the_run(
    hold: Hold, path: str, use: str
) -> None:
    tests = CAPTURING.replace("structuredContent.orders[0].id", path)
    _, second = await hold(Canned(ORDER, asking("city")), f"{tests}  - {{name: second, {use}}}\n")
    assert len(second.failures) == 1
    assert "pydantic" not in messages([second])[0]


async def test_a_variable_that_is_not_set_is_reported(hold: Hold, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOT_SET_ANYWHERE", raising=False)
    results = await hold(Canned(), "  - {name: a, tool: x, arguments: {a: '${env:NOT_SET_ANYWHERE}'}}")
    assert messages(results) == ["the environment variable NOT_SET_ANYWHERE is not set; set it before the run"]


# Calls made afterwards


VERIFIED = "  - {name: a, tool: x, verify: [{tool: balance, %s}]}"


async def test_calls_made_afterwards_are_judged_and_told_apart(hold: Hold) -> None:
    server = Canned(told(), told(structuredContent={"paid": 2}))
    ((failure,),) = [one.failures for one in await hold(server, VERIFIED % "expect: {structuredContent: {paid: 1}}")]
    assert failure.message.startswith("verify: structuredContent.paid")
    assert failure.rule is None


async def test_calls_made_afterwards_are_answered_too(hold: Hold) -> None:
    server = Canned(told(), asking("city"), told("Rome"))
    (result,) = await hold(server, VERIFIED % "inputResponses: {city: Rome}, expect: {text: Rome, rounds: 1}")
    assert result.passed
    assert result.rounds == []  # they are no rounds of the test


@pytest.mark.parametrize(
    ("reply", "more", "rule"),
    [
        ({"resultType": "perhaps"}, "expect: {}", "result-type"),
        ({"error": None}, "expect: {}", "envelope"),
        (listing("city"), "inputResponses: {city: Rome}", "dialect"),
        (told(), "inputResponses: {city: Rome}", None),
        (error(), "expect: {}", None),
    ],
)
async def test_what_goes_wrong_in_a_call_made_afterwards_fails_the_test(
    hold: Hold, reply: Json, more: str, rule: str | None
) -> None:
    results = await hold(Canned(told(), reply, told()), VERIFIED % more)
    assert rules(results) == [rule]
    assert messages(results)[0].startswith("verify: ")


async def test_a_call_made_afterwards_may_not_ask_what_was_not_declared(hold: Hold) -> None:
    tests = "  - {name: a, tool: x, declare: {}, verify: [{tool: balance}]}"
    assert rules(await hold(Canned(told(), asking("city")), tests)) == ["undeclared"]


async def test_nothing_is_called_afterwards_if_the_test_has_failed(hold: Hold) -> None:
    server = Canned(told("no"))
    await hold(server, "  - {name: a, tool: x, expect: {text: ok}, verify: [{tool: balance}]}")
    assert len(server.sent) == 1


# Dialects


SHAPES: dict[str, list[Json]] = {
    "spec": [asking("city"), told()],
    "list": [listing("city"), told()],
    "mixed": [listing("city"), asking("city"), told()],
    "neither": [told()],
}
IN_A_LIST = "the server asks with an array of inputRequests and no resultType"
IN_A_MAP = "the suite says wire: list, but the server asks in the MCP format"


@pytest.mark.parametrize(
    ("shape", "wire", "told"),
    [
        ("spec", "spec", []),
        ("spec", "any", []),
        ("spec", "list", [IN_A_MAP]),
        ("list", "spec", [IN_A_LIST]),
        ("list", "any", []),
        ("list", "list", []),
        ("mixed", "spec", [IN_A_LIST]),
        ("mixed", "any", []),
        ("mixed", "list", [IN_A_MAP]),
        ("neither", "list", []),
    ],
)
@pytest.mark.parametrize("place", ["test", "suite"])
async def test_wire_says_what_a_mismatch_costs(hold: Hold, shape: str, wire: str, told: list[str], place: str) -> None:
    answers = "" if shape == "neither" else ", inputResponses: {city: Rome}"
    test = f"  - {{name: a, tool: x{answers}{f', wire: {wire}' if place == 'test' else ''}}}"
    server = Canned(*SHAPES[shape])
    head = HEAD if place == "test" else f"{HEAD}wire: {wire}\n"
    assert messages(await hold(server, test, head)) == told
    assert len(server.sent) == len(SHAPES[shape])  # the conversation runs all the same


# The cap


@pytest.mark.parametrize(
    ("suite", "test", "cap"), [("", "", 5), ("maxRounds: 1\n", "", 1), ("maxRounds: 1\n", ", maxRounds: 0", 0)]
)
async def test_the_cap_of_a_test_goes_before_the_cap_of_its_suite(hold: Hold, suite: str, test: str, cap: int) -> None:
    server = Canned(asking("city"))
    results = await hold(server, f"  - {{name: a, tool: x, inputResponses: {{city: Rome}}{test}}}", HEAD + suite)
    assert rules(results) == [None]
    assert messages(results)[0].startswith(f"the server is still asking after {cap} answered round")
    assert len(server.sent) == cap + 1


# What ends a conversation


@pytest.mark.timing
async def test_a_server_that_hangs_fails_the_test_and_is_reached_again(hold: Hold) -> None:
    server = Silent()
    results = await hold(server, "  - {name: a, tool: x}\n  - {name: b, tool: x}", NOW)
    assert messages(results) == ["server 'desk' did not respond: no answer to tools/call within 0.05 s"] * 2
    assert rules(results) == [None, None]
    assert (server.entered, server.left) == (2, 2)


DEAF = """
import json, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
found = json.loads(sys.argv[1])
print(json.dumps({"jsonrpc": "2.0", "id": json.loads(sys.stdin.readline())["id"], "result": found}), flush=True)
while True:
    signal.pause()
"""
"""A server that responds once, does not leave when its input is closed, and ignores that it is told to terminate."""


@pytest.mark.timing
@pytest.mark.long
async def test_a_server_that_hangs_is_ended_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bespeak.transports.stdio.client.LEAVE_SECONDS", 50)
    monkeypatch.setattr("bespeak.conversation.servers.LEAVE_SECONDS", 50)
    command = json.dumps([sys.executable, "-I", "-S", "-c", DEAF, json.dumps(FOUND)])
    path = tmp_path / "a.bespeak.yaml"
    path.write_text(
        f"version: 1\nservers: {{desk: {{command: {command}}}}}\ntests: [{{name: a, tool: x, timeout: 0.05}}]\n"
    )
    began = time.perf_counter()
    (result,) = await run(path)
    assert "server 'desk' did not respond" in result.failures[0].message
    assert time.perf_counter() - began < 25


@pytest.mark.timing
async def test_a_test_can_have_a_timeout_of_its_own(hold: Hold) -> None:
    results = await hold(Silent(), "  - {name: a, tool: x, timeout: 0.02}")
    assert messages(results) == ["server 'desk' did not respond: no answer to tools/call within 0.02 s"]


async def test_a_timeout_of_a_tests_own_is_not_for_the_servers_start(hold: Hold) -> None:
    class Slow(Canned):
        async def exchange(self, request: Outgoing, notify: Callable[[bytes], None], ask: Ask | None = None) -> bytes:
            if request.method == "server/discover":
                await pass_time(2)
            return await super().exchange(request, notify, ask)

    assert messages(await hold(Slow(), "  - {name: a, tool: x, timeout: 1}")) == []


async def test_a_server_that_hangs_up_is_reported_and_reached_again(hold: Hold) -> None:
    server = Gone()
    results = await hold(server, "  - {name: a, tool: x}\n  - {name: b, tool: x}")
    assert messages(results) == ["the conversation was cut off: the server has hung up"] * 2
    assert server.entered == 2


async def test_tests_share_a_connection_unless_one_wants_a_fresh_one(hold: Hold) -> None:
    server = Canned()
    await hold(server, "  - {name: a, tool: x}\n  - {name: b, tool: x}\n")
    assert server.entered == 1
    await hold(server, "  - {name: a, tool: x}\n  - {name: b, tool: x, fresh: true}\n  - {name: c, tool: x}")
    assert server.entered == 3


async def test_a_failed_call_of_an_older_revision_leaves_nothing_to_the_next_test(hold: Hold) -> None:
    server = Pushing(form())
    results = await hold(server, "  - {name: a, tool: x}\n  - {name: b, tool: x, inputResponses: {value: y}}")
    assert [result.passed for result in results] == [False, True]
    assert server.entered == 2


async def test_a_server_that_cannot_be_reached_fails_each_of_its_tests(tmp_path: Path) -> None:
    path = tmp_path / "a.bespeak.yaml"
    path.write_text("version: 1\nservers: {desk: {python: 'nowhere.py'}}\ntests: [{name: a, tool: x}]\n")
    runner = Runner()
    (item,) = items_of(load_suite(path))
    (failure,) = (await runner.run(item)).failures
    await runner.close()
    assert failure.kind is Kind.UNREACHABLE
    assert failure.message.startswith("there is no file 'nowhere.py'")


@pytest.mark.timing
async def test_a_server_that_dies_in_the_middle_of_a_call_is_reported_with_what_it_printed(tmp_path: Path) -> None:
    found = json.dumps({"jsonrpc": "2.0", "id": 1, "result": FOUND})
    script = f"read line; echo '{found}'; read line; echo the till is stuck >&2; exit 3"
    path = tmp_path / "a.bespeak.yaml"
    server = f"{{command: [sh, -c, {json.dumps(script)}], protocol: 2026-07-28}}"
    path.write_text(f"version: 1\nservers: {{desk: {server}}}\ntests: [{{name: a, tool: x}}]\n")
    (result,) = await run(path)
    (failure,) = result.failures
    assert failure.kind is Kind.FAILED
    assert failure.message.startswith("the conversation was cut off: server 'desk' (sh -c ")
    assert "exited with code 3 before the response arrived" in failure.message
    assert "the till is stuck" in (failure.hint or "")


# A run


async def test_a_run_ends_where_it_is_reported_to_and_closes_its_connections(tmp_path: Path, hold: Hold) -> None:
    server = Canned()
    await hold(server, "  - {name: a, tool: x}\n  - {name: b, tool: x}\n  - {name: c, tool: x}")
    finished: list[Result] = []

    def enough(result: Result) -> bool:
        finished.append(result)
        return len(finished) < 2

    await run_items(Runner(), items_of(load_suite(tmp_path / "desk.bespeak.yaml")), enough)
    assert [result.name for result in finished] == ["a", "b"]
    assert server.entered == server.left == 2


async def test_a_person_is_asked_instead_of_the_fixture(hold: Hold) -> None:
    class Person:
        async def ask(self, question: Question, asker: Asker) -> Reply:
            return Reply(Action.ACCEPT, dict.fromkeys(question.properties, "Oslo"))

    server = Canned(asking("city"), told())
    (result,) = await hold(
        server, "  - {name: a, tool: x, inputResponses: {city: Rome}}", options=Options(prompt=Person())
    )
    assert result.passed
    assert server.params[1]["inputResponses"]["city"]["content"] == {"value": "Oslo"}


async def test_a_test_that_cannot_be_run_fails_and_the_others_are_run(
    hold: Hold, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[int] = []

    def failing(*given: Any, **more: Any) -> list[Any]:
        calls.append(1)
        if len(calls) == 1:
            raise KeyError("a slip")
        return []

    monkeypatch.setattr("bespeak.testing.item_conversation.judge", failing)
    first, second = await hold(Canned(told()), "  - {name: a, tool: t}\n  - {name: b, tool: t}\n")
    assert messages([first]) == ["the test could not be run: KeyError: 'a slip'"]
    assert second.passed
    assert "a test could not be run" in caplog.text
