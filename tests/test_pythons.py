"""What `make pythons` does where an interpreter is missing, and which versions we say we support."""

import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests import pythons

pytestmark = pytest.mark.timing  # interpreters are asked for their version

MINE = f"{sys.version_info.major}.{sys.version_info.minor}"
PROJECT: dict[str, Any] = tomllib.loads((pythons.ROOT / "pyproject.toml").read_text())["project"]


def test_the_versions_we_say_we_support_are_those_that_are_tried() -> None:
    prefix = "Programming Language :: Python :: 3."
    said = [one.removeprefix(prefix) for one in PROJECT["classifiers"] if one.startswith(prefix)]

    assert [f"3.{minor}" for minor in said] == [*pythons.VERSIONS]
    assert PROJECT["requires-python"] == f">=3.{said[0]},<3.{int(said[-1]) + 1}"


def test_this_python_serves_for_its_own_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(pythons.variable(MINE), raising=False)

    assert pythons.interpreter(MINE) == sys.executable
    assert pythons.environment(MINE, sys.executable) == sys.executable


def test_an_interpreter_of_another_version_is_not_taken_for_the_one_that_is_wanted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHON399", sys.executable)

    assert pythons.interpreter("3.99") is None


def test_a_path_that_does_not_exist_is_not_taken_for_an_interpreter(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(pythons.variable(MINE), str(tmp_path / "python"))

    assert pythons.interpreter(MINE) is None


@pytest.fixture
def one_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that lacks a version, and tests that take no time."""

    def run(version: str, python: str) -> pythons.Run:
        return pythons.Run(version, tests=7, failed=0, signatures=5, seconds=2.4, output="")

    monkeypatch.setattr(pythons, "VERSIONS", (MINE, "3.99"))
    monkeypatch.setattr(pythons, "run", run)
    monkeypatch.delenv(pythons.variable(MINE), raising=False)


@pytest.mark.usefixtures("one_of_two")
@pytest.mark.parametrize(("ci", "code"), [("", 0), ("true", 1)], ids=["elsewhere", "in CI"])
@pytest.mark.long
def test_a_missing_version_is_reported_in_one_line_and_fails_in_ci(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], ci: str, code: int
) -> None:
    monkeypatch.setenv("CI", ci)

    assert pythons.main() == code
    assert capsys.readouterr().out.splitlines() == [
        f"Python {MINE}: 7 tests, 0 failed, 5 generated signatures, 2 s",
        "Python 3.99: NOT RUN, no interpreter was found. Install it, or set PYTHON399 to its path.",
    ]


@pytest.mark.parametrize(
    ("tests", "failed", "signatures"), [(7, 1, 5), (0, 0, 5), (7, 0, 0)], ids=["a failure", "no test", "no signature"]
)
def test_a_version_on_which_something_failed_or_nothing_ran_is_a_failure(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tests: int,
    failed: int,
    signatures: int,
) -> None:
    def run(version: str, python: str) -> pythons.Run:
        return pythons.Run(version, tests, failed, signatures, 2.4, output="what pytest said")

    monkeypatch.setattr(pythons, "VERSIONS", (MINE,))
    monkeypatch.setattr(pythons, "run", run)
    monkeypatch.delenv(pythons.variable(MINE), raising=False)

    assert pythons.main() == 1
    assert "what pytest said" in capsys.readouterr().out
