"""The page about the architecture: whatever it names exists, and its tree and its table are complete."""

import re
from pathlib import Path

import pytest

from tests.import_table import MAY_IMPORT

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "bespeak"
PAGE = (ROOT / "docs" / "architecture.md").read_text()


def section(heading: str) -> str:
    """Return the text below a heading, up to the next one of its level."""
    return PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def paths_of_the_tree() -> list[str]:
    """Return the paths that the tree lists, relative to the root; those of folders end with a slash."""
    folders: list[str] = []
    found: list[str] = []
    (tree,) = re.findall(r"^```text\n(.*?)^```$", section("The tree"), re.DOTALL | re.MULTILINE)
    for line in tree.splitlines():
        name = line.split()[0]
        depth = (len(line) - len(line.lstrip())) // 2
        del folders[depth:]
        found.append("".join([*folders, name]))
        if name.endswith("/"):
            folders.append(name)
    return found


TREE = paths_of_the_tree()
ELSEWHERE = PAGE.replace(section("The tree"), "")
MODULES = sorted(set(re.findall(rf"(?<![\w./])((?:{'|'.join(MAY_IMPORT)})(?:\.[a-z_]+)+)\b", ELSEWHERE)))
"""Modules and packages that are named with dots, relative to the package."""
PATHS = sorted(set(re.findall(r"`((?:docs|examples|src|suites|tests)/[\w./]*)`", PAGE)))


@pytest.mark.parametrize("path", TREE)
def test_what_the_tree_lists_exists(path: str) -> None:
    assert (ROOT / path).is_dir() if path.endswith("/") else (ROOT / path).is_file()


def test_the_tree_lists_every_package() -> None:
    packages = {f"{file.parent.relative_to(ROOT).as_posix()}/" for file in PACKAGE.rglob("__init__.py")}
    assert packages == {path for path in TREE if path.endswith("/")}


@pytest.mark.parametrize("name", MODULES)
def test_a_module_that_is_named_elsewhere_is_in_the_tree(name: str) -> None:
    path = f"src/bespeak/{name.replace('.', '/')}"
    assert f"{path}.py" in TREE or f"{path}/" in TREE


@pytest.mark.parametrize("path", PATHS)
def test_a_path_that_is_named_exists(path: str) -> None:
    assert (ROOT / path).exists()


def test_the_page_names_modules_and_paths() -> None:
    assert "server.dispatch" in MODULES
    assert "tests/test_imports.py" in PATHS


def test_the_table_of_imports_is_the_one_that_is_enforced() -> None:
    rows = dict(re.findall(r"^\| ([a-z]+) \| ([a-z][a-z., ]*) \|$", section("Who may import whom"), re.MULTILINE))
    del rows["package"]
    everything = {part for part in MAY_IMPORT if part != "cli"}
    named = {"nothing": set[str](), "everything": everything}
    assert {part: named.get(told) or set(told.split(", ")) - {"nothing"} for part, told in rows.items()} == MAY_IMPORT
