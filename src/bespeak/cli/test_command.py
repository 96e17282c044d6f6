"""`bespeak test`: find the suites, select tests, run them and write the reports."""

import difflib
import json
import os
import sys
import time
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from bespeak.cli.exit_codes import ExitCode
from bespeak.cli.output import complain, tell
from bespeak.cli.signals import run, stoppable
from bespeak.cli.unusable_runs import report_unusable
from bespeak.conversation.servers import CannotBeLoaded, Unreachable
from bespeak.terminal.prompt import Prompt, at_terminal
from bespeak.testing.cassettes.record_mode import RecordingRefused
from bespeak.testing.report.open_reports import Reports
from bespeak.testing.report.results import Kind, Result, gravest
from bespeak.testing.report.summary import Summary
from bespeak.testing.report.writers import Writer, open_writers
from bespeak.testing.run_options import Options, check_recordable, check_servers, make_options
from bespeak.testing.runner import Runner, run_items
from bespeak.testing.suite.drafts import draft
from bespeak.testing.suite.keyword_filter import keyword
from bespeak.testing.suite.loader import SUFFIX, BadSuite, Mistake, Suite, load_suite
from bespeak.testing.suite.plan import Item, at_era, for_profile, items_of, with_tags
from bespeak.testing.suite.suite_schema import json_schema
from bespeak.testing.suite.variables import Unknown, environment
from bespeak.testing.unused_files import Unused, unused_files
from bespeak.transports.interfaces import MissingExtra

ALL_SKIPPED = (
    "every test of this draft is skipped, because its tool may change something; check the arguments, then remove skip from a "
    "test to run it"
)


@dataclass(frozen=True, slots=True)
class Flags:
    """The command line of `bespeak test`."""

    files: Sequence[Path]
    validate: bool
    schema: bool
    init: str | None
    words: str | None
    tags: Sequence[str]
    not_tags: Sequence[str]
    era: str | None
    record: str
    cassettes: Path | None
    verify: bool
    servers: Sequence[str]
    reports: Sequence[str]
    first: bool
    interactive: bool
    durations: int | None = None
    prune: bool = False
    profile: str | None = None
    sends_unseen: bool = False


def run_suites(flags: Flags) -> int:
    """Run `bespeak test`. Return the exit code."""
    try:
        with stoppable():
            return _run_suites(flags)
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED


def _run_suites(flags: Flags) -> int:
    if flags.schema:
        print(json.dumps(json_schema(), indent=2))
        return 0
    try:
        if flags.init is not None:
            with redirect_stdout(sys.stderr):
                drafted = run(draft(flags.init, tell))
            print(drafted, end="")
            if _skips_all(drafted):
                tell(ALL_SKIPPED)
            return 0
        suites = _suites(flags.files or [Path()])
        nothing = "no tests were selected" if suites else _no_suites(flags.files)
        everything = [item for suite in suites for item in items_of(suite)]
        if flags.validate:
            if not suites:
                return complain(nothing, ExitCode.NOTHING_SELECTED)
            print(f"{_count(suites, 'suite')}, {_count(everything, 'test')}: no mistakes found")
            return 0
        options = make_options(
            record=flags.record,
            verify=flags.verify,
            cassettes=flags.cassettes,
            servers=flags.servers,
            era=flags.era,
            prompt=Prompt(confirms=not flags.sends_unseen) if flags.interactive and at_terminal() else None,
            profile=flags.profile,
        )
        if flags.prune:
            return _prune(unused_files(suites, options))
        check_servers(options, suites)
        check_recordable(options, suites)
        chosen = with_tags(_chosen(everything, flags.words, options.era), everything, flags.tags, flags.not_tags)
        chosen = for_profile(chosen, options.profile)
        _check_environment(suites, chosen)
        terminal = is_terminal(sys.stdout)
        counter = terminal and not flags.interactive and os.environ.get("TERM") != "dumb"
        reports = with_pretty(flags.reports)
        colour = terminal and not os.environ.get("NO_COLOR")
        writers = open_writers(reports, sys.stdout, colour, counter=counter, durations=flags.durations)
    except (BadSuite, ValueError, MissingExtra, RecordingRefused, Unreachable) as error:
        report_unusable(flags.reports, error, sys.stdout)
        return _complain(error)
    return _run(
        options,
        suites,
        chosen,
        len(everything) - len(chosen),
        writers,
        first=flags.first,
        nothing="" if suites and "pretty" in reports else nothing,  # that report says it
    )


def _skips_all(drafted: str) -> bool:
    lines = drafted.splitlines()
    tests, skips = (sum(line.startswith(begun) for line in lines) for begun in ("  - name: ", "    skip: "))
    return tests == skips


def _complain(error: Exception) -> int:
    """Say why no test is run. Return the exit code."""
    if isinstance(error, BadSuite):
        print(error, file=sys.stderr)
        return ExitCode.BAD_USAGE
    if isinstance(error, RecordingRefused):
        return complain(str(error), ExitCode.RECORDING_REFUSED)
    if isinstance(error, CannotBeLoaded):
        return complain(str(error), ExitCode.BAD_USAGE, error)
    if isinstance(error, Unreachable):
        return complain(str(error), ExitCode.UNREACHABLE, error)
    return complain(str(error), ExitCode.BAD_USAGE)


def with_pretty(reports: Sequence[str]) -> list[str]:
    """Return the reports to write: the pretty one too, unless another goes to standard output, or it has a file of its own."""
    is_there = any("=" not in spec or spec.startswith("pretty=") for spec in reports)
    return list(reports) if is_there else ["pretty", *reports]


def _prune(unused: Unused) -> int:
    """Remove cassettes and snapshots that no test uses, and say which."""
    told = list(unused)
    try:
        unused.remove()
    except OSError as error:
        return complain(f"a file could not be removed: {error}", ExitCode.BAD_USAGE)
    print("\n".join(f"removed {one}" for one in told) or "every cassette and snapshot is used")
    return 0


def is_terminal(stream: TextIO) -> bool:
    """Return whether people read what is written there, line by line."""
    return stream.isatty()


def _suites(given: Sequence[Path]) -> list[Suite]:
    """Load the given suites. Raises `BadSuite` with the mistakes of all of them."""
    suites: list[Suite] = []
    faults: list[Mistake] = []
    files = [file for path in given for file in (_inside(path) if path.is_dir() else [path])]
    for file in {file.resolve(): file for file in files}.values():
        if file.suffix == ".py":
            what = f"this is a Python file; a suite is called *{SUFFIX}. To print a first suite for a server, use --init {file}"
            faults.append(Mistake(file, 1, what))
            continue
        if not file.exists() and (near := _near(file)) is not None:
            faults.append(Mistake(file, 1, f"there is no such file; did you mean {str(near)!r}?"))
            continue
        try:
            suites.append(load_suite(file))
        except BadSuite as error:
            faults += error.faults
    if faults:
        raise BadSuite(faults)
    return suites


def _near(file: Path) -> Path | None:
    """The suite beside a missing file that was probably meant."""
    there = {one.name.removesuffix(SUFFIX): one for one in sorted(file.parent.glob(f"*{SUFFIX}"))}
    near = difflib.get_close_matches(file.name.partition(".")[0], there, 1)
    return there[near[0]] if near else None


def _no_suites(given: Sequence[Path]) -> str:
    where = ", ".join(map(str, given)) if given else "the current folder"
    return f"there are no suites (*{SUFFIX}) in {where}"


def _inside(folder: Path) -> list[Path]:
    """The suites in a folder, except in hidden folders and node_modules."""
    found = sorted(folder.rglob(f"*{SUFFIX}"))
    return [file for file in found if not any(_is_foreign(part) for part in file.relative_to(folder).parts[:-1])]


def _is_foreign(part: str) -> bool:
    return part.startswith(".") or part == "node_modules"


def _chosen(items: Sequence[Item], words: str | None, era: str | None) -> list[Item]:
    chosen = list(items) if era is None else at_era(items, era)
    meant = keyword(words) if words is not None else None
    return [item for item in chosen if meant is None or meant(item.title)]


def _check_environment(suites: Sequence[Suite], chosen: Sequence[Item]) -> None:
    for suite in suites:
        if any(item.suite is suite for item in chosen):
            try:
                environment(suite.needs)
            except Unknown as error:
                file, line = suite.place_of_variable(min(suite.needs - os.environ.keys()))
                raise ValueError(f"{file}:{line}: {error}") from None


def _run(
    options: Options,
    suites: Sequence[Suite],
    items: Sequence[Item],
    deselected: int,
    writers: Sequence[Writer],
    first: bool,
    nothing: str,
) -> int:
    """Run tests and write the reports. `pretty` says that the pretty report goes to standard output. Return the exit code."""
    began = time.perf_counter()
    results: list[Result] = []
    reports = Reports(writers, sys.stdout)

    def finished(result: Result) -> bool:
        results.append(result)
        reports.finished(result)
        return reports.is_read and (result.passed or not first)

    reports.started(len(items))
    interrupted, runner = False, Runner(options)
    try:
        with redirect_stdout(sys.stderr):  # what a server in this process prints is not part of a report
            if reports.is_read:
                run(run_items(runner, items, finished))
    except KeyboardInterrupt:
        interrupted = True
    interrupted = interrupted or (len(results) < len(items) and not reports.is_read)
    notes = [*runner.notes(), *unused_files(suites, options).notes()]
    summary = Summary(results, deselected, interrupted, time.perf_counter() - began, notes)
    code = exit_code_of(summary)
    for error in reports.ended(summary):
        code = code or ExitCode.BAD_USAGE
        print(f"bespeak: a report could not be written: {error}", file=sys.stderr)
    if not items and nothing:
        tell(nothing)
    return code


_BY_KIND = {
    Kind.FAILED: ExitCode.FAILED,
    Kind.SETUP: ExitCode.FAILED,
    Kind.UNUSABLE: ExitCode.BAD_USAGE,
    Kind.UNREACHABLE: ExitCode.UNREACHABLE,
    Kind.CASSETTE: ExitCode.STALE_CASSETTE,
}


def exit_code_of(summary: Summary) -> ExitCode:
    """Return the exit code of a run of tests."""
    if summary.interrupted:
        return ExitCode.INTERRUPTED
    if not summary.results:
        return ExitCode.NOTHING_SELECTED
    failures = [failure for result in summary.results if not result.passed for failure in result.failures]
    return _BY_KIND[gravest(failures).kind] if failures else ExitCode.OK


def _count(things: Sequence[object], noun: str) -> str:
    return f"{len(things)} {noun}{'' if len(things) == 1 else 's'}"
