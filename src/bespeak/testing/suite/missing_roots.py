"""The roots that a suite gives a server, and that do not exist."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bespeak.conversation.connection_answers import missing_roots
from bespeak.testing.suite.loader import Suite
from bespeak.testing.suite.variables import fill


def roots_not_there(
    suite: Suite, name: str, folder: Path, find: Callable[[str], Any]
) -> Iterator[tuple[Path, int, str]]:
    """Yield the roots of a server that do not exist, each with its file, its line and what is wrong."""
    for number, what in missing_roots(fill(suite.model.servers[name].roots or [], find), folder):
        place = ("servers", name, "roots", number)
        yield suite.file(*place), suite.line(*place), f"server {name!r}: {what}"
