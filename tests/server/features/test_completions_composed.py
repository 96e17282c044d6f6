"""Completions by the handler of a server, below overrides, of included servers, and within the bounds on calls."""

from collections.abc import Sequence
from typing import Annotated, Any

import pytest
from mcp_types import (
    Completion,
    CompletionArgument,
    CompletionContext,
    PromptReference,
    ResourceTemplateReference,
)

from bespeak import Complete, Elicit, InvalidSignature, MCPServer, Resolve
from bespeak.server import Prompt
from tests.server.eras import Respond, Sent, both_eras, modern
from tests.server.features.completing import completed, completing, echo, failure, returning, wanted


async def stock() -> list[str]:
    return ["real"]


def from_stock(value: str, found: Annotated[list[str], Resolve(stock)]) -> list[str]:
    return found


# The handler


def handled() -> tuple[MCPServer[Any], list[Any]]:
    mcp, seen = completing(returning(["by the function"])), list[Any]()

    @mcp.resource("books://{title}")
    def book(title: str) -> str:
        return title

    @mcp.completion()
    async def handler(
        ref: PromptReference | ResourceTemplateReference,
        argument: CompletionArgument,
        context: CompletionContext | None,
    ) -> Completion | None:
        seen.append((ref, argument, context))
        return Completion(values=["by the handler"]) if argument.value else None

    return mcp, seen


@both_eras
async def test_the_handler_completes_what_has_no_function(respond: Respond) -> None:
    mcp, seen = handled()
    assert (await completed(mcp, wanted(), respond))["values"] == ["by the function"]
    sent = wanted("e", {"title": "Dune"}, "region")
    sent["ref"]["title"] = "Order"
    assert (await completed(mcp, sent, respond))["values"] == ["by the handler"]
    params = {"ref": {"type": "ref/resource", "uri": "books://{title}"}, "argument": {"name": "title", "value": ""}}
    assert (await completed(mcp, params, respond))["values"] == []
    assert seen == [
        (
            PromptReference(name="order", title="Order"),
            CompletionArgument(name="region", value="e"),
            CompletionContext(arguments={"title": "Dune"}),
        ),
        (ResourceTemplateReference(uri="books://{title}"), CompletionArgument(name="title", value=""), None),
    ]


async def test_the_handler_may_be_sync_and_take_resolved_values() -> None:
    mcp = completing(echo)

    async def stock() -> list[str]:
        return ["eu"]

    @mcp.completion()
    def handler(ref: Any, argument: Any, context: Any, found: Annotated[list[str], Resolve(stock)]) -> Completion:
        return Completion(values=found)

    assert (await completed(mcp, wanted(argument="region")))["values"] == ["eu"]
    with mcp.override(stock, value=["us"]):
        assert (await completed(mcp, wanted(argument="region")))["values"] == ["us"]


# Overrides


async def test_an_override_reaches_resolvers_below_completions() -> None:
    mcp = completing(from_stock)
    with mcp.override(stock, value=["fake"]):
        assert (await completed(mcp, wanted()))["values"] == ["fake"]
        mcp.remove_prompt("order")

        @mcp.prompt()
        def order(title: Annotated[str, Complete(from_stock)]) -> str:
            return title

        assert (await completed(mcp, wanted()))["values"] == ["fake"]
    assert (await completed(mcp, wanted()))["values"] == ["real"]


async def test_a_replacement_below_a_completion_may_not_ask() -> None:
    async def ask() -> list[str] | Elicit[str]:
        return []

    mcp = completing(from_stock)
    with pytest.raises(InvalidSignature, match="may ask, but a completion cannot ask"), mcp.override(stock, ask):
        pass
    assert (await completed(mcp, wanted()))["values"] == ["real"]


async def test_a_prompt_of_two_servers_is_overridden_on_one() -> None:
    def order(title: Annotated[str, Complete(from_stock)], found: Annotated[Sequence[str], Resolve(stock)]) -> str:
        return found[0]

    prompt = Prompt.from_function(order)
    one, two = MCPServer[Any]("one"), MCPServer[Any]("two")
    one.add_prompt(prompt)
    two.add_prompt(prompt)
    with one.override(stock, value=["fake"]):
        assert (await completed(one, wanted()))["values"] == ["fake"]
        assert (await completed(two, wanted()))["values"] == ["real"]
        result = await modern(two, "prompts/get", {"name": "order", "arguments": {"title": ""}})
        assert result["result"]["messages"][0]["content"]["text"] == "real"


# Included servers


def books() -> tuple[MCPServer[Any], list[Any]]:
    """A server with a function and a handler of its own, to be included in another."""
    mcp, seen = completing(from_stock), list[Any]()

    @mcp.resource("books://{title}")
    def book(title: str) -> str:
        return title

    @mcp.completion()
    async def handler(ref: Any, argument: Any, context: Any) -> Completion:
        seen.append(ref)
        return Completion(values=["by the handler"])

    return mcp, seen


async def test_an_included_server_completes_what_it_registered() -> None:
    inner, seen = books()
    middle, outer = MCPServer[Any]("middle"), MCPServer[Any]("outer")
    middle.include(inner, prefix="inner")
    outer.include(middle, prefix="middle")

    @outer.prompt()
    def own(title: str) -> str:
        return title

    prompt = {"type": "ref/prompt", "name": "middle_inner_order"}
    template = {"type": "ref/resource", "uri": "books://middle/inner/{title}"}
    assert (await completed(outer, {**wanted(), "ref": prompt}))["values"] == ["real"]
    assert (await completed(outer, {**wanted(argument="region"), "ref": prompt}))["values"] == ["by the handler"]
    assert (await completed(outer, {**wanted(), "ref": template}))["values"] == ["by the handler"]
    assert seen == [PromptReference(name="order"), ResourceTemplateReference(uri="books://{title}")]
    assert (await completed(outer, {**wanted(), "ref": {"type": "ref/prompt", "name": "own"}}))["values"] == []
    discovered = await modern(outer, "server/discover")
    assert discovered["result"]["capabilities"]["completions"] == {}


async def test_an_override_on_the_outer_server_does_not_reach_the_inner_one() -> None:
    inner, _ = books()
    outer = MCPServer[Any]("outer")
    outer.include(inner)
    with outer.override(stock, value=["fake"]):
        assert (await completed(outer, wanted()))["values"] == ["fake"]
        assert (await completed(inner, wanted()))["values"] == ["real"]
    with inner.override(stock, value=["fake"]):
        assert (await completed(outer, wanted()))["values"] == ["fake"]


# Limits


@both_eras
async def test_completions_count_among_the_calls_that_run_at_the_same_time(respond: Respond) -> None:
    mcp = MCPServer[Any]("shop", max_concurrent_calls=1)
    inner: list[Sent] = []

    async def titles(value: str) -> list[str]:
        inner.append(await failure(mcp, wanted(), respond))
        return [value]

    @mcp.prompt()
    def order(title: Annotated[str, Complete(titles)]) -> str:
        return title

    assert (await completed(mcp, wanted(), respond))["values"] == ["du"]
    assert inner[0]["message"].startswith("Error completing argument 'title' of prompt 'order': 1 calls are running")
    assert (await completed(mcp, wanted(), respond))["values"] == ["du"]
