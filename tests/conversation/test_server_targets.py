"""Targets on the command line: a URL, an object in a file or a module, or a command."""

import re
from pathlib import Path
from typing import Any

import pytest

from bespeak.conversation.server_targets import Target, parse_target


@pytest.mark.parametrize(
    ("target", "meant"),
    [
        ("http://127.0.0.1:8000/mcp", {"url": "http://127.0.0.1:8000/mcp"}),
        ("https://mcp.example.com/mcp", {"url": "https://mcp.example.com/mcp"}),
        ("server.py", {"python": "server.py"}),
        ("some/server.py:mcp", {"python": "some/server.py:mcp"}),
        ("package.module:mcp", {"python": "package.module:mcp"}),
        ("python my_till.py", {"command": ["python", "my_till.py"]}),
        ("uv run --with x server.py", {"command": ["uv", "run", "--with", "x", "server.py"]}),
        ("node 'a server.mjs' \"--port=1\"", {"command": ["node", "a server.mjs", "--port=1"]}),
        ("npm run serve:mcp", {"command": ["npm", "run", "serve:mcp"]}),
        ("my-server", {"command": ["my-server"]}),
        ("bespeak.server.server", {"python": "bespeak.server.server"}),
        ("python", {"command": ["python"]}),
        ("no_such_module_or_program", {"command": ["no_such_module_or_program"]}),
    ],
)
def test_a_target_is_a_url_an_object_or_a_command(target: str, meant: dict[str, Any]) -> None:
    assert parse_target(target) == Target(**meant)


def test_a_program_that_is_not_a_python_file_is_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my-server").write_text("#!/bin/sh\n")
    (tmp_path / "my-server").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    assert parse_target("./my-server").command == ["./my-server"]


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("", "a target is a URL, FILE[:OBJECT], MODULE[:OBJECT], or a command in quotes"),
        ("  ", "a target is a URL, FILE[:OBJECT], MODULE[:OBJECT], or a command in quotes"),
        ("python 'x", '"python \'x" is not a valid command: No closing quotation'),
    ],
)
def test_an_invalid_target_is_rejected_with_what_would_be_valid(target: str, message: str) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - its whole text is compared
        parse_target(target)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    "target",
    ["localhost:8000/mcp", "localhost", "127.0.0.1:8000", "mcp.example.com/mcp", "[::1]:8000/mcp", "my-host:80"],
)
def test_a_url_without_its_scheme_is_named_as_such(target: str) -> None:
    with pytest.raises(ValueError, match=f"^'{re.escape(target)}' is a URL without its scheme; write http://"):
        parse_target(target)


def test_a_url_may_be_written_in_capitals() -> None:
    assert parse_target("HTTPS://mcp.example.com/mcp").url == "HTTPS://mcp.example.com/mcp"


@pytest.mark.parametrize("target", ["ws://x.example/mcp", "ftp://x"])
def test_a_url_of_another_scheme_is_rejected(target: str) -> None:
    scheme = target.partition("x")[0]
    with pytest.raises(ValueError, match=f"^a server is reached by http:// or https://, not by {scheme}$"):
        parse_target(target)


@pytest.mark.parametrize("target", ["./serve", "../bin/serve", "/usr/bin/env", "bin/serve", "serve.sh", "python3.11"])
def test_a_path_is_not_a_url(target: str) -> None:
    assert parse_target(target).command == [target]
