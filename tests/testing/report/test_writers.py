"""Where reports go: the output or a file, which is there as a whole or as it was."""

import os
import stat
from collections.abc import Callable, Sequence
from io import StringIO
from pathlib import Path

import pytest

from bespeak.testing.report.json_report import JsonReport
from bespeak.testing.report.junit_report import JunitReport
from bespeak.testing.report.pretty_report import PrettyReport
from bespeak.testing.report.writers import Writer, open_writers
from tests.testing.runs import FAILED, PASSED, RUN, written


def run(specs: Sequence[str], out: StringIO, colour: bool = False) -> None:
    for writer in open_writers(specs, out, colour):
        writer.started(2)
        writer.finished(PASSED)
        writer.finished(FAILED)
        writer.ended(RUN)


@pytest.mark.parametrize(
    ("specs", "kind"),
    [([], PrettyReport), (["pretty"], PrettyReport), (["json"], JsonReport), (["junit"], JunitReport)],
)
def test_a_report_without_a_file_goes_to_the_output_and_the_pretty_one_if_none_is_asked_for(
    specs: list[str], kind: Callable[[StringIO], Writer]
) -> None:
    out = StringIO()
    run(specs, out)

    assert out.getvalue() == written(kind, RUN)


def test_each_report_with_a_file_goes_there_and_its_folders_are_made(tmp_path: Path) -> None:
    forms: dict[str, Callable[[StringIO], Writer]] = {"pretty": PrettyReport, "json": JsonReport, "junit": JunitReport}
    out = StringIO()
    run([f"{form}={tmp_path}/a/{form}/report=1" for form in forms], out, colour=True)

    assert out.getvalue() == ""
    for form, kind in forms.items():
        assert [file.name for file in (tmp_path / "a" / form).iterdir()] == ["report=1"]
        assert (tmp_path / "a" / form / "report=1").read_bytes().decode() == written(kind, RUN)


@pytest.mark.parametrize("form", ["pretty", "json", "junit", "html"])
def test_nobody_else_may_read_a_report_in_a_file_not_even_one_that_everybody_could_read_before(
    form: str, tmp_path: Path
) -> None:
    file = tmp_path / "report"
    file.touch(0o644)
    before = os.umask(0)
    try:
        run([f"{form}={file}"], StringIO())
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_file_keeps_what_it_had_until_the_end_and_is_then_replaced_as_a_whole(tmp_path: Path) -> None:
    file = tmp_path / "report"
    file.write_text("before")
    (tmp_path / "link").symlink_to(file)
    with file.open() as reading:
        (writer,) = open_writers([f"pretty={tmp_path}/link"], StringIO(), colour=False)
        writer.finished(PASSED)
        assert file.read_text() == "before"
        writer.ended(RUN)
        assert reading.read() == "before"

    assert "1 failed" in file.read_text()
    assert (tmp_path / "link").is_symlink()


def test_a_report_that_cannot_be_written_at_the_end_leaves_nothing_behind(tmp_path: Path) -> None:
    (writer,) = open_writers([f"json={tmp_path}/report"], StringIO(), colour=False)
    (tmp_path / "report").mkdir()
    with pytest.raises(OSError, match="report"):
        writer.ended(RUN)

    assert [file.name for file in tmp_path.iterdir()] == ["report"]


@pytest.mark.parametrize("spec", ["", "xml", "json=", "=a", "JSON", "xml=a", "json:a", " json"])
def test_an_unknown_report_says_what_there_is(spec: str) -> None:
    with pytest.raises(
        ValueError, match=r"unknown report .*; reports are pretty, json, junit and html, each with or without a file"
    ):
        open_writers([spec], StringIO(), colour=False)


@pytest.mark.parametrize("file", [".", "file/report", "full/a", "loop/a", "a\0b", "x" * 300, "\ud800", "/dev/null"])
def test_a_file_that_cannot_be_written_is_reported_before_anything_runs(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    Path("full/a").mkdir(parents=True)
    Path("loop").symlink_to("loop")
    with pytest.raises(ValueError, match=r"^'json=.*' cannot be written: "):
        open_writers([f"json={file}"], StringIO(), colour=False)

    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "full", "loop"]


@pytest.mark.parametrize(
    "specs",
    [["json", "pretty"], ["pretty", "pretty"], ["junit", "json"], ["json=a", "junit=a"], ["json=a", "junit=b/../a"]],
)
def test_two_reports_do_not_go_to_the_same_place(
    specs: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        ValueError, match=r"two reports would be written to (standard output|.*a); give each its own file"
    ):
        open_writers(specs, StringIO(), colour=False)

    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("form", ["json", "junit", "html", "pretty"])
def test_a_report_never_replaces_a_suite(form: str, tmp_path: Path) -> None:
    suite = tmp_path / "a.bespeak.yaml"
    suite.write_text("version: 1")
    with pytest.raises(ValueError, match=rf"^'{form}=.*' would replace a suite; give the report another name$"):
        open_writers([f"{form}={suite}"], StringIO(), colour=False)
    assert suite.read_text() == "version: 1"
