"""Every Python snippet in the documents runs, in the order it is read: with clients of one era, then of the other.

A snippet that says `mode=` chooses the era itself.
"""

import re
import sys
import types
from pathlib import Path

import pytest

from bespeak import Client, MCPServer

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
FILE = re.compile(r"# \S+\.py\n")
SNIPPET = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def named(document: Path) -> str:
    return document.relative_to(ROOT).as_posix()


def run_snippets(document: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Run the Python snippets of a document in one module, and return how many there are."""
    module = types.ModuleType(re.sub(r"\W", "_", f"snippets_of_{document.stem.lower()}"))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    text = document.read_text()
    snippets = [found for found in SNIPPET.finditer(text) if not FILE.match(found[1])]  # a named file has its own test
    for snippet in snippets:
        line = text.count("\n", 0, snippet.start(1))
        code = compile("\n" * line + snippet.group(1), document.name, "exec")
        exec(code, vars(module))
    return len(snippets)


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


@pytest.mark.parametrize("page", sorted(ROOT.glob("docs/tutorial/*.md")), ids=named)
def test_every_page_of_the_tutorial_has_snippets(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_snippets(page, monkeypatch)


def test_the_readme_has_snippets() -> None:
    assert len(SNIPPET.findall((ROOT / "README.md").read_text())) >= 2
