"""Targets: `FILE[:OBJECT]` or `MODULE[:OBJECT]`, the Python server that a command uses. OBJECT is a server, or makes one."""

import difflib
import importlib
import importlib.util
import inspect
import re
import shlex
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from bespeak.resolve.errors import InvalidSignature
from bespeak.server.author_frames import describe_failure
from bespeak.server.loading import explained, loading
from bespeak.server.server import MCPServer

NAMES = ("mcp", "server", "app")
"""The names of variables that are searched for a server if the target names none."""
SYNTAX = "FILE[:OBJECT] or MODULE[:OBJECT], such as server.py:mcp"
_FOREIGN = ("FastMCP", "MCPServer", "Server")
"""The classes of servers in other packages for MCP."""
_CHECK = "bespeak check {target} shows the errors of all functions"
_ASGI = ["scope", "receive", "send"]
"""The parameters of an ASGI app."""
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


class NoServer(Exception):
    """There is no server at a target. The message says what to write instead."""


class CannotLoad(NoServer):
    """The file or module of a target raises an exception. `__cause__` is that exception."""


def load(target: str) -> MCPServer[Any]:
    """Return the server at a target. Raises `NoServer`, and `CannotLoad` for an exception of the author's code."""
    path, name = _split(target)
    with loading() as current:
        try:
            return _find(_module(target, path), name, str(path))
        except NoServer:
            raise
        except (Exception, SystemExit) as error:  # whatever an author's code raises
            more = f"\n\n{_CHECK.format(target=shlex.quote(target))}" if isinstance(error, InvalidSignature) else ""
            told = describe_failure(str(path), explained(error))
            raise CannotLoad(told if current.collects else f"{told}{more}") from error


def is_module(name: str) -> bool:
    """Whether a name is that of a module that can be imported from here. Imports only the packages that it is in."""
    if not all(part.isidentifier() for part in name.split(".")):
        return False
    here = str(Path.cwd())
    added = here not in sys.path
    if added:
        sys.path.insert(0, here)
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False
    finally:
        if added:
            sys.path.remove(here)


def _split(target: str) -> tuple[Path, str | None]:
    head, colon, tail = target.rpartition(":")
    if colon and tail.isidentifier() and head:
        return Path(head), tail
    return Path(target), None


def _module(target: str, path: Path) -> ModuleType:
    if path.is_file():
        return _load(path)
    if _URL.match(target):
        raise NoServer(f"{target!r} is a URL, but this command needs a Python server to load: {SYNTAX}")
    if target and path.is_dir() and not (path / "__init__.py").is_file():
        raise NoServer(f"{str(path)!r} is a folder, not a file; a target is {SYNTAX}")
    if is_module(str(path)):
        if str(Path.cwd()) not in sys.path:
            sys.path.insert(0, str(Path.cwd()))
        return importlib.import_module(str(path))
    if len(target.split()) > 1:
        raise NoServer(f"{target!r} is a command, but this command needs a Python server to load: {SYNTAX}")
    near = near_file(path)
    meant = f" (did you mean {str(near)!r}?)" if near is not None else ""
    raise NoServer(f"there is no file {str(path)!r}{meant}; a target is {SYNTAX}")


def near_file(path: Path) -> Path | None:
    """Return the Python file beside a missing one that was probably meant."""
    near = difflib.get_close_matches(path.name, sorted(one.name for one in path.parent.glob("*.py")), 1)
    return path.with_name(near[0]) if near else None


def _find(module: ModuleType, name: str | None, path: str) -> MCPServer[Any]:
    found: dict[str, MCPServer[Any]] = {
        key: cast("MCPServer[Any]", value) for key, value in vars(module).items() if isinstance(value, MCPServer)
    }
    if name is not None and name not in found:
        return _made(module, name, path, list(found))
    if name is not None:
        return found[name]
    if len({id(server) for server in found.values()}) == 1:
        return next(iter(found.values()))
    for usual in NAMES:
        if usual in found:
            return found[usual]
    if not found:
        raise NoServer(f"{path} has no MCPServer at its top level{_factories(module, path)}")
    raise NoServer(f"{path} has several servers ({', '.join(found)}); name one, for example {path}:{next(iter(found))}")


def _made(module: ModuleType, name: str, path: str, servers: list[str]) -> MCPServer[Any]:
    """The server that a function of the module makes."""
    factory: Any = getattr(module, name, None)
    if not callable(factory):
        near = difflib.get_close_matches(name, [*servers, *_own_functions(module)], 1)
        told = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(servers) or 'none'}"
        raise NoServer(f"{path} has no MCPServer called {name!r}; {told}")
    missing = _required(factory)
    if missing == _ASGI:
        raise NoServer(_asgi_app(path, name, servers))
    if missing:
        raise NoServer(
            f"{path}:{name} needs arguments ({', '.join(missing)}); a function that makes a server takes none"
        )
    made = factory()
    if inspect.iscoroutine(made):
        made.close()
        raise NoServer(f"{path}:{name} is an async function; write one that returns an MCPServer without await")
    if not isinstance(made, MCPServer):
        raise NoServer(f"{path}:{name} returns {type(made).__name__}, not an MCPServer")
    return cast("MCPServer[Any]", made)


def _asgi_app(path: str, name: str, servers: list[str]) -> str:
    """What to say of an app that a server is mounted in, or that a server has made."""
    named = f"{path}:{servers[0]}" if servers else f"{path}:mcp"
    module = path.removesuffix(".py")
    command = f"uvicorn {module}:{name}" if all(map(str.isidentifier, module.split("."))) else "uvicorn"
    return f"{path}:{name} is an ASGI app; name its MCPServer, such as {named}, or run the app with {command}"


def _own_functions(module: ModuleType) -> list[str]:
    """The functions of the module that can be called without arguments, and may make a server."""
    return [
        key
        for key, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__ and not _required(value)
    ]


def _required(factory: Any) -> list[str]:
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):  # some callables of C have none; calling them shows
        return []
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [one.name for one in parameters if one.default is one.empty and one.kind not in variadic]


def _factories(module: ModuleType, path: str) -> str:
    """Functions of the module that say that they return a server."""
    names = [
        key
        for key, value in vars(module).items()
        if inspect.isfunction(value) and "MCPServer" in str(value.__annotations__.get("return", ""))
    ]
    if names:
        return f"; if {names[0]}() makes one, write {path}:{names[0]}"
    foreign = [key for key, value in vars(module).items() if type(value).__name__ in _FOREIGN]
    if foreign:
        return (
            f"; {foreign[0]!r} is a server of another package; to make it one of Bespeak: from bespeak import MCPServer"
        )
    return f"; write mcp = MCPServer(...) there, or name a function that makes one: {path}:make"


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
