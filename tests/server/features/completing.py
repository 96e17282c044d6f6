"""Servers whose arguments are completed, and requests to complete them."""

from collections.abc import Callable
from typing import Annotated, Any

from bespeak import Complete, MCPServer
from tests.server.eras import Respond, Sent, modern

INVALID, UNKNOWN_METHOD, INTERNAL = -32602, -32601, -32603


def echo(value: str) -> list[str]:
    return [value]


def returning(values: Any) -> Callable[[str], Any]:
    """A function that returns the same, whatever is typed."""
    return lambda value: values


def completing(fn: Callable[..., Any]) -> MCPServer[Any]:
    """A server with a prompt whose `title` is completed by a function."""
    mcp = MCPServer[Any]("shop")

    @mcp.prompt()
    def order(title: Annotated[str, Complete(fn)], region: str, copies: int = 1) -> str:
        return title

    return mcp


def wanted(value: str = "du", arguments: Sent | None = None, argument: str = "title") -> Sent:
    context = {} if arguments is None else {"context": {"arguments": arguments}}
    return {"ref": {"type": "ref/prompt", "name": "order"}, "argument": {"name": argument, "value": value}, **context}


async def completed(mcp: MCPServer[Any], params: Sent, respond: Respond = modern) -> Sent:
    response = await respond(mcp, "completion/complete", params)
    assert "result" in response, response
    return response["result"]["completion"]


async def values(fn: Callable[..., Any], arguments: Sent | None = None, respond: Respond = modern) -> list[str]:
    return (await completed(completing(fn), wanted(arguments=arguments), respond))["values"]


async def failure(mcp: MCPServer[Any], params: Sent, respond: Respond = modern) -> Sent:
    response = await respond(mcp, "completion/complete", params)
    assert "error" in response, response
    return response["error"]


def library() -> MCPServer[Any]:
    mcp = MCPServer[Any]("library")

    def titles(value: str, shelf: str) -> list[str]:
        return [f"{shelf}:{value}"]

    @mcp.resource("books://{shelf}/{title}")
    def book(shelf: str, title: Annotated[str, Complete(titles)]) -> str:
        return title

    @mcp.resource("books://all")
    def every() -> str:
        return ""

    return mcp
