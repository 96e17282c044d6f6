"""The page about deployment: the command lines of the documents and of the container file can be run."""

import asyncio
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from bespeak.cli.commands import app
from tests.cli.programs import COMMAND, listening
from tests.deployment import EXAMPLES, port_of, write_shop

ROOT = Path(__file__).parent.parent
LINE = re.compile(r"^(?: {4,}|\$ )?(?:\w+=\S+ )*(bespeak (?:run|keys) [^#>|;\n]*?) *(?:2?>|[#|;]|$)", re.MULTILINE)
LINES = sorted(
    {
        (document.name, line.strip())
        for document in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]
        for line in LINE.findall(document.read_text())
    }
)


def parse(words: list[str]) -> None:
    """Parse a command line. Raises an error that names an option or a command that does not exist."""
    program, *rest = words
    assert program == "bespeak"
    group: Any = typer.main.get_command(app)
    while rest and hasattr(group, "resolve_command"):
        context = group.make_context(program, list(rest))
        program, group, rest = group.resolve_command(context, rest)
    group.make_context(program, rest)


@pytest.mark.parametrize(("document", "line"), LINES)
def test_a_command_line_of_a_document_has_options_that_exist(document: str, line: str) -> None:
    parse(shlex.split(line))


def test_command_lines_are_found_in_the_documents() -> None:
    assert {document for document, _ in LINES} >= {"run-a-server.md", "deployment.md"}


# The container file


def commands(instruction: str) -> list[list[str]]:
    """Return the command lines of the instructions of a kind."""
    text = (EXAMPLES / "Containerfile").read_text().replace("\\\n", "")
    lines = [line for line in text.splitlines() if line.startswith(instruction)]
    return [json.loads(found[0]) for line in lines if (found := re.findall(r"CMD (\[.*\])$", line))]


def test_the_container_file_runs_a_command_that_exists() -> None:
    (command,) = commands("CMD")
    assert command[:2] == ["bespeak", "run"]
    parse(command)
    with pytest.raises(Exception, match="--trusted-proxi"):
        parse([word.replace("--trusted-proxy", "--trusted-proxi") for word in command])


@pytest.mark.timing
@pytest.mark.long
async def test_the_health_check_of_the_container_file_succeeds_while_a_server_serves(tmp_path: Path) -> None:
    ((python, *check),) = commands("HEALTHCHECK")
    assert python == "python"
    async with listening(*COMMAND, str(write_shop(tmp_path)), "--http", "--port", "PORT") as server:
        words = [sys.executable, *(word.replace("8000", str(port_of(server))) for word in check)]
        assert await status(words) == 0
    assert await status(words) != 0


async def status(words: list[str]) -> int:
    ended = await asyncio.to_thread(subprocess.run, words, capture_output=True, check=False)
    return ended.returncode
