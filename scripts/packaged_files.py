"""What the built packages must contain, and what they must not."""

import tarfile
import zipfile
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

NEEDED_IN_SDIST = (
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "Makefile",
    "PKG-INFO",
    "README.md",
    "SECURITY.md",
    "docs/architecture.md",
    "examples/refund_desk/server.py",
    "pyproject.toml",
    "src/bespeak/__init__.py",
    "src/bespeak/py.typed",
    "tests/conftest.py",
)
NEEDED_IN_WHEEL = (
    "bespeak/__init__.py",
    "bespeak/py.typed",
    "bespeak/cli/__main__.py",
    "bespeak/dev/static/page.html",
    "bespeak/dev/static/page.js",
)
UNWANTED_FOLDERS = frozenset(
    {
        "__pycache__",
        "node_modules",
        "dist",
        ".git",
        ".venv",
        ".peer",
        ".oldest",
        ".outside",
        ".frameworks",
        ".package",
        ".comparison",
        ".hypothesis",
        ".pytest_cache",
        ".ruff_cache",
    }
)
UNWANTED_ENDINGS = (".pyc", ".pyo", ".coverage", ".DS_Store")


def names_in_sdist(archive: Path) -> list[str]:
    """Return the files of an sdist, without the folder around them."""
    with tarfile.open(archive) as opened:
        members = [PurePosixPath(member.name) for member in opened.getmembers() if member.isfile()]
    return ["/".join(name.parts[1:]) for name in members]


def names_in_wheel(archive: Path) -> list[str]:
    """Return the files of a wheel."""
    with zipfile.ZipFile(archive) as opened:
        return opened.namelist()


def faults_of_sdist(names: Iterable[str], kept: Iterable[str] | None) -> list[str]:
    """Return what is wrong with the files of an sdist. `kept` are the files that belong to the project, if they are known."""
    found = set(names)
    faults = [f"{name} is missing" for name in NEEDED_IN_SDIST if name not in found]
    faults += [f"{name} does not belong into a package" for name in sorted(found) if _unwanted(name)]
    if kept is not None:
        known = {*kept, "PKG-INFO"}
        faults += [f"{name} is not a file of the project" for name in sorted(found - known) if not _unwanted(name)]
    return faults


def faults_of_wheel(names: Iterable[str], sources: Iterable[str]) -> list[str]:
    """Return what is wrong with the files of a wheel. `sources` are the files of the package below src/."""
    found = set(names)
    faults = [f"{name} is missing" for name in sorted({*NEEDED_IN_WHEEL, *sources}) if name not in found]
    return faults + [
        f"{name} does not belong into a wheel"
        for name in sorted(found)
        if _unwanted(name) or not name.startswith(("bespeak/", "bespeak-"))
    ]


def _unwanted(name: str) -> bool:
    parts = PurePosixPath(name).parts
    return name.endswith(UNWANTED_ENDINGS) or any(
        part in UNWANTED_FOLDERS or part.startswith(".venv-") for part in parts
    )
