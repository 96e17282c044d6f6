"""The guide to testing: its files are written, its commands are run, and they print what the guide shows."""

from pathlib import Path

import pytest

from tests.transcripts import blocks, check_transcript, write_files

GUIDE = Path(__file__).parent.parent / "docs" / "testing.md"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("guide")
    write_files(GUIDE, where)
    return where


def test_the_guide_has_files_and_commands(folder: Path) -> None:
    assert len(list(folder.iterdir())) >= 6
    assert len(blocks(GUIDE, "console")) >= 8


FIRST, *LATER = blocks(GUIDE, "console")


@pytest.mark.timing
@pytest.mark.parametrize(
    "transcript",
    [FIRST, *(pytest.param(one, marks=pytest.mark.long) for one in LATER)],
    ids=lambda text: str(text).partition("\n")[0][:60],
)
def test_a_command_prints_what_the_guide_shows(transcript: str, folder: Path) -> None:
    check_transcript(transcript, folder)
