"""Completing arguments, in both eras: what a function is given, and how much of what it returns is sent."""

import threading
from collections.abc import AsyncIterator, Awaitable, Iterator
from typing import Annotated, Any

import pytest
from mcp_types import (
    Completion,
    PromptReference,
)
from pydantic import Field

from bespeak import Complete, Context, MCPError, MCPServer, Resolve
from tests.conftest import Connect
from tests.server.eras import Respond, Sent, both_eras, modern
from tests.server.features.completing import (
    INVALID,
    UNKNOWN_METHOD,
    completed,
    completing,
    echo,
    failure,
    library,
    returning,
    values,
    wanted,
)

# What a function is given


@both_eras
async def test_a_function_gets_the_text_typed_so_far(respond: Respond) -> None:
    def titles(text: str) -> list[str]:
        return [f"{text}ne"]

    assert await completed(completing(titles), wanted(), respond) == {"values": ["dune"], "total": 1, "hasMore": False}


async def test_a_modern_result_is_complete_and_has_no_cache_hint() -> None:
    response = await modern(completing(echo), "completion/complete", wanted())
    assert response["result"]["resultType"] == "complete"
    assert "ttlMs" not in response["result"]


async def test_a_parameter_named_value_gets_the_text_wherever_it_stands() -> None:
    def titles(region: str, value: str) -> list[str]:
        return [f"{region}/{value}"]

    assert await values(titles, {"region": "eu"}) == ["eu/du"]


@both_eras
async def test_other_arguments_arrive_as_the_prompt_would_get_them(respond: Respond) -> None:
    def titles(value: str, copies: int) -> list[str]:
        return [f"{copies!r}"]

    mcp = completing(titles)
    assert (await completed(mcp, wanted(arguments={"copies": "7"}), respond))["values"] == ["7"]
    assert (await completed(mcp, wanted(arguments={}), respond))["values"] == ["1"]
    assert (await completed(mcp, {**wanted(), "context": {}}, respond))["values"] == ["1"]
    assert (await completed(mcp, wanted(), respond))["values"] == ["1"]


async def test_nothing_is_suggested_while_an_argument_is_missing_that_is_needed() -> None:
    def titles(value: str, region: str) -> list[str]:
        return [region]

    async def shelf(region: str) -> str:
        return region

    def by_shelf(value: str, it: Annotated[str, Resolve(shelf)]) -> list[str]:
        return [it]

    assert await values(titles) == await values(by_shelf) == []
    assert await values(titles, {"region": "eu"}) == await values(by_shelf, {"region": "eu"}) == ["eu"]


async def test_a_missing_argument_leaves_the_functions_own_default() -> None:
    def titles(value: str, region: str = "anywhere") -> list[str]:
        return [region]

    assert await values(titles) == ["anywhere"]


async def test_an_invalid_argument_that_is_needed_is_refused_and_another_is_not() -> None:
    def titles(value: str, copies: int) -> list[str]:
        return [value]

    sent = {"copies": "many"}
    error = await failure(completing(titles), wanted(arguments=sent))
    assert error["code"] == INVALID
    assert error["message"].startswith("params.context.arguments: invalid arguments: copies:")
    assert await values(echo, sent) == ["du"]


@both_eras
async def test_a_function_gets_the_context_and_what_resolvers_return(respond: Respond) -> None:
    async def stock(region: str, ctx: Context) -> list[str]:
        return [f"{region}-{ctx.protocol_version}"]

    async def titles(value: str, ctx: Context, found: Annotated[list[str], Resolve(stock)]) -> list[str]:
        return [*found, str(ctx.request_id)]

    version = "2026-07-28" if respond is modern else "2025-11-25"
    assert (await values(titles, {"region": "eu"}, respond))[0] == f"eu-{version}"


async def test_generators_below_a_completion_are_closed() -> None:
    closed: list[str] = []

    async def connection() -> AsyncIterator[str]:
        yield "open"
        closed.append("closed")

    def titles(value: str, it: Annotated[str, Resolve(connection)]) -> list[str]:
        return [it, *closed]

    assert await values(titles) == ["open"]
    assert closed == ["closed"]


async def test_a_sync_function_runs_in_a_worker_thread_lazily_or_not() -> None:
    def lazily(value: str) -> Iterator[str]:
        yield threading.current_thread().name

    def at_once(value: str) -> list[str]:
        return [threading.current_thread().name]

    here = threading.current_thread().name
    assert await values(lazily) != [here]
    assert await values(at_once) != [here]


async def test_what_a_sync_function_returns_is_awaited() -> None:
    async def later(value: str) -> list[str]:
        return [value]

    def titles(value: str) -> Awaitable[list[str]]:
        return later(value)

    assert await values(titles) == ["du"]


async def test_an_argument_is_completed_under_every_name_it_may_be_sent_under() -> None:
    mcp = MCPServer("shop")

    def titles(value: str, shelf: str) -> list[str]:
        return [value + shelf]

    @mcp.prompt()
    def order(
        title_: Annotated[str, Complete(titles), Field(alias="title")],
        shelf: Annotated[str, Field(alias="shelf-name")],
    ) -> str:
        return title_

    assert (await completed(mcp, wanted(arguments={"shelf-name": "A"})))["values"] == ["duA"]
    assert (await failure(mcp, wanted(argument="title_")))["code"] == INVALID


# Over every transport


@pytest.mark.every_revision
async def test_a_client_completes_an_argument(connect: Connect) -> None:
    async def stock(region: str) -> list[str]:
        return [f"dune ({region})", "emma"]

    async def titles(value: str, found: Annotated[list[str], Resolve(stock)]) -> list[str]:
        return [one for one in found if one.startswith(value)]

    async with connect(completing(titles)) as client:
        argument = {"name": "title", "value": "du"}
        result = await client.complete(PromptReference(name="order"), argument, {"region": "eu"})
    assert result.completion == Completion(values=["dune (eu)"], total=1, has_more=False)


@pytest.mark.every_revision
async def test_a_server_without_completions_refuses_over_every_transport(connect: Connect) -> None:
    async with connect(MCPServer("shop")) as client:
        with pytest.raises(MCPError, match=r"^this server has no completions$") as caught:
            await client.complete(PromptReference(name="order"), {"name": "title", "value": ""})
    assert caught.value.code == UNKNOWN_METHOD


# Resource templates


@both_eras
@pytest.mark.parametrize("uri", ["books://{shelf}/{title}", "books://a/b"])
async def test_a_template_is_named_by_itself_or_by_one_of_its_uris(uri: str, respond: Respond) -> None:
    params = {
        "ref": {"type": "ref/resource", "uri": uri},
        "argument": {"name": "title", "value": "d"},
        "context": {"arguments": {"shelf": "A"}},
    }
    assert (await completed(library(), params, respond))["values"] == ["A:d"]


@both_eras
@pytest.mark.parametrize(
    ("uri", "name", "message"),
    [
        ("books://nowhere", "title", "unknown resource 'books://nowhere'"),
        ("books://all", "title", "there is no argument 'title' of resource 'books://all'"),
        (
            "books://{shelf}/{title}",
            "author",
            "there is no argument 'author' of resource 'books://{shelf}/{title}'",
        ),
    ],
)
async def test_an_unknown_resource_or_argument_is_refused(uri: str, name: str, message: str, respond: Respond) -> None:
    params = {"ref": {"type": "ref/resource", "uri": uri}, "argument": {"name": name, "value": ""}}
    error = await failure(library(), params, respond)
    assert (error["code"], error["message"]) == (INVALID, message)


# How much is sent


async def test_at_most_a_hundred_values_are_sent() -> None:
    many = [str(number) for number in range(150)]
    found = await completed(completing(returning(many)), wanted())
    assert found == {"values": many[:100], "total": 150, "hasMore": True}


async def test_a_hundred_values_are_all() -> None:
    many = [str(number) for number in range(100)]
    found = await completed(completing(returning(many)), wanted())
    assert found == {"values": many, "total": 100, "hasMore": False}


async def test_what_never_ends_is_cut_without_a_total() -> None:
    def endless(value: str) -> Iterator[str]:
        while True:
            yield value

    assert await completed(completing(endless), wanted()) == {"values": ["du"] * 100, "hasMore": True}


@pytest.mark.parametrize(
    ("returned", "sent"),
    [
        (Completion(values=["a"]), {"values": ["a"]}),
        (Completion(values=["a"], total=9, has_more=True), {"values": ["a"], "total": 9, "hasMore": True}),
        (Completion(values=["a"] * 101), {"values": ["a"] * 100, "total": 101, "hasMore": True}),
        (Completion(values=["a"] * 101, total=500), {"values": ["a"] * 100, "total": 500, "hasMore": True}),
        (None, {"values": [], "total": 0, "hasMore": False}),
        (("a", "b"), {"values": ["a", "b"], "total": 2, "hasMore": False}),
    ],
)
async def test_a_completion_or_any_iterable_may_be_returned(returned: Any, sent: Sent) -> None:
    assert await completed(completing(returning(returned)), wanted()) == sent
