"""Targets on the command line: a URL, an object in a file or a module, or a command."""

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
        ("", "a target is a URL, FILE[:OBJECT], MODULE:OBJECT, or a command in quotes"),
        ("  ", "a target is a URL, FILE[:OBJECT], MODULE:OBJECT, or a command in quotes"),
        ("python 'x", '"python \'x" is not a valid command: No closing quotation'),
    ],
)
def test_an_invalid_target_is_rejected_with_what_would_be_valid(target: str, message: str) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - its whole text is compared
        parse_target(target)
    assert str(raised.value) == message
