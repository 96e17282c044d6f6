"""The reference has every public name, and every public name has a docstring of its own."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

from tests.test_docs_imports import PUBLIC

ROOT = Path(__file__).parent.parent
DIRECTIVE = re.compile(r"^\.\. auto(?:class|function|data):: (bespeak[\w.]*)\.(\w+)$", re.MULTILINE)
PAGES = sorted((ROOT / "docs" / "reference").glob("*.md"))
DOCUMENTED = {(module, name) for page in PAGES for module, name in DIRECTIVE.findall(page.read_text())}


def public_names(module: str) -> set[str]:
    """Return the names that a module exports."""
    found = importlib.import_module(module)
    return set(getattr(found, "__all__", None) or dir(found)) if module != "bespeak.server.resolve" else set()


def has_docstring(value: object) -> bool:
    """Return whether a class or function has a docstring that somebody wrote. Aliases and constants cannot have one."""
    if not inspect.isclass(value) and not inspect.isfunction(value):
        return True
    return bool(value.__doc__) and not value.__doc__.startswith(f"{value.__name__}(")


@pytest.mark.parametrize("module", PUBLIC)
def test_the_reference_has_every_public_name(module: str) -> None:
    names = {name for _, name in DOCUMENTED}
    assert public_names(module) - names == set()


@pytest.mark.parametrize(("module", "name"), sorted(DOCUMENTED))
def test_a_name_of_the_reference_has_a_docstring(module: str, name: str) -> None:
    assert has_docstring(getattr(importlib.import_module(module), name))


NOT_FOR_AUTHORS = {"MemoryStore", "RequestStateSecurity"}
"""Their methods are called by the server itself; authors only make them."""


def members_without_docstring(value: object) -> list[str]:
    """Return the public methods and properties of a class that nothing is said about, in the class or in what it inherits."""
    if not inspect.isclass(value) or not value.__module__.startswith("bespeak."):
        return []
    return [
        name
        for name, member in vars(value).items()
        if not name.startswith("_")
        and (isinstance(member, property | classmethod | staticmethod) or inspect.isfunction(member))
        and not inspect.getdoc(getattr(value, name))
    ]


@pytest.mark.parametrize("module", PUBLIC)
def test_every_method_of_a_public_class_has_a_docstring_or_the_reference_would_not_show_it(module: str) -> None:
    found = importlib.import_module(module)
    classes = {name: members_without_docstring(getattr(found, name)) for name in public_names(module) - NOT_FOR_AUTHORS}
    assert {name: missing for name, missing in classes.items() if missing} == {}
