"""`FILE[:OBJECT]`: finding the server a command is about, what else may stand on the command line, and what workers are told."""

import os
import socket
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from typer.testing import CliRunner

from bespeak import InvalidSignature
from bespeak.cli import commands, main, workers
from bespeak.cli.workers import Settings, make_app
from bespeak.server.targets import NoServer, load
from bespeak.state.seal import KEYS_VARIABLE
from bespeak.transports.http.app import HttpApp

Write = Callable[..., Path]
ONE = "from bespeak import MCPServer\nmcp = MCPServer('one')\n"
TWO = "from bespeak import MCPServer\nfirst = MCPServer('first')\nsecond = MCPServer('second')\n"


@pytest.fixture
def write(tmp_path: Path) -> Generator[Write]:
    """Writes a file to load. What loading does to this process is undone."""
    modules, path = set(sys.modules), list(sys.path)

    def to(name: str, source: str) -> Path:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source)
        return file

    yield to
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


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
def test_a_target_that_is_no_file_says_what_a_target_is(target: str) -> None:
    with pytest.raises(
        NoServer, match=r"there is no file '.*'; a target is FILE or FILE:OBJECT, such as server\.py:mcp"
    ):
        load(target)


@pytest.mark.parametrize("name", ["notes.txt", "noextension"])
def test_a_file_that_is_not_python_is_said_to_be_none(write: Write, name: str) -> None:
    with pytest.raises(NoServer, match=f"{name} is no Python file"):
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
        (["x.py", "--workers", "2"], "bespeak: several workers need --http: over stdio there is one client"),
        (["x.py", "--http", "--path", "mcp"], "bespeak: --path must start with '/', unlike 'mcp'"),
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
def test_what_makes_no_sense_is_refused_with_code_2_and_the_reason(arguments: list[str], told: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert told in result.stderr
    assert result.stdout == ""


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


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, dict[str, Any]]]:
    """What uvicorn was told to run, instead of running it; the environment is a copy."""
    told: list[tuple[Any, dict[str, Any]]] = []

    class Idle:
        """A supervisor whose workers never start."""

        def __init__(self, config: uvicorn.Config, sockets: list[socket.socket]) -> None:
            self.processes: list[Any] = []
            for one in sockets:
                one.close()
            told.append((config.app, vars(config)))

        def run(self) -> None: ...

    monkeypatch.setattr("uvicorn.supervisors.multiprocess.Multiprocess", Idle)
    environment = dict(os.environ)
    environment.pop(KEYS_VARIABLE, None)
    monkeypatch.setattr(os, "environ", environment)
    return told


def test_workers_share_one_port_and_each_makes_its_own_app(write: Write, started: list[Any]) -> None:
    target = str(write("target_shop.py", ONE))
    workers.run(Settings(target, "127.0.0.1", 8123, "/here"), 3)
    ((app, options),) = started
    assert app == "bespeak.cli.workers:make_app"
    assert (options["workers"], options["factory"]) == (3, True)
    assert (options["host"], options["port"]) == ("127.0.0.1", 8123)
    assert Settings.inherited() == Settings(target, "127.0.0.1", 8123, "/here")
    with pytest.warns(RuntimeWarning, match="state keys are given but no store"):
        assert isinstance(make_app(), HttpApp)


def test_workers_are_told_which_proxies_to_trust(write: Write, started: list[Any]) -> None:
    told = Settings(str(write("target_shop.py", ONE)), "127.0.0.1", 8123, "/mcp", ("10.0.0.4", "fd00::/8"))
    workers.run(told, 2)
    assert Settings.inherited() == told


def test_a_single_process_is_told_which_proxies_to_trust(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    told: dict[str, Any] = {}

    def remember(self: Any, transport: str, **options: Any) -> None:
        told.update(options)

    monkeypatch.setattr("bespeak.server.server.MCPServer.run", remember)
    target = str(write("target_shop.py", ONE))
    assert run(target, "--http", "--trusted-proxy", "10.0.0.4", "--trusted-proxy", "fd00::/8").exit_code == 0
    assert told["trusted_proxies"] == ("10.0.0.4", "fd00::/8")


@pytest.mark.parametrize("before", [None, "", " , "])
def test_keys_are_made_once_where_there_are_none(before: str | None, started: list[Any]) -> None:
    if before is not None:
        os.environ[KEYS_VARIABLE] = before
    workers.run(Settings("x.py", "127.0.0.1", 8123, "/mcp"), 2)
    assert len(os.environ[KEYS_VARIABLE].strip(" ,")) >= 32


def test_keys_that_are_there_are_kept(started: list[Any]) -> None:
    os.environ[KEYS_VARIABLE] = "k" * 32
    workers.run(Settings("x.py", "127.0.0.1", 8123, "/mcp"), 2)
    assert os.environ[KEYS_VARIABLE] == "k" * 32
