"""The answers of a suite's server to questions outside a call: its keys `roots` and `answers`."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bespeak.conversation.connection_answers import ConnectionAnswers, read_roots
from bespeak.conversation.fixtures import InputResponseFixture
from bespeak.protocol.versions import MODERN_PROTOCOL_VERSIONS
from bespeak.testing.suite.suite_file import Server
from bespeak.testing.suite.variables import DoesNotFit, fill, fill_answers, has_holes

ROOTS_NAME = "roots"
"""The name of a question for roots that has no key."""


def connection_answers(server: Server, folder: Path, find: Callable[[str], Any]) -> ConnectionAnswers:
    """Return the answers, with their placeholders filled. Raises `DoesNotFit` and `Unknown`."""
    try:
        roots = None if server.roots is None else read_roots(fill(server.roots, find), folder)
        return ConnectionAnswers(roots, InputResponseFixture(fill_answers(server.answers, find)))
    except ValueError:
        raise DoesNotFit(
            "a value of the environment does not fit where roots or answers of the server use it"
        ) from None


def mistakes_in_roots(server: Server) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield the mistakes in the roots of a server, each with its place below the server."""
    for number, root in enumerate(server.roots or ()):
        try:
            if not has_holes(root):
                read_roots([root], Path())
        except ValueError as error:
            yield ("roots", number), str(error)
    answers: Any = server.answers
    if server.roots is not None and isinstance(answers, dict) and ROOTS_NAME in answers:
        yield ("answers", "roots"), "roots and answers both give the roots; use one"
    for name in ("roots", "answers"):
        if getattr(server, name) is None:
            continue
        if server.protocol in MODERN_PROTOCOL_VERSIONS:
            yield (name,), f"at {server.protocol} a server asks only in calls; answer it in the tests"
        elif name == "roots" and server.declare is not None and "roots" not in server.declare:
            yield (name,), "declare has no roots, so the server must not ask for them; add roots: {} to it"
