"""`--report`: which reports are written, and where each goes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, TextIO

from bespeak.conversation.results import Result
from bespeak.testing.atomic_files import beside
from bespeak.testing.report.json_report import JsonReport
from bespeak.testing.report.junit_report import JunitReport
from bespeak.testing.report.pretty_report import PrettyReport
from bespeak.testing.report.summary import Summary


class Writer(Protocol):
    """One form of report. It is told what happens, as it happens."""

    def started(self, total: int) -> None: ...

    def finished(self, result: Result) -> None:
        """One test, case and era is over."""
        ...

    def ended(self, summary: Summary) -> None:
        """The run is over, or was interrupted."""
        ...


def open_writers(specs: Sequence[str], out: TextIO, colour: bool) -> list[Writer]:
    """The writers that were asked for, each as `FORM` or `FORM=FILE`; the pretty one if none was. Raises `ValueError`."""
    specs = specs or ["pretty"]
    asked = [_read_spec(spec) for spec in specs]
    files = [file for _, file in asked]
    for file in files:
        if files.count(file) > 1:
            where = "the output" if file is None else str(file)
            raise ValueError(f"two reports would go to {where}; give each a file of its own, as in junit=report.xml")
    for spec, file in zip(specs, files, strict=True):
        if file is not None:
            _claim(spec, file)
    return [_open(form, file or out, colour and file is None) for form, file in asked]


def _read_spec(spec: str) -> tuple[str, Path | None]:
    form, named, file = spec.partition("=")
    if form not in ("pretty", "json", "junit") or bool(named) != bool(file):
        raise ValueError(
            f"there is no report {spec!r}; there is pretty, json and junit, and each with a file: json=FILE"
        )
    try:
        # The file itself, should its name be a link: that is what is replaced, and what two names may share.
        return form, Path(file).resolve() if file else None
    except (OSError, RuntimeError, ValueError) as error:
        raise ValueError(f"{spec!r} cannot be written: {error}") from None


def _open(form: str, place: Path | TextIO, colour: bool) -> Writer:
    if form == "pretty":
        return PrettyReport(place, colour)
    return JsonReport(place) if form == "json" else JunitReport(place)


def _claim(spec: str, file: Path) -> None:
    """Makes sure, before anything runs, that the report can be written when all has."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.exists() and not file.is_file():
            raise ValueError(f"{spec!r} cannot be written: there is something else than a file at that place")
        with beside(file) as other:
            other.touch()
    except OSError as error:
        raise ValueError(f"{spec!r} cannot be written: {error.strerror or error}") from None
