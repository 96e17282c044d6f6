"""The commands, arguments and options of `bespeak`, with their help texts."""

from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from bespeak.cli import shell_completions, test_options
from bespeak.cli.help_texts import Command, Group
from bespeak.cli.option_hints import SuiteCommand, ToolCallCommand
from bespeak.cli.shared_options import (
    TARGETS,
    AnyTarget,
    Era,
    Headers,
    HttpPort,
    Json,
    Profile,
    PythonTarget,
    Seconds,
    Traceback,
)

app = typer.Typer(cls=Group, no_args_is_help=True, pretty_exceptions_enable=False)
keys = typer.Typer(cls=Group, no_args_is_help=True, help="Make and replace state keys.")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"bespeak {import_module('bespeak').__version__}")
        raise typer.Exit


@app.callback()
def bespeak(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Run, call, list, check and test MCP servers, and make their state keys."""


@app.command(cls=Command)
def run(
    target: PythonTarget,
    http: Annotated[bool, typer.Option("--http", help="Serve over HTTP instead of stdio.")] = False,
    host: Annotated[
        str | None, typer.Option(help="The address to listen on, with --http. Default: 127.0.0.1.", metavar="ADDRESS")
    ] = None,
    port: HttpPort = None,
    path: Annotated[
        str | None, typer.Option(help="The path of the MCP endpoint, with --http. Default: /mcp.", metavar="PATH")
    ] = None,
    number: Annotated[
        int, typer.Option("--workers", help="The number of worker processes, with --http.", metavar="NUMBER", min=1)
    ] = 1,
    proxies: Annotated[
        list[str] | None,
        typer.Option(
            "--trusted-proxy",
            help="A proxy whose forwarded client addresses are trusted, with --http. Can be repeated.",
            metavar="ADDRESS|NETWORK",
        ),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            help="Where spent approvals are remembered: sqlite:/path/to/file or redis://host:port/0. Default: BESPEAK_STORE, "
            "or a store of this run.",
            metavar="URL",
        ),
    ] = None,
    traceback: Traceback = False,
) -> None:
    """Run a server over stdio, or over HTTP with --http.

    Exit codes: 0 it was stopped, 1 an approved call was cut off, 2 an option or the file is wrong, 3 the server cannot start.
    """
    from bespeak.cli.run_command import Flags, run_server

    raise typer.Exit(run_server(Flags(target, http, host, port, path, number, proxies or [], store)))


@app.command(cls=Command)
def dev(
    target: PythonTarget,
    port: Annotated[
        int | None, typer.Option(help="The port to listen on. Default: 8000.", metavar="PORT", min=1, max=65535)
    ] = None,
    inspector: Annotated[
        bool,
        typer.Option("--inspector", help="Start the official MCP Inspector as well. It needs node 22.19 or newer."),
    ] = False,
    traceback: Traceback = False,
) -> None:
    """Serve a server over HTTP at 127.0.0.1, restart it when its source changes, and show a page to try it.

    Prints the URL of the endpoint, the URL of the page, and a line for each round of a call.

    Exit codes: 0 it was stopped, 1 an approved call was cut off, 2 an option or the file is wrong, 3 the server cannot start.
    """
    from bespeak.cli.dev_command import Flags, develop

    raise typer.Exit(develop(Flags(target, port, inspector)))


@app.command("test", cls=SuiteCommand)
def run_tests(
    files: test_options.Files = None,
    validate: test_options.Validate = False,
    schema: test_options.Schema = False,
    init: test_options.Init = None,
    words: test_options.Words = None,
    tags: test_options.Tags = None,
    not_tags: test_options.NotTags = None,
    era: test_options.Era = None,
    record: test_options.Record = "none",
    cassettes: test_options.Cassettes = None,
    verify: test_options.Verify = False,
    servers: test_options.Servers = None,
    reports: test_options.Reports = None,
    first: test_options.First = False,
    prune: test_options.Prune = False,
    durations: test_options.Durations = None,
    interactive: test_options.Interactive = False,
    profile: Profile = None,
    sends_unseen: test_options.SendsUnseen = False,
    traceback: Traceback = False,
) -> None:
    """Run test suites and report failures.

    Exit codes: 0 all tests passed, 1 a test failed, 2 a suite or option is wrong, 3 a server cannot be reached, 4 a cassette is
    missing or stale, 5 recording is refused, 7 no tests were selected, 130 interrupted.
    """
    from bespeak.cli.test_command import Flags, run_suites  # imported late: a server starts without it

    given = Flags(
        files or [],
        validate,
        schema,
        init,
        words,
        tags or [],
        not_tags or [],
        era,
        record,
        cassettes,
        verify,
        servers or [],
        reports or [],
        first,
        interactive,
        durations,
        prune,
        profile,
        sends_unseen,
    )
    raise typer.Exit(run_suites(given))


@app.command(cls=ToolCallCommand)
def call(
    target: Annotated[str | None, typer.Argument(help=f"The server: {TARGETS}.", metavar="TARGET")] = None,
    tool: Annotated[
        str | None,
        typer.Argument(help="The tool. Without it, the tools are listed, and the exit code is 2.", metavar="TOOL"),
    ] = None,
    pairs: Annotated[list[str] | None, typer.Argument(help="The arguments of the tool.", metavar="KEY=VALUE")] = None,
    arguments: Annotated[
        str | None, typer.Option("--arguments", help="All arguments as a JSON object.", metavar="JSON")
    ] = None,
    answers: Annotated[
        list[str] | None,
        typer.Option(
            "--answer",
            help="An answer to a question: JSON, as in a suite, or plain text. It is used instead of asking. Can be repeated.",
            metavar="KEY=VALUE",
        ),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            "--save-answers", help="Write the answers to a file, as the inputResponses of a suite.", metavar="FILE"
        ),
    ] = None,
    resume: Annotated[
        str | None,
        typer.Option(
            "--resume",
            help="Continue a call that is waiting for answers, with the server TARGET. - reads stdin.",
            metavar="FILE",
        ),
    ] = None,
    era: Era = None,
    rounds: Annotated[
        int | None,
        typer.Option(
            "--max-rounds", help="The maximum number of rounds to answer. Default: 10.", metavar="NUMBER", min=0
        ),
    ] = None,
    seconds: Seconds = 30.0,
    whole: Annotated[bool, typer.Option("--json", help="Print the whole result as JSON.")] = False,
    profile: Profile = None,
    headers: Headers = None,
    roots: Annotated[
        list[str] | None,
        typer.Option(
            "--root",
            help="A folder that the server may know about, for servers that ask outside the call. Default: none. Can be repeated.",
            metavar="PATH",
        ),
    ] = None,
    sends_unseen: Annotated[
        bool, typer.Option("--yes", help="Send what you type without showing it once more.")
    ] = False,
    traceback: Traceback = False,
) -> None:
    """Call a tool, and answer its questions at the terminal.

    The result is printed on stdout, the questions on stderr. Without a terminal, the open questions are printed as JSON; save
    it to a file and continue with TARGET --resume FILE. Without TARGET, you must confirm the server that the file names.

    Exit codes: 0 success, 1 the call failed, 2 an option or the file is wrong, 3 the server cannot be reached, 6 the call is
    waiting for answers, 130 interrupted.
    """
    from bespeak.cli.call_command import call_tool
    from bespeak.cli.call_flags import Flags

    given = Flags(
        [word for word in (target, tool, *(pairs or [])) if word is not None],
        arguments,
        answers or [],
        save,
        resume,
        era,
        rounds,
        seconds,
        whole,
        headers or [],
        roots or [],
        sends_unseen,
        profile,
    )
    raise typer.Exit(call_tool(given))


@app.command("list", cls=Command)
def list_everything(
    target: AnyTarget,
    era: Era = None,
    headers: Headers = None,
    seconds: Seconds = 30.0,
    whole: Json = False,
    traceback: Traceback = False,
) -> None:
    """List the tools, prompts and resources of a server, each with its parameters.

    If the server is Python code to load, the list also says who fills each parameter: the model, a resolver that computes, or a
    resolver that asks. Such a server is loaded, but not started.

    Exit codes: 0 success, 2 an option or the file is wrong, 3 the server cannot be reached, 130 interrupted.
    """
    from bespeak.cli.list_command import Flags, list_server

    raise typer.Exit(list_server(Flags(target, era, headers or [], seconds, whole)))


@app.command(cls=Command)
def check(target: PythonTarget, whole: Json = False, traceback: Traceback = False) -> None:
    """Load a server, and report every error in the signatures of its tools, prompts, resources and resolvers.

    Exit codes: 0 there are no errors, 1 there are errors, 2 the file or an option is wrong.
    """
    from bespeak.cli.check_command import Flags, check_server

    raise typer.Exit(check_server(Flags(target, whole)))


@app.command(cls=Command)
def mock(
    cassettes: Annotated[
        list[Path], typer.Argument(help="Cassettes, or folders that contain cassettes.", metavar="CASSETTE")
    ],
    http: Annotated[bool, typer.Option("--http", help="Serve over HTTP at 127.0.0.1 instead of stdio.")] = False,
    port: HttpPort = None,
) -> None:
    """Serve recorded conversations to any client, over stdio or HTTP.

    A request that was not recorded gets an error that says where it differs from the recording.

    Exit codes: 0 it was stopped, 2 an option is wrong, 3 it cannot listen, 4 a cassette is missing or cannot be read.
    """
    from bespeak.cli.mock_command import Flags, serve_recordings

    raise typer.Exit(serve_recordings(Flags(cassettes, http, port)))


@app.command(cls=Command)
def graph(
    target: PythonTarget,
    name: Annotated[
        str | None, typer.Argument(help="A tool, prompt or resource. Default: all of them.", metavar="NAME")
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            help="tree, mermaid, svg or json. Default: tree.", metavar="FORM", autocompletion=shell_completions.forms
        ),
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.", metavar="FILE")] = None,
    whole: Json = False,
    traceback: Traceback = False,
) -> None:
    """Draw who fills each parameter: the model, a resolver that computes, or a resolver that asks, and in which round.

    Also says how many rounds a call can take, and which capabilities its client needs. The server is loaded, but not started.

    Exit codes: 0 success, 2 the file, the name or an option is wrong.
    """
    from bespeak.cli.graph_command import Flags, draw_graphs

    raise typer.Exit(draw_graphs(Flags(target, name, form, output, whole)))


@keys.command("new", cls=Command)
def new_key() -> None:
    """Print a new state key, for the environment variable BESPEAK_STATE_KEYS.

    Exit codes: 0 success, 2 an option is wrong.
    """
    from bespeak.cli.keys_command import print_new_key

    raise typer.Exit(print_new_key())


@keys.command("rotate", cls=Command)
def rotate_keys() -> None:
    """Print how to replace the keys in BESPEAK_STATE_KEYS while servers run.

    Each line on stdout is a value to set, or a comment that begins with #.

    Exit codes: 0 success, 2 BESPEAK_STATE_KEYS is not set or has an invalid key, or an option is wrong.
    """
    from bespeak.cli.keys_command import print_rotation

    raise typer.Exit(print_rotation())


app.add_typer(keys, name="keys")
