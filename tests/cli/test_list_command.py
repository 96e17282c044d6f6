"""`bespeak list`: what a server has, and who fills each parameter."""

import io
import json
from typing import Any

import pytest

from bespeak.cli import list_command
from bespeak.cli.listing import listed_from_wire, show
from bespeak.cli.schema_types import type_text
from tests.cli.conftest import FORGOTTEN, FORGOTTEN_WARNING, ONE, Write
from tests.cli.desks import Raw, bespeak, told, write_raw

SHOP = """
from typing import Annotated, Literal
from pydantic import Field
from bespeak import Context, Elicit, MCPServer, Resolve

mcp = MCPServer("shop")
print("loaded")

async def stock(title: str) -> int:
    return 1

async def consent(title: str) -> Elicit[bool]:
    return Elicit(f"Order {title}?", bool)

@mcp.tool(title="Order")
async def order_book(
    title: Annotated[str, Field(description="Its title")],
    ctx: Context,
    stock: Annotated[int, Resolve(stock)],
    consent: Annotated[bool, Resolve(consent)],
    kind: Annotated[Literal["new", "used"], Field(alias="condition")] = "new",
) -> str:
    '''Order a book.

    It takes a while.
    '''
    return title

@mcp.tool(title="A title only")
async def ping(left: int | None = None) -> str:
    return ""

@mcp.prompt()
async def advise(title: str, mood: str = "calm") -> str:
    '''Advise a reader.'''
    return title

@mcp.resource("shop://hours")
async def hours() -> str:
    return "9 to 5"

@mcp.resource("shop://{title}")
async def about(title: str, stock: Annotated[int, Resolve(stock)]) -> str:
    return title
"""

TEXT = """\
Tools
  order_book: Order a book.
    title      from the model: string, required
    stock      computed by stock (runs after the last answer)
    consent    asked by consent (may ask the user in round 1)
    condition  from the model: "new" or "used"
    at most 2 rounds; the client needs elicitation.form
  ping: A title only
    left  from the model: integer or null

Prompts
  advise: Advise a reader.
    title  from the client: string, required
    mood   from the client: string

Resources
  shop://hours

Resource templates
  shop://{title}
    title  from the URI: string, required
    stock  computed by stock
"""


class Terminal(io.StringIO):
    """What a terminal is sent."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def raw(tmp_path: Any) -> Raw:
    return write_raw(tmp_path)


@pytest.fixture
def shop(write: Write) -> str:
    return str(write("list_shop.py", SHOP))


def test_a_python_server_is_listed_with_who_fills_each_parameter(shop: str) -> None:
    result = bespeak("list", shop)
    assert (result.exit_code, result.stdout, result.stderr) == (0, TEXT, "loaded\n")


def test_a_program_can_read_the_list(shop: str) -> None:
    found = json.loads(bespeak("list", shop, "--json").stdout)
    assert list(found) == ["tools", "prompts", "resources", "resourceTemplates"]
    order = found["tools"][0]
    assert (order["name"], order["title"], order["mostRounds"]) == ("order_book", "Order", 2)
    assert order["capabilities"] == ["elicitation.form"]
    assert order["parameters"] == [
        {"name": "title", "from": "model", "type": "string", "required": True, "description": "Its title"},
        {"name": "ctx", "from": "context"},
        {"name": "stock", "from": "computed", "resolver": "stock"},
        {"name": "consent", "from": "asked", "resolver": "consent"},
        {"name": "condition", "from": "model", "type": '"new" or "used"', "required": False, "description": None},
    ]
    assert found["resources"][0]["uri"] == "shop://hours"
    assert found["resourceTemplates"][0]["uriTemplate"] == "shop://{title}"


def test_a_marker_that_was_probably_forgotten_is_a_warning_beside_the_list(write: Write) -> None:
    file = str(write("list_forgotten.py", FORGOTTEN))
    result = bespeak("list", file)
    assert told(result, 0) == f"bespeak: warning: {FORGOTTEN_WARNING}\n"
    assert "    dest  from the model: object, required\n" in result.stdout
    assert len(json.loads(bespeak("list", file, "--json").stdout)["tools"]) == 2


LISTS = {
    "prompts/list": {"prompts": [{"name": "p", "arguments": [{"name": "a", "required": True}, {"name": 1}, 5]}]},
    "resources/list": {"resources": [{"uri": "a://b", "name": "b", "description": "B"}, {"name": "no uri"}]},
    "resources/templates/list": {"resourceTemplates": [{"uriTemplate": "a://{c}"}, {"uriTemplate": "a://{"}]},
}


@pytest.mark.timing
def test_another_server_is_listed_as_the_protocol_lists_it(raw: Raw) -> None:
    schema = {"properties": {"n": {"type": "integer", "description": "How many"}, "m": 5}, "required": ["n"]}
    target = raw(pages=[{"tools": [{"name": "t", "inputSchema": schema}, {"name": "u"}]}], lists=LISTS)
    assert bespeak("list", target).stdout == (
        "Tools\n  t\n    n  from the model: integer, required\n    m  from the model: any\n  u\n\n"
        "Prompts\n  p\n    a  from the client: string, required\n\n"
        "Resources\n  a://b: B\n\n"
        "Resource templates\n  a://{c}\n    c  from the URI: string, required\n  a://{\n"
    )
    tool = json.loads(bespeak("list", target, "--json").stdout)["tools"][0]
    assert tool.keys() == {"name", "title", "description", "parameters"}
    assert tool["parameters"][0]["description"] == "How many"


@pytest.mark.timing
def test_a_list_that_fails_is_told_and_the_others_are_shown(raw: Raw) -> None:
    failed = {"error": {"code": -32603, "message": "broken\x1b[2J"}}
    result = bespeak("list", raw(lists={"prompts/list": failed, "resources/list": LISTS["resources/list"]}))
    assert (result.exit_code, result.stdout) == (0, "Resources\n  a://b: B\n")
    assert result.stderr == "bespeak: Prompts could not be listed: broken\ufffd[2J\n"


@pytest.mark.timing
def test_a_server_with_nothing_says_so(raw: Raw, write: Write) -> None:
    target = raw()
    assert told(bespeak("list", target), 0) == f"bespeak: {target} has no tools, prompts or resources\n"
    file = str(write("list_empty.py", ONE))
    assert told(bespeak("list", file), 0) == f"bespeak: {file} has no tools, prompts or resources\n"


@pytest.mark.timing
def test_a_server_that_ends_while_it_is_asked_ends_with_3(raw: Raw) -> None:
    said = told(bespeak("list", raw(pages=[])), 3)
    assert "the server did not list what it has: " in said


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["nowhere.py"], 2, "there is no file 'nowhere.py'"),
        (["http://127.0.0.1:9/mcp"], 3, "cannot connect to http://127.0.0.1:9/mcp"),
        (["ftp://x"], 2, "a server is reached by http:// or https://, not by ftp://"),
        (["x.py", "--timeout", "0"], 2, "--timeout must be more than 0 and at most 3600 seconds"),
        (["x.py", "--header", "A:b"], 2, "--header is for a server with a URL"),
        (["http://x/", "--header", "A"], 2, "--header must be NAME:VALUE; number 1 is not"),
        (["x.py", "--era", "1999"], 2, "an era is modern, legacy or one of"),
        ([], 2, "TARGET"),
    ],
)
def test_what_is_wrong_is_said(words: list[str], code: int, said: str) -> None:
    result = bespeak("list", *words)
    assert said in told(result, code)
    assert result.stdout == ""


def test_an_interrupt_ends_with_130(shop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(target: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(list_command, "server_of", interrupted)
    assert bespeak("list", shop).exit_code == 130


def test_text_of_a_server_cannot_control_the_terminal_or_leave_its_indentation() -> None:
    hostile = {
        "name": "t\x1b[2J\x07",
        "description": "bad\x1b]0;title\x07 " + "x" * 300 + "\nbespeak: second line",
        "inputSchema": {"properties": {"a\rb": {"type": "str\x1b[1mange"}}},
    }
    listed = listed_from_wire("tool", hostile)
    assert listed is not None
    terminal = Terminal()
    show([listed], terminal)
    shown = terminal.getvalue()
    for text in ("\x1b[2J", "\x07", "\r", "\x1b]0", "second line"):
        assert text not in shown
    heading, *others = shown.splitlines()
    assert "Tools" in heading
    assert all(line.startswith("  ") for line in others)


def test_a_terminal_shows_names_in_bold(shop: str) -> None:
    listed = listed_from_wire("tool", {"name": "order[red]", "description": "[bold]as written[/bold] :smile:"})
    assert listed is not None
    terminal = Terminal()
    show([listed], terminal)
    assert "order[red]" in terminal.getvalue()
    assert "[bold]as written[/bold] :smile:" in terminal.getvalue()


@pytest.mark.parametrize(
    ("schema", "told_as"),
    [
        ({"type": "string"}, "string"),
        ({"type": ["string", "null"]}, "string or null"),
        ({"enum": ["a", 1, None]}, '"a" or 1 or null'),
        ({"enum": list(range(9))}, "0 or 1 or 2 or 3 or 4 or 5 or 6 or 7 or ..."),
        ({"const": "x"}, '"x"'),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}, {"type": "integer"}]}, "integer or null"),
        ({"oneOf": [{"$ref": "#/$defs/Size"}]}, "number"),
        ({"type": "array", "items": {"type": "string"}}, "list of string"),
        ({"type": "array"}, "list"),
        ({"$ref": "#/$defs/Self"}, "any"),
        ({"$ref": "elsewhere"}, "any"),
        ({"$ref": 5}, "any"),
        ({"type": [5]}, "any"),
        (True, "any"),
    ],
)
def test_a_schema_is_described_in_a_few_words(schema: Any, told_as: str) -> None:
    root = {"$defs": {"Size": {"type": "number"}, "Self": {"$ref": "#/$defs/Self"}}}
    assert type_text(schema, root) == told_as
