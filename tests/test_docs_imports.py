"""A page lists the public modules, and the documents and examples import from no others."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TABLE = (ROOT / "docs" / "reference" / "public-modules.md").read_text()
PUBLIC: dict[str, list[str]] = {
    module: re.findall(r"`(\w+)`", told)
    for module, told in re.findall(r"^\| `(bespeak[\w.]*)` \| (.*) \|$", TABLE, re.MULTILINE)
}
DOCUMENTS = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
EXAMPLES = [file for kind in ("py", "md") for file in ROOT.glob(f"examples/**/*.{kind}")]


def test_the_page_lists_public_modules() -> None:
    assert PUBLIC["bespeak.server"]


@pytest.mark.parametrize("module", PUBLIC)
def test_a_public_module_has_the_names_that_are_listed(module: str) -> None:
    found = importlib.import_module(module)
    assert [name for name in PUBLIC[module] if not hasattr(found, name)] == []


@pytest.mark.parametrize("document", [*DOCUMENTS, *EXAMPLES], ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_document_or_example_imports_from_public_modules_only(document: Path) -> None:
    imported = re.findall(r"^\s*(?:from|import) (bespeak[\w.]*)", document.read_text(), re.MULTILINE)
    assert set(imported) <= PUBLIC.keys()
