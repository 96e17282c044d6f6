"""Who may know whom: the parts of design section 3, and what `import bespeak` does not load."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "bespeak"

MAY_IMPORT = {
    "protocol": set[str](),
    "resolve": {"protocol"},
    "state": {"resolve"},
    "transports": {"resolve", "state", "protocol"},
    "server": {"resolve", "state", "protocol", "transports"},
    "client": {"resolve", "state", "protocol", "transports"},
    "testing": {"resolve", "state", "protocol", "transports", "server", "client"},
    "cli": {"resolve", "state", "protocol", "transports", "server", "client", "testing"},
}


def imported_parts(file: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{file} uses a relative import"
            names = [node.module]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        found |= {name.split(".")[1] for name in names if name.startswith("bespeak.")}
    return found


@pytest.mark.parametrize("file", sorted(SOURCE.glob("*/**/*.py")), ids=lambda file: str(file.relative_to(SOURCE)))
def test_imports_point_one_way(file: Path) -> None:
    part = file.relative_to(SOURCE).parts[0]
    assert imported_parts(file) <= MAY_IMPORT[part] | {part}


def test_a_new_part_must_be_given_its_place() -> None:
    assert {folder.name for folder in SOURCE.iterdir() if (folder / "__init__.py").exists()} == MAY_IMPORT.keys()


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_import_bespeak_pulls_in_nothing_until_it_is_used() -> None:
    loaded = run(
        "import sys, bespeak; print([m for m in sys.modules if m.startswith(('bespeak.', 'pydantic', 'mcp_types'))])"
    )
    assert loaded.strip() == "[]"


def test_a_server_pulls_in_no_client_and_no_crypto_until_it_asks() -> None:
    loaded = run(
        "import sys; from bespeak import MCPServer; MCPServer('x');"
        "print([m for m in sys.modules if m.startswith(('bespeak.client', 'cryptography', 'uvicorn', 'httpx', 'starlette'))])"
    )
    assert loaded.strip() == "[]"


def test_every_public_name_can_be_imported_and_is_listed() -> None:
    import bespeak

    assert "MCPServer" in dir(bespeak)
    for name in dir(bespeak):
        assert getattr(bespeak, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    import bespeak

    with pytest.raises(AttributeError, match="has no attribute 'Nonsense'"):
        _ = bespeak.Nonsense  # pyright: ignore[reportAttributeAccessIssue]


def test_a_star_import_brings_every_public_name() -> None:
    assert run("from bespeak import *; print(MCPServer.__name__, Resolve.__name__)").split() == ["MCPServer", "Resolve"]


def test_the_version_is_the_installed_one() -> None:
    assert (
        run("import bespeak, importlib.metadata as m; print(bespeak.__version__ == m.version('bespeak'))").strip()
        == "True"
    )
