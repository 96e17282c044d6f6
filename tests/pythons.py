"""Runs the tests of signatures and resolvers on every Python we support: `python -m tests.pythons`, or `make pythons`.

BESPEAK_TESTS may name other tests; `make signatures` does.

Each version has an environment of its own beside the first, `.venv-3.12`. Where an interpreter is missing the others run
all the same; with `CI` set, that is a failure.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSIONS = ("3.11", "3.12", "3.13")
TESTS = os.environ.get("BESPEAK_TESTS", "tests/resolve").split()
_VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"


@dataclass(frozen=True, slots=True)
class Run:
    """The tests on one version."""

    version: str
    tests: int
    failed: int
    signatures: int
    seconds: float
    output: str

    @property
    def held(self) -> bool:
        return self.failed == 0 and self.tests > 0 and self.signatures > 0

    def __str__(self) -> str:
        return (
            f"Python {self.version}: {self.tests} tests, {self.failed} failed, "
            f"{self.signatures} generated signatures, {self.seconds:.0f} s"
        )


def variable(version: str) -> str:
    """The environment variable that names the interpreter of a version."""
    return f"PYTHON{version.replace('.', '')}"


def interpreter(version: str) -> str | None:
    """A Python of this version: the one that runs this, the one that is named, one on the path, or one of pyenv's."""
    named = os.environ.get(variable(version))
    for candidate in [named] if named else [sys.executable, f"python{version}", *_of_pyenv(version)]:
        found = shutil.which(candidate)
        if found and _answer([found, "-c", _VERSION]) == version:
            return found
    return None


def _of_pyenv(version: str) -> list[str]:
    root = _answer(["pyenv", "root"]) if shutil.which("pyenv") else ""
    return [str(path) for path in sorted(Path(root).glob(f"versions/{version}*/bin/python"))] if root else []


def _answer(command: Sequence[str]) -> str:
    """What a command prints; empty if it fails, as pyenv's shims do for a version that is not active."""
    asked = subprocess.run(command, capture_output=True, text=True, check=False)
    return asked.stdout.strip() if asked.returncode == 0 else ""


def environment(version: str, python: str) -> str:
    """The Python of an environment that has what the tests need. This one's serves for its own version."""
    if python == sys.executable:
        return python
    home = ROOT / f".venv-{version}"
    installed, inside = home / ".installed", str(home / "bin" / "python")
    if not installed.exists() or installed.stat().st_mtime < (ROOT / "pyproject.toml").stat().st_mtime:
        subprocess.run([python, "-m", "venv", "--clear", "--without-pip", home], check=True)
        pip = [sys.executable, "-m", "pip", "--python", inside, "--disable-pip-version-check", "--quiet"]
        subprocess.run([*pip, "install", "-e", ".", "--group", "tests"], cwd=ROOT, check=True)
        installed.touch()
    return inside


def run(version: str, python: str) -> Run:
    """Run the tests with the Python of an environment."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        began = time.monotonic()
        tried = subprocess.run(
            [python, "-m", "pytest", *TESTS, "-m", "", "-n", "3", f"--junitxml={report}"],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        seconds = time.monotonic() - began
        suites = [*ElementTree.parse(report).iter("testsuite")] if report.exists() else []
    tests = sum(int(suite.get("tests", 0)) for suite in suites)
    failed = sum(int(suite.get(key, 0)) for suite in suites for key in ("failures", "errors"))
    signatures = sum(
        int(one.get("value", 0))
        for suite in suites
        for one in suite.iter("property")
        if one.get("name") == "signatures"
    )
    return Run(version, tests, failed or int(tried.returncode != 0), signatures, seconds, tried.stdout)


def main() -> int:
    """Run the tests on every version and print a line for each. Returns the exit code."""
    found = {version: python for version in VERSIONS if (python := interpreter(version))}
    with ThreadPoolExecutor() as together:
        environments = dict(zip(found, together.map(environment, found, found.values()), strict=True))
    runs: list[Run] = []
    for version, python in environments.items():
        runs.append(run(version, python))
        if not runs[-1].held:
            print(runs[-1].output)
        print(runs[-1], flush=True)
    missing = [version for version in VERSIONS if version not in found]
    for version in missing:
        print(
            f"Python {version}: NOT RUN, no interpreter was found. Install it, or set {variable(version)} to its path."
        )
    return 0 if all(one.held for one in runs) and not (missing and os.environ.get("CI")) else 1


if __name__ == "__main__":
    sys.exit(main())
