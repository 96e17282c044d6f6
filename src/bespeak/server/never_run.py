"""A note at exit for a program that defines a server and ends without using it: `python server.py` would say nothing."""

import atexit
import inspect
import sys
import weakref
from pathlib import Path

_unused: "weakref.WeakKeyDictionary[object, str]" = weakref.WeakKeyDictionary()
"""The servers that the program defines at the top level of its own file, and has not used so far, each with the file's name."""


def defined(server: object) -> None:
    """Called by a server's constructor."""
    here = inspect.currentframe()
    maker = here and here.f_back and here.f_back.f_back
    program = vars(sys.modules["__main__"])
    file = program.get("__file__")  # Python removes it before the program exits
    if maker and maker.f_globals is program and maker.f_code.co_name == "<module>" and isinstance(file, str):
        atexit.unregister(tell)
        atexit.register(tell)
        _unused[server] = Path(file).name


def used(server: object) -> None:
    """Called when a server runs, becomes an app, becomes part of another server, or is used within the program."""
    _unused.pop(server, None)


def tell() -> None:
    """Print the note, unless the program failed, which says more, or a person goes on with it at a prompt."""
    if hasattr(sys, "last_value") or sys.flags.interactive:
        return
    names = {id(value): name for name, value in vars(sys.modules["__main__"]).items()}
    for server, file in _unused.items():
        if name := names.get(id(server)):
            note = f"{file} defines a server and does not run it. Type: bespeak run {file}, or add this at the end of the file:"
            sys.stderr.write(f'{note}\n\nif __name__ == "__main__":\n    {name}.run()\n')
            return
