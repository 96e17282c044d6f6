"""`--report`: which reports are written, and where each goes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, TextIO

from bespeak.conversation.atomic_files import beside
from bespeak.testing.report.document import Document
from bespeak.testing.report.html_report import HtmlReport
from bespeak.testing.report.json_report import JsonReport
from bespeak.testing.report.junit_report import JunitReport
from bespeak.testing.report.pretty_report import PrettyReport
from bespeak.testing.report.results import Result
from bespeak.testing.report.summary import Summary
from bespeak.testing.suite.includes import SUFFIX


class Writer(Protocol):
    """One report. Its methods are called as the run proceeds."""

    def started(self, total: int) -> None: ...

    def finished(self, result: Result) -> None:
        """Called when a test has ended."""
        ...

    def ended(self, summary: Summary) -> None:
        """Called when the run has ended or was interrupted."""
        ...


def open_writers(
    specs: Sequence[str], out: TextIO, colour: bool, *, counter: bool = False, durations: int | None = None
) -> list[Writer]:
    """Return the requested writers, each given as `FORM` or `FORM=FILE`; by default the pretty one. Raises `ValueError`.

    `counter` and `durations` are for the pretty report.
    """
    specs = specs or ["pretty"]
    asked = [_read_spec(spec) for spec in specs]
    files = [file for _, file in asked]
    for file in files:
        if files.count(file) > 1:
            where = "standard output" if file is None else str(file)
            raise ValueError(f"two reports would be written to {where}; give each its own file, as in junit=report.xml")
    for spec, file in zip(specs, files, strict=True):
        if file is not None:
            _claim(spec, file)
    if durations is not None and not any(form == "pretty" for form, _ in asked):
        raise ValueError("--durations is for the pretty report; add --report pretty")
    return [
        PrettyReport(file or out, colour and file is None, counter and file is None, durations)
        if form == "pretty"
        else _DOCUMENTS[form](file or out)
        for form, file in asked
    ]


_DOCUMENTS: dict[str, type[Document]] = {"json": JsonReport, "junit": JunitReport, "html": HtmlReport}


def _read_spec(spec: str) -> tuple[str, Path | None]:
    form, named, file = spec.partition("=")
    if form not in ("pretty", *_DOCUMENTS) or bool(named) != bool(file):
        raise ValueError(
            f"unknown report {spec!r}; reports are pretty, json, junit and html, each with or without a file: json=FILE"
        )
    try:
        # The file that a link leads to: that file is replaced, and two names may lead to it.
        return form, Path(file).resolve() if file else None
    except (OSError, RuntimeError, ValueError) as error:
        raise ValueError(f"{spec!r} cannot be written: {error}") from None


def _claim(spec: str, file: Path) -> None:
    """Check before the run that the report can be written after it."""
    if file.name.endswith(SUFFIX):
        raise ValueError(f"{spec!r} would replace a suite; give the report another name")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.exists() and not file.is_file():
            raise ValueError(f"{spec!r} cannot be written: something else than a file exists there")
        with beside(file) as other:
            other.touch()
    except OSError as error:
        raise ValueError(f"{spec!r} cannot be written: {error.strerror or error}") from None
