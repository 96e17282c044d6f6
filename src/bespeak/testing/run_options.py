"""What holds for all tests of a run: said on a command line, and checked before anything is started."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bespeak.conversation.answer_sources import Asks
from bespeak.conversation.fixtures import has_snapshot
from bespeak.conversation.servers import described
from bespeak.testing.cassettes.record_mode import RecordMode, check_allowed
from bespeak.testing.suite.eras import revision
from bespeak.testing.suite.loader import Suite


@dataclass(frozen=True, slots=True)
class Options:
    """What holds for all tests of a run."""

    record: RecordMode = RecordMode.NONE
    verify: bool = False
    cassettes: Path | None = None
    """The folder of cassettes, instead of what suites say."""
    servers: Mapping[str, str] = field(default_factory=dict[str, str])
    """What to use instead of a suite's server of that name: another of its servers, or a target of the command line."""
    prompt: Asks | None = None
    """Somebody who is asked before the fixture is."""
    start: Path = field(default_factory=Path.cwd)
    """Where the run was started: paths in reports are relative to it."""
    era: str | None = None
    """The only revision to run at."""

    def flags(self) -> list[str]:
        """The flags of the command line that mean the same."""
        said = [f"--server={name}={target}" for name, target in self.servers.items()]
        said += [] if self.record is RecordMode.NONE else [f"--record={self.record}"]
        said += [] if self.era is None else [f"--era={self.era}"]
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
) -> Options:
    """Options as people say them. Raises `ValueError`, and `RecordingRefused`."""
    mode = RecordMode.named(record)
    if verify and mode is not RecordMode.NONE:
        raise ValueError("to verify is to compare with what was recorded; it does not go with recording")
    check_allowed(mode)
    named = dict(map(named_server, servers))
    return Options(mode, verify, cassettes, named, prompt, start or Path.cwd(), None if era is None else revision(era))


def check_servers(options: Options, suites: Sequence[Suite]) -> None:
    """Raises `ValueError` for a server that takes the place of none."""
    known = {name for suite in suites for name in suite.model.servers}
    for name in options.servers:
        if name not in known:
            raise ValueError(f"no suite has a server called {name!r}; there is {', '.join(sorted(known)) or 'none'}")


def named_server(given: str) -> tuple[str, str]:
    """A server that is to take the place of a suite's. Raises `ValueError`."""
    name, equals, target = given.partition("=")
    if not (name and equals and target):
        raise ValueError(f"a server is given as NAME=TARGET, not {given!r}")
    described(target)
    return name, target


def relative(path: Path, start: Path) -> str:
    """A path as short as it can be written from a folder."""
    try:
        return Path(os.path.relpath(path.resolve(), start.resolve())).as_posix()
    except ValueError:  # on another drive
        return path.resolve().as_posix()


def check_recordable(options: Options, suites: Sequence[Suite]) -> None:
    """Raises `ValueError` if something is to be recorded or compared, and there is no place for it."""
    for suite in suites:
        if options.cassettes is not None or suite.model.cassettes is not None:
            continue
        where = f"{relative(suite.path, options.start)} has no folder of cassettes; say cassettes: FOLDER there, or name one"
        if options.verify:
            raise ValueError(f"nothing can be verified: {where}")
        if options.record is not RecordMode.NONE and not has_snapshot(suite.document.value):
            raise ValueError(f"nothing can be recorded: {where}")
