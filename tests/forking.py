"""A program that prepares a server, asks, and forks: each child, and then the parent, answers the question that the parent asked.

`python -m tests.forking HOW STORE FOLDER` with keys that are `made`, `ephemeral` or `configured`; a `+open` behind that forks while
the server is in use. The tool notes in the folder what it did. Each process prints what it got.
"""

import asyncio
import os
import sys
from pathlib import Path
from typing import Annotated, Any

from mcp_types import ElicitResult, InputRequiredResult

from bespeak import Client, Elicit, MCPError, MCPServer, RequestStateSecurity, Resolve
from tests.answering import text

CHILDREN = 4


def security(how: str) -> RequestStateSecurity | None:
    if how == "ephemeral":
        return RequestStateSecurity.ephemeral()
    return RequestStateSecurity(keys=[b"k" * 32]) if how == "configured" else None


def shop(how: str, store: str, folder: Path) -> MCPServer[Any]:
    mcp = MCPServer[Any]("shop", store=store, request_state_security=security(how), log_level="CRITICAL")

    async def confirm() -> Elicit[bool]:
        return Elicit("Sure?", bool)

    @mcp.tool()
    async def buy(item: str, sure: Annotated[bool, Resolve(confirm)]) -> str:
        with (folder / item).open("a") as file:
            file.write("x")
        return f"ran in {os.getpid()}"

    return mcp


async def yes(context: Any, params: Any) -> ElicitResult:
    return ElicitResult(action="accept", content={"value": True})


async def ask(client: Client) -> InputRequiredResult:
    asked = await client.session.call_tool("buy", {"item": "approved"}, allow_input_required=True)
    assert isinstance(asked, InputRequiredResult)
    return asked


async def answer(mcp: MCPServer[Any], asked: InputRequiredResult) -> str:
    answers = {key: ElicitResult(action="accept", content={"value": True}) for key in asked.input_requests or {}}
    async with Client(mcp, elicitation_callback=yes) as client:
        try:
            return text(
                await client.session.call_tool(
                    "buy", {"item": "approved"}, input_responses=answers, request_state=asked.request_state
                )
            )
        except MCPError as error:
            return f"{error.code} {error}"


async def buy(client: Client, item: str) -> None:
    assert not (await client.call_tool("buy", {"item": item})).is_error


async def begin(mcp: MCPServer[Any], fork: bool) -> InputRequiredResult:
    async with Client(mcp, elicitation_callback=yes) as client:
        await buy(client, "warm-up")
        asked = await ask(client)
        if fork:
            make_children(mcp, asked)
            await buy(client, "parent")
        return asked


async def work(mcp: MCPServer[Any], asked: InputRequiredResult) -> None:
    print("child", await answer(mcp, asked), flush=True)
    async with Client(mcp, elicitation_callback=yes) as client:
        await buy(client, "child")


def make_children(mcp: MCPServer[Any], asked: InputRequiredResult) -> None:
    for _ in range(CHILDREN):
        child = os.fork()
        if not child:
            asyncio.run(work(mcp, asked))
            os._exit(0)
        os.waitpid(child, 0)


def main(how: str, store: str, folder: str) -> None:
    keys, _, is_open = how.partition("+")
    mcp = shop(keys, store, Path(folder))
    asked = asyncio.run(begin(mcp, bool(is_open)))
    if not is_open:
        make_children(mcp, asked)
    print("parent", asyncio.run(answer(mcp, asked)))


if __name__ == "__main__":
    main(*sys.argv[1:])
