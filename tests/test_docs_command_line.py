"""The page about the command line: every command, option and exit code is on it, nothing else, and its examples run."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from bespeak.cli.commands import app
from bespeak.cli.exit_codes import ExitCode
from tests.transcripts import blocks, check_transcript, write_files

PAGE = Path(__file__).parent.parent / "docs" / "command-line.md"
ROW = re.compile(r"^\| `(.+?)` \| (.+) \|$", re.MULTILINE)
CODES = re.compile(r"Exit codes: (.+?)\.(?:\n\n|$)", re.DOTALL)


def all_commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Return a command and everything below it, by the words that are typed."""
    yield name, command
    for word, below in getattr(command, "commands", {}).items():
        yield from all_commands(below, f"{name} {word}")


COMMANDS: dict[str, Any] = dict(all_commands(get_command(app), "bespeak"))
RUNNABLE = [name for name, command in COMMANDS.items() if not hasattr(command, "commands")]


def sections() -> dict[str, str]:
    """Return the text about each command."""
    parts = re.split(r"^## `(bespeak[a-z ]*)`\n", PAGE.read_text(), flags=re.MULTILINE)[1:]
    return {
        name: re.split(r"^## ", text, flags=re.MULTILINE)[0] for name, text in zip(parts[::2], parts[1::2], strict=True)
    }


def row(parameter: Any) -> tuple[str, str]:
    """Return how an argument or option is written on the page."""
    names = ", ".join(parameter.opts) if parameter.param_type_name == "option" else ""
    return f"{names} {parameter.metavar or ''}".strip().replace("|", r"\|"), parameter.help


def exit_codes(name: str) -> str:
    """Return the sentence about exit codes in the help of a command."""
    (told,) = CODES.findall(COMMANDS[name].help.strip())
    return " ".join(told.split())


def code_table() -> dict[int, list[str]]:
    """Return the table of exit codes: the commands of each code."""
    table = PAGE.read_text().partition("\n## Exit codes\n")[2]
    found = re.findall(r"^\| (\d+) \| [^|]+ \| ([^|]+) \|$", table, re.MULTILINE)
    return {int(code): re.findall(r"`([a-z ]+)`", names) for code, names in found}


def test_every_command_has_a_section_and_nothing_else_does() -> None:
    assert list(sections()) == [name for name in COMMANDS if name != "bespeak keys"]


@pytest.mark.parametrize("name", ["bespeak", *RUNNABLE])
def test_every_argument_and_option_is_listed_with_its_help(name: str) -> None:
    assert ROW.findall(sections()[name]) == [row(one) for one in COMMANDS[name].params]


@pytest.mark.parametrize("name", RUNNABLE)
def test_the_help_of_a_command_and_its_section_say_the_same_about_exit_codes(name: str) -> None:
    assert f"Exit codes: {exit_codes(name)}.\n" in sections()[name]


def test_the_table_has_every_exit_code_with_the_commands_that_end_with_it() -> None:
    named = {name: [int(code) for code in re.findall(r"(?:^|, )(\d+) ", exit_codes(name))] for name in RUNNABLE}
    by_code = {code: [name.removeprefix("bespeak ") for name in RUNNABLE if code in named[name]] for code in ExitCode}
    assert code_table() == by_code


# Examples


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("page")
    write_files(PAGE, where)
    return where


CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
EXAMPLES = {name: found for name, text in sections().items() if (found := CONSOLE.findall(text))}


def test_every_command_has_an_example() -> None:
    assert list(EXAMPLES) == list(sections())
    assert sum(map(len, EXAMPLES.values())) == len(blocks(PAGE, "console"))


@pytest.mark.timing
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "bespeak call" else pytest.mark.long) for name in EXAMPLES]
)
def test_an_example_prints_what_the_page_shows(name: str, folder: Path) -> None:
    for transcript in EXAMPLES[name]:
        check_transcript(transcript, folder)
