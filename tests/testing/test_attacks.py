"""What an attack on the tool found: verdicts by luck, half secrets, servers that die unseen or are left behind."""

import asyncio
import base64
import contextlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from bespeak import MCPServer
from bespeak.conversation.responses import Verdict, read_envelope
from bespeak.conversation.steps import Conversation
from bespeak.testing import ConversationFailed, converse
from bespeak.testing.attacks import altered
from tests.cli.desks import bespeak
from tests.testing.canned import TOKEN, Canned, Hold, asking, hold, messages, rules, run, told
from tests.waiting import eventually

__all__ = ["hold"]

WIRE = """
import json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    id_, method = message.get("id"), message["method"]
    if method == "server/discover":
        result = {{"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}}
        result |= {{"supportedVersions": ["2026-07-28"], "capabilities": {{}}}}
    else:
        result = {{"resultType": "complete", "content": [{{"type": "text", "text": "ok"}}]}}
    print(json.dumps({{"jsonrpc": "2.0", "id": id_, "result": result}}), flush=True)
    if method == "tools/call":
        {then}
"""


def suite(folder: Path, then: str, *names: str) -> Path:
    (folder / "server.py").write_text(WIRE.format(then=then))
    tests = "".join(f"  - {{name: {name}, tool: t}}\n" for name in names)
    path = folder / "a.bespeak.yaml"
    path.write_text(f"version: 1\nservers: {{s: {{command: [python, server.py], timeout: 20}}}}\ntests:\n{tests}")
    return path


async def test_a_line_printed_right_after_the_answer_is_found_in_the_test_it_belongs_to(tmp_path: Path) -> None:
    results = await run(suite(tmp_path, "print('done', flush=True)", "first", "second"))
    assert rules(results[:1]) == rules(results[1:]) == ["stdout"]


async def test_a_server_that_dies_after_its_answer_fails_the_next_test_and_is_reached_anew_for_the_one_after(
    tmp_path: Path,
) -> None:
    path = suite(tmp_path, "os._exit(3) if not os.path.exists('died') else None", "first", "second", "third")
    text = (tmp_path / "server.py").read_text().replace("os._exit(3)", "(open('died', 'w').close(), os._exit(3))")
    (tmp_path / "server.py").write_text(text)
    first, second, third = await run(path)
    assert first.passed
    assert third.passed
    assert "exited with code 3" in messages([second])[0]


@pytest.mark.parametrize("expect", ["{text: no}", "{text: {matches: never}}"])
async def test_what_is_cut_out_of_a_long_text_is_never_half_a_token(hold: Hold, expect: str) -> None:
    said = told(f"{'x' * 60}{TOKEN}{'y' * 60}")
    test = f"  - {{name: a, tool: t, inputResponses: {{k: v}}, expect: {expect}}}\n"
    results = await hold(Canned(asking("k"), said), test)
    assert not results[0].passed
    assert TOKEN[:8] not in json.dumps([result.as_json() for result in results])


async def test_one_thing_is_conversed_with() -> None:
    mcp = MCPServer[Any]("desk")

    @mcp.tool()
    async def plain() -> str:
        return "ok"

    said = await converse(mcp, "plain", era="2025-11-25")
    assert said.text == "ok"
    with pytest.raises(TypeError, match="pass exactly one of tool, prompt= and resource="):
        await converse(mcp)
    with pytest.raises(TypeError, match="pass exactly one of tool, prompt= and resource="):
        await converse(mcp, "plain", prompt="p")


async def test_prompts_and_resources_are_conversed_with_too() -> None:
    mcp = MCPServer[Any]("desk")
    for said in (await converse(mcp, prompt="p"), await converse(mcp, resource="file:///r")):
        assert said.error is not None
        assert said.error["code"] in (-32601, -32602)


async def test_an_answer_that_nobody_asked_a_prompt_for_fails() -> None:
    with pytest.raises(ConversationFailed, match="nobody asked for the answer answers: k"):
        await converse(MCPServer[Any]("desk"), prompt="p", answers={"k": 1})


# States


STATES = [{"step": 1, "approved": False}, {"to": "Ada"}, [1], {"inner": {"n": 1.5}}, {"a": None, "b": "x"}]


@pytest.mark.parametrize("value", STATES)
@pytest.mark.parametrize("coding", ["json", "base64"])
def test_a_state_that_anybody_could_write_is_altered_so_that_it_can_still_be_read(value: Any, coding: str) -> None:
    plain = json.dumps(value)
    state = plain if coding == "json" else base64.urlsafe_b64encode(plain.encode()).decode().rstrip("=")
    other = altered(state, "flip")
    read = json.loads(other if coding == "json" else base64.urlsafe_b64decode(other + "=" * (-len(other) % 4)))
    assert read != value
    assert type(read) is type(value)


@pytest.mark.parametrize("state", ["v1.k.sealed", "null", "{}", "[]", '""', "[null]", "x"])
def test_any_other_state_has_one_character_altered(state: str) -> None:
    other = altered(state, "flip")
    assert len(other) == len(state)
    assert sum(one != two for one, two in zip(state, other, strict=True)) == 1


def test_a_state_that_is_a_plain_word_is_not_hidden_where_it_is_said() -> None:
    conversation = Conversation("tools/call", {"name": "t"})
    conversation.receive({"result": asking("k", state="confirmed")})
    assert conversation.states == []


# Results of no use


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ({"isError": "true"}, "isError is a string, not a boolean"),
        ({"content": "x"}, "content is a string, not an array"),
        ({"structuredContent": None}, "structuredContent is null, not an object"),
    ],
)
def test_a_member_of_the_wrong_type_is_found(result: dict[str, Any], text: str) -> None:
    read = read_envelope({"result": {"resultType": "complete", **result}})
    assert (read.verdict, [(one.rule, one.text) for one in read.findings]) == (Verdict.COMPLETE, [("result", text)])


def test_the_code_of_an_error_is_a_number() -> None:
    (finding,) = read_envelope({"error": {"code": "x", "message": "y"}}).findings
    assert finding.text == "the code of the error is a string, not a whole number"


# Being told to stop


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_ends_the_run_and_every_server_it_has_started(tmp_path: Path, number: signal.Signals) -> None:
    slow = (
        "import asyncio, os, pathlib\nfrom bespeak import MCPServer\nmcp = MCPServer('s')\n"
        "@mcp.tool()\nasync def t() -> str:\n    pathlib.Path('pid').write_text(str(os.getpid()))\n"
        "    await asyncio.sleep(60)\n    return 'late'\n"
    )
    (tmp_path / "server.py").write_text(slow)
    (tmp_path / "a.bespeak.yaml").write_text(
        "version: 1\nservers: {s: {command: [bespeak, run, server.py, --http, --port, '${port}'], "
        "url: 'http://127.0.0.1:${port}/mcp', timeout: 60}}\ntests:\n  - {name: a, tool: t}\n"
    )
    command = [sys.executable, "-m", "bespeak.cli", "test", ".", "--report", "json=report.json"]
    process = await asyncio.create_subprocess_exec(*command, cwd=tmp_path, start_new_session=True)
    try:
        async with asyncio.timeout(30):
            await eventually((tmp_path / "pid").exists, 25)
            process.send_signal(number)
            assert await process.wait() == 130
        server = int((tmp_path / "pid").read_text())
        await eventually(lambda: not _lives(server), 10)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert json.loads((tmp_path / "report.json").read_text())["summary"]["interrupted"] is True


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


# Which suites


def test_a_suite_named_twice_is_run_once_and_those_of_other_programs_not_at_all(tmp_path: Path) -> None:
    written = "version: 1\nservers: {s: {url: 'http://127.0.0.1:1/mcp'}}\ntests: [{name: a, tool: t}]\n"
    for folder in ("", "node_modules/x", ".venv/x"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / "a.bespeak.yaml").write_text(written)
    validated = bespeak("test", "--validate", str(tmp_path), str(tmp_path / "a.bespeak.yaml"))
    assert validated.stdout == "1 suite, 1 test: no mistakes found\n"


def test_a_program_in_place_of_a_suite_is_told_how_to_get_one() -> None:
    told = bespeak("test", "server.py")
    assert (told.exit_code, told.stderr) == (
        2,
        "server.py:1: this is a program, and a suite is a file called *.bespeak.yaml; "
        "--init server.py prints a first one for a server\n",
    )


def test_a_folder_without_suites_is_no_valid_one(tmp_path: Path) -> None:
    assert bespeak("test", "--validate", str(tmp_path)).exit_code == 7


# A fault of the tool's own


async def test_a_test_that_cannot_be_run_fails_and_the_others_are_run(
    hold: Hold, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[int] = []

    def failing(*given: Any, **more: Any) -> list[Any]:
        calls.append(1)
        if len(calls) == 1:
            raise KeyError("a slip")
        return []

    monkeypatch.setattr("bespeak.testing.runner.judge", failing)
    first, second = await hold(Canned(told()), "  - {name: a, tool: t}\n  - {name: b, tool: t}\n")
    assert messages([first]) == ["the test could not be run: KeyError: 'a slip'"]
    assert second.passed
    assert "a test could not be run" in caplog.text
