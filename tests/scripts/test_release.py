"""`make release`: what stands in its way, what it makes, and what it leaves to do."""

import subprocess
import tomllib
from typing import Any

import pytest
from scripts.release import ROOT, faults, newest_version, next_steps, targets

from scripts import release

CHANGELOG = "# Changelog\n\n## [0.2.0] - 2026-01-31\n\n## [0.1.0] - 2025-12-31\n"


def test_the_newest_heading_is_the_first() -> None:
    assert newest_version(CHANGELOG) == "0.2.0"


def test_our_own_version_is_the_newest_in_the_changelog() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert faults("", version, (ROOT / "CHANGELOG.md").read_text()) == []


def test_everything_that_is_wrong_is_named() -> None:
    assert faults(" M README.md\n", "0.3.0", CHANGELOG) == [
        "The tree has changes that are not committed:\n M README.md",
        "pyproject.toml has version 0.3.0, but the newest heading of CHANGELOG.md is 0.2.0. Make them equal.",
    ]


def test_a_changelog_without_a_version_is_named() -> None:
    assert faults("", "0.1.0", "# Changelog\n") == [
        "CHANGELOG.md has no heading like '## [0.1.0] - 2026-01-31'.",
    ]


def test_a_target_that_does_not_exist_is_left_out() -> None:
    assert targets("test: a\n\tb\ncheck: c\npackage: d\n") == ["check", "test", "package"]


def test_an_unreleased_version_gets_its_date_first() -> None:
    assert next_steps("0.2.0", CHANGELOG).splitlines() == [
        "Bespeak 0.2.0 is ready. Next:",
        "  1. git tag -a v0.2.0 -m 'Bespeak 0.2.0' && git push origin v0.2.0",
        "  2. .package/bin/python -m twine upload dist/*",
    ]
    assert "1. Replace 'unreleased'" in next_steps("0.3.0", "## [0.3.0] - unreleased\n")


class Commands:
    """Stands in for `subprocess.run`: notes the commands, and fails one of them."""

    def __init__(self, *, changes: str = "", failing: str = "") -> None:
        self.made: list[str] = []
        self._changes, self._failing = changes, failing

    def __call__(self, command: list[str], **_options: Any) -> subprocess.CompletedProcess[str]:
        if command[0] == "make":
            self.made.append(command[1])
        return subprocess.CompletedProcess(command, 2 if command[-1] == self._failing else 0, self._changes, "")


def test_a_release_makes_all_targets_and_uploads_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = Commands()
    monkeypatch.setattr(subprocess, "run", commands)
    assert release.main() == 0
    assert commands.made == targets((ROOT / "Makefile").read_text())
    assert "is ready. Next:" in capsys.readouterr().out


def test_a_release_stops_at_a_target_that_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = Commands(failing="test")
    monkeypatch.setattr(subprocess, "run", commands)
    assert release.main() == 2
    assert commands.made == ["check", "test"]
    assert capsys.readouterr().err == "make test failed, so there is nothing to release.\n"


def test_a_release_makes_nothing_from_a_changed_tree(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = Commands(changes=" M Makefile\n")
    monkeypatch.setattr(subprocess, "run", commands)
    assert release.main() == 1
    assert commands.made == []
    assert "The tree has changes" in capsys.readouterr().err
