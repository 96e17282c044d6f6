"""A server that is restarted in the middle of a call, and a state that another caller sends.

testing.md section 2, and the headline of the seeds: the progress of a call does not live in the process.
"""

import json
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bespeak.conversation.server_targets import Target
from bespeak.conversation.servers import Reached, Unreachable
from bespeak.testing.attacks import KEYS
from bespeak.testing.report.results import Kind
from bespeak.testing.runner import Options
from tests.testing.canned import Canned, Hold, asking, error, form, messages, round_of, rules, run, told
from tests.testing.canned import hold as hold

CALL = "  - {{name: a, tool: pay, inputResponses: {{ok: x, next: y}}, fault: {fault}, {more}}}\n"
RESTART = "{round: 1, restart: true}"


def call(fault: str = RESTART, more: str = "expect: {text: Paid.}") -> str:
    return CALL.format(fault=fault, more=more)


# The request of a round goes to a new process


async def test_the_server_is_restarted_before_the_request_of_the_round(hold: Hold) -> None:
    server = Canned(asking("ok"), asking("next"), told("Paid."))
    (result,) = await hold(server, call("{round: 2, restart: true}"))
    assert result.failures == []
    assert (server.entered, server.left) == (2, 2)
    assert [list(params.get("inputResponses", ())) for params in server.params] == [[], ["ok"], ["next"]]


async def test_with_a_lost_response_the_server_is_restarted_before_the_request_is_sent_again(hold: Hold) -> None:
    server = Canned(asking("ok"), told("Paid."), told("Paid."), told("Paid."), told(structuredContent={"paid": 1}))
    verify = "verify: {tool: balance, expect: {structuredContent: {paid: 2}}}"
    tests = "  - {name: a, tool: pay, inputResponses: {ok: x}, fault: {round: 1, drop: response, restart: true}, retry: 2, VERIFY}"
    results = await hold(server, tests.replace("VERIFY", verify))
    assert server.entered == 2
    assert rules(results) == ["single-use"]
    assert messages(results)[0].startswith(
        "after a response was lost, the server was restarted and the request was sent again: structuredContent.paid"
    )


async def test_a_verify_call_after_a_restart_says_so(hold: Hold) -> None:
    server = Canned(asking("ok"), told("Paid."), told("no", isError=True))
    results = await hold(server, call("{round: 1, restart: true}", "verify: {tool: balance}").replace(", next: y", ""))
    assert messages(results) == ["after the server was restarted: the tool failed: no"]


@pytest.mark.parametrize(
    ("reply", "said", "also"),
    [
        (error("invalid state"), "refused", "the call ended with an error: invalid state (-32602)"),
        (told("unknown session", isError=True), "failed at", "the tool failed: unknown session"),
    ],
)
async def test_a_server_that_lost_its_progress_breaks_a_rule_and_the_likely_cause_is_named(
    hold: Hold, reply: dict[str, Any], said: str, also: str
) -> None:
    (result,) = await hold(Canned(asking("ok"), reply), call())
    first, second, *_ = result.failures
    assert first.message == f"after it was restarted, the server {said} the request that answers round 1"
    assert first.rule == "process-state"
    assert first.hint == KEYS
    assert "BESPEAK_STATE_KEYS" in KEYS
    assert second.message == also


async def test_a_server_that_asks_again_what_was_answered_has_lost_its_progress(hold: Hold) -> None:
    results = await hold(Canned(asking("ok"), asking("ok"), told("Paid.")), call().replace(", next: y", ""))
    assert rules(results) == ["process-state"]
    assert messages(results) == ["after it was restarted, the server asked 'ok' again, which was answered before"]


async def test_a_round_that_was_not_expected_after_a_restart_is_explained(hold: Hold) -> None:
    tests = "  - {name: a, tool: pay, rounds: [{answer: {ok: x}}], fault: {round: 1, restart: true}}\n"
    results = await hold(Canned(asking("ok")), tests)
    assert rules(results) == ["process-state", None]
    assert messages(results)[1] == "round 2 was not expected; it asks 'ok'"


@pytest.mark.parametrize(
    ("replies", "more"),
    [
        ([asking("ok"), error("no money")], "expect: {error: {message: no money}}"),
        ([asking("ok"), told("no money", isError=True)], "expect: {isError: true}"),
        ([asking("ok"), round_of({"ok": form("Really?")}), told("Paid.")], "expect: {text: Paid.}"),
        ([asking("ok"), asking("other"), told("Paid.")], "expect: {text: Paid.}"),
    ],
)
async def test_an_expected_failure_and_another_question_are_no_lost_progress(
    hold: Hold, replies: list[dict[str, Any]], more: str
) -> None:
    tests = f"  - {{name: a, tool: pay, inputResponses: [{{otherwise: x}}], fault: {RESTART}, {more}}}\n"
    assert messages(await hold(Canned(*replies), tests)) == []


async def test_an_error_in_a_later_round_is_judged_as_usual(hold: Hold) -> None:
    results = await hold(Canned(asking("ok"), asking("next"), error("no money")), call())
    assert messages(results) == ["the call ended with an error: no money (-32602)"]


async def test_a_question_that_was_left_out_may_be_asked_again(hold: Hold) -> None:
    tests = "  - {name: a, tool: pay, rounds: [{answer: {ok: omit}}, {answer: {ok: x}}], fault: {round: 1, restart: true}}\n"
    assert messages(await hold(Canned(asking("ok"), asking("ok"), told("Paid.")), tests)) == []


# With processes

PROCESS = """\
import json, os, sys

META = {"ttlMs": 0, "cacheScope": "private"}
FORM = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
ASK = {"method": "elicitation/create", "params": {"mode": "form", "message": "Pay?", "requestedSchema": FORM}}
open("started", "a").write(f"{os.getpid()}\\n")
if len(open("started").readlines()) > 1 and sys.argv[1] == "once":
    sys.exit("no second time")
begun = set()
for line in sys.stdin:
    request = json.loads(line)
    params = request.get("params", {})
    if "id" not in request:
        continue
    if request["method"] == "server/discover":
        result = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, **META}
    elif "requestState" not in params:
        begun.add("state-81f2")
        result = {"resultType": "input_required", "inputRequests": {"ok": ASK}, "requestState": "state-81f2"}
    elif sys.argv[1] == "keeps" and params["requestState"] not in begun:
        result = {"content": [{"type": "text", "text": "unknown call"}], "isError": True}
    else:
        result = {"content": [{"type": "text", "text": "Paid."}]}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": {"resultType": "complete", **result}}), flush=True)
"""
SUITE = """\
version: 1
servers: {{till: {{command: [{python}, till.py, {how}]}}}}
tests:
  - {{name: a, tool: pay, inputResponses: {{ok: true}}, fault: {{round: 1, restart: true}}, expect: {{text: Paid.}}}}
  - {{name: b, tool: pay, inputResponses: {{ok: true}}, expect: {{text: Paid.}}}}
"""


def till(folder: Path, how: str) -> Path:
    (folder / "till.py").write_text(PROCESS, encoding="utf-8")
    suite = folder / "till.bespeak.yaml"
    suite.write_text(SUITE.format(python=json.dumps(sys.executable), how=how), encoding="utf-8")
    return suite


async def test_a_process_that_keeps_nothing_passes_and_the_next_test_uses_the_new_one(tmp_path: Path) -> None:
    assert messages(await run(till(tmp_path, "stateless"))) == []
    assert len(set((tmp_path / "started").read_text().split())) == 2


async def test_a_process_that_keeps_the_progress_of_a_call_is_found(tmp_path: Path) -> None:
    results = await run(till(tmp_path, "keeps"))
    assert rules(results)[0] == "process-state"
    assert messages(results)[1] == "the tool failed: unknown call"
    assert results[1].passed


async def test_a_server_that_does_not_start_again_is_not_reachable(tmp_path: Path) -> None:
    first, _ = await run(till(tmp_path, "once"))
    (failure,) = first.failures
    assert failure.kind is Kind.UNREACHABLE
    assert failure.message.startswith("the server could not be started again: ")
    assert "no second time" in failure.message


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("http://127.0.0.1:1/mcp", "till is reached by its URL, and only a server with a command can be restarted"),
        ("desk.py:mcp", "till is reached in this process, and only a server with a command can be restarted"),
    ],
)
async def test_a_replacement_without_a_command_cannot_be_restarted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, message: str
) -> None:
    server = Canned(asking(ok=form(ok={"type": "boolean"})), told("Paid."))

    @asynccontextmanager
    async def reach(_server: Any, _folder: Path, _fill: Any, _stray: Any) -> AsyncGenerator[Reached]:
        yield Reached(server)

    monkeypatch.setattr("bespeak.conversation.connection_pool.reach", reach)
    first, _ = await run(till(tmp_path, "x"), Options(servers={"till": target}))
    assert first.failures[0].message.startswith(f"not reached: {message}")


# Another caller

WEB = """\
version: 1
servers: {web: {command: [serve], url: "http://127.0.0.1:${port}/mcp", headers: {x-user: ada, x-tenant: t}}}
tests:
  - name: a
    tool: pay
    inputResponses: {ok: x}
    tamper: {round: 1, requestState: other-caller, headers: {x-user: eve, x-odd: "$${x}"}}
    verify: {tool: balance}
"""


class Web:
    """What is reached over HTTP: one server, and who reached it."""

    def __init__(self, *replies: dict[str, Any]) -> None:
        self.server = Canned(*replies)
        self.reached: list[Target] = []
        self.urls: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.refuses = False

    @asynccontextmanager
    async def reach(
        self, server: Target, _folder: Path, fill: Callable[[str], str], _stray: Any
    ) -> AsyncGenerator[Reached]:
        self.reached.append(server)
        if self.refuses and len(self.reached) > 1:
            raise Unreachable("401 Unauthorized")
        self.urls.append(fill(server.url or ""))
        self.headers.append({name: fill(value) for name, value in server.headers.items()})
        yield Reached(self.server)


async def run_web(folder: Path, monkeypatch: pytest.MonkeyPatch, web: Web, options: Options | None = None) -> list[str]:
    monkeypatch.setattr("bespeak.conversation.connection_pool.reach", web.reach)
    path = folder / "web.bespeak.yaml"
    path.write_text(WEB, encoding="utf-8")
    return messages(await run(path, options))


async def test_another_caller_reaches_the_running_server_with_other_headers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    web = Web(asking("ok"), error("invalid state"), told())
    assert await run_web(tmp_path, monkeypatch, web) == []
    assert [target.command for target in web.reached] == [["serve"], None]
    assert web.urls[0] == web.urls[1]
    assert web.headers[1] == {"x-user": "eve", "x-tenant": "t", "x-odd": "${x}"}
    assert (web.server.entered, web.server.left) == (2, 2)
    assert len(web.server.sent) == 3  # the verify call goes over the first connection


async def test_a_state_that_another_caller_may_use_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert await run_web(tmp_path, monkeypatch, Web(asking("ok"), told("Paid."))) == [
        "the server accepted a requestState that was issued to another caller; it must answer with an error"
    ]


async def test_another_caller_that_cannot_connect_has_attacked_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    web = Web(asking("ok"), told())
    web.refuses = True
    said = await run_web(tmp_path, monkeypatch, web)
    assert said[0].startswith("not reached: the other caller cannot connect: 401 Unauthorized")


async def test_a_replacement_without_a_url_has_no_other_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    web = Web(asking("ok"), told())
    said = await run_web(tmp_path, monkeypatch, web, Options(servers={"web": "python server.py --stdio"}))
    assert said[0].startswith("not reached: web is not reached by a URL, so there is no other caller")
