"""What `bespeak test` says of a command line that a newcomer may type."""

from pathlib import Path

import pytest

from tests.cli.desks import bespeak, told


@pytest.mark.parametrize("name", ["shop.yaml", "shpo.bespeak.yaml", "shop"])
def test_a_missing_suite_beside_one_of_nearly_its_name_is_a_typing_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "shop.bespeak.yaml").touch()
    monkeypatch.chdir(tmp_path)
    said = f"{name}:1: there is no such file; did you mean 'shop.bespeak.yaml'?\n"
    assert told(bespeak("test", name), 2) == said


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["--init", "npx", "-y", "x"], "-y. A command with arguments goes in quotes: --init 'npx -y x'"),
        (
            ["--init", "node", "a.js", "--stdio"],
            "--stdio. A command with arguments goes in quotes: --init 'node a.js --stdio'",
        ),
        (["--lf"], "--lf. pytest has it, and runs suites too: pytest --lf"),
        (["--failed-first"], "--failed-first. pytest has it, and runs suites too: pytest --ff"),
        (["--sw"], "--sw. pytest has it, and runs suites too: pytest --sw"),
    ],
)
def test_an_option_of_something_else_is_told_where_it_belongs(words: list[str], meant: str) -> None:
    said = " ".join(told(bespeak("test", *words), 2).replace("│", " ").split())
    assert f"No such option: {meant}" in said


def test_an_option_that_there_is_not_is_only_that() -> None:
    said = told(bespeak("test", "--init", "server.py", "--nothing"), 2)
    assert "No such option: --nothing" in said
    assert "quotes" not in said
