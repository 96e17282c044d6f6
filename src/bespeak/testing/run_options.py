"""The options of a run of tests, checked before anything is started."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bespeak.conversation.answer_sources import Asks
from bespeak.conversation.connection_settings import revision
from bespeak.conversation.fixtures import has_snapshot
from bespeak.conversation.profiles.known_profiles import ChosenProfile, find_profile
from bespeak.conversation.server_targets import parse_target
from bespeak.testing.cassettes.record_mode import RecordMode, check_allowed
from bespeak.testing.suite.loader import Suite


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a run of tests."""

    record: RecordMode = RecordMode.NONE
    verify: bool = False
    cassettes: Path | None = None
    """The cassette folder, instead of the one that suites name."""
    servers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Replacements for a suite's servers, by name: another of its servers, or a target."""
    prompt: Asks | None = None
    """Asks a person first; `inputResponses` are used if there is none."""
    start: Path = field(default_factory=Path.cwd)
    """The folder in which the run was started. Paths in reports are relative to it."""
    era: str | None = None
    """The only revision to run at, if any."""
    profile: ChosenProfile | None = None
    """The client to play, if it is another than one that does everything right."""

    def flags(self) -> list[str]:
        """Return the flags of `bespeak test` that have the same effect."""
        said = [f"--server={name}={target}" for name, target in self.servers.items()]
        said += [] if self.record is RecordMode.NONE else [f"--record={self.record}"]
        said += [] if self.era is None else [f"--era={self.era}"]
        said += [] if self.profile is None else [f"--as={self.profile.given}"]
        said += [] if self.cassettes is None else [f"--cassettes={self.cassettes.as_posix()}"]
        said += ["--verify"] if self.verify else []
        return said + (["--interactive"] if self.prompt is not None else [])


def make_options(
    *,
    record: str,
    verify: bool,
    cassettes: Path | None,
    servers: Sequence[str],
    era: str | None,
    prompt: Asks | None = None,
    start: Path | None = None,
    profile: str | None = None,
) -> Options:
    """Read options as given on a command line. Raises `ValueError` and `RecordingRefused`."""
    mode = RecordMode.named(record)
    if verify and mode is not RecordMode.NONE:
        raise ValueError("verify compares with existing cassettes; it cannot be combined with recording")
    if profile is not None and (verify or cassettes is not None or mode is not RecordMode.NONE):
        raise ValueError(
            "--as runs against the live server; it cannot be combined with --record, --cassettes or --verify"
        )
    check_allowed(mode)
    named = dict(map(named_server, servers))
    return Options(
        mode,
        verify,
        cassettes,
        named,
        prompt,
        start or Path.cwd(),
        None if era is None else revision(era),
        None if profile is None else find_profile(profile),
    )


def check_servers(options: Options, suites: Sequence[Suite]) -> None:
    """Raises `ValueError` for a replacement of a server that no suite has."""
    known = {name for suite in suites for name in suite.model.servers}
    for name in options.servers:
        if name not in known:
            raise ValueError(f"no suite has a server called {name!r}; servers: {', '.join(sorted(known)) or '(none)'}")


def named_server(given: str) -> tuple[str, str]:
    """Read `NAME=TARGET`. Raises `ValueError`."""
    name, equals, target = given.partition("=")
    if not (name and equals and target):
        raise ValueError(f"a server must be NAME=TARGET, not {given!r}")
    parse_target(target)
    return name, target


def relative(path: Path, start: Path) -> str:
    """Return a path relative to a folder."""
    try:
        return Path(os.path.relpath(path.resolve(), start.resolve())).as_posix()
    except ValueError:  # on another drive
        return path.resolve().as_posix()


def check_recordable(options: Options, suites: Sequence[Suite]) -> None:
    """Raises `ValueError` if there is no cassette folder to record to or compare with."""
    for suite in suites:
        if options.cassettes is not None or suite.model.cassettes is not None:
            continue
        name = relative(suite.path, options.start)
        where = f"{name} does not name a cassette folder; add cassettes: FOLDER to it, or name one on the command line"
        if options.verify:
            raise ValueError(f"nothing can be verified: {where}")
        if options.record is not RecordMode.NONE and not has_snapshot(suite.document.value):
            raise ValueError(f"nothing can be recorded: {where}")
