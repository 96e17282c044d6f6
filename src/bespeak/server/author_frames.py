"""What an author needs to know of an exception in a file: the message, and the lines of the author's own code that led to it."""

import re
import sys
import sysconfig
import traceback
from pathlib import Path

import bespeak
from bespeak.resolve.errors import InvalidSignature
from bespeak.server.loading import RunWhileLoading

MOST_FRAMES = 5
"""How many lines are shown, the last ones. A recursion has a thousand."""


_RESOLVE_OF_CALL = re.compile(r"\bResolve\(\s*([\w.]+)\(")


def describe_failure(target: str, error: BaseException) -> str:
    """Return why a file cannot be loaded: what was raised, and where in the author's code."""
    if isinstance(error, InvalidSignature):
        return str(error)  # it has places of its own
    said = str(error) if not isinstance(error, SyntaxError) else error.msg
    if isinstance(error, RunWhileLoading):
        told = f"{target}: {said}"
    elif isinstance(error, SystemExit):
        told = f"{target} cannot be loaded: it ends the program ({type(error).__name__}: {said})"
    else:
        told = f"{target} cannot be loaded: {type(error).__name__}{f': {said}' if said else ''}{_instead(error)}"
    return "\n".join([told, *author_lines(error)])


def _instead(error: BaseException) -> str:
    """What to do about a module that is not there, or a resolver that was called."""
    if isinstance(error, TypeError):
        return _called_resolver(error)
    if not isinstance(error, ModuleNotFoundError) or not error.name:
        return ""
    package = error.name.partition(".")[0]
    if package == "bespeak":
        return (
            "; its public modules are bespeak, bespeak.server, bespeak.server.auth, bespeak.client and bespeak.testing"
        )
    if package in ("mcp", "fastmcp"):
        return "; to make it a server of Bespeak: from bespeak import MCPServer"
    return f"; is it installed beside bespeak, in {sys.prefix}?"


def _called_resolver(error: TypeError) -> str:
    """What to do if a function that needs arguments is called inside of `Resolve`."""
    last = traceback.extract_tb(error.__traceback__)[-1:]
    called = _RESOLVE_OF_CALL.search(last[0].line or "") if last else None
    if called is None:
        return ""
    name = re.escape(called[1].rpartition(".")[2])
    if not re.match(rf"(?:\S+\.)?{name}\(\) (?:missing|takes|got) ", str(error)):
        return ""
    return f"; pass the function itself, without parentheses: Resolve({called[1]})"


def author_lines(error: BaseException, *, only_own: bool = False) -> list[str]:
    """Return `  at file:line: code` for each frame of the author's own code.

    If there is none: for the last frame, or, with `only_own`, nothing.
    """
    frames = traceback.extract_tb(error.__traceback__)
    own = [one for one in frames if is_own(one.filename)] or ([] if only_own else frames[-1:])
    shown = [_line(one.filename, one.lineno, one.line) for one in own[-MOST_FRAMES:]]
    if isinstance(error, SyntaxError) and error.filename:
        shown = [_line(error.filename, error.lineno, (error.text or "").strip())]
    return shown


def _line(file: str, line: int | None, code: str | None) -> str:
    return f"  at {file}:{line}{f': {code}' if code else ''}"


def is_own(file: str) -> bool:
    """Whether a file is the author's: not of this package, the standard library or an installed package."""
    if file.startswith("<"):
        return False
    path = Path(file)
    return not any(path.is_relative_to(folder) for folder in _others())


def _others() -> list[Path]:
    ours = Path(str(bespeak.__file__)).parent
    installed = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    return [ours, *map(Path, sorted(installed))]
