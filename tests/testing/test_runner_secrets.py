"""What is in no result, however a server turns it: secrets of the environment, tokens of states, redacted places.

testing.md section 1 (a state is never printed), section 2 (`${env:NAME}` is redacted everywhere), section 5 (no tokens).
"""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bespeak.testing.report.results import Result
from tests.testing.canned import (
    HEAD,
    STRING,
    TOKEN,
    Canned,
    Hold,
    Json,
    Silent,
    asking,
    error,
    form,
    listing,
    round_of,
    run,
    told,
)
from tests.testing.canned import hold as hold

PLAIN = "hunter2-is-the-password-hunter2"
ODD = 'hunter2 it\'s "so" \\ \x1b ä € hunter2'
"""One that every way of quoting writes in another way."""
TELLTALE = "hunter2"
"""What both begin and end with: not even a part of a secret may be seen."""


def shown(results: list[Result]) -> str:
    """All that anybody can see of results."""
    told = [result.as_json() for result in results]
    return "\n".join(
        [json.dumps(told), json.dumps(told, ensure_ascii=False), repr(results), *map(str, _failures(results))]
    )


def _failures(results: list[Result]) -> list[Any]:
    return [failure for result in results for failure in result.failures]


@pytest.fixture(params=[PLAIN, ODD], ids=["plain", "odd"])
def secret(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("PASSWORD", request.param)
    return request.param


CALL = "  - {name: a, tool: x, arguments: {password: '${env:PASSWORD}'}"


# Secrets


async def test_a_secret_is_sent_and_compared_as_it_is(hold: Hold, secret: str) -> None:
    server = Canned(asking("city"), told(f"You are {secret}."))
    tests = f"{CALL}, inputResponses: {{city: '${{env:PASSWORD}}'}}, expect: {{text: 'You are ${{env:PASSWORD}}.'}}}}"
    results = await hold(server, tests)
    assert _failures(results) == []
    assert server.params[0]["arguments"] == {"password": secret}
    assert server.params[1]["inputResponses"]["city"]["content"] == {"value": secret}
    assert results[0].rounds[0].answered == {"city": {"action": "accept", "content": {"value": "${env:PASSWORD}"}}}


@pytest.mark.parametrize(
    ("reply", "more"),
    [
        ("error", ""),
        ("text", ", expect: {text: no}"),
        ("failed at length", ""),
        ("structured", ", expect: {structuredContent: {a: {b: no}}}"),
        ("named", ", expect: {structuredContent: {}}"),
        ("message", ", maxRounds: 0"),
        ("key", ""),
        ("key", ", declare: {}"),
        ("choice", ", inputResponses: {city: {accept: {city: x}}}"),
        ("type", ""),
        ("question", ""),
        ("id", ""),
        ("list", ", wire: any"),
    ],
)
async def test_a_secret_that_comes_back_is_in_no_result(hold: Hold, secret: str, reply: str, more: str) -> None:
    replies: dict[str, Json | bytes] = {
        "error": error(f"bad password {secret}"),
        "text": told(f"Your password is {secret}."),
        "failed": told(f"Your password is {secret}.", isError=True),
        "failed at length": told("x" * 490 + secret, isError=True),
        "structured": told(structuredContent={"a": {"b": secret}}),
        "named": told(structuredContent={secret: "x"}),
        "message": asking(city=form(f"Is it {secret}?")),
        "key": round_of({secret: form()}),
        "default": asking(city=form("Where?", city={"type": "string", "default": secret})),
        "choice": asking(city=form("Where?", city={"type": "string", "enum": [secret]})),
        "type": {"resultType": secret},
        "question": round_of({secret: {"method": secret}}),
        "id": json.dumps({"jsonrpc": "2.0", "id": secret, "result": told()}).encode(),
        "list": listing(secret),
    }
    results = await hold(Canned(replies[reply]), f"{CALL}{more}}}")
    assert _failures(results) != []
    assert TELLTALE not in shown(results)


CODINGS: dict[str, Callable[[bytes], str]] = {
    "base64": lambda raw: base64.b64encode(raw).decode(),
    "base64 of more": lambda raw: base64.urlsafe_b64encode(b"ada:" + raw + b"!").decode(),
    "hex": lambda raw: raw.hex(),
    "capital hex": lambda raw: raw.hex().upper(),
    "percent": lambda raw: "".join(f"%{byte:02x}" for byte in raw),
}


@pytest.mark.parametrize("coding", CODINGS.values(), ids=CODINGS)
async def test_a_secret_that_comes_back_encoded_is_in_no_result(
    hold: Hold, secret: str, coding: Callable[[bytes], str]
) -> None:
    encoded = coding(secret.encode())
    server = Canned(told(f"You are {encoded}.", structuredContent={"a": encoded}))
    results = await hold(server, f"{CALL}, expect: {{text: no, structuredContent: {{a: no}}}}}}")
    assert len(_failures(results)) == 2
    assert encoded[8:-8] not in shown(results)
    assert "${env:PASSWORD}" in shown(results)


@pytest.mark.parametrize("before", range(165, 200, 5))
async def test_not_even_the_beginning_of_a_secret_is_left_where_a_name_is_cut(
    hold: Hold, secret: str, before: int
) -> None:
    named = "x" * before + secret
    results = await hold(Canned(round_of({named: {"method": named}})), f"{CALL}}}")
    assert "x" * 100 in shown(results)
    assert TELLTALE not in shown(results)


async def test_a_secret_that_does_not_fit_its_form_is_not_reported(hold: Hold, secret: str) -> None:
    server = Canned(asking(n=form("How many?", n={"type": "integer"})))
    results = await hold(server, "  - {name: a, tool: x, inputResponses: {n: '${env:PASSWORD}'}}")
    assert "does not fit its form" in results[0].failures[0].message
    assert TELLTALE not in shown(results)


SPEAKING = """
import json, os, sys, time
print({what}, file=sys.{where}, flush=True)
for line in sys.stdin:
    message = json.loads(line)
    result = {{"resultType": "complete", "content": [], "ttlMs": 0, "cacheScope": "private",
               "supportedVersions": ["2026-07-28"], "capabilities": {{}}}}
    if message["method"] == "tools/call":
        {then}
    print(json.dumps({{"jsonrpc": "2.0", "id": message["id"], "result": result}}), flush=True)
"""
PASSWORD = "os.environ['PASSWORD']"


@pytest.mark.timing
@pytest.mark.parametrize(
    ("where", "what", "then", "said"),
    [
        ("stdout", PASSWORD, "pass", "which is not a message"),
        ("stdout", f"'x' * 1990 + {PASSWORD}", "pass", "which is not a message"),
        ("stderr", PASSWORD, "sys.exit(3)", "exited with code 3"),
        ("stderr", f"{PASSWORD} + 'x' * (2000 - len({PASSWORD}.encode()) // 2)", "sys.exit(3)", "exited with code 3"),
    ],
    ids=["a line", "a long line", "a crash", "a crash after many words"],
)
async def test_a_secret_that_a_server_prints_is_not_reported(
    tmp_path: Path, secret: str, where: str, what: str, then: str, said: str
) -> None:
    (tmp_path / "server.py").write_text(SPEAKING.format(where=where, what=what, then=then))
    env = "{PASSWORD: '${env:PASSWORD}', PYTHONIOENCODING: utf-8}"
    path = tmp_path / "a.bespeak.yaml"
    path.write_text(
        f"version: 1\nservers: {{desk: {{command: [python, server.py], env: {env}}}}}\ntests: [{{name: a, tool: x}}]\n"
    )
    results = await run(path)
    assert said in shown(results)
    assert TELLTALE not in shown(results)


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/${env:PASSWORD}/mcp", "http://u:${env:PASSWORD}@127.0.0.1:1/mcp"])
@pytest.mark.long
async def test_a_secret_in_an_address_is_not_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("PASSWORD", PLAIN)
    path = tmp_path / "a.bespeak.yaml"
    path.write_text(f"version: 1\nservers: {{desk: {{url: '{url}'}}}}\ntests: [{{name: a, tool: x}}]\n")
    results = await run(path)
    assert "cannot connect" in shown(results)
    assert TELLTALE not in shown(results)


async def test_a_secret_that_one_test_captures_is_reported_by_no_other(
    hold: Hold, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PASSWORD", PLAIN)
    server = Canned(told(structuredContent={"said": f"({PLAIN})"}), error(f"no ({PLAIN})"))
    tests = f"{CALL}, capture: {{it: structuredContent.said}}}}\n  - {{name: b, tool: x, arguments: {{a: '${{it}}'}}}}"
    results = await hold(server, tests)
    assert server.params[1]["arguments"] == {"a": f"({PLAIN})"}
    assert TELLTALE not in shown(results)


# Redacted places


@pytest.mark.parametrize("more", ["", ", maxRounds: 1"])
async def test_a_redacted_answer_is_in_no_round_and_no_message(hold: Hold, more: str) -> None:
    server = Canned(asking(pin=form("PIN?", pin=STRING)))
    tests = f"  - {{name: a, tool: x, inputResponses: {{pin: '918273'}}{more}}}"
    results = await hold(server, tests, f"{HEAD}redact: [inputResponses.pin]\n")
    assert results[0].rounds[0].answered == {"pin": "[redacted]"}
    assert "918273" not in shown(results)


async def test_all_answers_can_be_redacted_at_once(hold: Hold) -> None:
    server = Canned(asking(pin=form("PIN?", pin=STRING), city=form()), told())
    tests = "  - {name: a, tool: x, inputResponses: {pin: '918273', city: Rome}, expect: {text: no}}"
    results = await hold(server, tests, f"{HEAD}redact: [inputResponses]\n")
    assert results[0].rounds[0].answered == {"pin": "[redacted]", "city": "[redacted]"}
    assert "918273" not in shown(results)


async def test_a_redacted_part_of_a_result_is_not_reported(hold: Hold) -> None:
    server = Canned(told(structuredContent={"pin": "918273", "ok": 1}))
    tests = "  - {name: a, tool: x, expect: {structuredContent: {pin: '[redacted]', ok: 2}}}"
    results = await hold(server, tests, f"{HEAD}redact: [structuredContent.pin]\n")
    assert [failure.path for failure in results[0].failures] == ["structuredContent.ok"]
    assert "918273" not in shown(results)


# Tokens


CITY = "inputResponses: {city: Rome}"
REPLIES: dict[str, tuple[Json, str]] = {
    "in an error": (error(f"the state {TOKEN} is old"), ""),
    "in a text": (told(f"the state was {TOKEN}"), "expect: {text: ok}"),
    "in a value": (told(structuredContent={"state": TOKEN}), "expect: {structuredContent: {state: x}}"),
    "in a key": (told(structuredContent={TOKEN: 1}), "expect: {structuredContent: {}}"),
    "in a question": (asking("other", units=form(f"after {TOKEN}")), ""),
    "in a question's key": (round_of({TOKEN: form()}), ""),
    "in a malformed round": ({**asking(), "inputRequests": [TOKEN]}, ""),
    "in a complete result": (told(requestState=TOKEN), "expect: {result: {content: []}}"),
    "round after round": (asking("city"), ""),
    "in the shape of a list": (listing("city"), ""),
}


@pytest.mark.parametrize("how", list(REPLIES))
async def test_a_token_that_comes_back_is_in_no_result(hold: Hold, how: str) -> None:
    reply, more = REPLIES[how]
    results = await hold(
        Canned(asking("city"), reply), f"  - {{name: a, tool: x, {CITY}{f', {more}' if more else ''}}}"
    )
    assert _failures(results) != []
    assert TOKEN not in shown(results)
    assert results[0].rounds[0].state is True


async def test_a_token_of_a_round_that_answers_a_tampered_request_is_in_no_result(hold: Hold) -> None:
    other = "another-token-that-nobody-may-see"
    server = Canned(asking("city"), asking("city", state=other))
    tamper = "tamper: {round: 1, requestState: drop}, expect: {result: {each: 1}}"
    results = await hold(server, f"  - {{name: a, tool: x, {CITY}, {tamper}}}")
    assert _failures(results) != []
    assert other not in shown(results)


@pytest.mark.timing
async def test_a_token_of_a_call_that_hangs_is_in_no_result(hold: Hold) -> None:
    class HangingLater(Silent):
        async def replied(self, response: bytes) -> bytes:
            return response if len(self.sent) == 1 else await super().replied(response)

    head = HEAD.replace("timeout: 5", "timeout: 0.05")
    results = await hold(HangingLater(asking("city"), told()), f"  - {{name: a, tool: x, {CITY}}}", head)
    assert "did not respond" in shown(results)
    assert TOKEN not in shown(results)


@pytest.mark.parametrize("expect", ["{text: no}", "{text: {matches: never}}"])
async def test_what_is_cut_out_of_a_long_text_is_never_half_a_token(hold: Hold, expect: str) -> None:
    said = told(f"{'x' * 60}{TOKEN}{'y' * 60}")
    test = f"  - {{name: a, tool: t, inputResponses: {{k: v}}, expect: {expect}}}\n"
    results = await hold(Canned(asking("k"), said), test)
    assert not results[0].passed
    assert TOKEN[:8] not in json.dumps([result.as_json() for result in results])
