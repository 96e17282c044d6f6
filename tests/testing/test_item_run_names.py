"""A tool or an argument that the server does not list: the report of the test names the one that was probably meant."""

import json
from pathlib import Path

import pytest

from bespeak.testing.report.pretty_report import describe
from bespeak.testing.report.results import Result
from bespeak.testing.run_options import Options
from tests.curious_server import curious
from tests.testing.canned import Canned, Hold, Json, error, hold, messages, run, told

__all__ = ["hold"]


async def ran(folder: Path, test: str) -> Result:
    path = folder / "desk.bespeak.yaml"
    servers = json.dumps({"desk": {"command": curious(folder), "protocol": "legacy", "timeout": 10}})
    path.write_text(f"version: 1\nservers: {servers}\ntests:\n  - {{name: a, {test}}}\n", encoding="utf-8")
    (result,) = await run(path, Options(start=folder))
    return result


async def test_a_failure_names_the_tool_that_was_probably_meant(tmp_path: Path) -> None:
    result = await ran(tmp_path, "tool: beside_, expect: {text: other}")
    assert result.failures[0].hint == "the server has no tool 'beside_'; did you mean 'beside'?"
    assert "\n    the server has no tool 'beside_'; did you mean 'beside'?\n" in describe(result)


async def test_a_failure_names_an_argument_that_the_tool_does_not_have(tmp_path: Path) -> None:
    result = await ran(tmp_path, "tool: beside, arguments: {m: x}, expect: {text: other}")
    assert result.failures[0].hint == "tool 'beside' has no argument 'm'; there are: n"


async def test_a_test_that_passes_with_a_misspelt_name_passes_with_a_note(tmp_path: Path) -> None:
    result = await ran(tmp_path, "tool: besides")
    assert messages([result]) == []
    assert list(result.notes) == [
        "desk.bespeak.yaml:4: the test passes, but the server has no tool 'besides'; did you mean 'beside'?"
    ]


async def test_a_tool_that_is_like_no_other_is_taken_as_meant_if_the_test_passes(tmp_path: Path) -> None:
    assert list((await ran(tmp_path, "tool: heard")).notes) == []


async def test_an_argument_that_is_like_no_other_is_noted_if_the_test_passes(tmp_path: Path) -> None:
    assert list((await ran(tmp_path, "tool: beside, arguments: {quantity: 1}")).notes) == [
        "desk.bespeak.yaml:4: the test passes, but tool 'beside' has no argument 'quantity'; there are: n"
    ]


@pytest.mark.parametrize(
    ("answer", "expect", "more", "noted"),
    [
        (told(), "{}", {}, True),
        (told(), "{}", {"additionalProperties": True}, False),
        (told(isError=True), "{isError: true}", {}, False),
        (error(), "{error: {}}", {}, False),
    ],
)
async def test_an_argument_is_not_noted_if_others_are_allowed_or_a_failure_is_expected(
    hold: Hold, answer: Json, expect: str, more: Json, noted: bool
) -> None:
    server = Canned(answer)
    schema: Json = {"type": "object", "properties": {"n": {"type": "string"}}, **more}
    server.tools = [{"name": "t", "inputSchema": schema}]
    (result,) = await hold(server, f"  - {{name: a, tool: t, arguments: {{quantity: 1}}, expect: {expect}}}\n")
    assert messages([result]) == []
    assert bool(result.notes) is noted
