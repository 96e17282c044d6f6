"""`bespeak mock`: serve recorded conversations to any client."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bespeak.cli.exit_codes import ExitCode
from bespeak.cli.output import complain, tell
from bespeak.testing.mock.mock_server import MockServer
from bespeak.testing.mock.tapes import NoCassette, load_tapes
from bespeak.transports.http.listening_address import listening_problem
from bespeak.transports.interfaces import MissingExtra

HOST = "127.0.0.1"
PORT = 8000


@dataclass(frozen=True, slots=True)
class Flags:
    """The command line of `bespeak mock`."""

    paths: Sequence[Path]
    http: bool
    port: int | None


def serve_recordings(flags: Flags) -> int:
    """Serve until it is stopped. Return the exit code."""
    if flags.port is not None and not flags.http:
        return complain("--port needs --http", ExitCode.BAD_USAGE)
    try:
        tapes = load_tapes(flags.paths)
    except NoCassette as error:
        return complain(str(error), ExitCode.STALE_CASSETTE)
    port = flags.port or PORT
    problem = listening_problem(HOST, port, "--port") if flags.http else None
    if problem is not None:
        return complain(problem, ExitCode.UNREACHABLE)
    server = MockServer(tapes)
    cassettes = "1 cassette" if len(tapes) == 1 else f"{len(tapes)} cassettes"
    where = f"at http://{HOST}:{port}/mcp" if flags.http else "on stdio"
    tell(f"serving {cassettes} ({', '.join(server.revisions)}) {where}")
    try:
        if flags.http:
            server.run("streamable-http", host=HOST, port=port)
        else:
            server.run()
    except MissingExtra as error:
        return complain(str(error), ExitCode.BAD_USAGE)
    return ExitCode.OK
