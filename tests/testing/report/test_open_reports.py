"""Several reports of one run: each is written, whatever happens to the others."""

import os
from collections.abc import Generator
from pathlib import Path
from typing import TextIO

import pytest

from bespeak.testing.report.open_reports import Reports
from bespeak.testing.report.results import Result
from bespeak.testing.report.summary import Summary
from bespeak.testing.report.writers import open_writers

RESULT = Result("a.bespeak.yaml", 1, "a", None, None, "s", [])


@pytest.fixture
def unread() -> Generator[TextIO]:
    """Standard output that nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as stream:
        yield stream


def summary() -> Summary:
    return Summary([RESULT], 0, False, 1.0, [])


def test_a_report_that_nobody_reads_ends(unread: TextIO) -> None:
    reports = Reports(open_writers([], unread, colour=False), unread)
    assert reports.is_read
    reports.started(1)
    reports.finished(RESULT)
    assert not reports.is_read
    assert reports.ended(summary()) == []


def test_a_report_in_a_file_is_written_though_nobody_reads_the_other(unread: TextIO, tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    reports = Reports(open_writers(["pretty", f"json={file}"], unread, colour=False), unread)
    reports.started(1)
    reports.finished(RESULT)
    assert reports.is_read
    assert reports.ended(summary()) == []
    assert '"passed": 1' in file.read_text()


def test_a_report_that_is_written_at_the_end_is_not_an_error_if_nobody_reads_it(unread: TextIO) -> None:
    reports = Reports(open_writers(["json"], unread, colour=False), unread)
    reports.finished(RESULT)
    assert reports.ended(summary()) == []
    assert not reports.is_read


def test_a_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    with (tmp_path / "out").open("w") as out:
        reports = Reports(open_writers([f"json={file}"], out, colour=False), out)
        file.mkdir()
        (error,) = reports.ended(summary())
    assert isinstance(error, IsADirectoryError)
