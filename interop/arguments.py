"""What the Python clients are told: where the server is, how to speak to it, and what is expected of it."""

import argparse
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from interop import bookshop
from interop.checks import MODERN, Connect, Expected, check

Check = Callable[[Connect, type[Exception], Expected], Coroutine[Any, Any, None]]
PROGRAMS: dict[str, Check] = {"refund_desk": check, **bookshop.CHECKS}
"""What is checked of each program."""


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
        Expected(read.revision, any_refusal=read.any_refusal),
    )
