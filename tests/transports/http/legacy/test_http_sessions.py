"""HTTP sessions of older clients (protocol 25.3): ids, isolation, their end, and how many there may be."""

import asyncio
import gc
import re
from typing import Any

import pytest

from bespeak import Context, MCPServer
from bespeak.transports.http.legacy.http_sessions import HttpSession
from tests.transports.http.legacy.older_client import (
    JUNE,
    NOVEMBER,
    Desk,
    Older,
    Served,
    accepted,
    call,
    cancelled,
    hello,
    notification,
    request,
    served,
    text,
)
from tests.waiting import eventually

IDLE = 1800.0


class Clock:
    """The event loop's clock, which can be put forward."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        loop = asyncio.get_running_loop()
        real, self._ahead = loop.time, 0.0
        monkeypatch.setattr(loop, "time", lambda: real() + self._ahead)

    async def forward(self, seconds: float) -> None:
        self._ahead += seconds
        for _ in range(10):  # whatever is due now gets its turn
            await asyncio.sleep(0)


def alive() -> int:
    """How many sessions anything in this process still holds."""
    gc.collect()
    return sum(isinstance(one, HttpSession) for one in gc.get_objects())


# Ids


async def test_an_id_is_visible_ascii_unguessable_and_never_the_same_twice() -> None:
    async with served(Desk().mcp) as server, server.stranger().open(hello()) as exchange:
        ids: list[str] = []
        for _ in range(200):
            ids.append((await exchange.whole()).headers["mcp-session-id"])
            exchange.send()
        await exchange.whole()
    assert len(set(ids)) == 200
    assert all(re.fullmatch(r"[\x21-\x7e]{22,}", id_) for id_ in ids), "at least 128 bits"
    assert all(len({id_[place] for id_ in ids}) > 10 for place in range(22)), "no part of it is a counter or a clock"


MADE_UP = ["made-up", "", "\xe9\xff"]


@pytest.mark.parametrize("id_", MADE_UP, ids=lambda id_: ascii(id_)[:12])
@pytest.mark.parametrize("verb", ["POST", "GET", "DELETE"])
async def test_an_id_that_is_made_up_is_not_found(verb: str, id_: str) -> None:
    async with served(Desk().mcp) as server:
        older = await server.client()
        async with older.open(request("ping"), verb=verb, mcp_session_id=id_) as exchange:
            reply = await exchange.whole()
        assert reply.status == 404
        assert "the session does not exist or has ended" in reply.reason
        assert "initialize again without Mcp-Session-Id" in reply.reason
        assert server.sessions == 1


# Ending


async def test_delete_ends_a_session_and_then_it_is_not_found() -> None:
    async with served(Desk().mcp) as server:
        older, other = await server.client(), await server.client()
        reply = await older.delete()
        assert (reply.status, reply.body) == (204, b"")
        for verb in ("POST", "GET", "DELETE"):
            async with older.open(request("ping"), verb=verb) as exchange:
                assert (await exchange.whole()).status == 404
        assert (await other.post(request("ping"))).status == 200


async def test_delete_ends_calls_questions_and_streams() -> None:
    desk = Desk()
    async with served(desk.mcp) as server:
        older = await server.client()
        async with (
            older.open(call("hold", id_=1)) as held,
            older.open(call("count", id_=2)) as counted,
            older.stand() as standing,
        ):
            await desk.begun()
            await older.asked(counted)
            assert await standing.head() == 200
            assert (await older.delete()).status == 204
            told = await held.whole()
            assert b"held" not in told.body
            assert b"the session has ended; whether the request was carried out is not known" in told.body
            assert not any("result" in message and "counted" in text(message) for message in await counted.rest())
            assert await standing.rest() == []
        await eventually(lambda: sorted(desk.log) == ["began", "cancelled", "closed", "opened"])


async def test_all_sessions_end_with_the_app() -> None:
    desk = Desk()
    async with served(desk.mcp) as server:
        older = await server.client()
        async with older.open(call("hold")):
            await desk.begun()
        await server.client()
        assert server.sessions == 2
    assert server.sessions == 0
    await eventually(lambda: desk.log == ["began", "cancelled"])


# Whose is what


async def test_somebody_elses_session_cannot_answer_my_question() -> None:
    desk = Desk()
    async with served(desk.mcp) as server:
        mine, other = await server.client(), await server.client()
        async with mine.open(call("approve")) as asked:
            question = await mine.asked(asked)
            assert (await other.post(accepted(question["id"]))).status == 202
            assert (await mine.post(request("ping"))).status == 200
            assert desk.log == [], "nothing was approved"
            await mine.post(accepted(question["id"], value=False))
            assert text(await asked.message()) == "approved False"


async def test_somebody_elses_session_cannot_cancel_my_call() -> None:
    desk = Desk()
    async with served(desk.mcp) as server:
        mine, other = await server.client(), await server.client()
        async with mine.open(call("hold", id_=7)) as held:
            await desk.begun()
            assert (await other.post(cancelled(7))).status == 202
            desk.gate.set()
            assert (await held.whole()).text == "held"


async def test_each_session_has_its_own_log_level_and_capabilities() -> None:
    async with served(Desk().mcp) as server:
        loud, quiet = await server.client(), await server.client(capabilities={})
        assert (await loud.post(request("logging/setLevel", {"level": "debug"}))).json["result"] == {}
        await quiet.post(request("logging/setLevel", {"level": "error"}))
        async with loud.open(call("speak")) as spoken:
            said = [message["params"]["data"] for message in await spoken.rest() if "method" in message]
        assert said == ["a detail", "a fact"]
        assert (await quiet.post(call("speak"))).text == "spoken"
        reply = await quiet.post(call("approve"))
        assert (reply.status, reply.code) == (200, -32021)
        assert reply.json["error"]["data"] == {"requiredCapabilities": {"elicitation": {"form": {}}}}


# Nobody uses it


async def test_a_session_that_nobody_uses_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    async with served(Desk().mcp) as server:
        older = await server.client()
        await clock.forward(IDLE - 60)
        assert server.sessions == 1
        await clock.forward(120)
        assert server.sessions == 0
        assert (await older.post(request("ping"))).status == 404


@pytest.mark.parametrize(
    "message",
    [call("echo"), notification("notifications/nonsense"), accepted("q-99")],
    ids=["call", "notification", "response"],
)
async def test_what_a_client_sends_keeps_its_session_in_use(monkeypatch: pytest.MonkeyPatch, message: Any) -> None:
    clock = Clock(monkeypatch)
    async with served(Desk().mcp, session_idle_timeout=100) as server:
        older, other = await server.client(), await server.client()
        for _ in range(3):
            await clock.forward(90)
            assert (await older.post(message)).status in (200, 202)
        assert server.sessions == 1
        assert (await other.post(request("ping"))).status == 404


@pytest.mark.parametrize(
    "message", [request("ping"), notification("notifications/initialized")], ids=["ping", "initialized"]
)
async def test_a_ping_is_not_use_and_neither_is_the_end_of_the_handshake(
    monkeypatch: pytest.MonkeyPatch, message: Any
) -> None:
    clock = Clock(monkeypatch)
    async with served(Desk().mcp, session_idle_timeout=100) as server:
        older = await server.client()
        await clock.forward(90)
        assert (await older.post(message)).status in (200, 202)
        await clock.forward(20)
        assert server.sessions == 0


async def test_a_session_with_a_call_under_way_is_not_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, desk = Clock(monkeypatch), Desk()
    async with served(desk.mcp, session_idle_timeout=100) as server:
        older = await server.client()
        async with older.open(call("hold")) as held:
            await desk.begun()
            for _ in range(5):
                await clock.forward(101)
            assert server.sessions == 1
            desk.gate.set()
            assert text(await held.message()) == "held"
            assert await held.rest() == []
        for _ in range(3):
            await clock.forward(101)
        assert server.sessions == 0


async def test_a_session_with_a_standing_stream_is_not_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    async with served(Desk().mcp, session_idle_timeout=100) as server:
        older = await server.client()
        async with older.stand() as standing:
            assert await standing.head() == 200
            for _ in range(5):
                await clock.forward(101)
            assert server.sessions == 1
        await eventually(lambda: not alive_streams(server.app))
        for _ in range(3):
            await clock.forward(101)
        assert server.sessions == 0


def alive_streams(app: Any) -> int:
    return sum(len(session.standing) for session in app._legacy._sessions.all())


@pytest.mark.long
async def test_a_hundred_sessions_that_are_abandoned_leave_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    before = alive()
    async with served(Desk().mcp) as server:
        async with server.stranger().open(hello()) as exchange:
            for _ in range(99):
                assert (await exchange.whole()).status == 200
                exchange.send()
            await exchange.whole()
        assert server.sessions == 100
        assert alive() >= before + 100
        await clock.forward(IDLE + 1)
        assert server.sessions == 0
        assert alive() <= before + 1, "something still holds on to them"


# Too many


def somebody(number: int) -> str:
    """An address of one client."""
    return f"127.0.1.{number + 1}"


async def clients(server: Served, number: int, *, used: bool = True) -> list[Older]:
    """So many clients, each with an address of its own, which have said something after their handshake, or not."""
    found = [await server.client(address=somebody(one)) for one in range(number)]
    for client in found if used else ():
        assert (await client.post(call("echo"))).status == 200
    return found


async def known(*clients: Older) -> list[bool]:
    """Which sessions are still there. A ping does not change that."""
    return [(await client.post(request("ping"))).status == 200 for client in clients]


async def test_a_session_that_said_nothing_after_its_handshake_makes_room_first() -> None:
    async with served(Desk().mcp, max_sessions=4) as server:
        first, second = await clients(server, 2)
        silent, later = await server.client(address=somebody(2)), await server.client(address=somebody(3))
        newcomer = await server.client(address=somebody(4))
        assert server.sessions == 4
        assert await known(first, second, silent, later, newcomer) == [True, True, False, True, True]


async def test_a_session_in_recent_use_is_not_ended_for_a_newcomer() -> None:
    async with served(Desk().mcp, max_sessions=3) as server:
        used = await clients(server, 3)
        reply = await server.stranger(address=somebody(3)).post(hello(id_="late"))
        assert (reply.status, reply.json["id"], reply.headers["retry-after"]) == (503, "late", "30")
        assert reply.reason == "there are too many sessions, all of them in use; try again later"
        assert "mcp-session-id" not in reply.headers
        assert await known(*used) == [True, True, True]


async def test_of_sessions_not_in_recent_use_the_one_not_used_for_longest_makes_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch)
    async with served(Desk().mcp, max_sessions=3) as server:
        first, second, third = await clients(server, 3)
        await first.post(call("echo"))
        await clock.forward(301)
        fourth = await server.client(address=somebody(3))
        assert await known(first, second, third, fourth) == [True, False, True, True]


async def test_a_busy_session_is_not_the_one_to_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    desk, clock = Desk(), Clock(monkeypatch)
    async with served(desk.mcp, max_sessions=2) as server:
        busy, idle = await clients(server, 2)
        async with busy.open(call("hold")) as held:
            await desk.begun()
            await idle.post(call("echo"))
            await clock.forward(301)
            await server.client(address=somebody(2))
            assert await known(idle) == [False]
            desk.gate.set()
            assert text(await held.message()) == "held"


async def test_when_all_sessions_are_busy_a_newcomer_is_told_to_come_later() -> None:
    desk = Desk()
    async with served(desk.mcp, max_sessions=2) as server:
        first, second = await clients(server, 2, used=False)
        async with first.open(call("hold")) as held, second.stand() as standing:
            await desk.begun()
            assert await standing.head() == 200
            assert (await server.stranger(address=somebody(2)).post(hello())).status == 503
            desk.gate.set()
            await held.whole()


async def test_above_half_full_one_address_has_at_most_a_tenth_of_the_sessions() -> None:
    async with served(Desk().mcp, max_sessions=20) as server:
        await clients(server, 11)
        flood = server.stranger(address="127.0.0.2")
        replies = [await flood.post(hello()) for _ in range(4)]
        assert [reply.status for reply in replies] == [200, 200, 429, 429]
        assert replies[-1].reason == (
            "your address has 2 sessions, which is the limit while the server has many sessions; "
            "end one, or try again later"
        )
        assert replies[-1].headers["retry-after"] == "30"
        flood.session, flood.version = replies[0].headers["mcp-session-id"], NOVEMBER
        assert (await flood.delete()).status == 204
        assert (await server.stranger(address="127.0.0.2").post(hello())).status == 200, "it has ended one"


async def test_behind_a_trusted_proxy_sessions_count_for_the_forwarded_address() -> None:
    async with served(Desk().mcp, max_sessions=20, trusted_proxies=["127.0.0.1"]) as server:
        proxy = server.stranger()
        for number in range(15):
            assert (await proxy.post(hello(), x_forwarded_for=f"10.0.0.{number}")).status == 200
        statuses = [(await proxy.post(hello(), x_forwarded_for="10.0.1.1")).status for _ in range(3)]
        assert statuses == [200, 200, 429]


async def test_a_session_keeps_little_of_what_its_client_says_of_itself() -> None:
    mcp = Desk().mcp

    @mcp.tool()
    async def who(ctx: Context) -> str:
        info = ctx.session.client_info
        return "nobody" if info is None else f"{info.name} {info.version} {len(info.icons or [])}"

    async with served(mcp) as server:
        for info, kept in {
            "plain": ({"name": "shop", "version": "1", "icons": [{"src": "data:,x"}]}, "shop 1 1"),
            "heavy": ({"name": "shop", "version": "1", "icons": [{"src": "data:," + "x" * 50_000}]}, "shop 1 0"),
            "too heavy": ({"name": "x" * 50_000, "version": "1"}, "nobody"),
        }.values():
            greeting = hello()
            greeting["params"]["clientInfo"] = info
            client = server.stranger()
            client.session, client.version = (await client.post(greeting)).headers["mcp-session-id"], NOVEMBER
            assert (await client.post(call("who"))).text == kept
        reply = await server.stranger().post(hello(capabilities={"experimental": {"x" * 50_000: {}}}))
        assert (reply.status, reply.code) == (400, -32602)
        assert reply.reason == "initialize: capabilities take more than 16384 bytes; declare fewer"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"session_idle_timeout": 0}, "session_idle_timeout must be a positive number of seconds, or None"),
        ({"max_sessions": 0}, "max_sessions must be at least 1; for no sessions at all use stateless_http=True"),
    ],
)
def test_limits_that_make_no_sense_are_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        MCPServer("desk").streamable_http_app(**options)


# Without sessions


async def test_without_sessions_nothing_is_kept_and_every_request_stands_alone() -> None:
    async with served(Desk().mcp, stateless_http=True) as server:
        reply = await server.stranger().post(hello(JUNE))
        assert (reply.status, "mcp-session-id" in reply.headers) == (200, False)
        assert server.sessions == 0
        older = Older(server.port, NOVEMBER)
        for id_ in (None, "made-up"):
            called = await older.post(call("echo", {"text": "hi"}), mcp_protocol_version=NOVEMBER, mcp_session_id=id_)
            assert (called.status, called.text) == (200, "hi")
        assert (await older.post(notification("notifications/initialized"))).status == 202
