"""Every Python snippet in the documents runs, in the order it is read: with clients of one era, then of the other.

A snippet that says `mode=` chooses the era itself. A snippet of the tutorial that begins with the name of a file is a part of
that file; all others are parts of `server.py`.
"""

import re
import subprocess
import sys
import types
from pathlib import Path

import pytest

from bespeak import Client, MCPServer

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
TUTORIAL = ROOT / "docs" / "tutorial"
FILE = re.compile(r"# (\S+\.py)(, continued)?\n")
SNIPPET = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


PAGES = sorted(TUTORIAL.glob("*.md"))


def named(document: Path) -> str:
    return document.relative_to(ROOT).as_posix()


def run_snippets(document: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Run the Python snippets of a document in one module, and return how many there are.

    On a page of the tutorial, this module is the `server` that the page's other files import. They run beside it.
    Elsewhere, a named file has its own test.
    """
    module = _module(f"snippets_of_{document.stem.lower()}", monkeypatch)
    modules = {"server.py": module}
    if document.parent == TUTORIAL:
        monkeypatch.setitem(sys.modules, "server", module)
    text = document.read_text()
    ran = 0
    for snippet in SNIPPET.finditer(text):
        name = file_of(snippet[1])
        if name not in modules and document.parent == TUTORIAL:
            modules[name] = _module(f"{name}_of_{document.stem}", monkeypatch)
        if name in modules:
            line = text.count("\n", 0, snippet.start(1))
            code = compile("\n" * line + snippet[1], document.name, "exec")
            exec(code, vars(modules[name]))
            ran += 1
    return ran


def file_of(snippet: str) -> str:
    """Return the name of the file that a snippet is a part of."""
    named = FILE.match(snippet)
    return named[1] if named else "server.py"


def _module(name: str, monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """Return a new module that can be imported during the test."""
    module = types.ModuleType(re.sub(r"\W", "_", name))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_the_snippets_of_a_document_run(document: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_snippets(document, monkeypatch)


@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_the_snippets_of_a_document_run_with_older_clients(document: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    talk_as("2025-11-25", monkeypatch)
    run_snippets(document, monkeypatch)


def talk_as(revision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let clients speak a revision unless their `mode` is given."""
    defaults = Client.__init__.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "mode", revision)


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25"])
async def test_clients_of_snippets_speak_the_revision_of_the_test(
    revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk_as(revision, monkeypatch)
    async with Client(MCPServer("Bookshop")) as client:
        assert client.protocol_version == revision


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_page_of_the_tutorial_has_snippets(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_snippets(page, monkeypatch)


@pytest.mark.timing
@pytest.mark.parametrize("page", PAGES, ids=named)
def test_a_reader_who_saves_the_files_of_a_page_of_the_tutorial_can_run_them(page: Path, tmp_path: Path) -> None:
    files: dict[str, str] = {}
    for snippet in SNIPPET.findall(page.read_text()):
        files[file_of(snippet)] = files.get(file_of(snippet), "") + snippet
    for name, source in files.items():
        (tmp_path / name).write_text(source)
    assert "asyncio.run(" not in files.pop("server.py")  # commands load it in an event loop
    assert files
    for name in files:
        run = subprocess.run([sys.executable, name], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (run.returncode, run.stdout) == (0, ""), run.stderr


def test_the_readme_has_snippets() -> None:
    assert len(SNIPPET.findall((ROOT / "README.md").read_text())) >= 2
