"""The guide to testing: its files are written, its commands are run, and they print what the guide shows."""

import os
import shutil
from pathlib import Path

import pytest

from tests.transcripts import blocks, check_transcript, write_files

GUIDE = Path(__file__).parent.parent / "docs" / "testing.md"


def of_npm(transcript: str) -> bool:
    """Return whether a transcript needs a server of npm."""
    return "npx " in transcript or "files.bespeak.yaml" in transcript


FIRST, *LATER = (one for one in blocks(GUIDE, "console") if not of_npm(one))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("guide")
    write_files(GUIDE, where)
    return where


def test_the_guide_has_files_and_commands(folder: Path) -> None:
    assert len(list(folder.iterdir())) >= 6
    assert len(blocks(GUIDE, "console")) >= 8


@pytest.mark.timing
@pytest.mark.parametrize(
    "transcript",
    [FIRST, *(pytest.param(one, marks=pytest.mark.long) for one in LATER)],
    ids=lambda text: str(text).partition("\n")[0][:60],
)
def test_a_command_prints_what_the_guide_shows(transcript: str, folder: Path) -> None:
    check_transcript(transcript, folder)


@pytest.mark.timing
@pytest.mark.long
@pytest.mark.timeout(180)
def test_a_server_of_npm_is_tested_as_the_guide_shows(folder: Path) -> None:
    if not shutil.which("npx"):
        assert not os.environ.get("CI"), "node is missing"
        pytest.skip("needs node")
    for transcript in filter(of_npm, blocks(GUIDE, "console")):
        check_transcript(transcript, folder)
    assert "    tool: write_file\n    skip: " in (folder / "draft.bespeak.yaml").read_text()
