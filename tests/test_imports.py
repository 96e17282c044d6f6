"""Who may know whom: the parts of design section 3, and what `import bespeak` does not load."""

import ast
import json
import re
import subprocess
import sys
from collections import Counter
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import bespeak
from bespeak.absent_names import ELSEWHERE, where_to_find
from tests.import_table import MAY_IMPORT

SOURCE = Path(__file__).parent.parent / "src" / "bespeak"

SAME_NAME = {"errors", "memory", "legacy", "client", "resolve", "subscriptions", "__main__"}
"""Modules that are the same thing in two places."""

MODULES = {
    ".".join(file.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__"): file
    for file in SOURCE.glob("**/*.py")
}


def all_imports_of(file: Path) -> set[str]:
    """The modules that a module imports, wherever in it, but not for type checking only."""
    tree = ast.parse(file.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body.clear()
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{file} uses a relative import"
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name.removeprefix("bespeak.") in MODULES else node.module for name in names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in (
            "import_module",
            "__import__",
        ):
            found |= {one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str)}
    return found


def imports_of(file: Path) -> set[str]:
    """The modules of ours among them."""
    found = all_imports_of(file)
    return {name.removeprefix("bespeak.") for name in found if name.startswith("bespeak.")} & MODULES.keys()


def is_allowed(module: str, imported: str) -> bool:
    part = module.partition(".")[0]
    return any(imported == name or imported.startswith(f"{name}.") for name in {*MAY_IMPORT[part], part})


@pytest.mark.parametrize("module", sorted(MODULES.keys() - {"__init__", "__main__"}))
def test_imports_point_one_way(module: str) -> None:
    assert [name for name in sorted(imports_of(MODULES[module])) if not is_allowed(module, name)] == []


def test_modules_do_not_import_each_other_in_a_circle() -> None:
    graph = {module: imports_of(file) for module, file in MODULES.items()}
    graph = {module: {name for name in names if name != module} for module, names in graph.items()}
    TopologicalSorter(graph).prepare()  # raises CycleError, which names them


def reach(module: str) -> set[str]:
    """The modules of ours that are imported once all of a module's functions have run."""
    found, waiting = {module}, [module]
    while waiting:
        new = imports_of(MODULES[waiting.pop()]) - found
        found |= new
        waiting += new
    return found


@pytest.mark.parametrize("command", ["run", "call"])
def test_a_command_for_production_needs_nothing_of_the_test_tool(command: str) -> None:
    reached = reach(f"cli.{command}_command")
    assert "server.targets" in reached
    assert sorted(name for name in reached if name.partition(".")[0] == "testing") == []


def test_no_two_modules_share_a_name() -> None:
    names = Counter(module.rpartition(".")[2] for module in MODULES if module.rpartition(".")[2] not in SAME_NAME)
    packages = {module.rpartition(".")[2] for module, file in MODULES.items() if file.name == "__init__.py"}
    assert [name for name, count in names.items() if count > 1 and name not in packages] == []


def test_one_module_imports_uvicorn_and_its_parsers() -> None:
    theirs = {"uvicorn", "h11", "httptools"}
    found = {
        module for module, file in MODULES.items() if {name.partition(".")[0] for name in all_imports_of(file)} & theirs
    }
    assert found == {"transports.http.uvicorn_server"}


def test_a_new_part_must_be_given_its_place() -> None:
    assert {folder.name for folder in SOURCE.iterdir() if (folder / "__init__.py").exists()} == MAY_IMPORT.keys()


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


@pytest.mark.timing
def test_import_bespeak_pulls_in_nothing_until_it_is_used() -> None:
    loaded = run(
        "import sys, bespeak; print([m for m in sys.modules if m.startswith(('bespeak.', 'pydantic', 'mcp_types'))])"
    )
    assert loaded.strip() == "[]"


A_SERVER = "from bespeak import MCPServer; mcp = MCPServer('x')"
A_TOOL = f"{A_SERVER}\n@mcp.tool()\ndef add(a: int, b: int) -> str:\n    return str(a + b)"
A_QUESTION = f"""
{A_SERVER}
from typing import Annotated
from bespeak import Elicit, Resolve
async def ask(a: int) -> bool | Elicit[bool]:
    return Elicit(f"{{a}}?", bool)
@mcp.tool()
async def asked(a: int, yes: Annotated[bool, Resolve(ask)]) -> str:
    return "yes" if yes else "no"
"""
A_PROMPT = f"{A_SERVER}\n@mcp.prompt()\ndef ask(a: str) -> str:\n    return a"
A_RESOURCE = f"{A_SERVER}\n@mcp.resource('x://y')\ndef read() -> str:\n    return ''"
A_TEMPLATE = f"{A_SERVER}\n@mcp.resource('x://{{y}}')\ndef read(y: str) -> str:\n    return y"
SLOW = ("bespeak.client", "cryptography", "uvicorn", "httpx", "starlette", "mcp_types")
"""Packages that a server does not need before it is called. Importing `mcp_types` takes longer than all of ours."""


@pytest.mark.timing
@pytest.mark.parametrize("code", [A_SERVER, A_TOOL, A_QUESTION, A_PROMPT, A_RESOURCE, A_TEMPLATE])
def test_a_server_pulls_in_no_client_no_crypto_and_no_wire_types_until_it_is_called(code: str) -> None:
    loaded = run(f"{code}\nimport sys; print([m for m in sys.modules if m.startswith({SLOW})])")
    assert loaded.strip() == "[]"


NOT_FOR_AN_OBJECT = (
    "bespeak.state.sessions",
    "bespeak.transports.http.connection_limits",
    "bespeak.transports.http.custom_routes",
    "bespeak.transports.stdio",
    "pydantic.networks",
)
"""What a server needs only over one transport, or with a shared store."""
MOST_MODULES = 146
"""How many modules of ours a server with a tool may load; it was 136 when this was written."""


@pytest.mark.timing
def test_a_server_pulls_in_no_transport_until_it_runs() -> None:
    loaded = run(f"{A_TOOL}\nimport sys; print([m for m in sys.modules if m.startswith({NOT_FOR_AN_OBJECT})])")
    assert loaded.strip() == "[]"


@pytest.mark.timing
def test_a_server_with_a_tool_loads_few_modules_of_ours() -> None:
    loaded = run(f"{A_TOOL}\nimport sys; print(len([m for m in sys.modules if m.startswith('bespeak')]))")
    assert int(loaded) <= MOST_MODULES


@pytest.mark.timing
def test_a_client_pulls_in_no_wire_types_until_it_connects() -> None:
    assert run("import sys; from bespeak import Client; Client; print('mcp_types' in sys.modules)").strip() == "False"


@pytest.mark.timing
def test_a_tool_that_returns_plain_values_is_listed_and_called_without_wire_types() -> None:
    meta: dict[str, Any] = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    calls: list[tuple[str, dict[str, Any]]] = [("tools/list", {}), ("tools/call", {"name": "loaded", "arguments": {}})]
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": id_, "method": method, "params": {**params, "_meta": meta}})
        for id_, (method, params) in enumerate(calls)
    ]
    server = (
        f"{A_SERVER}\nimport sys\n@mcp.tool()\ndef loaded() -> bool:\n    return 'mcp_types' in sys.modules\nmcp.run()"
    )
    command = [sys.executable, "-c", server]
    talk = subprocess.run(command, input="\n".join(lines) + "\n", capture_output=True, text=True, check=True)
    results = {response["id"]: response["result"] for response in map(json.loads, talk.stdout.splitlines())}
    assert results[0]["tools"][0]["name"] == "loaded"
    assert results[1]["structuredContent"] == {"result": False}


def test_every_public_name_can_be_imported_and_is_listed() -> None:
    import bespeak

    assert "MCPServer" in dir(bespeak)
    for name in dir(bespeak):
        assert getattr(bespeak, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    import bespeak

    with pytest.raises(AttributeError, match="has no attribute 'Nonsense'"):
        _ = bespeak.Nonsense  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("FastMCP", "bespeak has no 'FastMCP'; the server class is MCPServer: from bespeak import MCPServer"),
        ("ElicitResult", "bespeak has no 'ElicitResult'; it is a wire type: from mcp_types import ElicitResult"),
        (
            "ToolAnnotations",
            "bespeak has no 'ToolAnnotations'; it is a wire type: from mcp_types import ToolAnnotations",
        ),
        (
            "AuthSettings",
            "bespeak has no 'AuthSettings'; it is in bespeak.server.auth: from bespeak.server.auth import",
        ),
        ("Elicitt", "bespeak has no 'Elicitt'; did you mean 'Elicit'?"),
        (
            "MemoryStore",
            "bespeak has no 'MemoryStore'; stores are in bespeak.server: from bespeak.server import MemoryStore",
        ),
    ],
)
def test_a_name_that_is_elsewhere_says_where_it_is(name: str, told: str) -> None:
    with pytest.raises(ImportError, match=re.escape(told)):
        getattr(bespeak, name)


def test_where_a_name_is_said_to_be_it_is() -> None:
    for name, told in ELSEWHERE.items():
        words = told.split(": ")[1].split()
        if words[0] == "from":
            assert hasattr(import_module(words[1]), words[3]), name
        else:
            assert import_module(words[1]), name


@pytest.mark.parametrize("module", sorted(MAY_IMPORT))
def test_the_parts_can_be_imported_from_the_package_whatever_their_names_are_like(module: str) -> None:
    assert where_to_find(module, ["Client", "Resolve"]) is None


@pytest.mark.timing
def test_a_module_that_is_like_a_public_name_can_be_imported() -> None:
    assert run("from bespeak import client, server; print(client.__name__)") == "bespeak.client\n"


@pytest.mark.parametrize("name", ["__wrapped__", "_HOME", "__path_"])
def test_a_private_name_is_never_a_misspelling(name: str) -> None:
    assert not hasattr(bespeak, name)


@pytest.mark.timing
def test_a_star_import_brings_every_public_name() -> None:
    assert run("from bespeak import *; print(MCPServer.__name__, Resolve.__name__)").split() == ["MCPServer", "Resolve"]


@pytest.mark.timing
def test_the_version_is_the_installed_one() -> None:
    assert (
        run("import bespeak, importlib.metadata as m; print(bespeak.__version__ == m.version('bespeak'))").strip()
        == "True"
    )
