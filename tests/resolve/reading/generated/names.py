"""The names every generated module starts with (programs.py), and a record of what its functions did."""

import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any

from annotated_types import GroupedMetadata
from pydantic import BaseModel

from bespeak import Resolve


class C(BaseModel):
    """A person's consent. Only clients say yes here, so `ok=True` in a function came from a client."""

    ok: bool


RAN: list[str] = []
"""The resolvers that ran."""
GOT: list[object] = []
"""What the functions under test were given as `answer`."""


async def ask_c(title: str) -> C:
    RAN.append(title)
    return C(ok=False)


async def ask_bool(title: str) -> bool:
    RAN.append(title)
    return False


async def ask_any(title: str) -> object:
    RAN.append(title)
    return C(ok=False)


async def ask_more() -> C:
    RAN.append("more")
    return C(ok=False)


def make_marker() -> Resolve:
    return Resolve(ask_c)


def note(answer: object) -> str:
    """Record what a function under test was given."""
    GOT.append(answer)
    return "done"


same: Any = eval("lambda value: value")
"""A converter without hints."""


class Slotted:
    __slots__ = ("by",)

    def __init__(self, by: object) -> None:
        self.by = by


class Grouped(GroupedMetadata):
    """Metadata that stands for what it yields."""

    def __init__(self, yielded: Callable[[], Iterator[object]]) -> None:
        self.yielded = yielded

    def __iter__(self) -> Iterator[object]:
        return self.yielded()


def _copied() -> Any:
    """The marker of a second copy of the module, as a vendored or reloaded one has it."""
    spec = importlib.util.spec_from_file_location("copied_markers", inspect.getfile(Resolve))
    assert spec is not None
    assert spec.loader is not None
    copied = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(copied)
    return copied.Resolve


Copied = _copied()
