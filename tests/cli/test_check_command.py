"""`bespeak check`: every registration error of a file at once."""

import json

import pytest
from typer.testing import Result

from bespeak import InvalidSignature
from bespeak.server.targets import CannotLoad, load
from tests.cli.conftest import FORGOTTEN, FORGOTTEN_WARNING, ONE, Write
from tests.cli.desks import bespeak, told

FIVE = """
from typing import Annotated
from pydantic import BaseModel, SecretStr
from bespeak import Elicit, ElicitationResult, MCPServer, Resolve

mcp = MCPServer("five")

class Login(BaseModel):
    password: SecretStr

async def stock(titel: str) -> int:
    return 1

async def login() -> Elicit[Login]:
    return Elicit("Log in", Login)

async def first(two: "Annotated[int, Resolve(second)]") -> int:
    return two

async def second(one: Annotated[int, Resolve(first)]) -> int:
    return one

async def number() -> int:
    return 1

@mcp.tool()
async def misspelled(title: str, copies: Annotated[int, Resolve(stock)]) -> str:
    return title

@mcp.tool()
async def secret(login: Annotated[Login, Resolve(login)]) -> str:
    return ""

@mcp.prompt()
async def circle(one: Annotated[int, Resolve(first)]) -> str:
    return ""

@mcp.resource("consent://today")
async def consent(answer: ElicitationResult[bool]) -> str:
    return ""

@mcp.tool
async def mistyped(text: Annotated[list, Resolve(number)]) -> str:
    return ""

@mcp.tool()
async def valid(title: str) -> str:
    return title
"""


def check(*words: str) -> Result:
    return bespeak("check", *words)


def test_five_different_errors_are_all_reported_with_drawing_file_line_and_fix(write: Write) -> None:
    file = write("check_five.py", FIVE)
    result = check(str(file))
    assert told(result, 1) == ""
    *found, summary = result.stdout.split("\n\n")
    assert summary == f"{file}: 5 registration errors in 5 functions\n"
    names = ["misspelled", "secret", "circle", "consent://today", "mistyped"]
    problems = ["'titel'", "secret", "cycl", "ElicitationResult", "list"]
    lines = FIVE.splitlines()
    for number, (name, problem, text) in enumerate(zip(names, problems, found, strict=True), 1):
        head, at, *drawing, fix = text.splitlines()
        assert head.startswith(f"{number}. cannot register {name!r}: ")
        assert problem in text
        place, _, line = at.strip().rpartition(":")
        assert place == f"at {file}"
        assert lines[int(line) - 1].startswith(("async def", "@mcp"))
        assert drawing[0].startswith(f"    {name.partition(':')[0]}   {file}:")
        assert fix.startswith("    fix: ")


def test_a_tool_at_fault_is_named_once(write: Write) -> None:
    marked = f"{ONE}\nfrom typing import Annotated\nfrom bespeak import Resolve\n"
    tool = "@mcp.tool()\ndef buy(price: Annotated[int, Resolve]) -> str:\n    return str(price)\n"
    result = check(str(write("check_named_once.py", f"{marked}\n{tool}")))
    assert "1. cannot register 'buy': parameter 'price' is marked with `Resolve` without a call\n" in result.stdout


def test_a_program_can_read_the_errors(write: Write) -> None:
    file = write("check_five_json.py", FIVE)
    result = check(str(file), "--json")
    found = json.loads(result.stdout)
    assert (result.exit_code, found["target"], found["complete"]) == (1, str(file), True)
    assert found["registered"] == {"tool": 1}
    assert len(found["errors"]) == 5
    first = found["errors"][0]
    assert first.keys() == {"function", "problem", "file", "line", "drawing", "fix"}
    assert (first["function"], first["file"]) == ("misspelled", str(file))
    line: int = first["line"]
    assert FIVE.splitlines()[line - 1].startswith("async def stock")


def test_only_check_collects(write: Write) -> None:
    file = str(write("check_five_run.py", FIVE))
    check(str(write("check_five_before.py", FIVE)))
    with pytest.raises(CannotLoad, match="cannot register 'misspelled'") as raised:
        load(file)
    assert isinstance(raised.value.__cause__, InvalidSignature)
    assert "cannot register 'misspelled': 1 fault" in told(bespeak("run", file), 2)


def test_every_way_to_register_is_collected(write: Write) -> None:
    source = ONE + (
        "def bad(x: len) -> str: ...\n"
        "mcp.tool()(bad)\nmcp.tool(bad)\nmcp.add_tool(bad)\nmcp.prompt()(bad)\nmcp.prompt(bad)\n"
        "mcp.resource('a://b')(bad)\nmcp.resource('a://{x}')(bad)\nmcp.completion()(lambda: 1)\n"
    )
    result = check(str(write("check_ways.py", source)))
    assert result.stdout.endswith("in 4 functions\n")
    found = [line.partition(":")[0] for line in result.stdout.splitlines() if "cannot register" in line]
    assert len(found) >= 8


def test_a_name_that_is_taken_is_reported_with_its_place_and_fix(write: Write) -> None:
    source = ONE + "@mcp.tool()\ndef a() -> str: ...\n@mcp.tool(name='a')\ndef b() -> str: ...\n"
    file = write("check_taken.py", source)
    assert check(str(file)).stdout == (
        f"1. cannot register 'b': tool 'a' is already registered\n    at {file}:5\n    b   {file}:5\n"
        f"    fix: call remove_tool('a') first, or rename one\n\n{file}: 1 registration error in 1 function\n"
    )


def test_a_message_without_a_fix_is_reported_as_it_is(write: Write) -> None:
    source = ONE + "class A:\n    def __call__(self) -> str: ...\nmcp.add_tool(A(), 'a', scopes=['no scope'])\n"
    result = check(str(write("check_scopes.py", source)))
    assert result.exit_code == 1
    assert "cannot register 'A': " in result.stdout


def test_a_file_without_errors_says_what_there_is(write: Write) -> None:
    file = write("check_valid.py", ONE + "@mcp.tool()\ndef a() -> str: ...\n@mcp.prompt()\ndef b() -> str: ...\n")
    result = check(str(file))
    assert (result.exit_code, result.stdout) == (0, f"{file}: no registration errors (1 tool, 1 prompt)\n")
    assert json.loads(check(str(file), "--json").stdout)["errors"] == []
    empty = write("check_empty.py", ONE + "print('hello')\n")
    result = check(str(empty))
    assert (result.stdout, result.stderr) == (f"{empty}: no registration errors (nothing registered)\n", "hello\n")


def test_a_marker_that_was_probably_forgotten_is_a_warning(write: Write) -> None:
    file = write("check_forgotten.py", FORGOTTEN)
    result = check(str(file))
    assert (result.exit_code, result.stdout) == (
        0,
        f"warning: {FORGOTTEN_WARNING}\n\n{file}: no registration errors, 1 warning (2 tools)\n",
    )
    found = json.loads(check(str(file), "--json").stdout)
    assert (found["errors"], found["warnings"]) == ([], [FORGOTTEN_WARNING])


def test_a_warning_comes_after_the_errors(write: Write) -> None:
    file = write("check_forgotten_too.py", FORGOTTEN + "@mcp.tool()\ndef a(x: len) -> str: ...\n")
    result = check(str(file))
    assert result.exit_code == 1
    assert result.stdout.index("cannot register 'a'") < result.stdout.index(f"\n\nwarning: {FORGOTTEN_WARNING}\n\n")
    assert result.stdout.endswith("1 registration error in 1 function, 1 warning\n")


def test_what_registration_warns_of_is_a_warning_whatever_filters_are_set(write: Write) -> None:
    source = FORGOTTEN.replace("city: str", "city: str\n    confirm: bool = True").partition(
        "@mcp.tool()\nasync def book"
    )
    file = write("check_yes.py", f"import warnings\nwarnings.warn('of another kind', DeprecationWarning)\n{source[0]}")
    with pytest.warns(DeprecationWarning, match="of another kind"):
        result = check(str(file))
    expected = "warning: form field 'confirm' of resolver 'ask_city' has a default that means yes; "
    assert result.stdout.startswith(expected)
    assert result.stdout.endswith(f"\n\n{file}: no registration errors, 1 warning (1 tool)\n")


def test_what_ends_the_loading_is_reported_after_the_errors(write: Write) -> None:
    wrong = ONE + "@mcp.tool()\ndef a(x: len) -> str: ...\n"
    file = write("check_stopped.py", wrong + "1 / 0\n")
    result = check(str(file))
    said = told(result, 1)
    assert "cannot register 'a'" in result.stdout
    assert "The file could not be loaded to its end, so what follows was not checked:\n" in said
    assert "ZeroDivisionError: division by zero\n" in said
    assert f"at {file}:5: 1 / 0\n" in said
    assert json.loads(check(str(file), "--json").stdout)["complete"] is False


def test_an_error_outside_a_registration_ends_the_loading(write: Write) -> None:
    source = ONE + "from bespeak.server import Tool\ndef a(x: len) -> str: ...\nTool.from_function(a)\n"
    result = check(str(write("check_from_function.py", source)))
    assert told(result, 1).endswith("so what follows was not checked\n")
    assert "1. cannot register 'a'" in result.stdout


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("1 / 0\n", "cannot be loaded: ZeroDivisionError: division by zero"),
        ("mcp = 5\n", "has no MCPServer at its top level"),
        (ONE + "mcp.run()\n", "the file runs its server while it is loaded; put the call under `if __name__"),
    ],
)
def test_a_file_that_cannot_be_loaded_ends_with_2(write: Write, source: str, said: str) -> None:
    result = check(str(write(f"check_broken{abs(hash(source))}.py", source)))
    assert said in told(result, 2)
    assert result.stdout == ""


def test_a_program_reads_why_a_file_cannot_be_loaded(write: Write) -> None:
    file = write("check_broken_json.py", "1 / 0\n")
    result = check(str(file), "--json")
    assert result.exit_code == 2
    found = json.loads(result.stdout)
    assert (found["errors"], found["complete"]) == ([], False)
    assert found["reason"].startswith(f"{file} cannot be loaded: ZeroDivisionError: division by zero\n")
    assert told(result, 2).startswith(f"bespeak: {file} cannot be loaded: ")


def test_a_problem_does_not_begin_with_the_function_that_is_named_beside_it(write: Write) -> None:
    source = ONE + "from bespeak import Resolve\n@mcp.tool()\ndef a(x: 'Nowhere') -> str: ...\n"
    (error,) = json.loads(check(str(write("check_prefix.py", source)), "--json").stdout)["errors"]
    problem = "the hint of parameter 'x' names 'Nowhere', which does not exist at run time"
    assert (error["function"], error["problem"]) == ("a", problem)
    assert f"cannot register 'a': {problem}\n" in check(str(write("check_no_prefix.py", source))).stdout


@pytest.mark.parametrize("command", ["run", "list", "graph", "call"])
def test_a_command_that_shows_one_error_says_how_to_see_all(write: Write, command: str) -> None:
    wrong = "@mcp.tool()\ndef a(x: len) -> str: ...\n@mcp.tool()\ndef b(x: len) -> str: ...\n"
    file = write("check_two.py", ONE + wrong)
    said = told(bespeak(command, str(file), *(["a"] if command == "call" else [])), 2)
    assert "cannot register 'a'" in said
    assert said.endswith(f"\n         bespeak check {file} shows the errors of all functions\n")
    assert "bespeak check" not in check(str(file)).stdout


def test_a_server_that_is_not_python_cannot_be_checked() -> None:
    needs = "but this command needs a Python server to load: FILE[:OBJECT] or MODULE[:OBJECT], such as server.py:mcp"
    assert f"'http://127.0.0.1:1/mcp' is a URL, {needs}" in told(check("http://127.0.0.1:1/mcp"), 2)
    assert f"'node server.mjs' is a command, {needs}" in told(check("node server.mjs"), 2)
