"""`bespeak graph`: the graphs of a server, as a tree, as Mermaid, as SVG and as JSON."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from bespeak.cli import commands
from tests.cli.conftest import ONE, Write

SHOP = """
from typing import Annotated
from bespeak import Elicit, MCPServer, Resolve

mcp = MCPServer("shop")

async def consent(title: str) -> Elicit[bool]:
    return Elicit(f"Order {title}?", bool)

@mcp.tool()
async def order_book(title: str, consent: Annotated[bool, Resolve(consent)]) -> str:
    return title

@mcp.prompt()
async def advise(title: str) -> str:
    return title
"""


@pytest.fixture
def shop(write: Write) -> str:
    return str(write("graph_shop.py", SHOP))


def graph(*words: str) -> Any:
    return CliRunner().invoke(commands.app, ["graph", *words])


def test_without_a_name_everything_is_drawn_with_its_rounds_and_capabilities(shop: str) -> None:
    result = graph(shop)
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        f"order_book   {shop}:10",
        "├─ title <- the model",
        "└─ consent <- consent [may ask the user in round 1]",
        "   └─ title <- the model",
        "at most 2 rounds; the client needs elicitation.form",
        "",
        f"advise   {shop}:14",
        "└─ title <- the model",
        "1 round: asks nothing",
    ]


def test_a_name_draws_one(shop: str) -> None:
    assert "order_book" not in graph(shop, "advise").stdout
    assert graph(shop, "order_book", "--form", "mermaid").stdout.startswith("flowchart LR\n")
    assert graph(shop, "order_book", "--form", "svg").stdout.startswith("<svg ")


def test_a_program_can_read_it(shop: str) -> None:
    told = json.loads(graph(shop, "--form", "json").stdout)
    assert [(one["kind"], one["name"], one["mostRounds"]) for one in told] == [
        ("tool", "order_book", 2),
        ("prompt", "advise", 1),
    ]


def test_it_is_written_to_a_file(shop: str, tmp_path: Path) -> None:
    result = graph(shop, "order_book", "--form", "svg", "-o", str(tmp_path / "order.svg"))
    assert (result.exit_code, result.stdout) == (0, "")
    assert (tmp_path / "order.svg").read_text("utf-8").endswith("</svg>\n")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["order_bok"], "has nothing called 'order_bok'; did you mean 'order_book'?"),
        (["nothing_like_it"], "has nothing called 'nothing_like_it'; there are order_book, advise"),
        (["--json", "--form", "tree"], "--json is the form json, so it cannot be combined with --form tree"),
        (["--form", "png"], "there is no form 'png'; use tree, mermaid, svg or json"),
        (["--form", "svg"], "--form svg draws one graph; name one of order_book, advise"),
        (["-o", "no/such/folder/x.txt"], "no/such/folder/x.txt cannot be written: No such file or directory"),
    ],
)
def test_what_is_wrong_is_said_with_what_to_write_instead(shop: str, words: list[str], told: str) -> None:
    result = graph(shop, *words)
    assert result.exit_code == 2
    assert told in result.stderr
    assert result.stdout == ""


def test_a_server_with_nothing_to_draw_says_so(write: Write) -> None:
    result = graph(str(write("graph_empty.py", ONE)))
    assert result.exit_code == 2
    assert "has no tools, prompts or resources" in result.stderr


def test_a_file_that_is_not_there_is_an_error() -> None:
    assert "there is no file 'missing.py'" in graph("missing.py").stderr


def test_json_is_another_word_for_the_form_json(shop: str) -> None:
    assert graph(shop, "--json").stdout == graph(shop, "--form", "json").stdout
    assert graph(shop, "--json", "--form", "json").exit_code == 0
