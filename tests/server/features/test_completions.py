"""Completing arguments, in both eras: what a function is given, how much of what it returns is sent, and all refusals."""

import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import Annotated, Any

import pytest
from mcp_types import (
    Completion,
    CompletionArgument,
    CompletionContext,
    InputRequiredResult,
    PromptReference,
    ResourceTemplateReference,
)
from pydantic import Field

from bespeak import Complete, Context, Elicit, InvalidSignature, MCPServer, Resolve, ToolError
from bespeak.server import Prompt
from bespeak.server.context_errors import CannotPush
from tests.server.eras import FIRST, Respond, Sent, both_eras, legacy, modern
from tests.server.legacy.older_client import Older

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


# Resource templates


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


# Failures


def crashing(value: str) -> list[str]:
    raise LookupError("the password is 1234")


def refusing(value: str) -> list[str]:
    raise ToolError("the catalogue is closed")


@both_eras
async def test_a_crash_is_logged_and_the_client_reads_only_what_failed(
    respond: Respond, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR, "bespeak.server"):
        error = await failure(completing(crashing), wanted(), respond)
    assert error == {"code": INTERNAL, "message": "Error completing argument 'title' of prompt 'order'"}
    (record,) = caplog.records
    assert record.message == "the completion of argument 'title' of prompt 'order' failed"
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], LookupError)


async def test_an_authors_own_words_are_read() -> None:
    error = await failure(completing(refusing), wanted())
    assert error["message"] == "Error completing argument 'title' of prompt 'order': the catalogue is closed"


async def test_a_resolver_that_fails_is_named() -> None:
    async def stock() -> list[str]:
        raise LookupError

    def titles(value: str, found: Annotated[list[str], Resolve(stock)]) -> list[str]: ...

    error = await failure(completing(titles), wanted())
    assert error["code"] == INTERNAL
    assert "resolver '" in error["message"]
    assert "stock" in error["message"]


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ("dune", "a completion function returned str; return a list of texts"),
        (b"dune", "a completion function returned bytes; return a list of texts"),
        (7, "a completion function returned int; return a list of texts"),
        (["dune", 7], "a completion function returned a value of type int; return a list of texts"),
        (Elicit("Which?", str), "a completion function returned Elicit, but a completion cannot ask"),
        (
            InputRequiredResult(request_state="kept"),
            "a completion function returned InputRequiredResult, but a completion cannot ask",
        ),
    ],
)
@both_eras
async def test_what_is_not_a_list_of_texts_is_a_failure(
    returned: Any, message: str, respond: Respond, caplog: pytest.LogCaptureFixture
) -> None:
    async def later(value: str) -> Any:
        return returned

    def returning_later(value: str) -> Any:
        return later(value)

    for fn in (later, returning(returned), returning_later):
        caplog.clear()
        error = await failure(completing(fn), wanted(), respond)
        assert error["code"] == INTERNAL
        (record,) = caplog.records
        assert record.exc_info is not None
        assert str(record.exc_info[1]) == message


@both_eras
async def test_a_completion_asks_nobody(respond: Respond, caplog: pytest.LogCaptureFixture) -> None:
    async def by_form(value: str, ctx: Context) -> list[str]:
        await ctx.elicit("Which?", str)
        return []

    async def by_url(value: str, ctx: Context) -> list[str]:
        await ctx.elicit_url("Where?", "https://example.com")
        return []

    async def by_roots(value: str, ctx: Context) -> list[str]:
        await ctx.session.list_roots()
        return []

    for fn, what in ((by_form, "elicit"), (by_url, "elicit_url"), (by_roots, "session.list_roots")):
        caplog.clear()
        assert (await failure(completing(fn), wanted(), respond))["code"] == INTERNAL
        (record,) = caplog.records
        assert record.exc_info is not None
        assert isinstance(record.exc_info[1], CannotPush)
        assert str(record.exc_info[1]) == (
            f"The completion of argument 'title' of prompt 'order' called ctx.{what}(), but a completion cannot ask"
        )


async def test_a_state_sent_with_a_completion_means_nothing() -> None:
    sent = {**wanted(), "requestState": "forged", "inputResponses": {"x": {"action": "accept"}}}
    assert (await completed(completing(echo), sent))["values"] == ["du"]


# Requests


REF = "params.ref must be {'type': 'ref/prompt', 'name': ...} or {'type': 'ref/resource', 'uri': ...}"
ARGUMENT = "params.argument must have the name of an argument and its value as text"
CONTEXT = "params.context.arguments must be an object whose values are strings"


@both_eras
@pytest.mark.parametrize(
    ("sent", "message"),
    [
        ({"ref": None}, REF),
        ({"ref": "order"}, REF),
        ({"ref": {"type": "ref/prompt"}}, REF),
        ({"ref": {"type": "ref/prompt", "name": 7}}, REF),
        ({"ref": {"type": "ref/resource", "name": "order"}}, REF),
        ({"ref": {"type": "ref/tool", "name": "order"}}, REF),
        ({"argument": None}, ARGUMENT),
        ({"argument": {"name": "title"}}, ARGUMENT),
        ({"argument": {"name": "title", "value": 7}}, ARGUMENT),
        ({"argument": {"name": ["title"], "value": ""}}, ARGUMENT),
        ({"context": []}, "params.context must be an object"),
        ({"context": {"arguments": []}}, CONTEXT),
        ({"context": {"arguments": {"copies": 7}}}, CONTEXT),
        ({"ref": {"type": "ref/prompt", "name": "borrow"}}, "unknown prompt 'borrow'"),
        ({"argument": {"name": "author", "value": ""}}, "there is no argument 'author' of prompt 'order'"),
    ],
)
async def test_a_malformed_request_is_refused(sent: Sent, message: str, respond: Respond) -> None:
    error = await failure(completing(echo), {**wanted(), **sent}, respond)
    assert (error["code"], error["message"]) == (INVALID, message)


async def test_an_argument_without_a_completion_gets_no_values() -> None:
    mcp = completing(echo)
    assert (await completed(mcp, wanted(argument="region")))["values"] == []


@both_eras
async def test_a_server_without_completions_does_not_know_the_method(respond: Respond) -> None:
    mcp = MCPServer("shop")

    @mcp.prompt()
    def order(title: str) -> str:
        return title

    error = await failure(mcp, wanted(), respond)
    assert (error["code"], error["message"]) == (UNKNOWN_METHOD, "this server has no completions")


async def test_the_capability_is_declared_if_anything_is_completed() -> None:
    async def declared(mcp: MCPServer[Any]) -> list[bool]:
        discovered = (await modern(mcp, "server/discover"))["result"]["capabilities"]
        async with Older(mcp) as client:
            return ["completions" in discovered, "completions" in client.hello["capabilities"]]

    handled = MCPServer[Any]("handled")

    @handled.completion()
    async def handler(ref: Any, argument: Any, context: Any) -> Completion | None: ...

    assert await declared(MCPServer("none")) == [False, False]
    assert await declared(completing(echo)) == [True, True]
    assert await declared(library()) == [True, True]
    assert await declared(handled) == [True, True]


async def test_the_oldest_clients_complete_too() -> None:
    response = await legacy(completing(echo), "completion/complete", wanted(), FIRST)
    assert response["result"] == {"completion": {"values": ["du"], "total": 1, "hasMore": False}}


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


async def stock() -> list[str]:
    return ["real"]


def from_stock(value: str, found: Annotated[list[str], Resolve(stock)]) -> list[str]:
    return found


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
