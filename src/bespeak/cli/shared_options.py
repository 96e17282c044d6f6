"""Arguments and options that several commands have."""

from typing import Annotated

import typer

from bespeak.cli import shell_completions
from bespeak.cli.output import TRACEBACKS, ask_for_tracebacks

PythonTarget = Annotated[
    str,
    typer.Argument(
        help="FILE or MODULE, and the server in it, or a function that makes one, such as server.py:mcp",
        metavar="FILE[:OBJECT]",
    ),
]
"""A server that must be loaded."""
TARGETS = "a URL, FILE[:OBJECT], MODULE[:OBJECT] or a command in quotes"
AnyTarget = Annotated[str, typer.Argument(help=f"The server: {TARGETS}.", metavar="TARGET")]
Traceback = Annotated[
    bool,
    typer.Option(
        "--traceback",
        help=f"Show the whole traceback if the server's file fails. {TRACEBACKS}=1 does the same.",
        callback=ask_for_tracebacks,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Profile = Annotated[
    str | None,
    typer.Option(
        "--as",
        help="Play a client as it is in the wild: langgraph, claude-code, silent, impatient[=SECONDS], lossy, or a class "
        "of yours as MODULE:CLASS or FILE:CLASS.",
        metavar="PROFILE",
        autocompletion=shell_completions.profiles,
    ),
]
Headers = Annotated[
    list[str] | None,
    typer.Option(
        "--header",
        help="A header of every request to a URL. It is never printed. Can be repeated.",
        metavar="NAME:VALUE",
    ),
]
Era = Annotated[
    str | None,
    typer.Option(
        "--era",
        help="The protocol revision: modern, legacy or a date. Default: negotiated with the server.",
        metavar="REVISION",
        autocompletion=shell_completions.eras,
    ),
]
Seconds = Annotated[
    float,
    typer.Option(
        "--timeout",
        help="The timeout of a request in seconds. Time that people take to answer does not count.",
        metavar="SECONDS",
    ),
]
HttpPort = Annotated[
    int | None,
    typer.Option("--port", help="The port to listen on, with --http. Default: 8000.", metavar="PORT", min=1, max=65535),
]
