"""A shop whose tools cover what a call can need and how it can end, and a POST to it without a socket."""

import asyncio
import json
from typing import Annotated, Any

from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult
from pydantic import Field

from bespeak import Context, Elicit, MCPError, MCPServer, Resolve, ToolError
from bespeak.transports.http.asgi import ASGIApp

Sent = tuple[int, list[tuple[bytes, bytes]], bytes]
FORM = ElicitRequest(
    params=ElicitRequestFormParams(message="Sure?", requested_schema={"type": "object", "properties": {}})
)


async def length(text: str) -> int:
    return len(text)


async def twice(length: Annotated[int, Resolve(length)]) -> int:
    return 2 * length


async def confirm(text: str, length: Annotated[int, Resolve(length)]) -> bool | Elicit[bool]:
    return Elicit(f"{text}, {length} letters?", bool)


async def confirm_again(first: Annotated[bool, Resolve(confirm)]) -> bool | Elicit[bool]:
    await asyncio.sleep(0)
    return Elicit(f"You said {first}. Really?", bool)


async def from_the_context(ctx: Context) -> int:
    return ctx.round


def shop() -> MCPServer[Any]:
    mcp = MCPServer[Any]("shop")

    @mcp.tool()
    async def echo(text: str) -> str:
        return text

    @mcp.tool()
    async def waits(text: str) -> str:
        await asyncio.sleep(0)
        return text

    @mcp.tool()
    def in_a_thread(text: str) -> str:
        return text

    @mcp.tool()
    async def counted(text: str, n: Annotated[int, Resolve(twice)]) -> dict[str, Any]:
        return {"text": text, "n": n}

    @mcp.tool()
    async def approved(text: str, sure: Annotated[bool, Resolve(confirm)]) -> str:
        return f"{text} {sure}"

    @mcp.tool()
    async def approved_twice(text: str, sure: Annotated[bool, Resolve(confirm_again)]) -> str:
        return f"{text} {sure}"

    @mcp.tool()
    async def rounds(text: str, round_: Annotated[int, Resolve(from_the_context)]) -> str:
        return f"{text} {round_}"

    @mcp.tool()
    async def identified(text: str, ctx: Context) -> str:
        return f"{text} {ctx.request_id}"

    @mcp.tool()
    async def optional(text: str = "nothing") -> str:
        return text

    @mcp.tool()
    async def crashes(text: str) -> str:
        raise LookupError(text)

    @mcp.tool()
    async def refuses(text: str) -> str:
        raise ToolError(text)

    @mcp.tool()
    async def breaks_off(text: str) -> str:
        raise MCPError(-32000, text, {"why": text})

    @mcp.tool()
    async def asks(text: str) -> str:
        return InputRequiredResult(input_requests={"sure": FORM})  # pyright: ignore[reportReturnType]  # the mistake

    @mcp.tool()
    async def unsendable(text: str) -> dict[str, Any]:
        return {"text": "\ud800"}

    @mcp.tool()
    async def unsendable_text(text: str) -> str:
        return "\ud800"

    @mcp.tool()
    async def unsendable_sum(text: str, n: Annotated[int, Resolve(twice)]) -> str:
        return "\ud800" * n

    @mcp.tool()
    async def repeated(text: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Text"})]) -> str:
        return text

    @mcp.tool(name="Bücher")
    async def books(text: str) -> str:
        return text

    @mcp.tool(name="=?base64?eA==?=")
    async def seems_encoded(text: str) -> str:
        return text

    return mcp


async def post(app: ASGIApp, message: Any, headers: list[tuple[bytes, bytes]]) -> Sent:
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    events: list[Any] = []
    bodies = iter([body])

    async def receive() -> dict[str, Any]:
        given = next(bodies, None)
        if given is None:  # the client stays connected, and sends nothing more
            await asyncio.get_running_loop().create_future()
        return {"type": "http.request", "body": given}

    async def send(event: Any) -> None:
        events.append(event)

    sized = [*headers, (b"content-length", b"%d" % len(body))]
    scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": sized, "client": ("127.0.0.1", 5000)}
    await app(scope, receive, send)
    content = b"".join(event.get("body", b"") for event in events[1:])
    return events[0]["status"], events[0]["headers"], content


def never(*_: object) -> None: ...
