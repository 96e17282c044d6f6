"""What the Python clients are told: where the server is, how to speak to it, and what is expected of it."""

import argparse
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from interop import bookshop, briefings, sprint_board, trips
from interop.checks import MODERN, Connect, Expected, check

Check = Callable[[Connect, type[Exception], Expected], Coroutine[Any, Any, None]]
PROGRAMS: dict[str, Check] = {
    "refund_desk": check,
    "trip_desk": trips.check,
    "sprint_board": sprint_board.check,
    "briefing": briefings.check,
    **bookshop.CHECKS,
}
"""What is checked of each program."""
FILES = {
    "refund_desk": "examples/refund_desk/server.py",
    "trip_desk": "interop/trip_desk.py",
    "sprint_board": "examples/sprint_board/server.py",
    "briefing": "interop/briefing.py",
    **{name: f"examples/bookshop/{name}.py" for name in bookshop.CHECKS},
}
"""Where each program is, from the root of the project."""


@dataclass(frozen=True, slots=True)
class Given:
    """A command line, read."""

    url: str | None
    command: list[str]
    """How the server is started, without a URL."""
    mode: str
    check: Check
    expected: Expected


def given() -> Given:
    parser = argparse.ArgumentParser(description="A client that checks a server.")
    parser.add_argument("--mode", default="auto", help="how the client connects: auto, legacy, or a revision")
    parser.add_argument("--revision", default=MODERN, help="what the two must agree on")
    parser.add_argument("--program", choices=PROGRAMS, default="refund_desk", help="which of the examples is served")
    parser.add_argument(
        "--any-refusal", action="store_true", help="a client that cannot be asked may be refused in any way"
    )
    parser.add_argument(
        "--another-program", action="store_true", help="the server is not the program itself, but was written after it"
    )
    parser.add_argument("--no-subscriptions", action="store_true", help="the server does not tell what has changed")
    parser.add_argument("server", nargs=argparse.REMAINDER, help="a URL, or a command that starts a server on stdio")
    read = parser.parse_args()
    server: list[str] = read.server
    if not server:
        parser.error("no server is given")
    url = server[0] if server[0].startswith("http") else None
    return Given(
        url,
        [] if url else server,
        read.mode,
        PROGRAMS[read.program],
        Expected(
            read.revision,
            any_refusal=read.any_refusal,
            same_program=not read.another_program,
            subscriptions=not read.no_subscriptions,
        ),
    )
