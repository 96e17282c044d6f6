"""The suites for servers of npm and PyPI: they load, and the table in their README agrees with the files."""

import json
import os
import re
import subprocess
from pathlib import Path
from urllib.request import urlopen

import pytest
from suites.outside.run import ENDING, FOLDER, Run, described, main, names
from suites.outside.workplace import workplace

from bespeak.testing.suite.loader import load_suite
from bespeak.testing.suite.plan import Item, items_of

ROOT = FOLDER.parent.parent
COLUMNS = ["suite", "server", "version", "language", "built with", "asks for", "revisions", "tests"]


def table() -> dict[str, dict[str, str]]:
    """Return the rows of the README's table, by the names of the suites."""
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in (FOLDER / "README.md").read_text().splitlines()
        if line.startswith("|")
    ]
    header, _, *rows = cells
    assert header == COLUMNS
    return {row[0].strip("`"): dict(zip(COLUMNS, row, strict=True)) for row in rows}


def pinned() -> dict[str, str]:
    """Return the version of each package that is installed."""
    found: dict[str, str] = json.loads((FOLDER / "package.json").read_text())["dependencies"]
    for path in (FOLDER / "requirements").glob("*.txt"):
        lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
        found |= dict(line.split("==") for line in lines)
    return found


def items(name: str) -> list[Item]:
    return items_of(load_suite(FOLDER / f"{name}{ENDING}"))


def test_every_version_is_exact() -> None:
    assert [version for version in pinned().values() if not re.fullmatch(r"\d+(\.\d+)+", version)] == []


def test_the_table_lists_every_suite() -> None:
    assert sorted(table()) == names()


def test_every_package_is_in_the_table_or_is_what_servers_are_built_with() -> None:
    servers = {row["server"] for row in table().values()}
    assert set(pinned()) - servers == {"mcp", "fastmcp", "@modelcontextprotocol/sdk"}


@pytest.mark.parametrize("name", names())
def test_a_suite_loads_and_its_row_agrees_with_it(name: str) -> None:
    row, tests = table()[name], items(name)
    assert row["version"] == pinned()[row["server"]]
    assert row["tests"] == str(len(tests))
    eras = {item.era or "negotiated" for item in tests}
    assert set(re.findall(r"\d{4}-\d\d-\d\d", row["revisions"])) <= eras
    assert {min(eras), max(eras)} <= set(re.findall(r"\d{4}-\d\d-\d\d", row["revisions"]))


@pytest.mark.parametrize("name", names())
def test_a_suite_starts_only_servers_that_are_installed_for_it(name: str) -> None:
    servers = load_suite(FOLDER / f"{name}{ENDING}").model.servers.values()
    programs = {(server.command or [""])[0] for server in servers}
    environments = {"npm", *(path.stem for path in (FOLDER / "requirements").glob("*.txt"))}
    for program in programs:
        found = re.fullmatch(r"\.\./\.\./\.outside/([\w-]+)/(?:node_modules/\.)?bin/[\w-]+", program)
        assert found is not None
        assert found[1] in environments


@pytest.mark.long
def test_a_workplace_has_files_a_repository_and_pages_and_is_removed() -> None:
    with workplace() as variables:
        folder = Path(variables["OUTSIDE_FOLDER"])
        with urlopen(f"{variables['OUTSIDE_PAGES']}/data.json", timeout=10) as page:
            assert page.read() == b'{"leaves": 3}\n'
        status = subprocess.run(
            ["git", "status", "--short"], cwd=folder / "repository", capture_output=True, check=True, text=True
        )
        assert status.stdout == " M poem.txt\n?? new.txt\n"
        assert (folder / "files" / "link-to-secret").read_text() == "hidden\n"
    assert not folder.exists()


def test_a_run_that_passed_is_one_line() -> None:
    assert (
        described("memory", Run(19, 0, 4.71, 0, "..."))
        == "ok      memory               19 tests                    4.7 s"
    )


def test_a_run_that_failed_shows_what_the_test_tool_printed() -> None:
    shown = described("memory", Run(18, 1, 4.71, 1, "what went wrong"))
    assert shown == "what went wrong\nFAILED  memory               1 of 19 tests failed        4.7 s"


def test_a_suite_that_does_not_exist_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["run", "memories"])
    with pytest.raises(SystemExit):
        main()
    assert "no such suite: memories. There are: calculator, everything, " in capsys.readouterr().err


def test_ci_runs_them() -> None:
    assert " suites-outside " in (ROOT / ".ci" / "run").read_text()
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
