"""Every Python snippet in the documents runs, in the order it is read."""

import re
import sys
import types
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bespeak.cli.commands import app

ROOT = Path(__file__).parent.parent
DOCUMENTS = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
FILE = re.compile(r"# \S+\.py\n")
SNIPPET = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_the_snippets_of_a_document_run(document: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType(f"snippets_of_{document.stem.lower()}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    text = document.read_text()
    for snippet in SNIPPET.finditer(text):
        if FILE.match(snippet.group(1)):
            continue  # a file of the guide to testing, which has a test of its own
        line = text.count("\n", 0, snippet.start(1))
        code = compile("\n" * line + snippet.group(1), document.name, "exec")
        exec(code, vars(module))


def test_the_readme_has_snippets() -> None:
    assert len(SNIPPET.findall((ROOT / "README.md").read_text())) >= 2


@pytest.mark.timing
def test_the_suite_of_the_readme_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "README.md").read_text()
    (written,) = re.findall(r"^```yaml\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    server = ROOT / "examples" / "refund_desk" / "server.py"
    (tmp_path / "readme.bespeak.yaml").write_text(written.replace("server.py", str(server)))
    run = CliRunner().invoke(app, ["test", str(tmp_path)])
    assert run.exit_code == 0, run.output
    assert "2 passed" in run.output
