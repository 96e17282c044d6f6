"""Targets: `FILE[:object]` or `module:object`, the server that a command uses."""

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from bespeak.server.server import MCPServer

NAMES = ("mcp", "server", "app")
"""The names of variables that are searched for a server if the target names none."""


class NoServer(Exception):
    """There is no server at a target. The message says what to write instead."""


def load(target: str) -> MCPServer[Any]:
    """Return the server at a target. Raises `NoServer`, and any exception of the file itself."""
    path, name = _split(target)
    if path.is_file():
        module = _load(path)
    elif name is not None and _is_module(str(path)):
        module = importlib.import_module(str(path))
    else:
        raise NoServer(f"there is no file {str(path)!r}; a target is FILE or FILE:OBJECT, such as server.py:mcp")
    found: dict[str, MCPServer[Any]] = {
        key: cast("MCPServer[Any]", value) for key, value in vars(module).items() if isinstance(value, MCPServer)
    }
    listed = ", ".join(found) or "none"
    if name is not None:
        if name not in found:
            raise NoServer(f"{path} has no MCPServer called {name!r}; it has {listed}")
        return found[name]
    if len({id(server) for server in found.values()}) == 1:
        return next(iter(found.values()))
    for usual in NAMES:
        if usual in found:
            return found[usual]
    if not found:
        raise NoServer(f"{path} has no MCPServer at its top level")
    raise NoServer(f"{path} has several servers ({listed}); say which: {path}:{next(iter(found))}")


def _split(target: str) -> tuple[Path, str | None]:
    head, colon, tail = target.rpartition(":")
    if colon and tail.isidentifier() and head:
        return Path(head), tail
    return Path(target), None


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _load(path: Path) -> ModuleType:
    """A file as a module, under the name it would have if it were imported: wire keys are made of it.

    A file inside a package is loaded as a part of that package, so that its own imports work.
    """
    path = path.resolve()
    root, parts = path.parent, [path.stem]
    while (root / "__init__.py").is_file():
        parts.insert(0, root.name)
        root = root.parent
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    name = ".".join(parts)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise NoServer(f"{path} is not a Python file")
    if len(parts) > 1:
        importlib.import_module(".".join(parts[:-1]))
    if name in sys.modules:
        if getattr(sys.modules[name], "__file__", None) != str(path):
            raise NoServer(f"{path} has the same name as a module that is already loaded, {name!r}; rename the file")
        return sys.modules[name]  # its package imports it
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
