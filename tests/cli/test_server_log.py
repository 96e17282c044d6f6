"""A server in the process of a command logs its failures with the author's lines, and with tracebacks only if asked."""

import logging
import subprocess
import sys
from pathlib import Path

import pytest

from bespeak.cli.output import TRACEBACKS
from bespeak.cli.server_log import AuthorLines, brief_failures

SERVER = """\
from typing import Annotated
from bespeak import MCPServer, Resolve
mcp = MCPServer('Shop')
@mcp.tool()
def fails() -> int:
    return 1 // 0
@mcp.tool()
def says_otherwise() -> int:
    return 'text'
def price() -> int:
    return {}['price']
@mcp.tool()
def costs(price: Annotated[int, Resolve(price)]) -> int:
    return price
"""


@pytest.mark.timing
@pytest.mark.parametrize(
    ("tool", "logged"),
    [
        ("fails", ["tool 'fails' failed", "ZeroDivisionError: ", "  at ", "shop.py:6: return 1 // 0"]),
        (
            "costs",
            [
                "ResolverFailed: resolver 'price' failed (costs -> price -> price)\nKeyError: 'price'\n  at ",
                "shop.py:11:",
            ],
        ),
        ("says_otherwise", ["WrongReturn: the tool 'says_otherwise' returned str, but its return annotation says int"]),
    ],
)
@pytest.mark.long
def test_a_call_that_fails_shows_the_author_s_lines_and_no_traceback(
    tool: str, logged: list[str], tmp_path: Path
) -> None:
    (tmp_path / "shop.py").write_text(SERVER)
    command = [sys.executable, "-m", "bespeak", "call", "shop.py", tool]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert run.returncode == 1
    assert run.stdout.startswith(f"Error executing tool {tool}")
    assert [one for one in logged if one not in run.stderr] == []
    assert "Traceback" not in run.stderr
    assert "bespeak/server" not in run.stderr


def failure() -> logging.LogRecord:
    try:
        raise ValueError("this")
    except ValueError:
        return logging.LogRecord("bespeak", logging.ERROR, "", 1, "it failed", (), sys.exc_info())


def test_the_traceback_is_shown_if_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Traceback" not in AuthorLines().format(failure())
    monkeypatch.setenv(TRACEBACKS, "1")
    assert "Traceback" in AuthorLines().format(failure())


def test_the_lines_are_those_of_the_cause_if_the_error_itself_has_none() -> None:
    shown = RuntimeError("what is reported")
    try:
        raise ValueError("this")
    except ValueError as error:
        shown.__cause__ = error
    told = AuthorLines().formatException((RuntimeError, shown, None)).splitlines()
    assert told[:2] == ["RuntimeError: what is reported", "ValueError: this"]
    assert 'raise ValueError("this")' in told[2]


def test_a_record_without_an_exception_is_left_to_logging() -> None:
    assert AuthorLines().formatException((None, None, None)) == "NoneType: None"


def test_a_program_without_a_last_resort_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging, "lastResort", None)
    with brief_failures():
        assert logging.lastResort is None
