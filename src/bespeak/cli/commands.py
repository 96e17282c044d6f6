"""What can be said on the command line, and what is done about it."""

import sys
from typing import Annotated, Any, NoReturn

import typer

from bespeak.cli import workers
from bespeak.cli.targets import NoServer, load
from bespeak.server.running import run_stdio
from bespeak.server.server import MCPServer
from bespeak.transports.transport import MissingExtra

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
) -> None:
    """Run a server: over stdio for the client that starts it, or over HTTP for many."""
    if path is not None and not path.startswith("/"):
        _refuse(f"--path must start with '/', unlike {path!r}")
    if not http and number > 1:
        _refuse("several workers need --http: over stdio there is one client")
    if not http and (host, port, path) != (None, None, None):
        _refuse("--host, --port and --path need --http")
    if not http:
        return run_stdio(lambda: _loaded(target))
    where = workers.Settings(target, host or "127.0.0.1", port or 8000, path or "/mcp")
    server = _loaded(target)  # for several workers too: what is wrong with it is said once, and not by each of them
    try:
        if number > 1:
            workers.run(where, number)
        else:
            server.run("streamable-http", host=where.host, port=where.port, streamable_http_path=where.path)
    except MissingExtra as error:
        _refuse(str(error))


def _loaded(target: str) -> MCPServer[Any]:
    try:
        return load(target)
    except NoServer as error:
        _refuse(str(error))


def _refuse(problem: str) -> NoReturn:
    print(f"bespeak: {problem}", file=sys.stderr)
    raise typer.Exit(2)
