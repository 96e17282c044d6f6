"""The page about agent frameworks: its programs are the files that `make frameworks` runs, with the versions it names."""

import re
from pathlib import Path

import pytest
from frameworks.run import FRAMEWORKS

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "frameworks.md").read_text()
PROGRAMS: dict[str, str] = dict(
    re.findall(r"^```python\n# (frameworks/\S+\.py)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
)
SNIPPETS = sorted(path.stem for path in (ROOT / "frameworks" / "snippets").glob("*_desk.py"))
REQUIREMENTS = sorted((ROOT / "frameworks" / "requirements").glob("*.txt"))


@pytest.mark.parametrize("file", PROGRAMS)
def test_a_program_of_the_page_is_the_file_that_is_run(file: str) -> None:
    assert (ROOT / file).read_text() == PROGRAMS[file]


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_every_snippet_is_on_the_page_and_run_by_a_client(snippet: str) -> None:
    assert f"frameworks/snippets/{snippet}.py" in PROGRAMS
    clients = {(ROOT / "frameworks" / "clients" / f"{framework.client}.py").read_text() for framework in FRAMEWORKS}
    assert any(f"from frameworks.snippets import {snippet}\n" in client for client in clients)


def test_every_framework_is_installed_by_make_and_run() -> None:
    assert sorted(framework.name for framework in FRAMEWORKS) == sorted(path.stem for path in REQUIREMENTS)


@pytest.mark.parametrize("requirements", REQUIREMENTS, ids=lambda path: path.stem)
def test_the_page_names_the_version_of_a_framework_that_is_run(requirements: Path) -> None:
    framework, *_ = requirements.read_text().splitlines()
    assert f"`{framework}`" in PAGE


@pytest.mark.parametrize("requirements", REQUIREMENTS, ids=lambda path: path.stem)
def test_every_requirement_is_pinned(requirements: Path) -> None:
    for line in requirements.read_text().splitlines():
        assert re.fullmatch(r"[a-z0-9-]+(\[[a-z]+\])?==[0-9.]+", line)
