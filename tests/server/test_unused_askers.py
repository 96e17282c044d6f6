"""Functions that ask and that nothing uses: the marker of a parameter was probably forgotten."""

import types

import pytest

from bespeak import MCPServer
from bespeak.server.unused_askers import unused_askers

HEAD = """
from typing import Annotated
from pydantic import BaseModel
from bespeak import Elicit, ElicitUrl, ListRoots, MCPServer, Resolve, Sample

mcp = MCPServer("Bank")

class Confirmation(BaseModel):
    ok: bool
"""
ASK = """
async def confirm(amount: int) -> Confirmation | Elicit[Confirmation]:
    return Elicit(f"Transfer {amount} EUR?", Confirmation)
"""
TOLD = "confirm asks, but nothing uses it, so nobody is asked; mark the parameter that takes its answer: "


def found(source: str) -> list[str]:
    module = types.ModuleType("bank")
    exec(HEAD + source, vars(module))
    mcp: MCPServer = module.mcp
    return [str(one) for one in unused_askers(mcp.registered)]


def test_a_function_that_asks_and_is_not_used_is_found() -> None:
    tool = "@mcp.tool()\nasync def transfer(amount: int, ok: Confirmation) -> str: ...\n"
    assert found(ASK + tool) == [f"{TOLD}Annotated[Confirmation, Resolve(confirm)]"]


def test_one_that_a_marker_names_is_used() -> None:
    tool = "@mcp.tool()\nasync def transfer(amount: int, ok: Annotated[Confirmation, Resolve(confirm)]) -> str: ...\n"
    assert found(ASK + tool) == []


def test_one_below_another_resolver_is_used() -> None:
    resolver = "async def sure(ok: Annotated[Confirmation, Resolve(confirm)]) -> bool: ...\n"
    tool = "@mcp.tool()\nasync def transfer(amount: int, sure: Annotated[bool, Resolve(sure)]) -> str: ...\n"
    assert found(ASK + resolver + tool) == []


@pytest.mark.parametrize("question", ["ElicitUrl", "Sample", "ListRoots", "Elicit[bool]"])
def test_every_kind_of_question_counts(question: str) -> None:
    ask = f"async def confirm() -> {question}: ...\n"
    tool = "@mcp.tool()\nasync def transfer(amount: int) -> str: ...\n"
    kind = "bool" if question == "Elicit[bool]" else "..."
    assert found(ask + tool) == [f"{TOLD}Annotated[{kind}, Resolve(confirm)]"]


@pytest.mark.parametrize(
    "beside",
    [
        "async def confirm(amount: int) -> Confirmation: ...\n",
        "async def confirm(amount: int): ...\n",
        "async def confirm(amount: int) -> 'Misspelled': ...\n",
        ASK + "other = MCPServer('Other')\n",
    ],
)
def test_what_may_be_meant_for_something_else_is_not(beside: str) -> None:
    assert found(beside + "@mcp.tool()\nasync def transfer(amount: int) -> str: ...\n") == []


def test_a_function_of_another_module_is_not_looked_for() -> None:
    module = types.ModuleType("asking")
    exec(HEAD + ASK, vars(module))
    tool = "@mcp.tool()\nasync def transfer(amount: int) -> str: ...\n"
    bank = types.ModuleType("bank")
    exec(HEAD + tool, vars(bank))
    bank.__dict__["confirm"] = module.confirm
    assert unused_askers(bank.mcp.registered) == []
