"""Functions and classes of other packages, none of which has a marker, register as they always did: nothing is refused in vain.

honest_functions.txt lists them, each with how it can be registered. Those that an installed version does not have are left out.
"""

import functools
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import pytest

from bespeak import MCPServer, Resolve

LISTED = dict(
    line.split(" ", 1) for line in Path(__file__).with_name("honest_functions.txt").read_text().splitlines() if line
)


def _found(name: str) -> Callable[..., Any] | None:
    module, _, attribute = name.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute, None)
    except ImportError:
        return None


@functools.cache
def found() -> list[tuple[str, str, Callable[..., Any]]]:
    return [(name, how, fn) for name, how in LISTED.items() if (fn := _found(name)) is not None]


def _add_tool(fn: Callable[..., Any]) -> None:
    MCPServer[Any]("honest").add_tool(fn, name="tool")


def _add_resolver(fn: Callable[..., Any]) -> None:
    async def tool(found: Annotated[Any, Resolve(fn)]) -> str: ...

    _add_tool(tool)


def _register(fn: Callable[..., Any], how: str) -> None:
    if "tool" in how:
        _add_tool(fn)
    if "resolver" in how:
        _add_resolver(fn)


def _wrapped(fn: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    return wrapper


def _holding(*fns: Callable[..., Any]) -> Callable[..., Any]:
    kept = {"fns": [*fns]}

    def wrapper(title: str, value: int = 0) -> str:
        return f"{title} {value} {kept}"

    return wrapper


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("batch", range(8))
def test_functions_and_classes_without_a_marker_register_as_they_are_wrapped_and_held(batch: int) -> None:
    assert len(found()) >= 300
    for _, how, fn in found()[batch::8]:
        _register(fn, how)
        if not isinstance(fn, type):
            _register(_wrapped(fn), how)
            _register(functools.partial(fn), how)
        _add_tool(_holding(fn))
