"""`${...}`: values of the environment, and values that earlier tests captured. They are values, never words of the suite's."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.testing.cassettes.record_mode import RecordMode
from bespeak.testing.report.results import Result
from bespeak.testing.run_options import Options
from bespeak.testing.runner import Runner, run_items
from bespeak.testing.suite.plan import items_of
from bespeak.testing.suite.variables import Unknown, environment, environment_names, fill, lookup, names_in
from tests.testing.suite_files import GOOD, NEXT, in_test, load, only_fault, with_server

SERVER = """
from typing import Annotated, Any

from bespeak import Elicit, MCPServer, Resolve

mcp = MCPServer("desk")
calls = []


async def ask_word() -> Elicit[str]:
    return Elicit("Which word?", str)


@mcp.tool()
def give(value: Any = None) -> dict[str, Any]:
    calls.append(value)
    return {"value": value, "calls": len(calls)}


@mcp.tool()
def say(text: str) -> str:
    return text


@mcp.tool()
def ask(word: Annotated[str, Resolve(ask_word, key="word")]) -> str:
    return f"<{word}>"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the server is. It is loaded once."""
    path = tmp_path_factory.mktemp("variables")
    (path / "captured_desk.py").write_text(SERVER)
    return path


def suite(*tests: dict[str, Any], **more: Any) -> str:
    servers = {"desk": {"python": "captured_desk.py:mcp"}}
    named = [{"name": f"t{number}", "tool": "give", **test} for number, test in enumerate(tests)]
    return json.dumps({"version": 1, "servers": servers, "tests": named, **more})


async def run(folder: Path, text: str, *names: str, options: Options | None = None) -> list[Result]:
    """The results of the tests with these names, or of all."""
    results: list[Result] = []

    def finished(result: Result) -> bool:
        results.append(result)
        return True

    items = [item for item in items_of(load(folder, text)) if not names or item.test.name in names]
    await run_items(Runner(options), items, finished)
    return results


def told(result: Result) -> str:
    return "; ".join(failure.message for failure in result.failures)


def capturing(value: Any) -> dict[str, Any]:
    return {"arguments": {"value": value}, "capture": {"v": "structuredContent.value"}}


# Texts with holes


@pytest.mark.parametrize(
    ("written", "filled"),
    [
        ("${v}", 5),
        (["${v}", {"a": "${v}"}], [5, {"a": 5}]),
        ("v: ${v}", "v: 5"),
        ("${v}${v}", "55"),
        ("$${v}", "${v}"),
        ("$$", "$$"),
        ("$5 ${", "$5 ${"),
        ("$v {v}", "$v {v}"),
        ({"${t}": "${v}"}, {"text": 5}),
        ("${t}!", "text!"),
        (7, 7),
        (None, None),
        ("is ${yes}, ${none}, ${list}, ${map}", 'is true, null, [1, "é"], {"k": "v"}'),
    ],
)
def test_a_hole_is_filled_with_a_value_and_within_a_text_as_json(written: Any, filled: Any) -> None:
    values = {"v": 5, "t": "text", "yes": True, "none": None, "list": [1, "é"], "map": {"k": "v"}}
    assert fill(written, values.__getitem__) == filled


@given(st.text(), st.text())
def test_what_fills_a_hole_is_not_searched_for_holes(before: str, value: str) -> None:
    assert fill("${v}", {"v": value}.__getitem__) == value
    assert fill("= ${v}", {"v": "${v}" + value}.__getitem__) == "= ${v}" + value


@given(st.text())
def test_a_text_whose_dollars_are_escaped_comes_out_as_it_was(text: str) -> None:
    escaped = text.replace("${", "$${")
    assert list(names_in(escaped)) == []
    assert fill(escaped, dict[str, str]().__getitem__) == text


def test_names_are_found_in_keys_and_values_at_any_depth() -> None:
    assert list(names_in({"${a}": ["x ${b}", {"c": "${env:D}"}], "e": 5})) == ["a", "b", "env:D"]


def test_names_of_the_environment_are_told_apart() -> None:
    assert environment_names(["${a} ${env:B}", "${env:C}", "$${env:D}"]) == {"B", "C"}


def test_what_the_environment_lacks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BESPEAK_A", "")
    monkeypatch.delenv("BESPEAK_B", raising=False)
    monkeypatch.delenv("BESPEAK_C", raising=False)
    assert environment({"BESPEAK_A"}) == {"BESPEAK_A": ""}
    with pytest.raises(
        Unknown, match="the environment variables BESPEAK_B, BESPEAK_C are not set; set them before the run"
    ):
        environment({"BESPEAK_C", "BESPEAK_A", "BESPEAK_B"})


def test_a_name_that_stands_for_nothing_is_told() -> None:
    find = lookup({"A": "secret"}, {"v": 1})
    assert (find("env:A"), find("v")) == ("secret", 1)
    with pytest.raises(Unknown, match=r"\$\{w\} has no value; an earlier test must capture it"):
        find("w")
    with pytest.raises(Unknown, match=r"\$\{env:B\} has no value"):
        find("env:B")


# What the loader refuses


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        (
            in_test("arguments:", "  a: 1", "  b: x ${id}"),
            NEXT + 2,
            "${id} has no value here: no test before this one",
        ),
        (in_test("arguments:", "  ${id}: 1"), NEXT + 1, "${id} has no value here"),
        (in_test("capture: {id: a}", "arguments: {a: '${id}'}"), NEXT + 1, "${id} has no value here"),
        (
            in_test("verify:", "  - tool: x", "    arguments: {a: '${port}'}"),
            NEXT + 2,
            "${port} has no value here",
        ),
        (in_test("arguments: {a: '${}'}"), NEXT, "${} has no value here"),
        (
            in_test("arguments: {a: '${env:}'}"),
            NEXT,
            "${env:} does not name an environment variable; write ${env:NAME}",
        ),
        (with_server("{command: [serve, '${id}']}"), 3, "a server may use ${env:NAME}"),
        (with_server("{url: 'http://127.0.0.1:${port}/'}"), 3, "${port} if it has a command and a url"),
        (GOOD + "cassettes: tapes/${id}\n", NEXT, "${id} has no value here"),
        (GOOD + "redact: ['a.${env:X}']\n", NEXT, "a path cannot contain ${...}; write it out"),
        (in_test("capture: {id: a}", "cases: [{name: c}]"), NEXT, "a test with cases cannot capture"),
        (
            in_test("capture: {id: a}", "eras: [2026-07-28]") + "  - {name: two, tool: x, arguments: {a: '${id}'}}\n",
            NEXT + 2,
            "${id} is captured at different revisions than this test runs at; give both tests the same eras",
        ),
    ],
)
def test_a_hole_that_nothing_fills_is_refused_where_it_stands(tmp_path: Path, text: str, line: int, said: str) -> None:
    found, message = only_fault(tmp_path, text)
    assert found == line
    assert said in message


@pytest.mark.parametrize("key", ["headers", "cwd", "url", "command"])
def test_a_server_may_take_values_of_the_environment(tmp_path: Path, key: str) -> None:
    written = {"env": "{A: '${env:X}'}", "headers": "{A: '${env:X}'}", "command": "['${env:X}']"}.get(key, "'${env:X}'")
    others = {"command": "command: [x], ", "url": "url: 'http://x/', "}
    others.pop(key, None)
    assert load(tmp_path, with_server("{" + "".join(others.values()) + f"{key}: {written}}}")).needs == {"X"}


async def test_an_escaped_dollar_is_a_dollar_also_where_nothing_else_is_filled(folder: Path) -> None:
    written = {"tool": "say", "arguments": {"text": "$${x}"}, "expect": {"text": {"matches": r"^\$\{x}$"}}}
    (result,) = await run(folder, suite(written))
    assert told(result) == ""


# Values that are handed on


@pytest.mark.parametrize("value", [5, None, {"a": {"b": None}}, "", "$${v}"])
async def test_a_captured_value_is_handed_on_as_it_is(folder: Path, value: Any) -> None:
    escaped = value.replace("${", "$${") if isinstance(value, str) else value
    results = await run(
        folder,
        suite(
            capturing(escaped),
            {"arguments": {"value": {"v": "${v}"}}, "capture": {"w": "structuredContent.value.v"}},
            {"arguments": {"value": escaped}, "expect": {"structuredContent": {"contains": {"value": "${w}"}}}},
        ),
    )
    assert [told(result) for result in results] == ["", "", ""]


async def test_a_value_that_is_not_in_the_result_fails_its_test_and_those_that_need_it(folder: Path) -> None:
    first, second, third = await run(
        folder, suite({"capture": {"v": "structuredContent.nope[0]"}}, {"arguments": {"value": "${v}"}}, {})
    )
    assert told(first) == "capture: the result has nothing at 'structuredContent.nope[0]'"
    assert told(second) == "${v} has no value: the test 't0', which captures it, failed"
    assert third.passed


@pytest.mark.parametrize("path", ["text", "content[0].text"])
async def test_nothing_is_captured_of_a_call_that_ends_with_an_error(folder: Path, path: str) -> None:
    (result,) = await run(folder, suite({"tool": "gone", "expect": {"error": {}}, "capture": {"v": path}}))
    assert told(result) == f"capture: the result has nothing at {path!r}"


async def test_a_test_that_runs_alone_runs_what_captures_for_it_first(folder: Path) -> None:
    expect = {"structuredContent": {"contains": {"value": "once"}}}
    (result,) = await run(folder, suite(capturing("once"), {"arguments": {"value": "${v}"}, "expect": expect}), "t1")
    assert (result.name, told(result)) == ("t1", "")


async def test_a_test_that_captures_runs_once_for_all_that_need_it(folder: Path) -> None:
    used = {"tool": "say", "arguments": {"text": "${n}"}}
    after = {
        "expect": {"structuredContent": {"contains": {"calls": {"gt": 0}}}},
        "capture": {"m": "structuredContent.calls"},
    }
    text = suite(
        {"capture": {"n": "structuredContent.calls"}},
        used,
        used,
        after,
        {"tool": "say", "arguments": {"text": "${n} ${m}"}, "expect": {"text": "never"}},
    )
    *_, last = await run(folder, text)
    before, now = str(last.failures[0].actual).split()
    assert int(now) == int(before) + 1


# A captured value comes from a server: it must not become a word of the suite


@pytest.mark.parametrize("word", ["decline", "${env:HOME}"])
async def test_a_captured_word_is_answered_as_a_value(folder: Path, word: str) -> None:
    answered = {
        "tool": "ask",
        "inputResponses": {"word": "${v}"},
        "expect": {"text": {"equals": f"<{word}>".replace("${", "$${")}},
    }
    results = await run(folder, suite(capturing(word.replace("${", "$${")), answered))
    assert [told(result) for result in results] == ["", ""]


@pytest.mark.parametrize(
    "rules",
    [
        [{"id": "word", "value": "${v}"}],
        [{"when": {"key": "word"}, "answer": "${v}"}],
        [{"otherwise": "${v}"}],
    ],
)
async def test_a_captured_word_in_a_rule_is_answered_as_a_value(folder: Path, rules: Any) -> None:
    answered = {"tool": "ask", "inputResponses": rules, "expect": {"text": "<decline>"}}
    in_rounds = {"tool": "ask", "rounds": [{"answer": rules}], "expect": {"text": "<decline>"}}
    verified = {"verify": {"tool": "ask", "inputResponses": rules, "expect": {"text": "<decline>"}}}
    results = await run(folder, suite(capturing("decline"), answered, in_rounds, verified))
    assert [told(result) for result in results] == [""] * 4


@pytest.mark.parametrize("value", [{"present": True}, {"contains": 1, "foo": 2}])
@pytest.mark.parametrize("path", ["plain", "inside", "equals"])
async def test_a_captured_map_is_compared_with_and_is_no_matcher(folder: Path, value: Any, path: str) -> None:
    expected: Any = {"plain": "${v}", "inside": {"a": ["${v}"]}, "equals": {"equals": "${v}"}}[path]
    right: Any = {"a": [value]} if path == "inside" else value

    def test(argument: Any) -> dict[str, Any]:
        return {"arguments": {"value": argument}, "expect": {"structuredContent": {"contains": {"value": expected}}}}

    _, same, other = await run(folder, suite(capturing(value), test(right), test("something else")))
    assert told(same) == ""
    assert not other.passed


@pytest.mark.parametrize(
    ("value", "test"),
    [
        (5, {"tool": "${v}"}),
        ({"a": 1}, {"tool": "say", "arguments": {"text": "x"}, "verify": {"tool": "${v}"}}),
        ("(", {"expect": {"structuredContent": {"matches": "${v}"}}}),
        ("(", {"tool": "gone", "expect": {"error": {"message": {"matches": "${v}"}}}}),
        ("(", {"verify": {"tool": "give", "expect": {"text": {"matches": "${v}"}}}}),
        (
            "(",
            {"verify": {"tool": "give", "inputResponses": [{"when": {"message": {"matches": "${v}"}}, "answer": 1}]}},
        ),
        ("(", {"tool": "ask", "inputResponses": [{"when": {"message": {"matches": "${v}"}}, "answer": 1}]}),
        (
            "(",
            {
                "tool": "ask",
                "rounds": [{"expect": {"messages": {"word": {"matches": "${v}"}}}, "answer": {"word": "x"}}],
            },
        ),
        (["a"], {"tool": "ask", "rounds": [{"expect": {"asks": ["${v}"]}}]}),
        ("present", {"expect": {"structuredContent": {"${v}": 1}}}),
    ],
)
async def test_a_captured_value_that_does_not_fit_fails_its_test_and_the_run_goes_on(
    folder: Path, value: Any, test: dict[str, Any]
) -> None:
    before, result, after = await run(folder, suite(capturing(value), test, {}))
    assert before.passed
    assert not result.passed
    assert after.passed
    assert "the value of ${v} does not fit where it is used" in told(result)


# Secrets


async def test_a_value_of_the_environment_is_sent_and_never_shown(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BESPEAK_TOKEN", "s3cr3t")
    text = suite(
        {
            "arguments": {"value": {"${env:BESPEAK_TOKEN}": "x ${env:BESPEAK_TOKEN}"}},
            "expect": {"structuredContent": 1},
        },
        {"arguments": {"value": {"s3cr3t": 1}}, "expect": {"structuredContent": {"contains": {"value": {}}}}},
        {
            "tool": "ask",
            "inputResponses": {"word": "${env:BESPEAK_TOKEN}"},
            "expect": {"text": "<${env:BESPEAK_TOKEN}>"},
        },
        {"tool": "${env:BESPEAK_TOKEN}"},
        {"tool": "ask", "inputResponses": {"word": {"accept": {"s3cr3t": 1}}}},
    )
    results = await run(folder, text)
    assert [result.passed for result in results] == [False, False, True, False, False]
    reported = json.dumps([result.as_json() for result in results])
    assert "s3cr3t" not in reported
    assert "${env:BESPEAK_TOKEN}" in reported


async def test_a_value_of_the_environment_is_filled_in_each_case(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BESPEAK_TOKEN", "s3cr3t")
    cases = [
        {"name": "a", "arguments": {"text": "<${env:BESPEAK_TOKEN}>"}, "expect": {"text": "<${env:BESPEAK_TOKEN}>"}},
        {"name": "b"},
    ]
    test = {"tool": "say", "arguments": {"text": "${env:BESPEAK_TOKEN}"}, "cases": cases}
    assert [told(result) for result in await run(folder, suite(test))] == ["", ""]


async def test_a_variable_that_is_not_set_fails_the_tests_of_its_suite(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BESPEAK_TOKEN", raising=False)
    (result,) = await run(folder, suite({"arguments": {"value": "${env:BESPEAK_TOKEN}"}}))
    assert told(result) == "the environment variable BESPEAK_TOKEN is not set; set it before the run"


@pytest.mark.parametrize(
    ("more", "value"),
    [
        ({"servers": {"desk": {"python": "${env:BESPEAK_NAME}"}}}, "captured_desk.py:mcp"),
        ({"cassettes": "tapes/${env:BESPEAK_NAME}"}, "mine"),
    ],
)
async def test_a_value_of_the_environment_can_name_a_server_and_a_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch, more: dict[str, Any], value: str
) -> None:
    monkeypatch.setenv("BESPEAK_NAME", value)
    test = {"arguments": {"value": "told"}, "expect": {"structuredContent": {"contains": {"value": "told"}}}}
    record = Options(record=RecordMode.ONCE if "cassettes" in more else RecordMode.NONE)
    (result,) = await run(folder, suite(test, **more), options=record)
    assert told(result) == ""
    assert (folder / "tapes" / "mine").is_dir() or "cassettes" not in more
