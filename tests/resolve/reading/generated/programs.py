"""Generated modules with one parameter under test, `answer`, and what registering and calling them must result in."""

import asyncio
import collections
import collections.abc
import dataclasses
import functools
import inspect
import itertools
import json
import re
import sys
import traceback
import types
import typing
import warnings
import weakref
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from textwrap import indent
from typing import Any

import attrs
import mcp_types
import pydantic
import typing_extensions
from pydantic.json_schema import SkipJsonSchema

import bespeak
from bespeak import InvalidSignature, MCPServer, ToolError
from tests.resolve.reading.generated import names
from tests.resolve.reading.generated.callables import ELSEWHERE, FORMS
from tests.resolve.reading.generated.form import Form
from tests.resolve.reading.generated.names import GOT, RAN
from tests.resolve.reading.generated.spellings import Spelling, Verdict
from tests.resolve.reading.generated.wraps import Wrap


class Position(Enum):
    """What the function under test is."""

    TOOL = "a tool"
    RESOLVER = "a resolver"
    NESTED = "a resolver of a resolver"


class Scope(Enum):
    """Where the function under test and the names in its hints are defined, and where it is registered."""

    MODULE = "in the module"
    FRAME = "in the function that registers it"
    SHADOWED = "there, and the module has another thing of that name"
    BELOW = "in a function that calls another to register it"
    SHADOWED_BELOW = "in such a function, and the module has another thing of that name"
    GONE = "in a function that has returned"
    SHADOWED_GONE = "in a function that has returned, and the module has another thing of that name"
    CLASS = "in the body of a class, and the module has another thing of that name"


_SHADOWED = {Scope.SHADOWED, Scope.SHADOWED_BELOW, Scope.SHADOWED_GONE, Scope.CLASS}
_LOST = {Scope.BELOW, Scope.SHADOWED_BELOW, Scope.GONE, Scope.SHADOWED_GONE}
"""Where text cannot be evaluated that names something of a function."""
_CLEAR = {Scope.MODULE, Scope.FRAME, Scope.SHADOWED}
"""Where postponed annotations can be told for certain."""


@dataclass(frozen=True)
class Program:
    """A module to be generated."""

    leaf: Spelling
    wraps: tuple[Wrap, ...] = ()
    form: Form = FORMS["function"]
    layers: tuple[Form, ...] = ()
    """What it is wrapped in once more."""
    position: Position = Position.TOOL
    scope: Scope = Scope.MODULE
    postponed: bool = False
    named: bool = False
    """The hint is given a name first."""
    taken: bool = False
    """The tool has an argument of the name, which a resolver would be given."""

    @functools.cached_property
    def spelling(self) -> Spelling:
        spelling = self.leaf
        for number, wrap in enumerate(self.wraps):
            spelling = wrap.around(spelling, number)
        return spelling

    @property
    def is_possible(self) -> bool:
        """Whether the pieces go together."""
        spelling = self.leaf
        for number, wrap in enumerate(self.wraps):
            if not wrap.takes(spelling):
                return False
            spelling = wrap.around(spelling, number)
        if self.scope is Scope.CLASS and self.form is not FORMS["method"]:
            return False
        if self.layers and (self.form.makes or spelling.verdict is not Verdict.HONOURED):
            return False
        if self.form.unseen and any(layer.loses for layer in self.layers):
            return False
        if any(form.fades for form in self._forms) and self.postponed and self.scope in _LOST:
            return False
        # Fields that name local things are beyond pydantic where they are text.
        beyond = self.postponed and self.scope is not Scope.MODULE and bool(spelling.before)
        if spelling.verdict is Verdict.SHOWN and (beyond or self._is_unclear or self._is_open):
            return False
        return self.form.takes(spelling)

    @property
    def _forms(self) -> tuple[Form, ...]:
        return (self.form, *self.layers)

    @property
    def _is_unclear(self) -> bool:
        """Whether text in a hint may be out of reach of the names in it."""
        away = self.scope not in _CLEAR or self.form.elsewhere
        beyond = self.scope is not Scope.MODULE or self.form.elsewhere or self.form.given
        return (self.postponed and away) or (self.spelling.textual and beyond)

    @property
    def _is_open(self) -> bool:
        """Whether a class may stay generic: a type argument has a type variable in it."""
        variable = any("TypeVar(" in text for text in self.spelling.before)
        return variable and any(re.search(r"\[[^\]]*\{h\}", text) for text in self.form.statements)

    @property
    def verdict(self) -> Verdict:
        """What registering must result in. Where text cannot be read for certain, a marker may be refused as well."""
        verdict = self.spelling.verdict
        if verdict is Verdict.HONOURED and (any(form.loses for form in self._forms) or self._is_unclear):
            return Verdict.CLOSED
        left = self.position is not Position.TOOL and not self.taken and self.spelling.default is not None
        return Verdict.CLOSED if left and not self.spelling.marked else verdict

    @property
    def source(self) -> str:
        spelling, by_class = self.spelling, self.scope is Scope.CLASS
        named = self.named or self.scope in _SHADOWED or self.form.elsewhere
        defined = list(spelling.before)
        if named and not by_class:
            defined.append(f"Hint = {spelling.hint}")
        formed = self.form.of(spelling, "Hint" if named else spelling.hint)
        for number, layer in enumerate(self.layers):
            formed += [text.replace("{n}", str(number)) for text in layer.of(spelling, "Hint")]
        if by_class:
            formed[0] = formed[0].replace("class Desk:\n", f"class Desk:\n    Hint = {spelling.hint}\n")
        lines = [*(["from __future__ import annotations"] if self.postponed else [])]
        if self.scope in _SHADOWED:
            lines.append(f"Hint = {self.leaf.core}")
        around = [*_AROUND[self.position]]
        if self.taken and self.position is not Position.TOOL:
            around[-1] = around[-1].replace("title: str,", "title: str, *, answer: Any = None,")
        add = "mcp.add_tool(tool, name='tool')"
        if self.scope in (Scope.MODULE, Scope.CLASS):
            lines += [*defined, *formed, *around, f"def register(mcp):\n    {add}"]
        elif self.scope in (Scope.FRAME, Scope.SHADOWED):
            lines += ["def register(mcp):", *_inside([*defined, *formed, *around, add])]
        elif self.scope in (Scope.BELOW, Scope.SHADOWED_BELOW):
            lines += [f"def add(mcp, tool):\n    {add}", "def register(mcp):"]
            lines += _inside([*defined, *formed, *around, "add(mcp, tool)"])
        else:
            lines += ["def make():", *_inside([*defined, *formed, "return target"]), "target = make()"]
            lines += [*around, f"def register(mcp):\n    {add}"]
        return "\n".join(lines) + "\n"

    def __repr__(self) -> str:
        return f"{self.verdict.name} expected of:\n{self.source}"


def _inside(statements: list[str]) -> list[str]:
    return [indent(statement, "    ") for statement in statements]


_AROUND = {
    Position.TOOL: ["tool = target"],
    Position.RESOLVER: [
        "async def tool(title: str, found: Annotated[object, Resolve(target)]) -> str:\n    return 'done'"
    ],
    Position.NESTED: [
        "async def middle(found: Annotated[object, Resolve(target)]) -> str:\n    return 'done'",
        "async def tool(title: str, found: Annotated[str, Resolve(middle)]) -> str:\n    return found",
    ],
}

_NAMES: dict[str, Any] = {
    **{name: getattr(bespeak, name) for name in dir(bespeak)},
    **{name: getattr(typing, name) for name in ("Annotated", "Any", "Generic", "ClassVar", "NamedTuple", "NewType")},
    **{name: getattr(typing, name) for name in ("Optional", "Protocol")},
    **{name: getattr(typing, name) for name in ("Required", "TypeVar", "TypeVarTuple", "Union", "Unpack")},
    **{name: getattr(typing_extensions, name) for name in ("TypeAliasType", "TypedDict")},
    **{name: getattr(collections.abc, name) for name in ("Callable", "Mapping", "Sequence")},
    **{name: getattr(pydantic, name) for name in ("BaseModel", "Field", "RootModel")},
    **{name: getattr(names, name) for name in ("C", "ask_c", "ask_bool", "ask_any", "ask_more", "make_marker", "note")},
    **{name: getattr(mcp_types, name) for name in ("CreateMessageResult", "ElicitResult", "ListRootsResult")},
    "dataclass": dataclasses.dataclass,
    "InitVar": dataclasses.InitVar,
    "functools": functools,
    "inspect": inspect,
    "overload": typing.overload,
    "attrs": attrs,
    "types": types,
    "SkipJsonSchema": SkipJsonSchema,
    **{name: getattr(names, name) for name in ("same", "Slotted", "Grouped", "Copied")},
    "collections": collections,
    "weakref": weakref,
    "SimpleNamespace": types.SimpleNamespace,
    "pydantic": pydantic,
    "typing_extensions": typing_extensions,
}
_numbers = itertools.count()


class NotPython(Exception):
    """Python or pydantic refuses the module before anything is registered."""


@contextmanager
def imported(program: Program) -> Generator[types.ModuleType]:
    """The program as a module like any other, for the time of the block. Raises `NotPython`."""
    number = next(_numbers)
    other, module = (types.ModuleType(f"{name}_{number}") for name in ("elsewhere", "generated"))
    vars(other).update({"C": names.C, "Hint": bool, "Any": Any})
    vars(module).update({**_NAMES, "elsewhere": other})
    for one, source in ((other, ELSEWHERE), (module, program.source)):
        sys.modules[one.__name__] = one
        try:
            exec(compile(source, f"<{one.__name__}>", "exec", dont_inherit=True), vars(one))
        except Exception as error:
            for added in (other, module):
                sys.modules.pop(added.__name__, None)
            raise NotPython(f"{type(error).__name__}: {error}") from error
    try:
        yield module
    finally:
        for added in (other, module):
            del sys.modules[added.__name__]


JUDGED: list[Program] = []
"""The programs that Python accepted. Tests count them."""

YES: list[Any] = [
    {"action": "accept", "data": {"ok": True}},
    {"ok": True},
    True,
    [{"ok": True}],
    {"inner": {"ok": True}, "data": {"ok": True}},
]
"""What a model might send for `answer` to have its way."""


def judge(program: Program) -> str:
    """Register and call a program, and check that no part of `answer` comes from the client.

    Returns "refused", "shown" or "honoured".
    """
    with imported(program) as module, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pydantic's, of fields whose defaults have no effect
        mcp = MCPServer[Any]("generated")
        JUDGED.append(program)
        try:
            module.register(mcp)
        except InvalidSignature as error:
            _check_refusal(program, error)
            assert asyncio.run(mcp.list_tools()) == []
            return "refused"
        except Exception as error:
            if not any(
                frame.f_code is MCPServer.add_tool.__code__ for frame, _ in traceback.walk_tb(error.__traceback__)
            ):
                raise NotPython(f"{type(error).__name__}: {error}") from error
            raise
        assert program.verdict is not Verdict.REFUSED, f"registered: {_shown(mcp)}"
        if program.verdict is Verdict.SHOWN:
            assert list(_shown(mcp)["properties"]) == ["title", "answer"]
            return "shown"
        _check_closed(program, mcp)
        return "honoured"


def _check_refusal(program: Program, error: InvalidSignature) -> None:
    assert program.verdict not in (Verdict.HONOURED, Verdict.SHOWN), f"refused: {error}"
    assert error.faults
    for fault in error.faults:
        assert fault.problem.strip()
        assert fault.fix.strip()
        assert fault.place.strip()
        assert fault.drawing.strip()


def _shown(mcp: MCPServer[Any]) -> dict[str, Any]:
    (tool,) = asyncio.run(mcp.list_tools())
    return tool.input_schema


def _check_closed(program: Program, mcp: MCPServer[Any]) -> None:
    """The schema does not show the parameter at any depth, and what the client sends for it does not arrive."""
    schema = _shown(mcp)
    ours = {"title", "answer"} if program.taken and program.position is not Position.TOOL else {"title"}
    assert set(schema["properties"]) == ours, f"the model sees {[*schema['properties']]}"
    schema["properties"].pop("answer", None)
    assert '"answer"' not in json.dumps(schema)
    assert "$defs" not in schema
    asyncio.run(_check_calls(program, mcp))


async def _check_calls(program: Program, mcp: MCPServer[Any]) -> None:
    for payload in YES:
        RAN.clear()
        GOT.clear()
        try:
            await mcp.call_tool("tool", {"title": "Dune", "answer": payload})
        except ToolError:
            assert program.form.makes, "what a class makes has no text, but anything else has"
        assert GOT or program.form.validates, "the function under test did not run"
        assert "True" not in repr(GOT), f"the client's word arrived: {GOT}"
        assert RAN or not GOT or not program.spelling.marked, "the resolver did not run"
