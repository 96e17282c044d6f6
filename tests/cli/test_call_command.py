"""`bespeak call`: arguments, servers, results and exit codes. Testing.md sections 4 and 5."""

import asyncio
import json
import shlex
import signal
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from bespeak.cli.resume_command import shown
from bespeak.server.targets import load
from tests.cli.desks import QUESTION, WORD, Raw, asking, bespeak, form, served, text, told, write_raw
from tests.wires import Listening


@pytest.fixture
def raw(tmp_path: Path) -> Raw:
    """The command that starts a server of that script."""
    return write_raw(tmp_path)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    with served(tmp_path_factory.mktemp("calling") / "calling_desk.py") as target:
        yield target


# Arguments


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (["s=1"], "('1', 0, False, [], None, 0.0)"),
        (["s="], "('', 0, False, [], None, 0.0)"),
        (["s=a=b"], "('a=b', 0, False, [], None, 0.0)"),
        (['s={"a": 1}'], "('{\"a\": 1}', 0, False, [], None, 0.0)"),
        (["s=true", "b=true"], "('true', 0, True, [], None, 0.0)"),
        (["i=-2", "f=1.5", "l=[1, 2]"], "('', -2, False, [1, 2], None, 1.5)"),
        (["n=12"], "('', 0, False, [], '12', 0.0)"),
        (["n=word"], "('', 0, False, [], 'word', 0.0)"),
        (["--arguments", '{"s": "x", "i": 3}'], "('x', 3, False, [], None, 0.0)"),
        (["--arguments", '{"s": "x", "i": 3}', "i=4"], "('x', 4, False, [], None, 0.0)"),
    ],
)
def test_each_argument_is_read_as_the_tools_schema_says(desk: str, given: list[str], read: str) -> None:
    assert bespeak("call", desk, "typed", *given).stdout == f"{read}\n"


@pytest.mark.timing
def test_the_schema_of_a_tool_on_a_later_page_counts(raw: Raw) -> None:
    tool = {"name": "t", "inputSchema": {"type": "object", "properties": {"zip": {"type": "string"}}}}
    target = raw("echo", pages=[{"tools": [], "nextCursor": "1"}, {"tools": [tool]}])
    assert json.loads(bespeak("call", target, "t", "zip=01234").stdout)["arguments"] == {"zip": "01234"}


@pytest.mark.timing
@pytest.mark.parametrize("page", [{"tools": []}, {"error": {"code": -32601, "message": "no list"}}])
def test_without_a_schema_an_argument_is_json_or_else_text(raw: Raw, page: Any) -> None:
    sent = json.loads(bespeak("call", raw("echo", pages=[page]), "t", "a=1", "b=x", 'c={"d": null}').stdout)
    assert sent["arguments"] == {"a": 1, "b": "x", "c": {"d": None}}


# Bad command lines


@pytest.mark.timing
def test_without_a_tool_what_the_server_has_is_listed(raw: Raw) -> None:
    target = raw(pages=[{"tools": [{"name": "order"}, {"name": 5}]}])
    result = bespeak("call", target)
    usage = f"bespeak: Missing argument TOOL: bespeak call {shown(target)} TOOL [KEY=VALUE...]\n"
    assert (told(result, 2), result.stdout) == (usage, "Tools\n  order\n")
    assert json.loads(bespeak("call", target, "--json").stdout) == json.loads(bespeak("list", target, "--json").stdout)


def test_without_a_tool_a_file_is_listed_with_who_fills_its_parameters(desk: str) -> None:
    result = bespeak("call", desk)
    assert "Missing argument TOOL" in told(result, 2)
    assert result.stdout == bespeak("list", desk).stdout
    assert "city   asked by ask_city (may ask the user in round 1)\n" in result.stdout


def test_without_a_tool_a_server_that_cannot_be_reached_ends_with_3() -> None:
    assert "Missing" not in told(bespeak("call", "http://127.0.0.1:9/mcp"), 3)


TOOLS: list[Any] = [
    {
        "name": "order_book",
        "inputSchema": {
            "type": "object",
            "properties": {"title": {"type": "string"}, "copies": {"type": "integer"}, "gift": {"type": "boolean"}},
            "required": ["title", "copies"],
        },
    },
    {"name": "hold_book", "inputSchema": {"type": "object", "properties": {}}},
    {"name": "open", "inputSchema": {"properties": {"a": {}}, "additionalProperties": {"type": "string"}}},
    {"name": "composed", "inputSchema": {"properties": {"a": {}}, "allOf": [{}]}},
    {"name": "vague", "inputSchema": {"type": "object"}},
]


@pytest.mark.timing
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["order_bok"], "unknown tool 'order_bok'; did you mean 'order_book'?"),
        (
            ["order_book", "titel=Dune"],
            "unknown argument 'titel' of tool 'order_book'; did you mean 'title'? To send it all the same, use --arguments.\n",
        ),
        (
            ["order_book", "pages=3"],
            "unknown argument 'pages' of tool 'order_book'; it accepts title, copies, gift. To send it",
        ),
        (["hold_book", "title=Dune"], "unknown argument 'title' of tool 'hold_book'; it accepts none. To send it"),
        (["order_book", "title=Dune"], "missing argument of tool 'order_book': 'copies' (integer); write copies=VALUE"),
        (
            ["order_book", "gift=true"],
            "missing arguments of tool 'order_book': 'title' (string), 'copies' (integer); write title=VALUE",
        ),
    ],
)
def test_a_tool_or_argument_that_there_is_not_is_named_with_what_was_meant(
    raw: Raw, words: list[str], said: str
) -> None:
    result = bespeak("call", raw(pages=[{"tools": TOOLS}]), *words)
    assert said in told(result, 2)
    assert result.stdout == ""


@pytest.mark.timing
@pytest.mark.parametrize(
    "words",
    [
        ["order_book", "--arguments", '{"titel": "Dune"}'],
        ["order_book", "pages=3", "--arguments", "{}"],
        ["open", "b=1"],
        ["composed", "b=1"],
        ["vague", "b=1"],
    ],
)
def test_arguments_that_may_be_right_are_sent(raw: Raw, words: list[str]) -> None:
    assert bespeak("call", raw("echo", pages=[{"tools": TOOLS}]), *words).exit_code == 0


@pytest.mark.timing
def test_a_tool_that_is_not_listed_is_called_and_only_its_failure_is_doubted(raw: Raw) -> None:
    pages: Any = [{"tools": TOOLS}]
    assert told(bespeak("call", raw("echo", pages=pages), "pay"), 0) == ""
    assert told(bespeak("call", raw("echo", pages=pages), "order_bok", "--arguments", "{}"), 0) == ""
    broken = {"error": {"code": -32602, "message": "no payment today"}}
    assert told(bespeak("call", raw(broken, pages=pages), "pay"), 1) == (
        "bespeak: no payment today (-32602)\n"
        "bespeak: the server does not list a tool 'pay'; tools of this server: order_book, hold_book, open, composed, vague\n"
    )


@pytest.mark.timing
def test_the_names_of_a_server_cannot_control_the_terminal(raw: Raw) -> None:
    tools: Any = [{"name": "order\x1b[2J", "inputSchema": {"properties": {"a\x07b": {}}, "required": ["a\x07b"]}}]
    target = raw(pages=[{"tools": tools}])
    said = told(bespeak("call", target, "ordr"), 2) + told(bespeak("call", target, "order\x1b[2J"), 2)
    assert "did you mean 'order\\x1b[2J'?" in said
    assert "missing argument of tool 'order\\x1b[2J': 'a\\x07b' (any)" in said


NOT_JSON = (
    "is not valid JSON: Expecting property name enclosed in double quotes (line 1, column 2); "
    'write it like {"accept": {"confirm": true}}; text that begins with {, [ or " goes in double quotes\n'
)
EXAMPLE = """{url: ...}; for a form with these fields, write {"accept": {"city": "Paris"}} or only "Paris"\n"""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "Missing argument TARGET: bespeak call TARGET TOOL [KEY=VALUE...]"),
        (["nowhere.py", "t", "word"], "tool arguments must be KEY=VALUE, such as title=Dune, not 'word'"),
        (["sh", "nope.sh", "tool"], "not 'tool'; a command with arguments goes in quotes: 'sh nope.sh'"),
        (
            ["nowhere.py", "t", "--arguments", "[]"],
            """--arguments takes a JSON object; write it like '{"title": "Dune"}'\n""",
        ),
        (
            ["nowhere.py", "t", "--arguments", "{'title': 'Dune'}"],
            "--arguments is not valid JSON: Expecting property name enclosed in double quotes (line 1, column 2); JSON has double "
            """quotes; write it like '{"title": "Dune"}'\n""",
        ),
        (
            ["nowhere.py", "t", "--arguments", '{"a": 1'],
            """--arguments is not valid JSON: Expecting ',' delimiter (line 1, column 8); write it like""",
        ),
        (["nowhere.py", "t", "--arguments", f'{{"a": {"9" * 5000}}}'], "--arguments cannot be read as JSON: Exceeds"),
        (["nowhere.py", "t", "--answer", 'city={"city": "Paris"}'], EXAMPLE),
        (
            ["nowhere.py", "t", "--answer", 'city={"row": 1, "side": "aisle"}'],
            """{url: ...}; for a form with these fields, write {"accept": {"row": 1, "side": "aisle"}}\n""",
        ),
        (["nowhere.py", "t", "--answer", 'city={"accept": {}, "url": "done"}'], "or one of {accept: ...}"),
        (["nowhere.py", "t", "--answer", "city={accept: {x: 1}}"], f"--answer city {NOT_JSON}"),
        (["nowhere.py", "t", "--answer", "city= [draft] Rome"], "--answer city is not valid JSON: Expecting value"),
        (["nowhere.py", "t", "--answer", 'city="Rome'], "--answer city is not valid JSON: Unterminated string"),
        (["nowhere.py", "t", "--answer", "city=" + "[" * 100_000], "--answer city cannot be read as JSON: "),
        (["nowhere.py", "t", "--answer", "city"], "--answer must be KEY=VALUE, not 'city'"),
        (["nowhere.py", "t", "--answer", "city=null"], "city: an answer is a value"),
        (["nowhere.py", "t", "--era", "1999"], "an era is modern, legacy or one of 2026-07-28"),
        (["nowhere.py", "t", "--max-rounds", "-1"], "Invalid value"),
        (["nowhere.py", "t", "--timeout", "0"], "--timeout"),
        (["nowhere.py", "t", "-q"], "No such option: -q"),
        (["", "t"], "a target is a URL, FILE[:OBJECT], MODULE[:OBJECT], or a command in quotes"),
        (["'", "t"], "is not a valid command: No closing quotation"),
        (
            ["--resume", "nowhere.json", "desk.py", "t"],
            "it accepts a TARGET, but no tool, arguments or era; type bespeak",
        ),
        (["--resume", "nowhere.json", "--era", "modern"], "it accepts a TARGET, but no tool, arguments or era"),
        (
            ["--resume", "nowhere.json", "--as", "lossy"],
            "--resume continues a call as it was made, so it cannot be combined",
        ),
        (
            ["nowhere.py", "t", "--as", "silent", "--answer", "ask=yes"],
            "--as silent answers every question itself, so it cannot be combined with --answer",
        ),
        (["nowhere.py", "t", "--as", "nobody"], "there is no profile 'nobody'; use langgraph, claude-code, silent"),
        (["desk.py", "--resume", "nowhere.json"], "--resume: nowhere.json cannot be read: No such file or directory"),
    ],
)
def test_a_bad_command_line_ends_with_2_whatever_there_is_to_reach(words: list[str], said: str) -> None:
    result = bespeak("call", *words)
    assert said in told(result, 2)
    assert result.stdout == ""


@pytest.mark.parametrize("place", ["missing/answers.yaml", "."])
def test_answers_that_cannot_be_saved_are_said_to_be_so(desk: str, tmp_path: Path, place: str) -> None:
    given = ("--answer", "city=Rome", "--answer", "units=C")
    result = bespeak("call", desk, "forecast", *given, "--save-answers", str(tmp_path / place))
    assert str(tmp_path) in told(result, 2)


# Servers


@pytest.mark.timing
@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("http://127.0.0.1:9/mcp", "cannot connect to http://127.0.0.1:9/mcp"),
        ("no-such-program-at-all --stdio", "cannot start the server 'no-such-program-at-all'"),
        (shlex.join([sys.executable, "-IS", "-c", "raise SystemExit('my last words')"]), "my last words"),
    ],
)
def test_a_server_that_cannot_be_reached_ends_with_3(target: str, said: str) -> None:
    result = bespeak("call", target, "t")
    assert said in told(result, 3)
    assert result.stdout == ""


def test_a_file_that_does_not_load_ends_with_2(tmp_path: Path) -> None:
    file = tmp_path / "calling_bad_file.py"
    file.write_text("raise RuntimeError('not today')")
    assert "cannot be loaded: RuntimeError: not today" in told(bespeak("call", str(file), "t"), 2)


@pytest.mark.timing
def test_a_target_may_be_a_file_a_module_a_program_or_a_long_command(
    desk: str, raw: Raw, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "program"  # an executable, as a server of another language is
    program.write_text(f"#!/bin/sh\nexec {raw(text('a program'))}\n")
    program.chmod(0o755)
    monkeypatch.chdir(Path(desk).parent)
    long = shlex.join([*shlex.split(raw(text("a long command"))), "x" * 300])
    said = [bespeak("call", one, "say").stdout for one in ("calling_desk.py", "calling_desk:mcp", str(program), long)]
    assert said == ["nothing\n", "nothing\n", "a program\n", "a long command\n"]


@pytest.mark.timing
@pytest.mark.parametrize("hole", ["${x}", "${env:HOME}", "$${x}"])
def test_what_looks_like_a_suites_hole_means_itself_in_a_command(raw: Raw, hole: str) -> None:
    result = bespeak("call", f"{raw(text('reached'))} '{hole}'", "t")
    assert (result.exit_code, result.stdout) == (0, "reached\n")


async def test_a_tool_of_a_server_at_a_url_is_called(desk: str) -> None:
    async with Listening(load(desk).streamable_http_app()) as server:
        words = ("call", server.url, "trip", "--answer", "city=Rome", "--answer", "sure=true")
        result = await asyncio.to_thread(bespeak, *words)
    assert (result.exit_code, result.stdout) == (0, "Rome True today\n")


# Results


@pytest.mark.timing
def test_the_text_of_a_result_goes_to_standard_output_as_it_is(raw: Raw) -> None:
    result = bespeak("call", raw(text("one\ntwo  \x1b[2J")), "t")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "one\ntwo  \x1b[2J\n", "")


@pytest.mark.timing
def test_a_result_without_text_shows_its_structured_content(raw: Raw) -> None:
    target = raw({"result": {"resultType": "complete", "content": [], "structuredContent": {"a": [1]}}})
    assert json.loads(bespeak("call", target, "t").stdout) == {"a": [1]}


@pytest.mark.timing
def test_the_whole_result_is_shown_as_json(raw: Raw) -> None:
    response = text("x", structuredContent={"a": 1}, isError=False)
    assert json.loads(bespeak("call", raw(response), "t", "--json").stdout) == response["result"]


@pytest.mark.timing
@pytest.mark.parametrize(("more", "out"), [((), "broken\n"), (("--json",), None)])
def test_a_tool_that_failed_ends_with_1_and_its_words(raw: Raw, more: tuple[str, ...], out: str | None) -> None:
    result = bespeak("call", raw(text("broken", isError=True)), "t", *more)
    assert told(result, 1) == ""
    assert result.stdout == out or json.loads(result.stdout)["isError"] is True


@pytest.mark.timing
@pytest.mark.long
def test_an_error_of_the_protocol_ends_with_1_on_standard_error(raw: Raw) -> None:
    error = {"code": -32000, "message": "no\x1b[2J\u202e way", "data": 1}
    result = bespeak("call", raw({"error": error}), "t")
    said = told(result, 1)
    assert (said.startswith("bespeak: no"), said.endswith(" way (-32000)\n"), result.stdout) == (True, True, "")
    assert said.strip().isprintable()
    assert json.loads(bespeak("call", raw({"error": error}), "t", "--json").stdout) == {"error": error}


@pytest.mark.timing
@pytest.mark.parametrize("error", [{}, "x", None, {"code": "a", "message": 5}])
def test_an_error_that_is_invalid_is_reported_without_python(raw: Raw, error: Any) -> None:
    assert "None" not in told(bespeak("call", raw({"error": error}), "t"), 1)


@pytest.mark.timing
@pytest.mark.parametrize(
    ("response", "said"),
    [
        ("exit", "the call was cut off: the server"),
        ("hang", "the call was cut off: no answer to tools/call within 0.3 s"),
        ({"result": 5}, "the response has no result object"),
        ({"result": {"resultType": "bogus"}}, "resultType is complete or input_required"),
    ],
)
def test_a_call_that_breaks_off_ends_with_1_and_says_how(raw: Raw, response: Any, said: str) -> None:
    assert said in told(bespeak("call", raw(response), "t", "--timeout", "0.3"), 1)


def test_what_a_tool_prints_does_not_get_into_the_result(desk: str) -> None:
    assert bespeak("call", desk, "shout").stdout == "said\n"


def test_an_interrupt_ends_with_130(desk: str) -> None:
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    result = bespeak("call", desk, "interrupted")
    assert (result.exit_code, result.stdout, "Traceback" in result.stderr) == (130, "", False)


# Profiles


def test_a_call_as_langgraph_says_what_was_approved_and_what_was_done(raw: Raw) -> None:
    calls = [asking(ask=form(f"Pay {eur} EUR?", x=QUESTION)) for eur in (100, 200)]
    result = bespeak("call", raw(*calls, text("Charged 200 EUR.")), "pay", "--as", "langgraph", "--answer", "ask=yes")
    said = told(result, 1)
    assert "the person answered 'Pay 100 EUR?', and the server accepted the answer for 'Pay 200 EUR?'" in said
    assert result.stdout == "Charged 200 EUR.\n"


def test_a_silent_call_is_declined_without_anybody_being_asked(raw: Raw) -> None:
    result = bespeak("call", raw(asking(ask=WORD), "echo"), "pay", "--as", "silent")
    assert json.loads(result.stdout)["inputResponses"] == {"ask": {"action": "decline"}}


def test_a_call_as_langgraph_needs_rounds(desk: str) -> None:
    result = bespeak("call", desk, "typed", "--era", "legacy", "--as", "langgraph")
    assert "--as langgraph answers rounds, which revision 2025-11-25 does not have" in told(result, 2)
