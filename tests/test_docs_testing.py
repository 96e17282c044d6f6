"""The guide to testing: its files are written, its commands are run, and they print what the guide shows."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

GUIDE = Path(__file__).parent.parent / "docs" / "testing.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(language: str) -> list[str]:
    return [text for kind, text in BLOCK.findall(GUIDE.read_text()) if kind == language]


def commands(transcript: str) -> list[tuple[str, str]]:
    """Return each command of a transcript with the output that the transcript shows."""
    parts = re.split(r"^\$ ", transcript, flags=re.MULTILINE)[1:]
    return [(command, shown) for command, _, shown in (part.partition("\n") for part in parts)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the files of the guide to a folder. The first line of each is its name."""
    where = tmp_path_factory.mktemp("guide")
    for text in (*blocks("python"), *blocks("yaml")):
        named = re.match(r"# (\S+\.(?:py|yaml))\n", text)
        if named:
            (where / named[1]).write_text(text)
    return where


def test_the_guide_has_files_and_commands(folder: Path) -> None:
    assert len(list(folder.iterdir())) >= 6
    assert len(blocks("console")) >= 8


ON_NPM = "files.bespeak.yaml", "npx "
"""What transcripts say that need a server of npm."""


def of_npm(transcript: str) -> bool:
    return any(word in transcript for word in ON_NPM)


FIRST, *LATER = (one for one in blocks("console") if not of_npm(one))


def run(command: str, folder: Path, env: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command,
        shell=True,
        check=False,
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
    )


def environment() -> dict[str, str]:
    """Variables for commands that are run as a reader runs them."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = {**{name: value for name, value in os.environ.items() if name != "CI"}, "PATH": path}
    return {name: value for name, value in env.items() if not name.startswith(("PYTEST_", "COV_"))}


def check(command: str, shown: str, folder: Path, env: dict[str, str]) -> None:
    ran = run(command, folder, env)
    pattern = "".join(r".*?" if part == "..." else re.escape(part) for part in re.split(r"(\.\.\.)", shown))
    assert re.fullmatch(pattern, ran.stdout, re.DOTALL), ran.stdout + ran.stderr


@pytest.mark.timing
@pytest.mark.long
@pytest.mark.timeout(180)
def test_a_server_of_npm_is_tested_as_the_guide_shows(folder: Path) -> None:
    if not shutil.which("npx"):
        assert not os.environ.get("CI"), "node is missing"
        pytest.skip("needs node")
    for transcript in filter(of_npm, blocks("console")):
        for command, shown in commands(transcript):
            check(command, shown, folder, environment())
    drafted = (folder / "draft.bespeak.yaml").read_text()
    assert "    tool: write_file\n    skip: " in drafted


@pytest.mark.timing
@pytest.mark.parametrize(
    "transcript",
    [FIRST, *(pytest.param(one, marks=pytest.mark.long) for one in LATER)],
    ids=lambda text: str(text).partition("\n")[0][:60],
)
def test_a_command_prints_what_the_guide_shows(transcript: str, folder: Path) -> None:
    env = environment()
    for command, shown in commands(transcript):
        if command.startswith("export "):
            name, _, value = command.removeprefix("export ").partition("=")
            said = subprocess.run(f"echo {value}", shell=True, env=env, capture_output=True, text=True, check=True)
            env[name] = said.stdout.strip()
            continue
        check(command, shown, folder, env)
