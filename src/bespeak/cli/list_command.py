"""`bespeak list`: the tools, prompts, resources and templates of a server, each with its parameters."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic_core import to_json

from bespeak.cli.call_flags import BadFlags, read_headers
from bespeak.cli.exit_codes import ExitCode
from bespeak.cli.listing import KINDS, Listed, as_json, listed_from_code, listed_from_wire, show
from bespeak.cli.output import complain, tell
from bespeak.cli.signals import run
from bespeak.cli.target_server import server_of
from bespeak.client.errors import InvalidServerResponse
from bespeak.conversation.connection import Connection
from bespeak.conversation.connection_pool import Pool, Wanted
from bespeak.conversation.connection_settings import EVERYTHING, mode_of
from bespeak.conversation.feature_list import list_all
from bespeak.conversation.server_targets import Target, parse_target
from bespeak.conversation.servers import Unreachable
from bespeak.protocol.errors import METHOD_NOT_FOUND, MCPError
from bespeak.server.targets import NoServer
from bespeak.server.unmarked_parameters import unmarked_parameters
from bespeak.server.unused_askers import unused_askers

LONGEST_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class Flags:
    """The command line of `bespeak list`."""

    target: str
    era: str | None
    headers: Sequence[str]
    seconds: float
    whole: bool
    """Whether the list is printed as JSON."""


def list_server(flags: Flags) -> int:
    """Print what a server has. Return the exit code."""
    try:
        target = _target(flags)
        listed = _loaded(flags, target.python) if target.python is not None else run(_asked(flags, target))
    except (BadFlags, NoServer, ValueError) as error:
        return complain(str(error), ExitCode.BAD_USAGE, error)
    except Unreachable as error:
        return complain(str(error), ExitCode.UNREACHABLE, error)
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return ExitCode.INTERRUPTED
    if flags.whole:
        sys.stdout.write(to_json(as_json(listed), indent=2).decode() + "\n")
    elif listed:
        show(listed, sys.stdout)
    else:
        tell(f"{flags.target} has no tools, prompts or resources")
    return ExitCode.OK


def _target(flags: Flags) -> Target:
    if not 0 < flags.seconds <= LONGEST_SECONDS:
        raise BadFlags(f"--timeout must be more than 0 and at most {LONGEST_SECONDS} seconds")
    target, headers = parse_target(flags.target), read_headers(flags.headers)
    if headers and target.url is None:
        raise BadFlags("--header is for a server with a URL")
    return replace(target, headers=headers)


def _loaded(flags: Flags, target: str) -> list[Listed]:
    mode_of(flags.era or "auto")  # it has no effect here, but may be misspelled
    registered = server_of(target).registered
    for one in (*unmarked_parameters(registered), *unused_askers(registered)):
        tell(f"warning: {one}")
    return [listed_from_code(one) for one in registered]


async def _asked(flags: Flags, target: Target) -> list[Listed]:
    pool = Pool()
    try:
        wanted = Wanted("", target, Path.cwd(), mode_of(flags.era or "auto"), dict(EVERYTHING), flags.seconds)
        connection = await pool.connection(wanted)
        return [one for kind in KINDS for one in await _of_kind(connection, kind)]
    except (OSError, InvalidServerResponse) as error:
        raise Unreachable(f"the server did not list what it has: {error}") from error
    finally:
        await pool.close()


async def _of_kind(connection: Connection, kind: str) -> list[Listed]:
    heading, member, method, *_ = KINDS[kind]
    found: list[Listed | None] = []
    try:
        async for wire in list_all(connection.session, method, member):
            found.append(listed_from_wire(kind, wire))
    except MCPError as error:
        if error.code != METHOD_NOT_FOUND:  # a server without any need not know the method
            tell(f"{heading} could not be listed: {error}")
    return [one for one in found if one is not None]
