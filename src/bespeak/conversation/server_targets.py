"""Targets: the server that a command line or a suite names, and how it is reached."""

import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bespeak.conversation.connection_settings import TIMEOUT_SECONDS
from bespeak.server.targets import is_module, near_file


@dataclass(frozen=True, slots=True)
class Target:
    """How a server is reached: by a command over stdio, by a URL, by both, or as an object in this process."""

    command: Sequence[str] | None = None
    """Starts the server; it speaks over stdio, unless there is a URL."""
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    cwd: str | None = None
    url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    python: str | None = None
    """FILE[:OBJECT] or MODULE[:OBJECT], a server in this process. OBJECT is a server, or makes one."""
    timeout: float = TIMEOUT_SECONDS
    """How long a request may take while the connection is opened, in seconds."""
    name: str = ""
    """What a suite calls the server, for messages."""


def parse_target(target: str) -> Target:
    """Parse a target of the command line: a URL, FILE[:OBJECT], MODULE[:OBJECT], or a command in one argument."""
    if re.match(r"https?://", target, re.IGNORECASE):
        return Target(url=target)
    if scheme := re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", target):
        raise ValueError(f"a server is reached by http:// or https://, not by {scheme[0]}")
    path = target.rpartition(":")[0] if not target.endswith(".py") else target
    if path.endswith(".py") and (len(target.split()) == 1 or _is_file(path)):
        return Target(python=target)
    if _is_module_object(target):
        return Target(python=target)
    try:
        words = shlex.split(target)
    except ValueError as error:
        raise ValueError(f"{target!r} is not a valid command: {error}") from None
    if len(words) == 1 and _is_address(words[0]):
        raise ValueError(f"{target!r} is a URL without its scheme; write http://{target} or https://{target}")
    if len(words) == 1 and shutil.which(words[0]) is None and not _is_file(words[0]) and _means_python(words[0]):
        return Target(python=target)
    if not words:
        raise ValueError("a target is a URL, FILE[:OBJECT], MODULE[:OBJECT], or a command in quotes")
    return Target(command=words)


_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+)(:[0-9]+(/\S*)?|(/\S*)?)")


def _is_address(word: str) -> bool:
    """Whether a word is a host with a port or a path, and not a command."""
    found = _ADDRESS.fullmatch(word)
    if found is None or _is_file(word) or shutil.which(word) is not None:
        return False
    host, rest = found[1], found[2]
    return (
        rest.startswith(":") or host.startswith("[") or host == "localhost" or (bool(rest) and "." in host.strip("."))
    )


def _is_file(path: str) -> bool:
    try:
        return Path(path).is_file()
    except OSError:  # too long to be one
        return False


def _means_python(word: str) -> bool:
    """Whether a word that is not a command names a module, a folder or nearly a Python file."""
    try:
        return is_module(word) or Path(word).is_dir() or near_file(Path(word)) is not None
    except OSError:  # too long to be one
        return False


def _is_module_object(target: str) -> bool:
    module, colon, name = target.rpartition(":")
    return bool(colon) and name.isidentifier() and all(part.isidentifier() for part in module.split("."))
