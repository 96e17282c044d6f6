"""A server that has one of everything, for tests that attack it from all sides."""

from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Literal
from uuid import UUID

from mcp_types import (
    Completion,
    CreateMessageRequest,
    CreateMessageRequestParams,
    InputRequests,
    InputRequiredResult,
    ListRootsResult,
    SamplingMessage,
    TextContent,
)
from pydantic import BaseModel, Field

from bespeak import Complete, Context, Elicit, ElicitUrl, ListRoots, MCPServer, Resolve, Sample
from bespeak.server import CacheHint

SCOPE = "staff"


class Size(BaseModel):
    """An argument with members of its own."""

    width: int
    height: float = 1.0
    tags: list[Literal["old", "rare"]] = []


async def approve() -> Elicit[bool]:
    return Elicit("Go on?", bool)


async def choose_size() -> Elicit[Size]:
    return Elicit("Which size?", Size)


async def ask_model() -> Sample:
    content = TextContent(type="text", text="Say something.")
    return Sample([SamplingMessage(role="user", content=content)], max_tokens=10)


async def list_roots() -> ListRoots:
    return ListRoots()


async def find_account() -> str | ElicitUrl:
    return ElicitUrl("Sign in", "https://bank.example/sign-in")


def languages(value: str) -> list[str]:
    return [one for one in ("English", "Esperanto") if one.startswith(value)]


def shelves(value: str, number: int = 0) -> list[str]:
    return [f"{value}{number}"]


def make_server(*, scopes: list[str] | None = None, server: MCPServer[Any] | None = None) -> MCPServer[Any]:
    """A server with everything. What requires scopes is registered only if they are given."""
    mcp = server if server is not None else MCPServer[Any]("Everything", page_size=3, question_timeout=2)
    _add_tools(mcp)
    _add_prompts(mcp)
    _add_resources(mcp)
    shop = MCPServer[Any]("Shop")
    _add_tools(shop)
    _add_prompts(shop)
    _add_resources(shop)

    @shop.completion()
    async def any_of_the_shop(ref: Any, argument: Any, context: Any) -> Completion:
        return Completion(values=[argument.value])

    mcp.include(shop, prefix="shop")
    if scopes is not None:
        _add_scoped(mcp, scopes)

    @mcp.completion()
    async def anything(ref: Any, argument: Any, context: Any) -> Completion:
        return Completion(values=[argument.name, argument.value])

    @mcp.on_request
    async def around_request(request: Any, proceed: Any) -> Any:
        return await proceed()

    @mcp.on_call
    async def around_call(call: Any, proceed: Any) -> Any:
        return await proceed()

    return mcp


def _add_tools(mcp: MCPServer[Any]) -> None:
    @mcp.tool()
    async def echo(value: Any = None) -> Any:
        return value

    @mcp.tool()
    def order(
        title: str,
        copies: Annotated[int, Field(ge=1)] = 1,
        price: Decimal | None = None,
        day: date | None = None,
        key: UUID | None = None,
        size: Size | None = None,
        names: dict[str, int] | None = None,
    ) -> dict[str, Any]:
        return {"title": title, "copies": copies}

    @mcp.tool()
    async def place(
        ctx: Context[Any, Any],
        region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})] = "nowhere",
        count: Annotated[int, Field(json_schema_extra={"x-mcp-header": "Count"})] = 0,
    ) -> str:
        await ctx.report_progress(1, 2)
        await ctx.info("placed")
        return f"{region} {count}"

    @mcp.tool()
    async def pay(
        cents: int,
        approved: Annotated[bool, Resolve(approve, key="approve")],
        size: Annotated[Size, Resolve(choose_size, key="size")],
    ) -> str:
        return f"{cents} {approved} {size.width}"

    @mcp.tool()
    async def think(thought: Annotated[Any, Resolve(ask_model, key="model")]) -> str:
        return "thought"

    @mcp.tool()
    async def look(roots: Annotated[ListRootsResult, Resolve(list_roots, key="roots")]) -> str:
        return f"{len(roots.roots)} roots"

    @mcp.tool()
    async def connect(account: Annotated[str, Resolve(find_account, key="account")]) -> str:
        return account

    @mcp.tool()
    async def by_hand(ctx: Context[Any, Any], text: str = "") -> str | InputRequiredResult:
        if ctx.request_state is None:
            params = CreateMessageRequestParams(messages=[], max_tokens=5)
            asked: InputRequests = {"one": CreateMessageRequest(params=params)}
            return InputRequiredResult(input_requests=asked, request_state="kept")
        return f"{text} {ctx.request_state}"


def _add_prompts(mcp: MCPServer[Any]) -> None:
    @mcp.prompt()
    def greeting(language: Annotated[str, Complete(languages)], times: int = 1, loud: bool = False) -> str:
        return f"Hello in {language}"

    @mcp.prompt()
    async def apology(
        name: str,
        approved: Annotated[bool, Resolve(approve, key="approve")],
        size: Annotated[Size, Resolve(choose_size, key="size")],
    ) -> str:
        return f"Sorry, {name}: {approved}"

    @mcp.prompt()
    async def visit(account: Annotated[str, Resolve(find_account, key="account")]) -> str:
        return account


def _add_resources(mcp: MCPServer[Any]) -> None:
    @mcp.resource("shop://hours", cache=CacheHint(ttl_ms=1000, scope="public"))
    async def hours() -> str:
        return "9 to 5"

    @mcp.resource("shop://secret")
    async def secret(approved: Annotated[bool, Resolve(approve, key="approve")]) -> str:
        return f"{approved}"

    @mcp.resource("shop://{number}/shelves/{shelf}")
    def shelf(number: int, shelf: Annotated[str, Complete(shelves)]) -> bytes:
        return f"{number} {shelf}".encode()

    @mcp.resource("files://{+path}")
    async def file(path: str) -> str:
        return path

    @mcp.resource("search://books{?title,year}")
    async def search(title: str = "", year: int = 0) -> list[Any]:
        return [title, year]

    @mcp.resource("locked://{number}")
    async def locked(number: int, size: Annotated[Size, Resolve(choose_size, key="size")]) -> str:
        return f"{number} {size.width}"


def _add_scoped(mcp: MCPServer[Any], scopes: list[str]) -> None:
    @mcp.tool(scopes=scopes)
    async def refund() -> str:
        return "refunded"

    @mcp.prompt(scopes=scopes)
    async def reprimand(name: Annotated[str, Complete(languages)]) -> str:
        return name

    @mcp.resource("staff://all", scopes=scopes)
    async def staff() -> str:
        return "everybody"

    @mcp.resource("staff://{name}/file", scopes=scopes)
    async def staff_file(name: Annotated[str, Complete(languages)]) -> str:
        return name
