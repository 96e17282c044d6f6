"""What a registration error looks like where no command collects it: in a program that is run, or in a test."""

import traceback
from pathlib import Path
from typing import Annotated, Any

import pytest

from bespeak import InvalidSignature, MCPServer, Resolve
from bespeak.server import loading


async def stock(titel: str) -> int:
    return 1


def by_decorator(mcp: MCPServer[Any]) -> None:
    @mcp.tool()
    async def order(title: str, copies: Annotated[int, Resolve(stock)]) -> str: ...


def by_method(mcp: MCPServer[Any]) -> None:
    async def order(title: str, copies: Annotated[int, Resolve(stock)]) -> str: ...

    mcp.add_tool(order)


@pytest.mark.parametrize("register", [by_decorator, by_method])
def test_the_traceback_of_a_registration_error_has_no_more_of_our_frames_than_the_way_to_the_registry(
    register: Any,
) -> None:
    with pytest.raises(InvalidSignature) as caught:
        register(MCPServer("shop"))
    frames = [Path(one.filename).name for one in traceback.extract_tb(caught.value.__traceback__)]
    assert frames == [Path(__file__).name] * 2 + ["registration.py", Path(loading.__file__).name]
    assert caught.value.__cause__ is None
