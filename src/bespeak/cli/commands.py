"""What can be said on the command line, and what is done about it."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def bespeak() -> None:
    """MCP servers whose tools get what a model must never invent from your functions, and from people."""


@app.command()
def run(
    target: Annotated[str, typer.Argument(help="FILE or FILE:OBJECT, such as server.py:mcp", metavar="FILE[:OBJECT]")],
    http: Annotated[bool, typer.Option("--http", help="Listen for HTTP instead of speaking over stdio.")] = False,
    host: Annotated[str | None, typer.Option(help="Where to listen, with --http; 127.0.0.1 if not given.")] = None,
    port: Annotated[
        int | None, typer.Option(help="Where to listen, with --http; 8000 if not given.", min=1, max=65535)
    ] = None,
    path: Annotated[
        str | None, typer.Option(help="The path of the MCP endpoint, with --http; /mcp if not given.")
    ] = None,
    number: Annotated[
        int, typer.Option("--workers", help="How many processes share the work, with --http.", min=1)
    ] = 1,
    proxies: Annotated[
        list[str] | None,
        typer.Option(
            "--trusted-proxy",
            help="A proxy that is believed about its clients' addresses, with --http; may be repeated.",
            metavar="ADDRESS|NETWORK",
        ),
    ] = None,
) -> None:
    """Run a server: over stdio for the client that starts it, or over HTTP for many."""
    from bespeak.cli.run_command import Flags, run_server

    raise typer.Exit(run_server(Flags(target, http, host, port, path, number, proxies or [])))


@app.command("test")
def run_tests(
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="Suites (*.bespeak.yaml), or folders to look for them in.", metavar="FILE..."),
    ] = None,
    validate: Annotated[bool, typer.Option("--validate", help="Only check the suites; start no server.")] = False,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of suites.")] = False,
    init: Annotated[
        str | None, typer.Option("--init", help="Print a first suite for the tools of this server.", metavar="TARGET")
    ] = None,
    words: Annotated[
        str | None, typer.Option("-k", help="Only tests whose title has these words; and, or, not.", metavar="WORDS")
    ] = None,
    era: Annotated[str | None, typer.Option(help="Only at this revision; modern and legacy name the newest.")] = None,
    record: Annotated[
        str, typer.Option(help="When conversations are written to cassettes: none, once, new, rewrite.")
    ] = "none",
    cassettes: Annotated[
        Path | None, typer.Option(help="The folder of cassettes, whatever the suites say.", metavar="FOLDER")
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Hold recorded conversations with the live server, and compare.")
    ] = False,
    servers: Annotated[
        list[str] | None,
        typer.Option("--server", help="Use this server instead of the suite's of that name.", metavar="NAME=TARGET"),
    ] = None,
    reports: Annotated[
        list[str] | None,
        typer.Option("--report", help="pretty, json or junit, each also with =FILE.", metavar="FORM[=FILE]"),
    ] = None,
    first: Annotated[bool, typer.Option("-x", help="Stop at the first failure.")] = False,
    interactive: Annotated[
        bool, typer.Option("--interactive", help="Ask at the terminal first; without one, the fixture answers.")
    ] = False,
) -> None:
    """Hold the conversations of suites with the servers they name, and say what went otherwise.

    Ends with 0 if all passed, 1 if some failed, 2 for a bad suite or flag, 3 if a server cannot be reached, 4 for a
    cassette that is missing or stale, 5 if recording is refused, 7 if nothing was selected, 130 if interrupted.
    """
    from bespeak.cli.test_command import Flags, run_suites  # not before it is asked for: a server starts without it

    given = Flags(
        files or [],
        validate,
        schema,
        init,
        words,
        era,
        record,
        cassettes,
        verify,
        servers or [],
        reports or [],
        first,
        interactive,
    )
    raise typer.Exit(run_suites(given))


@app.command()
def call(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            help="A URL, FILE[:OBJECT] or a command in quotes; a tool; its arguments.",
            metavar="TARGET [TOOL [KEY=VALUE...]]",
        ),
    ] = None,
    arguments: Annotated[str | None, typer.Option("--arguments", help="All arguments, as a JSON object.")] = None,
    answers: Annotated[
        list[str] | None,
        typer.Option(
            "--answer", help="An answer, as a suite writes it, to be used before anybody is asked.", metavar="KEY=VALUE"
        ),
    ] = None,
    save: Annotated[
        Path | None, typer.Option("--save-answers", help="Write what was answered as an inputResponses: block.")
    ] = None,
    resume: Annotated[
        str | None,
        typer.Option(
            "--resume",
            help="Continue a call that waits for answers, with the server TARGET; - reads it from stdin.",
            metavar="FILE",
        ),
    ] = None,
    era: Annotated[
        str | None, typer.Option(help="The revision to speak: modern, legacy or one of them; found out if not given.")
    ] = None,
    rounds: Annotated[
        int | None, typer.Option("--max-rounds", help="How many rounds are answered at most; 10 if not given.", min=0)
    ] = None,
    seconds: Annotated[
        float, typer.Option("--timeout", help="Seconds a request may take, people's time not counted.")
    ] = 30.0,
    whole: Annotated[bool, typer.Option("--json", help="Print the whole result, as JSON.")] = False,
) -> None:
    """Call a tool, and ask at the terminal what it wants to know.

    The result is on stdout, the questions on stderr. Without a terminal, what is asked is printed as JSON with what is
    needed to go on: TARGET --resume FILE. Without a TARGET, the server that the file names must be confirmed at the terminal.
    Ends with 0, with 1 if the call failed, 2 for bad flags, 3 if the server cannot be reached, 6 if the
    call waits for answers, 130 if interrupted.
    """
    from bespeak.cli.call_command import Flags, call_tool

    given = Flags(words or [], arguments, answers or [], save, resume, era, rounds, seconds, whole)
    raise typer.Exit(call_tool(given))
