"""`FILE[:OBJECT]`: finding the server a command is about, what else may stand on the command line, and what workers are told."""

import gc
import os
import socket
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from bespeak.cli import commands, main
from bespeak.cli.exit_codes import ExitCode
from bespeak.cli.run_command import Flags, run_server
from bespeak.server.author_frames import describe_failure
from bespeak.server.targets import CannotLoad, NoServer, load
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
        (
            "",
            "",
            r"; write mcp = MCPServer\(\.\.\.\) there, or name a function that makes one: .*target_shop\.py:make$",
        ),
        (
            "class FastMCP: ...\nmcp = FastMCP()",
            "",
            r"; 'mcp' is a server of another package; to make it one of Bespeak: from bespeak import MCPServer$",
        ),
        ("mcp = 5", ":mcp", r"target_shop\.py has no MCPServer called 'mcp'; it has none"),
        (ONE, ":other", r"target_shop\.py has no MCPServer called 'other'; it has mcp$"),
        (TWO, ":other", r"has no MCPServer called 'other'; it has first, second$"),
        (TWO, "", r"has several servers \(first, second\); name one, for example .*target_shop\.py:first$"),
        (ONE, ":mpc", r"target_shop\.py has no MCPServer called 'mpc'; did you mean 'mcp'\?$"),
        ("def make(): ...\ndef mask(a): ...", ":mak", r"has no MCPServer called 'mak'; did you mean 'make'\?$"),
    ],
)
def test_a_target_that_leads_to_no_server_says_what_there_is(write: Write, source: str, name: str, told: str) -> None:
    with pytest.raises(NoServer, match=told):
        load(f"{write('target_shop.py', source)}{name}")


@pytest.mark.parametrize("target", ["missing.py", "missing.py:mcp", "", ":mcp", "target_shop.py:", "no_such_module"])
def test_a_target_that_is_not_a_file_says_what_a_target_is(target: str) -> None:
    with pytest.raises(
        NoServer,
        match=r"there is no file '.*'; a target is FILE\[:OBJECT\] or MODULE\[:OBJECT\], such as server\.py:mcp",
    ):
        load(target)


@pytest.mark.parametrize("name", ["notes.txt", "noextension"])
def test_a_file_that_is_not_python_is_refused(write: Write, name: str) -> None:
    with pytest.raises(NoServer, match=f"{name} is not a Python file"):
        load(str(write(name, ONE)))


def test_a_missing_file_next_to_one_of_nearly_its_name_is_a_typing_mistake(write: Write) -> None:
    file = write("target_shop.py", ONE)
    with pytest.raises(NoServer, match=rf"there is no file '.*' \(did you mean '{file}'\?\); a target is"):
        load(f"{file.with_name('target_shp.py')}:mcp")


def test_a_module_is_found_from_the_current_folder_with_or_without_its_object(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("target_module/__init__.py", "")
    monkeypatch.chdir(write("target_module/shop.py", ONE).parent.parent)
    monkeypatch.setattr(sys, "path", [one for one in sys.path if one not in ("", str(Path.cwd()))])
    assert load("target_module.shop").name == "one"
    assert load("target_module.shop:mcp").name == "one"
    with pytest.raises(NoServer, match=r"^target_module has no MCPServer at its top level; write mcp = "):
        load("target_module")


MAKES = "from bespeak import MCPServer\n\ndef make(name: str = 'made') -> MCPServer:\n    return MCPServer(name)\n"


@pytest.mark.parametrize("factory", ["make", "Shop", "PARTIAL"])
def test_a_function_that_makes_a_server_is_called(write: Write, factory: str) -> None:
    more = "import functools\nclass Shop(MCPServer): ...\nPARTIAL = functools.partial(MCPServer, 'made')\n"
    server = load(f"{write('target_shop.py', MAKES + more)}:{factory}")
    assert server.name == ("bespeak" if factory == "Shop" else "made")


@pytest.mark.parametrize(
    ("source", "name", "told"),
    [
        (MAKES, "", r"has no MCPServer at its top level; if make\(\) makes one, write .*target_shop\.py:make$"),
        (
            "def make(a, *b, c=1): ...",
            ":make",
            r"target_shop\.py:make needs arguments \(a\); a function that makes a server",
        ),
        (
            "async def make(): ...",
            ":make",
            r"target_shop\.py:make is an async function; write one that returns an MCPServer",
        ),
        ("def make(): return 5", ":make", r"target_shop\.py:make returns int, not an MCPServer"),
        ("make = type(iter([]))", ":make", r"target_shop\.py cannot be loaded: TypeError: "),
        ("def make(): 1 / 0", ":make", r"cannot be loaded: ZeroDivisionError: division by zero\n  at .*py:1: def make"),
    ],
)
def test_a_function_that_makes_no_server_says_why(write: Write, source: str, name: str, told: str) -> None:
    with pytest.raises(NoServer, match=told):
        load(f"{write('target_shop.py', source)}{name}")


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("1 / 0", "cannot be loaded: ZeroDivisionError: division by zero\n  at {file}:1: 1 / 0"),
        ("\nif True\n    pass\n", "cannot be loaded: SyntaxError: expected ':'\n  at {file}:2: if True"),
        ("raise KeyError", "cannot be loaded: KeyError\n  at {file}:1: raise KeyError"),
        ("import json\njson.loads('x')", "line 1 column 1 (char 0)\n  at {file}:2: json.loads('x')"),
        (
            "import sys\nsys.exit('no config')",
            "it ends the program (SystemExit: no config)\n  at {file}:2: sys.exit('no config')",
        ),
        (ONE + "mcp.run()", "so that the command can load the file first\n  at {file}:3: mcp.run()"),
        (ONE + "import asyncio\nasyncio.run(mcp.run_stdio_async())", "while it is loaded"),
        (ONE + "import asyncio\nasyncio.run(mcp.run_streamable_http_async())", "while it is loaded"),
        (ONE + "@mcp.tool()\ndef tool(x: len) -> None: ...", "cannot register 'tool': 1 fault\n\n1. "),
    ],
)
def test_what_a_file_raises_is_told_with_the_lines_of_the_author_only(write: Write, source: str, told: str) -> None:
    file = write("target_broken.py", source)
    with pytest.raises(CannotLoad) as raised:
        load(str(file))
    assert told.format(file=file) in str(raised.value)
    assert raised.value.__cause__ is not None
    assert str(raised.value).count("\n  at ") <= 1


async def test_a_file_that_calls_asyncio_run_in_the_loop_of_a_command_is_told_where_the_call_belongs(
    write: Write,
) -> None:
    source = ONE + "import asyncio\nasync def main(): ...\nasyncio.run(main())\n"
    with warnings.catch_warnings(record=True) as warned:
        with pytest.raises(CannotLoad) as raised:
            load(str(write("target_client.py", source)))
        message, place = str(raised.value).splitlines()
        del raised
        gc.collect()
    assert "the file calls asyncio.run() while it is loaded; put the call under `if __name__" in message
    assert place.endswith(": asyncio.run(main())")
    assert warned == []  # such as "coroutine 'main' was never awaited"


async def test_another_runtime_error_of_a_file_is_told_as_it_is(write: Write) -> None:
    with pytest.raises(CannotLoad, match="cannot be loaded: RuntimeError: asyncio"):
        load(str(write("target_error.py", ONE + "raise RuntimeError('asyncio')\n")))


CALLED = """
from typing import Annotated
from bespeak import Elicit, MCPServer, Resolve
mcp = MCPServer("one")

def ask_hotel(city: str) -> Elicit[bool]: ...

@mcp.tool()
def hotel(city: str, sure: Annotated[bool, Resolve({})]) -> str: ...
"""


def test_a_resolver_that_is_called_in_its_marker_is_told_what_to_write(write: Write) -> None:
    with pytest.raises(CannotLoad) as raised:
        load(str(write("target_called.py", CALLED.format("ask_hotel()"))))
    message, place = str(raised.value).splitlines()
    assert message.endswith(
        "TypeError: ask_hotel() missing 1 required positional argument: 'city'; pass the function itself, without parentheses: "
        "Resolve(ask_hotel)"
    )
    assert place.endswith("Resolve(ask_hotel())]) -> str: ...")


@pytest.mark.parametrize("argument", ["ask_hotel, gaurd=True", "len(5)", "str(ask_hotel(), 5)"])
def test_another_type_error_beside_a_marker_is_not_taken_for_a_call_of_its_resolver(
    write: Write, argument: str
) -> None:
    with pytest.raises(CannotLoad) as raised:
        load(str(write(f"target_called{len(argument)}.py", CALLED.format(argument))))
    assert "TypeError: " in str(raised.value)
    assert "without parentheses" not in str(raised.value)


@pytest.mark.long
def test_of_a_long_recursion_the_last_lines_are_shown(write: Write) -> None:
    with pytest.raises(CannotLoad) as raised:
        load(str(write("target_deep.py", "def deep():\n    deep()\ndeep()\n")))
    assert str(raised.value).count("\n  at ") == 5


def test_a_failure_without_any_line_of_the_author_shows_where_it_is(write: Write) -> None:
    error = ValueError("x")
    assert describe_failure("x.py", error) == "x.py cannot be loaded: ValueError: x"


@pytest.mark.parametrize(("asked", "shown"), [(["--traceback"], True), ([], False)])
@pytest.mark.parametrize("command", ["run", "graph", "check", "list", "call"])
def test_a_traceback_is_shown_if_it_is_asked_for(
    write: Write, command: str, asked: list[str], shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "environ", dict(os.environ))
    target = str(write("target_broken.py", "1 / 0"))
    result = CliRunner().invoke(commands.app, [command, target, *asked])
    assert ("Traceback (most recent call last)" in result.stderr) is shown
    assert "bespeak: " in result.stderr
    assert result.exit_code == 2


@pytest.mark.parametrize(("value", "shown"), [("1", True), ("0", False), ("", False)])
def test_a_traceback_is_shown_if_the_environment_asks_for_it(
    write: Write, value: str, shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BESPEAK_TRACEBACK", value)
    assert ("Traceback" in run(str(write("target_broken.py", "1 / 0"))).stderr) is shown


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
        (["missing.py", "--http"], "bespeak: there is no file 'missing.py'; a target is FILE[:OBJECT]"),
        (["missing.py", "--http", "--workers", "2"], "bespeak: there is no file 'missing.py'"),
        (["x.py", "--workers", "2"], "bespeak: --workers needs --http: over stdio there is only one client"),
        (["x.py", "--http", "--path", "mcp"], "bespeak: --path must start with '/'; 'mcp' does not"),
        (["x.py", "--port", "9000"], "bespeak: --host, --port, --path and --trusted-proxy need --http"),
        (["x.py", "--trusted-proxy", "10.0.0.4"], "bespeak: --host, --port, --path and --trusted-proxy need --http"),
        (
            ["x.py", "--http", "--trusted-proxy", "nginx"],
            "bespeak: --trusted-proxy: 'nginx' is not an IP address or a network",
        ),
        (["x.py", "--store", "foo"], "bespeak: --store: 'foo' is not a store; use memory:, sqlite:/path/to/file"),
        (["x.py", "--http", "--store", "sqlite:"], "bespeak: --store: a SQLite store needs the path of a file"),
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


# A port in use


@pytest.mark.parametrize("number", [1, 2])
def test_a_port_in_use_ends_with_code_3_and_what_to_do_before_the_lifespan_starts(
    number: int, write: Write, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "environ", {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)})
    lifespan = (
        "from contextlib import asynccontextmanager\nfrom bespeak import MCPServer\n"
        "@asynccontextmanager\nasync def life(server):\n    print('LIFESPAN')\n    yield\nmcp = MCPServer(lifespan=life)\n"
    )
    file = write("target_shop.py", lifespan)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code = run_server(Flags(str(file), True, None, port, None, number, []))
    assert code == ExitCode.UNREACHABLE
    said = "".join(capfd.readouterr())
    assert (
        f"bespeak: Cannot listen at http://127.0.0.1:{port}: the port is in use. Stop the program that uses it" in said
    )
    assert "Traceback" not in said
    assert "LIFESPAN" not in said


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("from fastmcp import FastMCP", "; to make it a server of Bespeak: from bespeak import MCPServer"),
        ("import fastmcp.server", "; to make it a server of Bespeak: from bespeak import MCPServer"),
        (
            "from bespeak.types import TextContent",
            "; its public modules are bespeak, bespeak.server, bespeak.server.auth,",
        ),
        ("import reqeusts", f"; is it installed beside bespeak, in {sys.prefix}?"),
    ],
)
def test_a_file_that_imports_a_module_that_is_not_there_is_told_what_to_do(
    write: Write, source: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fastmcp", None)
    with pytest.raises(CannotLoad) as caught:
        load(str(write("target_shop.py", source)))
    assert told in str(caught.value)
