"""Completions that fail, in both eras: crashes, questions, malformed requests, and servers without completions."""

import logging
from typing import Annotated, Any

import pytest
from mcp_types import (
    Completion,
    InputRequiredResult,
)

from bespeak import Context, Elicit, MCPServer, Resolve, ToolError
from bespeak.server.context_errors import CannotPush
from tests.server.eras import FIRST, Respond, Sent, both_eras, legacy, modern
from tests.server.features.completing import (
    INTERNAL,
    INVALID,
    UNKNOWN_METHOD,
    completed,
    completing,
    echo,
    failure,
    library,
    returning,
    wanted,
)
from tests.server.legacy.older_client import Older

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
