"""What belongs to one principal is of no use to another: states, stored results, sessions, and shares of the ledger."""

import asyncio
import logging
import threading
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import pytest

from bespeak import Client, Context, Elicit, MCPError, MCPServer, RequestStateSecurity, Resolve
from bespeak.client import streamable_http_client
from bespeak.protocol.question_keys import bare_name
from bespeak.server import MemoryStore
from bespeak.server.auth import AuthSettings, JWTVerifier, get_access_token
from tests.answering import Person, text
from tests.answering import accept as accepts
from tests.rules.raw_calls import accept, nobody, said, send
from tests.server.auth.issuers import ISSUER, OMIT, RESOURCE, Issuer, protected_server
from tests.transports.http.legacy.older_client import (
    NOVEMBER,
    Exchange,
    Older,
    accepted,
    call,
    cancelled,
    hello,
    modern,
    notification,
)
from tests.wires import Listening

ISSUED = Issuer()


async def approve() -> Elicit[bool]:
    return Elicit("Really?", bool)


def make_server(**options: Any) -> MCPServer[Any]:
    mcp = protected_server(ISSUED, **options)

    @mcp.tool()
    async def whoami(ctx: Context) -> str:
        token = ctx.access_token
        assert token is get_access_token()
        return f"{ctx.principal} {token.client_id if token else None}"

    @mcp.tool()
    async def pay(ctx: Context, approval: Annotated[bool, Resolve(approve, key="approve")]) -> str:
        return f"paid {approval} for {ctx.principal}"

    @mcp.tool()
    def plain() -> str:
        token = get_access_token()
        return f"{token.subject if token else None} {threading.current_thread() is threading.main_thread()}"

    return mcp


@asynccontextmanager
async def calling(server: Listening, token: str, **options: Any) -> AsyncGenerator[Client]:
    transport = streamable_http_client(server.url, headers={"Authorization": f"Bearer {token}"})
    options = {"elicitation_callback": nobody, **options}
    async with Client(transport, **options) as client:
        yield client


@pytest.fixture
async def server() -> AsyncGenerator[Listening]:
    async with Listening(make_server().streamable_http_app()) as listening:
        yield listening


# The context


@pytest.mark.parametrize("mode", ["auto", NOVEMBER])
async def test_a_tool_knows_who_calls(server: Listening, mode: str) -> None:
    async with calling(server, ISSUED.token("alice"), mode=mode) as client:
        assert text(await client.call_tool("whoami")) == f"{ISSUER}#sub=alice agent"
        assert text(await client.call_tool("plain")) == "alice False"
    async with calling(server, ISSUED.token(OMIT), mode=mode) as client:
        assert text(await client.call_tool("whoami")) == f"{ISSUER}#client_id=agent agent"


async def test_requests_at_the_same_time_each_have_their_own_caller(server: Listening) -> None:
    async def subject(name: str) -> str:
        async with calling(server, ISSUED.token(name)) as client:
            return text(await client.call_tool("plain"))

    names = [f"person {number}" for number in range(8)]
    assert await asyncio.gather(*map(subject, names)) == [f"{name} False" for name in names]


async def test_without_http_nobody_is_authenticated_and_everything_works() -> None:
    async with Client(make_server(), elicitation_callback=Person({"approve": accepts(value=True)})) as client:
        assert text(await client.call_tool("whoami")) == "None None"
        assert text(await client.call_tool("pay")) == "paid True for None"


def test_a_context_made_by_hand_has_no_access_token() -> None:
    assert Context(headers={"authorization": "Bearer x"}).access_token is None


# States


async def asked(client: Client) -> tuple[str, dict[str, Any]]:
    """Start to pay: the state, and the answer to its question."""
    result = await send(client, "pay")
    (key,) = result["inputRequests"]
    assert bare_name(key) == "approve"
    return result["requestState"], {key: accept(value=True)}


@pytest.mark.parametrize(
    "other",
    [
        ISSUED.token("bob"),
        ISSUED.token("Alice"),
        ISSUED.token(OMIT),
        ISSUED.token(OMIT, client_id="alice"),
    ],
    ids=["another person", "other case", "the client alone", "a client of that name"],
)
async def test_the_state_of_one_principal_is_refused_to_another(
    server: Listening, other: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with calling(server, ISSUED.token("alice")) as alice, calling(server, other) as bob:
        state, answers = await asked(alice)
        with caplog.at_level(logging.WARNING), pytest.raises(MCPError) as caught:
            await send(bob, "pay", answers, state)
        assert (caught.value.code, caught.value.message) == (
            -32602,
            "invalid or expired requestState; if the call may have taken effect, check before you start it again",
        )
        assert "the principal of the state and of the request differ" in caplog.text
        assert said(await send(alice, "pay", answers, state)) == f"paid True for {ISSUER}#sub=alice"


async def test_a_stored_result_is_handed_out_to_its_principal_only(server: Listening) -> None:
    async with calling(server, ISSUED.token("alice")) as alice, calling(server, ISSUED.token("bob")) as bob:
        state, answers = await asked(alice)
        first = await send(alice, "pay", answers, state)
        assert await send(alice, "pay", answers, state) == first
        with pytest.raises(MCPError, match="invalid or expired requestState"):
            await send(bob, "pay", answers, state)


async def test_a_state_outlives_the_token_it_was_asked_with(server: Listening) -> None:
    async with calling(server, ISSUED.token("alice", client_id="agent")) as client:
        state, answers = await asked(client)
    expired = {**Older(server.port).headers(), "authorization": f"Bearer {ISSUED.token('alice', exp=1)}"}
    async with Exchange(server.port, "POST", expired, b"{}") as exchange:
        assert await exchange.head() == 401
    async with calling(server, ISSUED.token("alice", client_id="another device")) as client:
        assert said(await send(client, "pay", answers, state)) == f"paid True for {ISSUER}#sub=alice"


async def test_two_issuers_with_the_same_subject_are_two_principals() -> None:
    first, second = Issuer(), Issuer()
    security = RequestStateSecurity.ephemeral()
    desks = [
        MCPServer(
            "Shop",
            auth=(auth := AuthSettings(issuer_url=url, resource_server_url=RESOURCE)),
            token_verifier=JWTVerifier(auth, issuer.jwks),
            request_state_security=security,
        )
        for issuer, url in ((first, "https://a.example.com"), (second, "https://b.example.com"))
    ]
    for desk in desks:

        @desk.tool()
        async def pay(approval: Annotated[bool, Resolve(approve, key="approve")]) -> str:
            return f"paid {approval}"

    async with (
        Listening(desks[0].streamable_http_app()) as one,
        Listening(desks[1].streamable_http_app()) as two,
        calling(one, first.token("alice", iss="https://a.example.com")) as alice,
        calling(two, second.token("alice", iss="https://b.example.com")) as namesake,
    ):
        state, answers = await asked(alice)
        with pytest.raises(MCPError, match="invalid or expired requestState"):
            await send(namesake, "pay", answers, state)
        assert said(await send(alice, "pay", answers, state)) == "paid True"


# The ledger


async def test_each_principal_has_its_own_share_of_the_ledger() -> None:
    mcp = make_server(store=MemoryStore(max_claims=20))
    person = Person({"approve": accepts(value=True)})
    async with Listening(mcp.streamable_http_app()) as server:
        async with calling(server, ISSUED.token("flood"), elicitation_callback=person) as flood:
            assert [text(await flood.call_tool("pay")).startswith("paid") for _ in range(12)] == [True] * 11 + [False]
        async with calling(server, ISSUED.token("honest"), elicitation_callback=person) as honest:
            assert text(await honest.call_tool("pay")).startswith("paid")


# Sessions of older clients


async def shake_hands(server: Listening, token: str) -> Older:
    older = Older(server.port)
    reply = await older.post(hello(NOVEMBER), authorization=f"Bearer {token}")
    assert reply.status == 200
    return Older(server.port, NOVEMBER, reply.headers["mcp-session-id"])


ALICE, BOB = (f"Bearer {ISSUED.token(name)}" for name in ("alice", "bob"))


async def test_a_session_of_another_principal_does_not_exist(server: Listening) -> None:
    session = await shake_hands(server, ISSUED.token("alice"))
    unknown = Older(server.port, NOVEMBER, "no-such-session")
    for sent in (call("whoami"), notification("notifications/initialized"), accepted(1)):
        refused = await session.post(sent, authorization=BOB)
        made_up = await unknown.post(sent, authorization=BOB)
        assert (refused.status, refused.body) == (made_up.status, made_up.body)
        assert refused.status == 404
    assert (await session.get(authorization=BOB)).status == 404
    assert (await session.get(authorization=BOB, last_event_id="x")).status == 404
    assert (await session.delete(authorization=BOB)).status == 404
    assert (await session.post(call("whoami"), authorization=ALICE)).text == f"{ISSUER}#sub=alice agent"
    assert (await session.delete(authorization=ALICE)).status == 204


async def test_a_session_without_a_token_is_not_entered(server: Listening) -> None:
    session = await shake_hands(server, ISSUED.token("alice"))
    expired = f"Bearer {ISSUED.token('alice', exp=1)}"
    for changed in ({}, {"authorization": expired}):
        assert (await session.post(call("whoami"), **changed)).status == 401
        assert (await session.get(**changed)).status == 401
        assert (await session.delete(**changed)).status == 401


async def test_a_question_is_answered_by_its_own_principal_only(server: Listening) -> None:
    session = await shake_hands(server, ISSUED.token("alice"))
    async with session.open(call("pay"), authorization=ALICE) as exchange:
        question = await session.asked(exchange)
        assert (await session.post(accepted(question["id"]), authorization=BOB)).status == 404
        assert (await session.post(accepted(question["id"]))).status == 401
        renewed = f"Bearer {ISSUED.token('alice', jti='new')}"
        assert (await session.post(accepted(question["id"]), authorization=renewed)).status == 202
        assert (await exchange.message())["result"]["content"][0]["text"] == f"paid True for {ISSUER}#sub=alice"


async def test_on_several_workers_a_session_and_its_questions_belong_to_their_principal_too(tmp_path: Path) -> None:
    security = RequestStateSecurity(keys=["k" * 32])
    servers = [
        make_server(store=f"sqlite:{tmp_path / 'shop.db'}", request_state_security=security).streamable_http_app()
        for _ in range(2)
    ]
    async with Listening(servers[0]) as first, Listening(servers[1]) as second:
        session = await shake_hands(first, ISSUED.token("alice"))
        elsewhere = Older(second.port, NOVEMBER, session.session)
        async with session.open(call("pay"), authorization=ALICE) as exchange:
            question = await session.asked(exchange)
            for sent in (accepted(question["id"]), call("whoami"), cancelled(1)):
                assert (await elsewhere.post(sent, authorization=BOB)).status == 404
            assert (await elsewhere.delete(authorization=BOB)).status == 404
            assert (await elsewhere.post(accepted(question["id"]), authorization=ALICE)).status == 202
            assert (await exchange.message())["result"]["content"][0]["text"] == f"paid True for {ISSUER}#sub=alice"


# Streams


@pytest.mark.timing
async def test_streams_end_when_the_token_that_opened_them_expires(
    server: Listening, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bespeak.protocol.callers.SHORTEST_STREAM", 0.02)
    late = f"Bearer {ISSUED.token('alice', exp=int(time.time()) - 1)}"  # accepted because clocks may differ
    session = await shake_hands(server, ISSUED.token("alice"))
    async with session.stand(authorization=late) as standing:
        assert await standing.rest() == []
    listen = modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    more = {"mcp_method": "subscriptions/listen", "mcp_protocol_version": "2026-07-28", "authorization": late}
    async with Older(server.port).open(listen, **more) as listening:
        acknowledged, result = await listening.rest()
        assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
        assert result["id"] == 1
