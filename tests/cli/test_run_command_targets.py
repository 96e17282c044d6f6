"""`FILE[:OBJECT]`: finding the server a command is about, what else may stand on the command line, and what workers are told."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from bespeak import InvalidSignature
from bespeak.cli import commands, main
from bespeak.server.targets import NoServer, load
from tests.cli.conftest import ONE, Write

TWO = "from bespeak import MCPServer\nfirst = MCPServer('first')\nsecond = MCPServer('second')\n"


# Which server


@pytest.mark.parametrize(
    ("source", "name", "found"),
    [
        (ONE, "", "one"),
        (ONE, ":mcp", "one"),
        (ONE.replace("mcp =", "anything ="), "", "one"),
        (ONE + "again = mcp\n", "", "one"),
        (ONE + "again = mcp\n", ":again", "one"),
        (TWO, ":second", "second"),
        (TWO + "mcp = MCPServer('usual')\n", "", "usual"),
        (TWO + "server = MCPServer('usual')\napp = MCPServer('other')\n", "", "usual"),
        (TWO + "app = MCPServer('usual')\n", "", "usual"),
    ],
)
def test_a_target_leads_to_its_server(write: Write, source: str, name: str, found: str) -> None:
    assert load(f"{write('target_shop.py', source)}{name}").name == found


@pytest.mark.parametrize(
    ("source", "name", "told"),
    [
        ("", "", r"target_shop\.py has no MCPServer at its top level"),
        ("mcp = 5", "", r"target_shop\.py has no MCPServer at its top level"),
        ("mcp = 5", ":mcp", r"target_shop\.py has no MCPServer called 'mcp'; it has none"),
        (ONE, ":other", r"target_shop\.py has no MCPServer called 'other'; it has mcp$"),
        (TWO, ":other", r"has no MCPServer called 'other'; it has first, second$"),
        (TWO, "", r"has several servers \(first, second\); say which: .*target_shop\.py:first$"),
    ],
)
def test_a_target_that_leads_to_no_server_says_what_there_is(write: Write, source: str, name: str, told: str) -> None:
    with pytest.raises(NoServer, match=told):
        load(f"{write('target_shop.py', source)}{name}")


@pytest.mark.parametrize("target", ["missing.py", "missing.py:mcp", "", ":mcp", ".", "target_shop.py:", "bespeak"])
def test_a_target_that_is_not_a_file_says_what_a_target_is(target: str) -> None:
    with pytest.raises(
        NoServer, match=r"there is no file '.*'; a target is FILE or FILE:OBJECT, such as server\.py:mcp"
    ):
        load(target)


@pytest.mark.parametrize("name", ["notes.txt", "noextension"])
def test_a_file_that_is_not_python_is_refused(write: Write, name: str) -> None:
    with pytest.raises(NoServer, match=f"{name} is not a Python file"):
        load(str(write(name, ONE)))


def test_what_a_file_raises_is_its_own(write: Write) -> None:
    with pytest.raises(ZeroDivisionError):
        load(str(write("target_broken.py", "1 / 0")))
    source = ONE + "from bespeak import Resolve\n@mcp.tool()\ndef tool(x: int = Resolve(len)) -> None: ...\n"
    with pytest.raises(InvalidSignature, match="Resolve"):
        load(str(write("target_invalid.py", source)))


# How it is loaded


def test_a_file_is_loaded_under_the_name_it_would_be_imported_by(write: Write) -> None:
    source = ONE + "name = __name__\nif __name__ == '__main__':\n    raise AssertionError\n"
    load(str(write("target-shop.py", source)))
    assert sys.modules["target-shop"].name == "target-shop"


def test_a_file_may_import_its_neighbours(write: Write) -> None:
    write("target_neighbour.py", "NAME = 'from next door'\n")
    file = write(
        "target_shop.py", "from bespeak import MCPServer\nfrom target_neighbour import NAME\nmcp = MCPServer(NAME)\n"
    )
    assert load(str(file)).name == "from next door"


def test_a_relative_path_will_do(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(write("sub/target_shop.py", ONE).parent.parent)
    assert load("sub/target_shop.py").name == "one"


def test_a_file_in_a_package_is_a_part_of_it(write: Write) -> None:
    write("target_pkg/__init__.py", "")
    write("target_pkg/inner/__init__.py", "NAME = 'inner'\n")
    write("target_pkg/names.py", "NAME = 'outer'\n")
    source = "from bespeak import MCPServer\nfrom ..names import NAME\nfrom . import NAME as here\nmcp = MCPServer(NAME + here)\n"
    file = write("target_pkg/inner/shop.py", source)
    assert load(str(file)).name == "outerinner"
    assert "target_pkg.inner.shop" in sys.modules


def test_a_file_that_its_package_imports_is_not_run_twice(write: Write) -> None:
    write("target_twice/__init__.py", "RUNS = []\nfrom target_twice.shop import mcp\n")
    file = write("target_twice/shop.py", ONE + "import target_twice\ntarget_twice.RUNS.append(1)\n")
    server = load(str(file))
    assert sys.modules["target_twice"].RUNS == [1]
    assert sys.modules["target_twice"].mcp is server


# On the command line


def run(*arguments: str) -> Any:
    return CliRunner().invoke(commands.app, ["run", *arguments])


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["missing.py", "--http"], "bespeak: there is no file 'missing.py'; a target is FILE or FILE:OBJECT"),
        (["missing.py", "--http", "--workers", "2"], "bespeak: there is no file 'missing.py'"),
        (["x.py", "--workers", "2"], "bespeak: --workers needs --http: over stdio there is only one client"),
        (["x.py", "--http", "--path", "mcp"], "bespeak: --path must start with '/'; 'mcp' does not"),
        (["x.py", "--port", "9000"], "bespeak: --host, --port, --path and --trusted-proxy need --http"),
        (["x.py", "--trusted-proxy", "10.0.0.4"], "bespeak: --host, --port, --path and --trusted-proxy need --http"),
        (
            ["x.py", "--http", "--trusted-proxy", "nginx"],
            "bespeak: --trusted-proxy: 'nginx' is not an IP address or a network",
        ),
        (["x.py", "--http", "--port", "0"], "--port"),
        (["x.py", "--http", "--port", "65536"], "--port"),
        (["x.py", "--http", "--workers", "0"], "--workers"),
        ([], "FILE[:OBJECT]"),
    ],
)
def test_what_is_invalid_is_refused_with_code_2_and_the_reason(arguments: list[str], told: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert told in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("how", [[], ["--http"], ["--http", "--workers", "2"]])
def test_a_store_on_the_command_line_is_refused_for_a_server_with_its_own(
    write: Write, tmp_path: Path, how: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "environ", dict(os.environ))
    source = ONE.replace("'one'", f"'one', store='sqlite:{tmp_path / 'own.db'}'")
    target = str(write("target_shop.py", source))
    monkeypatch.setitem(os.environ, "BESPEAK_STATE_KEYS", "k" * 32)
    result = run(target, "--store", f"sqlite:{tmp_path / 'other.db'}", *how)
    assert result.exit_code == 2
    told = f"bespeak: {target} passes a store to MCPServer, so --store would have no effect; remove one of them\n"
    assert told in result.stderr


@pytest.mark.parametrize("more", [[], ["--workers", "2"]])
def test_listening_without_uvicorn_says_what_to_install(
    write: Write, more: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    result = run(str(write("target_shop.py", ONE)), "--http", *more)
    assert result.exit_code != 0
    assert "serving over HTTP needs uvicorn: pip install 'bespeak[http]'" in f"{result.stderr}{result.exception}"


def test_the_command_without_typer_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "typer", None)
    monkeypatch.delitem(sys.modules, "bespeak.cli.commands")
    with pytest.raises(SystemExit, match=r"the bespeak command needs typer: pip install 'bespeak\[cli\]'"):
        main()


def test_another_missing_module_is_not_taken_for_typer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bespeak.cli.commands", None)
    with pytest.raises(ImportError, match=r"bespeak\.cli\.commands"):
        main()


# What workers are told


def test_a_single_process_is_reported_which_proxies_to_trust(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    told: dict[str, Any] = {}

    def remember(self: Any, transport: str, **options: Any) -> None:
        told.update(options)

    monkeypatch.setattr("bespeak.server.server.MCPServer.run", remember)
    target = str(write("target_shop.py", ONE))
    assert run(target, "--http", "--trusted-proxy", "10.0.0.4", "--trusted-proxy", "fd00::/8").exit_code == 0
    assert told["trusted_proxies"] == ("10.0.0.4", "fd00::/8")
