"""The arguments and options of `bespeak test`, with their help texts."""

from pathlib import Path
from typing import Annotated

import typer

from bespeak.cli import shell_completions
from bespeak.cli.shared_options import TARGETS

Files = Annotated[
    list[Path] | None,
    typer.Argument(help="Suites (*.bespeak.yaml), or folders that contain suites.", metavar="FILE"),
]
Validate = Annotated[bool, typer.Option("--validate", help="Check the suites without starting a server.")]
Schema = Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of suite files.")]
Init = Annotated[
    str | None,
    typer.Option("--init", help=f"Print a first suite for the tools of a server: {TARGETS}.", metavar="TARGET"),
]
Words = Annotated[
    str | None,
    typer.Option(
        "-k", help="Run only tests whose title matches; supports and, or, not and parentheses.", metavar="WORDS"
    ),
]
Tags = Annotated[
    list[str] | None,
    typer.Option("--tag", help="Run only tests with this tag. Repeat it for tests with any of them.", metavar="NAME"),
]
NotTags = Annotated[
    list[str] | None,
    typer.Option("--not-tag", help="Leave out tests with this tag. Can be repeated.", metavar="NAME"),
]
Era = Annotated[
    str | None,
    typer.Option(
        help="Run tests at this revision only; modern and legacy mean the newest of each.",
        metavar="REVISION",
        autocompletion=shell_completions.eras,
    ),
]
Record = Annotated[
    str,
    typer.Option(
        help="When to record cassettes: none, once, new or rewrite.",
        metavar="MODE",
        autocompletion=shell_completions.record_modes,
    ),
]
Cassettes = Annotated[
    Path | None, typer.Option(help="The cassette folder, instead of the one in the suites.", metavar="FOLDER")
]
Verify = Annotated[bool, typer.Option("--verify", help="Run against the live server and compare with the cassettes.")]
Servers = Annotated[
    list[str] | None,
    typer.Option("--server", help="Use this server instead of the suite's server NAME.", metavar="NAME=TARGET"),
]
Reports = Annotated[
    list[str] | None,
    typer.Option(
        "--report",
        help="The report to write: pretty, json, junit or html, with or without a file. Can be repeated.",
        metavar="FORM[=FILE]",
    ),
]
First = Annotated[bool, typer.Option("-x", help="Stop after the first failure.")]
Prune = Annotated[
    bool, typer.Option("--prune", help="Remove cassettes and snapshots that no test uses. No tests are run.")
]
Durations = Annotated[
    int | None,
    typer.Option(help="Show durations, and list the N slowest tests; 0 lists all.", metavar="N", min=0),
]
Interactive = Annotated[
    bool,
    typer.Option(
        "--interactive", help="Ask the questions at the terminal. Without a terminal, inputResponses are used."
    ),
]
SendsUnseen = Annotated[
    bool, typer.Option("--yes", help="With --interactive: send what you type without showing it once more.")
]
