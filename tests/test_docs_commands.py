"""What the tutorial and the how-to guides show at the terminal is what a reader sees, with clients of either era."""

import json
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from bespeak.cli.commands import app
from tests.cli.terminals import at_terminal
from tests.test_docs import file_of
from tests.transcripts import commands

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(
    page for folder in ("tutorial", "how-to", "explanation", "reference") for page in DOCS.glob(f"{folder}/*.md")
)
ALL = sorted([*ROOT.glob("*.md"), *DOCS.glob("**/*.md")])
DRAWN = DOCS / "how-to" / "draw-a-tool.md"
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
INDENTED = re.compile(r"^    (bespeak .+)$", re.MULTILINE)
TYPED = re.compile(r"(cancel: )(\w+)\n")
Serve = Callable[[str], None]


def shown() -> list[tuple[str, str, str, str]]:
    """Return each command of the pages: the page, the server that was shown before it, the command, and the output."""
    found: list[tuple[str, str, str, str]] = []
    for page in PAGES:
        text = page.read_text()
        for block in CONSOLE.finditer(text):
            before = [one for one in PYTHON.findall(text[: block.start()]) if file_of(one) == "server.py"]
            server = [one for one in before if "asyncio.run(" not in one]
            found += [(page.stem, "\n".join(server), *one) for one in commands(block[1])]
    return found


SHOWN = shown()


@pytest.fixture
def serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Serve:
    """Makes a source the `server.py` of the folder in which commands are typed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "server", raising=False)  # of an earlier test

    def write(source: str) -> None:
        (tmp_path / "server.py").write_text(source)

    return write


def test_what_other_documents_show_has_tests_of_its_own() -> None:
    others = {
        page.relative_to(ROOT).as_posix() for page in ALL if page not in PAGES and CONSOLE.search(page.read_text())
    }
    assert others == {"README.md", "docs/command-line.md", "docs/testing.md"}


def test_the_tutorial_shows_commands() -> None:
    assert {page for page, *_ in SHOWN} >= {"first-tool", "dependencies", "asking", "several-questions", "draw-a-tool"}


@pytest.mark.timing
@pytest.mark.parametrize("era", ["modern", "legacy"])
@pytest.mark.parametrize("number", range(len(SHOWN)), ids=lambda number: f"{SHOWN[number][0]}: {SHOWN[number][2]}")
def test_a_command_prints_what_the_page_shows(number: int, era: str, serve: Serve) -> None:
    _, server, command, output = SHOWN[number]
    serve(server)
    program, *words = shlex.split(command)
    assert program == "bespeak"
    if words[0] == "call":
        words += ["--era", era]
    if answers := "".join(f"{answer}\n" for _, answer in TYPED.findall(output)):
        ended = at_terminal(*words, typed=answers)
        printed = ended.screen.lstrip("\n") + ended.out
    else:
        printed = CliRunner().invoke(app, words, catch_exceptions=False).output
    pattern = ".*?".join(map(re.escape, TYPED.sub(r"\1", output).split("...")))
    assert re.fullmatch(pattern, printed, re.DOTALL), printed


@pytest.mark.parametrize("form", ["mermaid", "svg"])
def test_the_drawings_of_a_tool_are_those_of_the_command(form: str, serve: Serve) -> None:
    page = DRAWN.read_text()
    serve(PYTHON.findall(page)[0])
    (mermaid,) = re.findall(r"^```mermaid\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    drawn = {"mermaid": mermaid, "svg": (DOCS / "images" / "graph.svg").read_text()}
    assert CliRunner().invoke(app, ["graph", "server.py", "refund", "--form", form]).output == drawn[form]


@pytest.mark.parametrize(
    ("page", "line"), [(page.stem, line) for page in ALL for line in INDENTED.findall(page.read_text())]
)
def test_a_command_that_is_not_run_here_has_options_that_exist(page: str, line: str) -> None:
    words = shlex.split(line.partition(">")[0], comments=True)[1:]
    assert parsed(words)


def parsed(words: list[str]) -> object:
    """Return what the command line makes of the words after `bespeak`, without running them. Raises if it refuses them."""
    command = get_command(app)
    while words and (below := getattr(command, "commands", {}).get(words[0])) is not None:
        command, words = below, words[1:]
    return command.make_context("bespeak", words)


@pytest.mark.parametrize("page", ["README.md", "docs/how-to/clients.md"])
def test_a_configuration_of_a_host_starts_the_server_or_names_its_endpoint(page: str) -> None:
    blocks = re.findall(r"^```json\n(.*?)^```$", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)
    servers = [one for block in blocks for group in json.loads(block).values() for one in group.values()]
    assert servers
    for one in servers:
        assert one.get("url", "http://127.0.0.1:8000/mcp") == "http://127.0.0.1:8000/mcp"
        assert one.get("command", "/bespeak").endswith("/bespeak")
        assert "command" not in one or parsed(one["args"])
