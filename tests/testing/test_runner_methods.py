"""Requests that are no call of a tool, prompt or resource: `method` with `params`, at both eras."""

from pathlib import Path

import pytest

from bespeak.testing.suite.plan import items_of
from tests.testing.canned import Canned, Hold, asking, messages, rules, run, told
from tests.testing.canned import hold as hold
from tests.testing.suite_files import in_test, load

SERVER = """\
from typing import Annotated

from bespeak import Elicit, MCPServer, Resolve

mcp = MCPServer("Desk")


async def ask_tone() -> Elicit[str]:
    return Elicit("Which tone?", str)


Tone = Annotated[str, Resolve(ask_tone, key="tone")]


@mcp.tool()
async def say(text: str) -> str:
    return text


@mcp.prompt()
async def greet(name: str, tone: Tone) -> str:
    return f"Greet {name}, {tone}."


@mcp.resource("desk://notes/{name}")
async def note(name: str, tone: Tone) -> str:
    return f"{name}: {tone}"
"""
SUITE = """\
version: 1
servers: {desk: {python: "methods_desk.py:mcp"}}
eras: [2025-11-25, 2026-07-28]
tests:
  - name: lists its tools
    method: tools/list
    expect: {result: {contains: {tools: [{contains: {name: say}}]}}}
  - name: lists its prompts
    method: prompts/list
    expect: {result: {contains: {prompts: [{contains: {name: greet}}]}}}
  - name: lists its templates
    method: resources/templates/list
    params: {}
    expect: {result: {contains: {resourceTemplates: {length: 1}}}}
  - name: refuses a cursor that it did not issue
    method: tools/list
    params: {cursor: nowhere}
    expect: {error: {code: -32602}}
  - name: does not know a method
    method: tools/destroy
    expect: {error: {code: -32601}}
  - name: calls a tool without its name
    method: tools/call
    params: {arguments: {}}
    expect: {error: {code: -32602}}
  - name: calls a tool by hand
    method: tools/call
    params: {name: say, arguments: {text: hello}}
    expect: {isError: false, text: hello}
  - name: a prompt asks
    prompt: greet
    arguments: {name: Ada}
    inputResponses: {tone: kindly}
    expect: {rounds: 1, messages: [{contains: {role: user}}], text: "Greet Ada, kindly."}
  - name: a resource asks
    resource: desk://notes/a
    inputResponses: {tone: loud}
    expect: {text: "a: loud", contents: {length: 1}}
  - name: verified by a list
    tool: say
    arguments: {text: x}
    verify: {method: tools/list, expect: {result: {contains: {tools: {length: 1}}}}}
"""


async def test_methods_prompts_and_resources_can_be_tested_at_both_eras(tmp_path: Path) -> None:
    (tmp_path / "methods_desk.py").write_text(SERVER, encoding="utf-8")
    path = tmp_path / "methods.bespeak.yaml"
    path.write_text(SUITE, encoding="utf-8")
    results = await run(path)
    assert {result.title: messages([result]) for result in results if not result.passed} == {}
    assert len(results) == 20


async def test_the_params_of_a_method_are_sent_as_they_are(hold: Hold) -> None:
    server = Canned(told())
    params = "{ref: {type: ref/prompt, name: greet}, argument: {name: who, value: A}}"
    await hold(server, f"  - {{name: a, method: completion/complete, params: {params}}}\n")
    assert server.sent[0]["method"] == "completion/complete"
    assert server.params[0] == {
        "ref": {"type": "ref/prompt", "name": "greet"},
        "argument": {"name": "who", "value": "A"},
    }


async def test_a_method_that_may_not_ask_and_asks_breaks_a_rule(hold: Hold) -> None:
    assert rules(await hold(Canned(asking("ok")), "  - {name: a, method: prompts/list}\n")) == ["method"]


def test_a_method_without_params_has_empty_ones(tmp_path: Path) -> None:
    text = in_test("verify: {method: a/b}").replace("tool: pay", "method: x/y\n    params: {z: 1}")
    (item,) = items_of(load(tmp_path, text))
    assert (item.test.request_method, item.test.request_params) == ("x/y", {"z": 1})
    assert item.test.verify is not None
    assert item.test.verify[0].request_params == {}


@pytest.mark.parametrize("method", ["prompts/get", "tools/call", "resources/read"])
async def test_a_method_that_may_ask_is_answered(hold: Hold, method: str) -> None:
    tests = f"  - {{name: a, method: {method}, inputResponses: {{ok: x}}, expect: {{rounds: 1}}}}\n"
    ended = told(messages=[], contents=[], ttlMs=0, cacheScope="private")
    assert messages(await hold(Canned(asking("ok"), ended), tests)) == []
