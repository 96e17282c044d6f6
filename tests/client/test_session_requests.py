"""Single requests of a session and of a client: what is sent, what is returned, and what a revision does not have."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from mcp_types import (
    EmptyResult,
    GetPromptResult,
    InputRequiredResult,
    PaginatedRequestParams,
    PromptReference,
    ReadResourceResult,
    ResourceTemplateReference,
)

from bespeak import Client
from bespeak.client import ClientSession, InvalidServerResponse, NotAtThisVersion
from tests.client.older_server import OldServer
from tests.client.sample_questions import FORM, list_roots
from tests.client.scripted_transport import Fake, Wire, asking, lost

PROMPT: dict[str, Any] = {"resultType": "complete", "messages": []}
READ: dict[str, Any] = {"resultType": "complete", "contents": [], "ttlMs": 0, "cacheScope": "private"}


def sent(fake: Fake) -> list[tuple[str, dict[str, Any]]]:
    """The methods and params of all requests, without metadata."""
    return [
        (request["method"], {name: value for name, value in request["params"].items() if name != "_meta"})
        for request in fake.requests
    ]


# Prompts and resources


async def test_a_prompt_is_requested_with_its_arguments() -> None:
    fake = Fake(PROMPT)
    async with Client(fake) as client:
        await client.get_prompt("greet", {"name": "Ana"}, meta={"com.example/x": 1})
        await client.get_prompt("greet")
    assert sent(fake) == [
        ("prompts/get", {"name": "greet", "arguments": {"name": "Ana"}}),
        ("prompts/get", {"name": "greet"}),
    ]
    assert fake.params[0]["_meta"]["com.example/x"] == 1


async def test_a_question_of_a_prompt_or_a_resource_is_returned_by_a_session_that_is_told_to() -> None:
    for send in ("get_prompt", "read_resource"):
        fake = Fake(asking({"q": FORM}, "s1"), {**PROMPT, **READ})
        async with Client(fake) as client:
            method = getattr(client.session, send)
            asked = await method("a://b", allow_input_required=True)
            assert isinstance(asked, InputRequiredResult)
            done = await method("a://b", input_responses={"q": {"action": "decline"}}, request_state="s1")
        assert isinstance(done, GetPromptResult if send == "get_prompt" else ReadResourceResult)
        assert fake.params[1]["inputResponses"] == {"q": {"action": "decline"}}
        assert fake.params[1]["requestState"] == "s1"


@pytest.mark.parametrize("send", ["get_prompt", "read_resource"])
async def test_a_question_that_the_caller_of_a_session_does_not_expect_is_an_error(send: str) -> None:
    async with Client(Fake(asking({"q": FORM}))) as client:
        with pytest.raises(
            RuntimeError, match=rf"'a://b' requires input; pass allow_input_required=True or use Client\.{send}"
        ):
            await getattr(client.session, send)("a://b")


@pytest.mark.parametrize("send", ["get_prompt", "read_resource"])
async def test_answers_and_a_state_that_were_kept_are_sent_with_the_first_request(send: str) -> None:
    fake = Fake({**PROMPT, **READ})
    async with Client(fake) as client:
        await getattr(client, send)("a://b", input_responses={"q": {"action": "decline"}}, request_state="")
    assert fake.params[0]["inputResponses"] == {"q": {"action": "decline"}}
    assert fake.params[0]["requestState"] == ""


async def test_over_http_the_name_or_the_uri_is_repeated_in_a_header() -> None:
    wire = Wire({**PROMPT, **READ})
    async with Client(wire) as client:
        await client.get_prompt("greet")
        await client.read_resource("a://ü")
    names = [request.headers["Mcp-Name"] for request in wire.sent[1:]]
    assert names == ["greet", "=?base64?YTovL8O8?="]


async def test_a_prompt_whose_response_is_lost_is_not_requested_again() -> None:
    wire = Wire(lost)
    async with Client(wire) as client:
        with pytest.raises(ConnectionError):
            await client.get_prompt("greet")
    assert wire.methods[1:] == ["prompts/get"]


# Lists

LISTS = [
    ("list_tools", "tools/list", "tools"),
    ("list_prompts", "prompts/list", "prompts"),
    ("list_resources", "resources/list", "resources"),
    ("list_resource_templates", "resources/templates/list", "resourceTemplates"),
]


@pytest.mark.parametrize(("send", "method", "member"), LISTS)
async def test_a_list_is_read_page_by_page_and_an_empty_cursor_is_a_cursor(send: str, method: str, member: str) -> None:
    fake = Fake({member: [], "nextCursor": ""}, {member: []})
    async with Client(fake) as client:
        first = await getattr(client, send)()
        assert first.next_cursor == ""
        assert (await getattr(client, send)(cursor=first.next_cursor)).next_cursor is None
    assert sent(fake) == [(method, {}), (method, {"cursor": ""})]


@pytest.mark.parametrize(("send", "method", "member"), LISTS)
async def test_a_session_lists_with_the_params_of_the_protocol(send: str, method: str, member: str) -> None:
    fake = Fake({member: []})
    async with Client(fake) as client:
        params = PaginatedRequestParams.model_validate({"cursor": "two", "_meta": {"com.example/x": 1}})
        await getattr(client.session, send)(params=params)
        await getattr(client.session, send)()
    assert sent(fake) == [(method, {"cursor": "two"}), (method, {})]
    assert fake.params[0]["_meta"]["com.example/x"] == 1


@pytest.mark.parametrize(("send", "method", "member"), LISTS)
async def test_a_malformed_list_is_an_invalid_response(send: str, method: str, member: str) -> None:
    async with Client(Fake({member: 5})) as client:
        with pytest.raises(InvalidServerResponse, match=f"is malformed: see {member}"):
            await getattr(client, send)()


@pytest.mark.parametrize(("send", "method", "member"), LISTS)
async def test_a_list_whose_response_is_lost_is_requested_again(send: str, method: str, member: str) -> None:
    wire = Wire(lost, {member: []})
    async with Client(wire) as client:
        await getattr(client, send)()
    assert wire.methods[1:] == [method, method]


# Completions


async def test_a_completion_names_the_argument_and_what_is_known_of_the_others() -> None:
    fake = Fake({"completion": {"values": ["python"], "total": 1, "hasMore": False}})
    async with Client(fake) as client:
        found = await client.complete(PromptReference(name="review"), {"name": "language", "value": "py"})
        template = ResourceTemplateReference(uri="shop://{shoe}")
        await client.complete(template, {"name": "shoe", "value": ""}, {"size": "43"})
    assert found.completion.values == ["python"]
    assert sent(fake) == [
        (
            "completion/complete",
            {"ref": {"type": "ref/prompt", "name": "review"}, "argument": {"name": "language", "value": "py"}},
        ),
        (
            "completion/complete",
            {
                "ref": {"type": "ref/resource", "uri": "shop://{shoe}"},
                "argument": {"name": "shoe", "value": ""},
                "context": {"arguments": {"size": "43"}},
            },
        ),
    ]


# What only the legacy era has

Send = Callable[[Client | ClientSession], Awaitable[Any]]
LEGACY_ONLY: list[tuple[Send, str, dict[str, Any], str]] = [
    (
        lambda one: one.subscribe_resource("a://b"),
        "resources/subscribe",
        {"uri": "a://b"},
        "use `async with client.listen(resource_subscriptions=[uri]):`",
    ),
    (
        lambda one: one.unsubscribe_resource("a://b"),
        "resources/unsubscribe",
        {"uri": "a://b"},
        "leave the block of `async with client.listen(...):`",
    ),
    (
        lambda one: one.set_logging_level("error"),
        "logging/setLevel",
        {"level": "error"},
        "pass log_level= to Client(...), which sends it with each request",
    ),
    (
        lambda one: one.send_ping(),
        "ping",
        {},
        "any other request shows whether the server responds, such as session.discover()",
    ),
    (
        lambda one: one.send_progress_notification("t", 0.5, message="half"),
        "notifications/progress",
        {"progressToken": "t", "progress": 0.5, "message": "half"},
        "servers send no requests that a client could make progress on",
    ),
    (
        lambda one: one.send_roots_list_changed(),
        "notifications/roots/list_changed",
        {},
        "a server asks list_roots_callback whenever it needs the roots",
    ),
]


async def empty(server: OldServer, message: dict[str, Any]) -> dict[str, Any]:
    return {}


@pytest.mark.parametrize(("send", "method", "params", "instead"), LEGACY_ONLY)
async def test_what_only_the_legacy_era_has_is_sent_there(
    send: Send, method: str, params: dict[str, Any], instead: str
) -> None:
    server = OldServer(resources_subscribe=empty, resources_unsubscribe=empty, logging_setLevel=empty, ping=empty)
    async with Client(server, mode="legacy") as client:
        for one in (client, client.session):
            result = await send(one)
            assert result is None or isinstance(result, EmptyResult)
    first, second = server.told(method)
    assert first.get("params", {}) == params
    assert second.get("params", {}) == params


@pytest.mark.parametrize(("send", "method", "params", "instead"), LEGACY_ONLY)
async def test_what_only_the_legacy_era_has_is_an_error_that_says_what_to_do_instead(
    send: Send, method: str, params: dict[str, Any], instead: str
) -> None:
    fake = Fake({})
    async with Client(fake) as client:
        for one in (client, client.session):
            with pytest.raises(NotAtThisVersion) as refused:
                await send(one)
            assert str(refused.value) == f"{method} does not exist at protocol version 2026-07-28; {instead}"
            assert refused.value.method == method
    assert (fake.requests, fake.said) == ([], [])


async def test_a_client_that_can_say_that_its_roots_have_changed_declares_it_in_the_handshake() -> None:
    server = OldServer()
    async with Client(server, mode="legacy", list_roots_callback=list_roots):
        (initialize,) = server.told("initialize")
    assert initialize["params"]["capabilities"]["roots"] == {"listChanged": True}


async def test_nothing_can_be_requested_before_the_client_is_connected() -> None:
    client = Client(Fake({}))
    for send in (
        client.list_prompts,
        client.list_resources,
        client.list_resource_templates,
        client.send_ping,
        client.send_roots_list_changed,
        lambda: client.get_prompt("a"),
        lambda: client.read_resource("a://b"),
        lambda: client.complete(PromptReference(name="a"), {}),
    ):
        with pytest.raises(RuntimeError, match="the client is not connected"):
            await send()
