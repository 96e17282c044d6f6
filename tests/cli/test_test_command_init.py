"""`bespeak test --init TARGET`: a first suite that loads, runs, and says what to paste. Testing.md section 2."""

import json
import sys
from collections.abc import Generator
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

import pytest
from jsonschema import validate
from ruamel.yaml import YAML

from bespeak.conversation.servers import Unreachable
from bespeak.testing.suite import drafts
from bespeak.testing.suite.loader import load_suite
from tests.cli.desks import Raw, bespeak, served, text, told, write_raw
from tests.curious_server import ROOTS, as_target, curious

RED = {"properties": {"color": {"$ref": "#/$defs/Color"}}, "required": ["color"], "$defs": {"Color": {"enum": ["red"]}}}

SCHEMA = json.loads(files("bespeak.testing").joinpath("suite.schema.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    with served(tmp_path_factory.mktemp("init") / "init_desk.py") as target:
        yield target


@pytest.fixture
def raw(tmp_path: Path) -> Raw:
    return write_raw(tmp_path)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(drafts, "SLOW_SECONDS", 60)  # a busy machine is slow
    return tmp_path


def drafted(target: str) -> str:
    """A suite for a target, in a file."""
    result = bespeak("test", "--init", target)
    said = told(result, 0)
    assert not said or (said.startswith("bespeak: every test of this draft is skipped") and said.count("\n") == 1)
    Path("first.bespeak.yaml").write_text(result.stdout, encoding="utf-8")
    validate(cast("Any", YAML(typ="safe")).load(result.stdout), SCHEMA)  # an editor finds nothing wrong with it either
    return "first.bespeak.yaml"


def tool(name: str, **schema: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object", **schema}, "annotations": {"readOnlyHint": True}}


def check(ran: Any) -> None:
    """The tools that ask fail and show what to paste; the others pass."""
    lines = ran.stdout.splitlines()
    assert [line.split()[1] for line in lines if line.startswith("ok ")] == ["say", "typed", "shout"]
    assert [line.split()[1] for line in lines if line.startswith("FAILED ")] == ["forecast", "trip", "sit"]
    assert "    inputResponses:\n      city: " in ran.stdout


@pytest.mark.timing
@pytest.mark.long
def test_the_draft_for_a_server_that_asks_for_roots_has_a_line_for_them(tmp_path: Path) -> None:
    line = "    roots: []  # the server asks for the client's roots: list the folders that it may use, such as [data]\n"
    assert line in Path(drafted(as_target(curious(tmp_path, initialized=[ROOTS])))).read_text()
    assert "roots" not in Path(drafted(as_target(curious(tmp_path)))).read_text()


@pytest.mark.timing
@pytest.mark.long
def test_a_server_that_takes_long_to_start_is_waited_for_with_a_line_on_stderr(
    raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drafts, "SLOW_SECONDS", 0)
    result = bespeak("test", "--init", raw(pages=[{"tools": [tool("t")]}]))
    (line,) = told(result, 0).splitlines()
    assert line.startswith(f"bespeak: starting {sys.executable} -I -S ")
    assert line.endswith(" ...")
    assert result.stdout.startswith("# ")


@pytest.mark.timing
@pytest.mark.long
async def test_a_server_behind_a_url_is_waited_for_with_a_line_that_does_not_repeat_the_url(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(drafts, "SLOW_SECONDS", 0)
    said: list[str] = []
    with pytest.raises(Unreachable):
        await drafts.draft("http://ada:secret@127.0.0.1:9/mcp", said.append)
    assert said == ["waiting for the server ..."]


@pytest.mark.timing
@pytest.mark.parametrize("reading", [0, 1])
def test_a_draft_without_a_test_that_runs_says_what_to_do(raw: Raw, reading: int) -> None:
    changing = {"name": "order", "inputSchema": {"type": "object"}}
    tools = [changing, *[tool("look")] * reading]
    said = told(bespeak("test", "--init", raw(pages=[{"tools": tools}])), 0)
    assert ("then remove skip from a test to run it" in said) is (reading == 0)


WORDS = "not interrupted"


@pytest.mark.long
def test_a_suite_for_a_file_runs(desk: str) -> None:
    check(bespeak("test", drafted(desk), "-k", WORDS))


@pytest.mark.timing
@pytest.mark.long
def test_a_suite_for_a_command_runs(raw: Raw) -> None:
    suite = drafted(raw(text("ok"), pages=[{"tools": [tool("t")]}]))
    assert "command: [" in Path(suite).read_text()
    assert told(bespeak("test", suite), 0) == ""


def test_with_what_a_failure_says_to_paste_a_test_passes(desk: str) -> None:
    suite = drafted(desk)
    hint = json.loads(bespeak("test", suite, "-k", "forecast", "--report", "json").stdout)["results"][0]["failures"][0]
    pasted = "".join(f"    {line}\n" for line in hint["hint"].splitlines())
    before, asks, after = Path(suite).read_text().partition("    tool: forecast\n")
    Path(suite).write_text(before + asks + pasted + after)
    ran = bespeak("test", suite, "-k", "forecast")
    assert ran.exit_code == 0, ran.output


TEXT: dict[str, Any] = {"type": "string"}
CHOICES = {"enum": ["x", "y", "z"]}
REFERRED: dict[str, Any] = {"properties": {"e": {"$ref": "#/definitions/E"}}, "required": ["e"]}
INNER = {"type": "object", "properties": {"x": TEXT, "y": TEXT}, "required": ["x"]}


@pytest.mark.timing
@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        ({"properties": {"a": TEXT, "b": TEXT}, "required": ["b"]}, {"b": "..."}),
        ({"properties": {"n": {"type": "integer", "minimum": 3}}, "required": ["n"]}, {"n": 3}),
        ({"properties": {"b": {"type": "boolean"}}, "required": ["b"]}, {"b": True}),
        ({"properties": {"l": {"type": "array", "items": TEXT}}, "required": ["l"]}, {"l": ["..."]}),
        ({"properties": {"l": {"type": "array", "maxItems": 0}}, "required": ["l"]}, {"l": []}),
        ({"properties": {"l": {"type": "array", "items": TEXT, "minItems": 1}}, "required": ["l"]}, {"l": ["..."]}),
        ({"properties": {"l": {"type": "array", "minItems": 2}}, "required": ["l"]}, {"l": ["...", "..."]}),
        (
            {"properties": {"l": {"type": "array", "items": CHOICES, "minItems": 2}}, "required": ["l"]},
            {"l": ["x", "y"]},
        ),
        (
            {"properties": {"l": {"type": "array", "items": CHOICES, "minItems": 4}}, "required": ["l"]},
            {"l": ["x"] * 4},
        ),
        ({"properties": {"l": {"type": "array", "minItems": 10**9}}, "required": ["l"]}, {"l": ["..."] * 10}),
        ({"properties": {"l": {"type": "array", "minItems": "two"}}, "required": ["l"]}, {"l": ["..."]}),
        ({"properties": {"s": {"type": "string", "minLength": 5}}, "required": ["s"]}, {"s": "....."}),
        ({"properties": {"s": {"type": "string", "minLength": 10**9}}, "required": ["s"]}, {"s": "." * 200}),
        ({"properties": {"s": CHOICES}, "required": ["s"]}, {"s": "x"}),
        ({"properties": {"s": {"type": "string", "default": "d"}}, "required": ["s"]}, {"s": "d"}),
        ({"properties": {"s": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}, "required": ["s"]}, {"s": 1}),
        ({"properties": {"o": INNER}, "required": ["o"]}, {"o": {"x": "..."}}),
        (RED, {"color": "red"}),
        ({**REFERRED, "definitions": {"E": {"$ref": "#/definitions/F"}, "F": {"enum": ["x"]}}}, {"e": "x"}),
        ({**REFERRED, "definitions": {"E": {"$ref": "#/definitions/E"}}}, {"e": "..."}),
    ],
)
def test_each_required_argument_gets_a_value_that_its_schema_takes(
    raw: Raw, schema: dict[str, Any], arguments: dict[str, Any]
) -> None:
    suite = load_suite(Path(drafted(raw(pages=[{"tools": [tool("t", **schema)]}]))))
    assert [test.arguments for test in suite.model.tests] == [arguments]


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "integer"}, 1),
        ({"type": "integer", "minimum": 0}, 0),
        ({"type": "integer", "minimum": 2.5}, 3),
        ({"type": "integer", "exclusiveMinimum": 3}, 4),
        ({"type": "integer", "maximum": -2}, -2),
        ({"type": "integer", "exclusiveMaximum": 0}, -1),
        ({"type": "integer", "exclusiveMinimum": 0, "maximum": 5}, 1),
        ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, 0.5),
        ({"type": "number", "maximum": 0.5}, 0),
        ({"type": "number", "minimum": float("inf")}, 1),
        ({"type": "integer", "minimum": 10**400}, 1),
        ({"type": "integer", "minimum": "many", "maximum": True}, 1),
        ({"type": "integer", "minimum": 5, "maximum": 2}, 5),
    ],
)
def test_a_number_is_within_its_bounds_if_any_is(schema: dict[str, Any], value: float) -> None:
    assert drafts.example(schema) == value


NAMES = [
    "",
    "a: b # c",
    "- x",
    "\x00\x1b[2J\x7f\x85\u2028\u202e\ufeff",
    "${HOME}",
    "$${HOME}",
    "\u8c8c",
    "null",
    "x" * 200,
]


@pytest.mark.timing
@pytest.mark.parametrize("name", NAMES)
def test_a_suite_for_tools_of_any_name_loads_and_sends_it(raw: Raw, name: str) -> None:
    schema = {"properties": {name: {"const": name}}, "required": [name]}
    suite = drafted(raw("echo", pages=[{"tools": [tool(name, **schema)]}]))
    assert told(bespeak("test", "--validate", suite), 0) == ""
    Path(suite).write_text(Path(suite).read_text().replace("isError: false", "text: {contains: '\"name\": nothing'}"))
    (result,) = json.loads(bespeak("test", suite, "--report", "json").stdout)["results"]
    sent = json.loads(result["failures"][0]["actual"])
    assert (sent["name"], sent["arguments"]) == (name, {name: name})


@pytest.mark.timing
def test_a_tool_listed_twice_is_tested_once(raw: Raw) -> None:
    pages = [{"tools": [tool("a"), tool("b")], "nextCursor": "1"}, {"tools": [tool("a"), 5, {"name": 5}, {}]}]
    suite = load_suite(Path(drafted(raw(pages=pages))))
    assert [test.tool for test in suite.model.tests] == ["a", "b"]


@pytest.mark.timing
def test_a_target_that_looks_like_a_hole_is_reached_again(raw: Raw) -> None:
    suite = drafted(f"{raw(text('ok'), pages=[{'tools': [tool('t')]}])} '${{HOME}}' '${{env:NOT_SET}}'")
    ran = bespeak("test", suite)
    assert ran.exit_code == 0, ran.output


@pytest.mark.timing
@pytest.mark.parametrize(
    "broken", [{"type": 5}, {"type": []}, {"enum": 5}, {"anyOf": [5]}, {"properties": 5}, {"$ref": "#/$defs/no"}]
)
def test_a_schema_that_is_invalid_is_not_an_obstacle(raw: Raw, broken: dict[str, Any]) -> None:
    tools = [tool("t", properties={"x": broken}, required=["x"]), tool("u", required=5, properties={"x": broken})]
    assert told(bespeak("test", "--validate", drafted(raw(pages=[{"tools": tools}]))), 0) == ""


@pytest.mark.timing
@pytest.mark.long
def test_a_schema_that_holds_itself_ends(raw: Raw) -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}, "required": ["next"]}
    endless = tool("t", properties={"x": {"$ref": "#/$defs/Node"}}, required=["x"], **{"$defs": {"Node": node}})
    assert told(bespeak("test", "--validate", drafted(raw(pages=[{"tools": [endless]}]))), 0) == ""


@pytest.mark.timing
@pytest.mark.parametrize(
    ("target", "code", "said"),
    [
        ("nowhere.py", 2, "there is no file 'nowhere.py'"),
        ("http://127.0.0.1:9/mcp", 3, "cannot connect to http://127.0.0.1:9/mcp"),
        ("no-such-program-at-all", 3, "cannot start the server 'no-such-program-at-all'"),
        ("", 2, "a target is a URL, FILE[:OBJECT], MODULE[:OBJECT], or a command in quotes"),
        ("'", 2, "is not a valid command: No closing quotation"),
    ],
)
def test_without_a_server_there_is_no_suite(target: str, code: int, said: str) -> None:
    result = bespeak("test", "--init", target)
    assert said in told(result, code)
    assert result.stdout == ""


PAGES: dict[str, tuple[Any, str]] = {
    "none": ({"tools": []}, "lists no tools"),
    "no list": ({"tools": 5}, "lists no tools"),
    "refused": (
        {"error": {"code": -32601, "message": "only prompts\x1b[2J here"}},
        "did not list its tools: only prompts",
    ),
}


@pytest.mark.timing
@pytest.mark.parametrize(("page", "said"), PAGES.values(), ids=PAGES)
def test_a_server_that_has_no_tools_to_draft_from_says_so(raw: Raw, page: Any, said: str) -> None:
    result = bespeak("test", "--init", raw(pages=[page]))
    assert (result.exit_code in (2, 3), result.stdout) == (True, "")
    assert said in result.stderr
    assert "\x1b" not in result.stderr


def test_what_a_file_prints_while_it_loads_is_not_a_part_of_the_suite() -> None:
    Path("printing_init_desk.py").write_text(
        "from bespeak import MCPServer\nprint('LOADED')\nmcp = MCPServer('x')\n@mcp.tool()\ndef say() -> str: ...\n"
    )
    result = bespeak("test", "--init", "printing_init_desk.py")
    assert result.stdout.startswith("# The arguments are placeholders: replace them by real ones.\n")
    assert "LOADED" not in result.stdout


@pytest.mark.timing
def test_what_holds_for_all_tests_is_said_once_at_the_top(raw: Raw) -> None:
    written = Path(drafted(raw(pages=[{"tools": [tool("a"), tool("b")]}]))).read_text()
    assert [line for line in written.splitlines() if "#" in line] == written.splitlines()[:2]
    assert "shows the inputResponses to add below its arguments" in written.splitlines()[1]


def test_the_help_says_what_a_target_is() -> None:
    said = " ".join(bespeak("test", "--help").stdout.replace("│", " ").split())
    assert "a URL, FILE[:OBJECT], MODULE[:OBJECT] or a command in quotes" in said


# Tools that may change or delete something


@pytest.mark.parametrize(
    ("annotations", "runs"),
    [
        ({"readOnlyHint": True}, True),
        ({"readOnlyHint": True, "destructiveHint": True}, True),
        ({"destructiveHint": False}, False),
        ({"destructiveHint": True}, False),
        ({"readOnlyHint": False}, False),
        ({"readOnlyHint": "yes"}, False),
        ({}, False),
        (None, False),
        ("none", False),
    ],
)
@pytest.mark.long
def test_a_tool_that_may_change_something_is_not_run_before_a_person_says_so(
    raw: Raw, annotations: Any, runs: bool
) -> None:
    tools = [
        tool("look"),
        {**tool("wipe", properties={"id": {"type": "integer"}}, required=["id"]), "annotations": annotations},
    ]
    suite = drafted(raw(text("ok"), text("ok"), pages=[{"tools": tools}]))
    result = bespeak("test", suite)
    assert result.exit_code == 0
    why = "(the tool may change or delete something; check the arguments, then remove this line)"
    assert (f"skip    wipe answers  {suite}:13  {why}" in result.stdout) != runs
    assert ("2 passed in" in result.stdout) == runs
