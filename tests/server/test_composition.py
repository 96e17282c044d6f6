"""`mcp.include(other)`: a server written in several files."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import httpx2
import pytest
from mcp_types import Completion, PromptReference, ResourceTemplateReference

from bespeak import Client, Complete, Context, Elicit, HttpResponse, MCPError, MCPServer, Resolve
from tests.answering import Person, accept, text
from tests.conftest import Connect
from tests.server.auth.issuers import Issuer, protected_server
from tests.waiting import eventually
from tests.wires import Listening


async def price(title: str) -> int:
    return len(title)


async def confirm(title: str, price: Annotated[int, Resolve(price)]) -> Elicit[bool]:
    return Elicit(f"{title} for {price}?", bool)


def shop() -> MCPServer[Any]:
    mcp = MCPServer[Any]("shop")

    @mcp.tool()
    async def order(title: str, ok: Annotated[bool, Resolve(confirm)]) -> str:
        return f"{title}: {ok}"

    @mcp.prompt()
    async def greet(name: str) -> str:
        return f"Hello {name}"

    @mcp.resource("stock://today")
    async def today() -> str:
        return "7"

    @mcp.resource("stock://books/{title}")
    async def book(title: str) -> str:
        return title

    return mcp


async def names(mcp: MCPServer[Any]) -> list[str]:
    return [
        *(one.name for one in await mcp.list_tools()),
        *(one.name for one in await mcp.list_prompts()),
        *(str(one.uri) for one in await mcp.list_resources()),
        *(one.uri_template for one in await mcp.list_resource_templates()),
    ]


async def test_a_file_served_alone_or_included_gives_the_same_names_on_the_wire() -> None:
    main = MCPServer[Any]("main")
    main.include(shop())
    assert await names(main) == await names(shop())


async def test_what_is_included_keeps_its_order() -> None:
    main, other = MCPServer[Any]("main"), shop()
    for name in ("b", "a", "c"):
        other.add_tool(price, name=name)
    main.include(other)
    assert [one.name for one in await main.list_tools()] == ["order", "b", "a", "c"]


async def test_keys_of_questions_are_the_same_alone_and_included() -> None:
    main = MCPServer[Any]("main")
    main.include(shop())
    keys: list[list[str]] = []
    for mcp in (shop(), main):
        async with Client(mcp, elicitation_callback=Person()) as client:
            asked: Any = await client.session.call_tool("order", {"title": "Dune"}, allow_input_required=True)
            keys.append(list(asked.input_requests))
    assert keys[0] == keys[1]


@pytest.mark.asking_revisions
async def test_included_tools_prompts_and_resources_are_served_like_any_other(connect: Connect) -> None:
    main = MCPServer[Any]("main")
    main.include(shop(), prefix="shop")
    async with connect(main, elicitation_callback=Person({"confirm": accept(value=True)})) as client:
        assert text(await client.call_tool("shop_order", {"title": "Dune"})) == "Dune: True"
    assert (await main.get_prompt("shop_greet", {"name": "Ana"})).messages[0].content.text == "Hello Ana"  # type: ignore[union-attr]
    assert [one.content for one in await main.read_resource("stock://shop/today")] == ["7"]
    assert [one.content for one in await main.read_resource("stock://shop/books/Dune")] == ["Dune"]
    assert await names(main) == ["shop_order", "shop_greet", "stock://shop/today", "stock://shop/books/{title}"]
    with pytest.raises(MCPError, match="unknown resource 'stock://today'"):
        await main.read_resource("stock://today")


async def test_what_is_added_or_removed_later_is_followed() -> None:
    main, other = MCPServer[Any]("main"), shop()
    main.include(other, prefix="shop")
    other.add_tool(price)
    other.remove_tool("order")
    assert [one.name for one in await main.list_tools()] == ["shop_price"]
    main.add_tool(confirm_nothing, name="shop_late")
    with pytest.raises(ValueError, match="tool 'shop_late' is already registered"):
        other.add_tool(confirm_nothing, name="late")
    assert [one.name for one in await other.list_tools()] == ["price"]


async def confirm_nothing() -> str:
    return "nothing"


def test_two_equal_names_are_an_error_and_nothing_is_included() -> None:
    main = MCPServer[Any]("main")
    main.add_tool(confirm_nothing, name="order")
    main.prompt(name="greet")(confirm_nothing)
    with pytest.raises(
        ValueError,
        match="both servers have tool 'order', prompt 'greet'; include one of them with a prefix, or rename one",
    ):
        main.include(shop())
    assert [one.name for one in main._catalogue.all()] == ["order", "greet"]  # pyright: ignore[reportPrivateUsage]


async def test_what_the_including_server_has_removed_may_be_removed_from_the_other_too() -> None:
    main, other = MCPServer[Any]("main"), shop()
    main.include(other, prefix="shop")
    main.remove_tool("shop_order")
    main.remove_resource("stock://shop/today")
    assert len(await names(other)) == 4
    other.remove_tool("order")
    other.remove_resource("stock://today")
    assert await names(other) == ["greet", "stock://books/{title}"]
    assert await names(main) == ["shop_greet", "stock://shop/books/{title}"]
    other.add_tool(confirm_nothing, name="order")
    assert [one.name for one in await main.list_tools()] == ["shop_order"]


async def test_what_the_including_server_has_registered_anew_is_not_removed_with_the_others() -> None:
    main, middle, other = MCPServer[Any]("main"), MCPServer[Any]("middle"), shop()
    middle.include(other)
    main.include(middle, prefix="shop")
    main.remove_tool("shop_order")
    main.add_tool(confirm_nothing, name="shop_order")
    other.remove_tool("order")
    assert [await one.list_tools() for one in (middle, other)] == [[], []]
    assert text(await main.call_tool("shop_order")) == "nothing"


async def test_a_name_that_one_including_server_has_already_is_added_nowhere() -> None:
    other, first, second, outer = (MCPServer[Any](name) for name in ("other", "first", "second", "outer"))
    second.add_tool(confirm_nothing, name="late")
    first.include(other)
    second.include(other)
    outer.include(first)
    with pytest.raises(ValueError, match="tool 'late' is already registered"):
        other.add_tool(price, name="late")
    assert [await names(one) for one in (other, first, outer, second)] == [[], [], [], ["late"]]


async def test_a_name_that_would_reach_a_server_on_two_ways_is_added_nowhere() -> None:
    other, left, right, outer = (MCPServer[Any](name) for name in ("other", "left", "right", "outer"))
    for one in (left, right):
        one.include(other)
        outer.include(one)
    with pytest.raises(ValueError, match="tool 'price' is already registered"):
        other.add_tool(price)
    assert [await names(one) for one in (other, left, right, outer)] == [[], [], [], []]


async def test_a_server_is_not_included_in_part_if_a_name_clashes_further_out() -> None:
    outer, inner, other = MCPServer[Any]("outer"), MCPServer[Any]("inner"), shop()
    outer.include(inner)
    outer.prompt(name="greet")(confirm_nothing)
    with pytest.raises(ValueError, match="prompt 'greet' is already registered"):
        inner.include(other)
    assert (await names(outer), await names(inner)) == (["greet"], [])
    other.add_tool(price)
    assert await names(inner) == []


def test_servers_do_not_include_themselves_or_each_other() -> None:
    one, two, three = (MCPServer[Any](name) for name in ("one", "two", "three"))
    one.include(two)
    two.include(three)
    for other in (one, two, three):
        with pytest.raises(ValueError, match="cannot be included: it is this server, or includes it"):
            three.include(other) if other is not three else three.include(three)
    with pytest.raises(ValueError, match="prefix must be 1 to 32 of"):
        one.include(MCPServer("four"), prefix="a b")


async def test_lifespans_nest_and_each_tool_sees_its_own_servers() -> None:
    log: list[str] = []

    def lifespan_of(name: str) -> Any:
        @asynccontextmanager
        async def lifespan(_: MCPServer[Any]) -> AsyncGenerator[str]:
            log.append(f"enter {name}")
            yield name
            log.append(f"leave {name}")

        return lifespan

    async def seen(ctx: Context[Any, Any]) -> str:
        return f"{ctx.request_context.lifespan_context} on {ctx.mcp_server.name}"

    main = MCPServer[Any]("main", lifespan=lifespan_of("main"))
    inner = MCPServer[Any]("inner", lifespan=lifespan_of("inner"))
    deep = MCPServer[Any]("deep", lifespan=lifespan_of("deep"))
    for mcp in (main, inner, deep):
        mcp.add_tool(seen)
    inner.include(deep, prefix="deep")
    main.include(inner, prefix="inner")
    async with Client(main) as client:
        called = [text(await client.call_tool(name)) for name in ("seen", "inner_seen", "inner_deep_seen")]
    assert called == ["main on main", "inner on main", "deep on main"]
    assert log == ["enter main", "enter inner", "enter deep", "leave deep", "leave inner", "leave main"]


async def test_a_lifespan_of_an_included_server_runs_without_one_of_the_including_server() -> None:
    log: list[str] = []

    @asynccontextmanager
    async def lifespan(_: MCPServer[Any]) -> AsyncGenerator[None]:
        log.append("entered")
        yield

    main, other = MCPServer[Any]("main"), MCPServer[Any]("other", lifespan=lifespan)
    assert main.ready
    main.include(other)
    assert not main.ready
    async with Client(main):
        assert log == ["entered"]


async def test_override_works_through_either_server() -> None:
    main, other = MCPServer[Any]("main"), shop()
    main.include(other, prefix="shop")
    person = Person({"confirm": accept(value=True)})
    async with Client(main, elicitation_callback=person) as client:
        with main.override(price, value=1), other.override(price, value=2):
            await client.call_tool("shop_order", {"title": "Dune"})
        with other.override(price, value=2):
            await client.call_tool("shop_order", {"title": "Dune"})
        await client.call_tool("shop_order", {"title": "Dune"})
    assert person.messages == ["Dune for 1?", "Dune for 2?", "Dune for 4?"]
    with main.override(price, value=3):

        @other.tool()
        async def late(title: str, ok: Annotated[bool, Resolve(confirm)]) -> str:
            return title

        async with Client(main, elicitation_callback=person) as client:
            await client.call_tool("shop_late", {"title": "Dune"})
    assert person.messages[-1] == "Dune for 3?"


async def test_changes_of_an_included_server_reach_the_clients_of_the_including_one() -> None:
    main, other, heard = MCPServer[Any]("main"), shop(), list[Any]()
    main.include(other, prefix="shop")

    async def hear(message: Any) -> None:
        heard.append((message["method"], message["params"].get("uri")))

    async with Client(main, mode="2025-11-25", message_handler=hear) as client:
        await client.session.request("resources/subscribe", {"uri": "stock://shop/today"})
        other.notify_resource_updated("stock://today")
        other.add_tool(confirm_nothing)
        await eventually(lambda: len(heard) == 2)
    assert heard == [
        ("notifications/resources/updated", "stock://shop/today"),
        ("notifications/tools/list_changed", None),
    ]


async def test_custom_routes_of_an_included_server_are_served() -> None:
    main, other = MCPServer[Any]("main"), shop()
    main.include(other)

    @other.custom_route("/prices", methods=["GET"])
    async def prices(request: Any) -> HttpResponse:
        return HttpResponse("7")

    async with Listening(main.streamable_http_app()) as listening, httpx2.AsyncClient() as http:
        response = await http.get(listening.url.replace("/mcp", "/prices"))
    assert response.text == "7"


async def test_an_approval_is_spent_once_in_the_including_servers_ledger() -> None:
    main = MCPServer[Any]("main")
    main.include(shop(), prefix="shop")
    async with Client(main, elicitation_callback=Person()) as client:
        session = client.session
        asked: Any = await session.call_tool("shop_order", {"title": "Dune"}, allow_input_required=True)
        (key,) = asked.input_requests
        state: dict[str, Any] = {"request_state": asked.request_state}
        yes: Any = await session.call_tool(
            "shop_order", {"title": "Dune"}, input_responses={key: accept(value=True)}, **state
        )
        again: Any = await session.call_tool(
            "shop_order", {"title": "Dune"}, input_responses={key: accept(value=False)}, **state
        )
    assert text(yes) == "Dune: True"
    assert "already" in text(again)


async def test_completions_of_an_included_server_are_its_own() -> None:
    main, other = MCPServer[Any]("main"), shop()
    main.include(other, prefix="shop")
    assert "completions" not in main._catalogue.capabilities()  # pyright: ignore[reportPrivateUsage]

    async def titles(value: str) -> list[str]:
        return [f"{value}!"]

    @other.prompt()
    async def recommend(title: Annotated[str, Complete(titles)]) -> str:
        return title

    @other.completion()
    async def complete(ref: Any, argument: Any, context: Any) -> Completion:
        return Completion(values=[getattr(ref, "name", None) or ref.uri, argument.value])

    async with Client(main) as client:
        done = await client.complete(PromptReference(name="shop_recommend"), {"name": "title", "value": "D"})
        assert done.completion.values == ["D!"]
        done = await client.complete(PromptReference(name="shop_greet"), {"name": "name", "value": "A"})
        assert done.completion.values == ["greet", "A"]
        template = ResourceTemplateReference(uri="stock://shop/books/{title}")
        done = await client.complete(template, {"name": "title", "value": "E"})
        assert done.completion.values == ["stock://books/{title}", "E"]


def test_a_server_with_authentication_is_not_included_in_an_open_one() -> None:
    issuer = Issuer()
    with pytest.raises(ValueError, match="has authentication, and this server has none: included, everything of it"):
        MCPServer[Any]("open").include(protected_server(issuer))
    protected_server(issuer).include(MCPServer("open"))
