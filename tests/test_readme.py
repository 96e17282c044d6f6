"""The README: what it shows at the terminal is what a reader sees, and its table is the one that was measured."""

import json
import re
import sys
import time
from pathlib import Path

import pytest
from scripts.readme_server import README, readme_server
from typer.testing import CliRunner

from bespeak.cli.commands import app
from bespeak.cli.exit_codes import ExitCode
from tests.answering import unresolved
from tests.cli.terminals import at_terminal, in_a_process
from tests.transcripts import check_transcript, commands, write_files

ROOT = README.parent
TEXT = README.read_text()
CONSOLE = re.findall(r"^```console\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
COMPARED = (ROOT / "docs" / "comparison.md").read_text()


@pytest.fixture
def in_a_folder_with_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "server.py").write_text(readme_server(TEXT))
    write_files(README, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "server", raising=False)  # of an earlier test
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("NO_COLOR", "1")


def shown(command: str) -> str:
    """Return what the README shows below a command line."""
    (found,) = (output for block in CONSOLE for line, output in commands(block) if line == command)
    return found


@pytest.mark.timing
@pytest.mark.usefixtures("in_a_folder_with_the_server")
def test_the_first_command_asks_and_answers_as_shown() -> None:
    began = time.monotonic()
    with in_a_process("call", "server.py", "order_book", "title=Neuromancer") as terminal:
        terminal.wait_for("c = cancel: ")
        terminal.type("y\n")
        code, out = terminal.ended()
    seen = terminal.seen.replace("\r\n", "\n").lstrip("\n") + out
    assert (code, seen) == (0, shown("bespeak call server.py order_book title=Neuromancer"))
    assert time.monotonic() - began < 10


@pytest.mark.usefixtures("in_a_folder_with_the_server")
def test_the_list_is_shown_as_printed() -> None:
    assert CliRunner().invoke(app, ["list", "server.py"]).output == shown("bespeak list server.py")


@pytest.mark.usefixtures("in_a_folder_with_the_server")
def test_the_graph_is_shown_as_printed() -> None:
    pattern = ".*?".join(map(re.escape, shown("bespeak graph server.py").split("...")))
    assert re.fullmatch(pattern, CliRunner().invoke(app, ["graph", "server.py"]).output, re.DOTALL)


QUESTIONS = """
from typing import Annotated
from pydantic import BaseModel
from bespeak import Elicit, MCPServer, Resolve
mcp = MCPServer("questions")
class Delivery(BaseModel):
    street: str
    floor: int
async def city() -> Elicit[str]:
    return Elicit("Which city?", str)
async def delivery() -> Elicit[Delivery]:
    return Elicit("Where?", Delivery)
@mcp.tool()
async def go(to: Annotated[str, Resolve(city)]) -> str:
    return to
@mcp.tool()
async def send(to: Annotated[Delivery, Resolve(delivery)]) -> str:
    return f"{to.street} {to.floor}"
"""


@pytest.mark.timing
@pytest.mark.usefixtures("in_a_folder_with_the_server")
@pytest.mark.parametrize(
    ("tool", "typed", "printed"),
    [("go", "Paris\ny\n", "Paris\n"), ("send", "a\nMain Street\n2\ny\n", "Main Street 2\n")],
)
def test_a_text_and_a_form_are_typed_and_then_confirmed(tool: str, typed: str, printed: str, tmp_path: Path) -> None:
    (tmp_path / f"readme_{tool}.py").write_text(QUESTIONS)
    ended = at_terminal("call", f"readme_{tool}.py", tool, typed=typed)
    assert (ended.code, ended.out) == (0, printed)


@pytest.mark.usefixtures("in_a_folder_with_the_server")
def test_the_key_that_is_shown_is_the_name_to_answer_by() -> None:
    (key,) = re.findall(r"^ +key \| (.*)$", TEXT, re.MULTILINE)
    words = ["call", "server.py", "order_book", "title=Neuromancer", "--answer", f"{key}=true"]
    assert CliRunner().invoke(app, words).output == "Backordered 'Neuromancer'; it ships in 2-3 weeks.\n"


@pytest.mark.timing
@pytest.mark.usefixtures("in_a_folder_with_the_server")
@pytest.mark.parametrize("command", ["python client.py", "bespeak test shop.bespeak.yaml"])
def test_the_client_and_the_suite_print_what_is_shown(command: str, tmp_path: Path) -> None:
    check_transcript(f"$ {command}\n{shown(command)}", tmp_path)


@pytest.mark.timing
@pytest.mark.usefixtures("in_a_folder_with_the_server")
def test_a_confirmation_that_is_sent_is_ignored_and_the_person_is_asked_all_the_same() -> None:
    (sent,) = re.findall(r"`--arguments '(.*?)'`", TEXT)
    with in_a_process("call", "server.py", "order_book", "--arguments", sent) as terminal:
        terminal.wait_for("c = cancel: ")
        terminal.type("n\n")
        assert terminal.ended() == (0, "No order placed.\n")


@pytest.mark.timing
@pytest.mark.usefixtures("in_a_folder_with_the_server")
@pytest.mark.parametrize(("typed", "action"), [("d", "decline"), ("c", "cancel")])
def test_a_question_that_is_not_accepted_ends_the_call_with_an_error(typed: str, action: str) -> None:
    ended = at_terminal("call", "server.py", "order_book", "title=Neuromancer", typed=f"{typed}\n")
    assert ended.code == ExitCode.FAILED
    assert ended.out.endswith(f"{unresolved('backorder', action)}\n")


@pytest.mark.usefixtures("in_a_folder_with_the_server")
def test_a_book_in_stock_is_ordered_without_a_question() -> None:
    assert CliRunner().invoke(app, ["call", "server.py", "order_book", "title=Dune"]).output == "Ordered 'Dune'.\n"


def test_each_row_of_the_table_is_a_row_of_the_measured_one() -> None:
    measured = [re.sub(r" \(\d\)(?= \|)", "", line) for line in COMPARED.splitlines()]
    rows = re.findall(r"^\| [A-Z].*\*\*.*\|$", TEXT, re.MULTILINE)
    assert len(rows) >= 6
    assert [row for row in rows if row not in measured] == []


def test_the_configuration_of_a_client_is_json() -> None:
    (found,) = re.findall(r"^```json\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    assert json.loads(found)["mcpServers"]["bookshop"]["args"][0] == "run"
