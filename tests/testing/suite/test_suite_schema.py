"""The JSON Schema of suites, for editors: it accepts what the loader accepts, and refuses the shapes that it refuses."""

import copy
import json
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from bespeak.cli.commands import app
from bespeak.testing.suite import loader
from bespeak.testing.suite.loader import BadSuite, load_suite
from bespeak.testing.suite.suite_schema import json_schema
from bespeak.testing.suite.yaml_positions import YamlDocument, YamlValue, read_yaml
from tests.testing.suite_files import in_test, load

ROOT = Path(__file__).parents[3]
SHIPPED = sorted([*ROOT.glob("examples/*/*.bespeak.yaml"), *ROOT.glob("suites/*.bespeak.yaml")])

DESIGNED = """\
version: 1
servers:
  weather:
    command: [python, -m, weather_server]
    protocol: auto
tests:
  - name: asks for the city, then the units
    tool: forecast
    arguments: { loc: SFO }
    inputResponses:
      city: San Francisco
      units: { accept: { units: C } }
    expect: { rounds: 2, text: San Francisco in C }
"""

WHOLE: dict[str, Any] = {
    "version": 1,
    "server": "desk",
    "servers": {
        "desk": {
            "command": ["serve", "${port}"],
            "env": {"A": "b"},
            "cwd": "..",
            "url": "http://127.0.0.1:${port}/",
            "headers": {"x": "y"},
            "protocol": "2026-07-28",
            "declare": {"roots": {}},
            "timeout": 3,
        },
        "other": {
            "python": "desk:mcp",
            "roots": ["..", "file:///work", {"uri": "file:///maps", "name": "Maps"}],
            "answers": {"city": "Paris"},
        },
    },
    "eras": ["2026-07-28"],
    "wire": "any",
    "maxRounds": 7,
    "cassettes": "tapes",
    "redact": ["structuredContent.id"],
    "setup": [["make", "data"], {"command": ["seed"], "env": {"A": "b"}, "cwd": "..", "timeout": 5}],
    "teardown": [["make", "clean"]],
    "tests": [
        {
            "name": "table",
            "tool": "pay",
            "server": "desk",
            "arguments": {"n": 1},
            "inputResponses": {"city": "Paris", "units": {"accept": {"u": "C"}}, "page": {"url": "done"}},
            "expect": {
                "rounds": {"lte": 2},
                "asked": ["city"],
                "text": "x",
                "content": [],
                "structuredContent": None,
                "isError": False,
                "result": {"present": True},
                "notifications": [],
            },
            "eras": ["2025-11-25"],
            "cases": [
                {"name": "x", "skip": "slow", "xfail": "broken"},
                {"name": "a", "arguments": {}, "input_responses": {"at": {"roots": ["file:///x"]}}, "expect": {}},
                {"name": "b"},
            ],
            "verify": [{"prompt": "p", "arguments": {}, "inputResponses": {}, "expect": {"messages": []}}],
            "wire": "list",
            "maxRounds": 3,
            "timeout": 1.5,
            "fresh": True,
            "declare": {},
            "profiles": {"silent": {"expect": {"isError": True}, "verify": {"tool": "balance"}}, "lossy": {}},
        },
        {
            "name": "rounds",
            "prompt": "p",
            "rounds": [
                {
                    "expect": {
                        "asks": ["a"],
                        "messages": {"a": "x"},
                        "schemas": {"a": {}},
                        "methods": {"a": "x"},
                        "state": "present",
                    },
                    "answer": [
                        {"when": {"key": "a", "message": "b", "method": "c", "mode": "d"}, "answer": {"raw": None}},
                        {"otherwise": {"sample": "Paris"}},
                    ],
                }
            ],
            "expect": {"error": {"code": 1, "message": "x", "data": None}},
            "tamper": {"round": 1, "requestState": "other-arguments", "arguments": {}},
        },
        {
            "name": "lost",
            "resource": "till://log",
            "inputResponses": [{"id": "a", "value": "b"}],
            "capture": {"id": "contents[0].text"},
            "fault": {"round": 0, "drop": "response"},
            "retry": 2,
            "expect": {"contents": []},
        },
        {
            "name": "sent elsewhere",
            "tool": "pay",
            "tamper": {"round": 1, "requestState": "other-tool", "tool": "x", "arguments": {}},
            "setup": [["make", "data"]],
            "teardown": [{"command": ["rm", "data"]}],
        },
        {
            "name": "sent by another",
            "tool": "pay",
            "tamper": {"round": 1, "requestState": "other-caller", "headers": {"authorization": "x"}},
        },
        {"name": "old", "tool": "pay", "tamper": {"round": 3, "requestState": "older-round", "from": 1}},
        {"name": "late", "tool": "pay", "tamper": {"round": 1, "requestState": "expired", "after": 2}},
        {"name": "malformed", "tool": "pay", "tamper": {"round": 1, "inputResponses": "list"}},
        {"name": "restarted", "tool": "pay", "fault": {"round": 1, "restart": True}},
        {"name": "stopped", "tool": "pay", "stop": {"after": 1}},
        {"name": "listed", "method": "tools/list", "params": {}, "tags": ["fast"]},
        {"name": "left out", "tool": "pay", "skip": "slow"},
        {"name": "wrong", "tool": "pay", "xfail": "known"},
        {"name": "probed", "probe": "all", "timeout": 5},
        {"name": "probed in part", "probe": ["tool", "cursor"], "fresh": True},
    ],
}
"""Every key there is."""


def printed() -> dict[str, Any]:
    result = CliRunner().invoke(app, ["test", "--schema"])
    assert result.exit_code == 0
    return json.loads(result.stdout)


VALIDATOR: Any = jsonschema.Draft202012Validator(printed())


def fits(value: Any) -> bool:
    return VALIDATOR.is_valid(value)


# What the schema need not know: what keys mean to each other, and what is inside a text.
MEANING = re.compile(
    "has no effect in a test with probe|all stands alone|"
    "name exactly one of tool|a resource takes no|fault and retry|tamper and fault|both give answers|"
    "are the same key; use one|a server needs|are for a|there is no server|there is another|listed twice|"
    "used twice|name the server|needs rounds|has no value|does not name an env|cannot be read|matches many|"
    "a name consists|captur|belongs to other|may follow otherwise|only the result of a tool|only a server|"
    "can never be|is no|is not a matcher|maxRounds allows|is an operator|needs a regular|oneOf needs|"
    "is no JSON Schema|needs a number|length needs|write {absent|write {present|snapshot needs|"
    "cannot be written as JSON|its own eras|tamper needs exactly|belongs to|needs (arguments|tool|headers|after)|"
    "older-round needs|fault needs|restart needs|cannot be combined|a method takes|params are for|"
    "is a notification|stays open|the tag|that the client stops|is for a test of|other-caller needs|only \\$"
)


def _read_json(text: str) -> YamlDocument:
    return YamlDocument(YamlValue(1, None), json.loads(text))


def shape_faults(folder: Path, value: Any) -> list[str] | None:
    """What the loader says of the shape; `None` if it takes the suite."""
    try:
        with patch.object(loader, "read_yaml", _read_json):  # which is read much faster
            load(folder, json.dumps(value))
    except BadSuite as error:
        return [fault.message for fault in error.faults if not MEANING.search(fault.message)]
    return None


def compare(folder: Path, value: Any) -> None:
    faults = shape_faults(folder, value)
    if faults is None:
        assert fits(value), "the schema refuses what the loader takes"
    elif faults:
        assert not fits(value), f"the schema takes what the loader refuses: {faults}"


# What it is, and what it accepts


@pytest.mark.long
def test_the_schema_is_one_of_draft_2020_12() -> None:
    schema = printed()
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: cast("Path", path).name)
@pytest.mark.long
def test_the_schema_and_the_loader_accept_every_suite_that_is_shipped(path: Path) -> None:
    load_suite(path)
    VALIDATOR.validate(read_yaml(path.read_text(encoding="utf-8")).value)


@pytest.mark.parametrize("guide", ["docs/testing.md"])
def test_the_schema_accepts_the_suites_of_the_guide(guide: str) -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", (ROOT / guide).read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    included = re.compile(r"# \S+(?<!\.bespeak)\.yaml\n")  # a part of a suite, and no suite
    for block in (block for block in blocks if not included.match(block)):
        VALIDATOR.validate(read_yaml(block).value)


def test_the_schema_and_the_loader_accept_the_suite_of_the_design(tmp_path: Path) -> None:
    load(tmp_path, DESIGNED)
    VALIDATOR.validate(read_yaml(DESIGNED).value)


def test_the_schema_and_the_loader_accept_a_suite_with_every_key(tmp_path: Path) -> None:
    load(tmp_path, json.dumps(WHOLE))
    VALIDATOR.validate(WHOLE)


def test_every_key_of_the_schema_is_in_that_suite() -> None:
    schema = printed()
    known = {key for part in [schema, *schema["$defs"].values()] for key in part.get("properties", {})}
    written = {key for _, held in parts(WHOLE) if isinstance(held, dict) for key in cast("dict[str, Any]", held)}
    assert known - {"include"} <= written  # which needs other files


@pytest.mark.parametrize("name", ["inputResponses", "input_responses"])
@pytest.mark.parametrize(
    "place", ["{name}: {{a: b}}", "cases: [{{name: c, {name}: {{}}}}]", "verify: [{{tool: x, {name}: []}}]"]
)
def test_answers_have_two_names_wherever_they_stand(tmp_path: Path, name: str, place: str) -> None:
    text = in_test(place.format(name=name))
    load(tmp_path, text)
    VALIDATOR.validate(read_yaml(text).value)


@pytest.mark.parametrize("place", ["{both}", "cases: [{{name: c, {both}}}]", "verify: [{{tool: x, {both}}}]"])
def test_both_names_at_once_are_refused(tmp_path: Path, place: str) -> None:
    both = "inputResponses: {a: b}, input_responses: {a: b}"
    text = in_test(place.format(both=both)) if "{{" in place else in_test(*both.split(", "))
    with pytest.raises(BadSuite, match="inputResponses and input_responses are the same key; use one"):
        load(tmp_path, text)


def test_every_part_is_described_to_who_writes_a_suite_in_an_editor() -> None:
    schema = printed()
    assert all("description" in part for part in schema["$defs"].values())


# What both refuse


@pytest.mark.parametrize(
    "text",
    [
        in_test("maxRounds: 2.0"),
        in_test("timeout: 1"),
        in_test("fault: {round: 1.0, drop: response}", "retry: true"),
        in_test("verify: {tool: x}"),
        in_test("inputResponses: {a: [1, {b: 2}, null]}"),
        in_test("inputResponses: {}"),
        in_test("rounds: []"),
        in_test("expect: {structuredContent: null, text: {contains: a}}"),
    ],
)
def test_what_the_loader_reads_generously_the_schema_does_too(tmp_path: Path, text: str) -> None:
    load(tmp_path, text)
    VALIDATOR.validate(read_yaml(text).value)


# Every place of a suite with every key, altered

Place = tuple[str | int, ...]


def parts(value: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """A value, and all that is inside of it."""
    yield place, value
    if isinstance(value, dict):
        for key, member in cast("dict[str, Any]", value).items():
            yield from parts(member, (*place, key))
    elif isinstance(value, list):
        for number, entry in enumerate(cast("list[Any]", value)):
            yield from parts(entry, (*place, number))


def holder(value: Any, place: Place) -> Any:
    for step in place[:-1]:
        value = value[step]
    return value


PLACES = [place for place, _ in parts(WHOLE)]
MAPS = [place for place, held in parts(WHOLE) if isinstance(held, dict)]
OPEN = {
    "env",
    "headers",
    "declare",
    "arguments",
    "params",
    "accept",
    "roots",
    "messages",
    "schemas",
    "methods",
    "capture",
    "servers",
}
"""Maps whose keys are the author's."""
FREE = {"rounds", "asked", "text", "content", "structuredContent", "result", "notifications", "code", "message", "data"}
"""Expectations, in which anything may stand."""


@pytest.mark.parametrize("place", MAPS, ids=lambda place: ".".join(map(str, cast("Place", place))) or "suite")
def test_an_unknown_key_is_refused_by_both_or_by_none(tmp_path: Path, place: Place) -> None:
    altered = copy.deepcopy(WHOLE)
    holder(altered, (*place, "zzz"))["zzz"] = {}
    compare(tmp_path, altered)
    if not OPEN.union(FREE, {"inputResponses", "input_responses"}).intersection(map(str, place)):
        assert not fits(altered)


@pytest.mark.parametrize("place", PLACES[1:], ids=lambda place: ".".join(map(str, cast("Place", place))))
def test_a_key_that_is_left_out_is_missed_by_both_or_by_none(tmp_path: Path, place: Place) -> None:
    altered = copy.deepcopy(WHOLE)
    del holder(altered, place)[place[-1]]
    compare(tmp_path, altered)


VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 1.5, 2.0, 5000, "", "x", "1", "decline", "2026-07-28"),
    *([], ["x"], [1], [[]], [{}], [{"otherwise": "omit"}]),
    *({}, {"x": 1}, {"accept": {}}, {"raw": None}, {"otherwise": 1}, {"name": "n"}, {"tool": "t"}),
]


@settings(max_examples=300)
@given(place=st.sampled_from(PLACES[1:]), value=st.sampled_from(VALUES))
@pytest.mark.long
def test_another_value_in_any_place_is_refused_by_both_or_by_none(
    tmp_path_factory: pytest.TempPathFactory, place: Place, value: Any
) -> None:
    altered = copy.deepcopy(WHOLE)
    holder(altered, place)[place[-1]] = value
    compare(tmp_path_factory.getbasetemp(), altered)


@settings(max_examples=100)
@given(place=st.sampled_from(PLACES), key=st.text(min_size=1, max_size=8), value=st.sampled_from(VALUES))
@pytest.mark.long
def test_another_key_in_any_place_is_refused_by_both_or_by_none(
    tmp_path_factory: pytest.TempPathFactory, place: Place, key: str, value: Any
) -> None:
    altered = copy.deepcopy(WHOLE)
    held = holder(altered, (*place, key))
    if isinstance(held, dict):
        held[key] = value
    compare(tmp_path_factory.getbasetemp(), altered)


def test_the_schema_that_is_shipped_is_the_one_that_is_printed() -> None:
    shipped = files("bespeak.testing").joinpath("suite.schema.json").read_text(encoding="utf-8")
    assert json.loads(shipped) == json_schema()
