"""What several workers promise, over each store that they can share: an approval is spent once, and every client is asked on any of
them."""

import asyncio
import logging
from collections.abc import Generator
from pathlib import Path
from typing import Annotated, Any

import pytest

from bespeak import Client, Elicit, MCPServer, Resolve
from bespeak.server import MemoryEventStore
from bespeak.state import sessions
from bespeak.state.seal import RequestStateSecurity
from bespeak.state.stores.redis_sessions import RedisSessions
from bespeak.state.stores.store import StoreUnavailable
from bespeak.transports.interfaces import CannotStart
from tests.rules.raw_calls import accept, nobody, said, send
from tests.rules.several_workers import KEYS, Worker, everything_in, kill, session_at, soon, workers
from tests.state.stores.redis_servers import own_server
from tests.transports.http.legacy.older_client import (
    NOVEMBER,
    Older,
    accepted,
    call,
    cancelled,
    modern,
    request,
    text,
    until,
)
from tests.wires import Listening

pytestmark = pytest.mark.timing

FILE = "file:///a"


@pytest.fixture(params=["sqlite", pytest.param("redis", marks=pytest.mark.long)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[str]:
    """A store that nobody else uses."""
    if request.param == "sqlite":
        yield f"sqlite:{tmp_path / 'shared.db'}"
        return
    with own_server(tmp_path) as server:
        yield server.url


def with_resource(mcp: MCPServer[Any]) -> None:
    @mcp.resource(FILE)
    def file() -> str:
        return "a"


def with_words(mcp: MCPServer[Any]) -> None:
    async def words() -> Elicit[str]:
        return Elicit("What?", str)

    @mcp.tool()
    async def say_it(words: Annotated[str, Resolve(words, key="words")]) -> str:
        return words


def question_in(message: dict[str, Any]) -> str:
    assert message["method"] == "elicitation/create", message
    return message["id"]


# Older clients


@pytest.mark.long
async def test_an_older_client_is_asked_by_one_worker_and_may_answer_at_any_other(store: str) -> None:
    async with workers(store, 3) as (first, second, third):
        session = await session_at(first)
        async with second.client(session).open(call("approve_twice")) as calling:
            for worker in (third, first):
                question = question_in(await calling.message())
                assert (await worker.client(session).post(accepted(question))).status == 202
            assert text(await calling.message()) == "approved True and True"


async def test_an_answer_at_the_worker_that_asked_needs_no_other(store: str) -> None:
    async with workers(store) as (first, second):
        session = await session_at(first)
        async with second.client(session).open(call("approve")) as calling:
            question = question_in(await calling.message())
            assert (await second.client(session).post(accepted(question))).status == 202
            assert text(await calling.message()) == "approved True"


async def test_only_the_first_answer_counts_wherever_the_second_arrives(store: str) -> None:
    async with workers(store, 3) as (first, *others):
        session = await session_at(first)
        async with first.client(session).open(call("approve")) as calling:
            question = question_in(await calling.message())
            replies = await asyncio.gather(
                *(one.client(session).post(accepted(question, n == 0)) for n, one in enumerate(others))
            )
            assert [reply.status for reply in replies] == [202, 202]
            assert text(await calling.message()) in ("approved True", "approved False")
        assert len(first.desk.log) == 1


async def test_an_answer_to_the_question_of_a_worker_that_died_gets_http_400_with_a_json_rpc_error(store: str) -> None:
    async with workers(store) as (first, second):
        session = await session_at(first)
        async with first.client(session).open(call("approve")) as calling:
            question = question_in(await calling.message())
            await kill(store, first)
            reply = await second.client(session).post(accepted(question))
            assert (reply.status, reply.code) == (400, -32603)
            assert reply.reason == (
                "the worker that asked this question is gone, and the call with it; whether anything was done is not known"
            )
        assert first.desk.log == []


@pytest.mark.long
async def test_an_answer_that_is_never_fetched_gets_the_same(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "TAKEN_SECONDS", 0.1)
    async with workers(store) as (first, second):
        session = await session_at(first)
        async with first.client(session).open(call("approve")) as calling:
            question = question_in(await calling.message())
            worker = first.desk.mcp.shared_sessions
            assert worker is not None
            worker.detach(session)  # as if it hung
            assert (await second.client(session).post(accepted(question))).status == 400


@pytest.mark.parametrize("store", ["redis"], indirect=True)
@pytest.mark.long
async def test_an_answer_that_is_lost_between_redis_and_a_worker_is_handed_over_again(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    receive, lost = RedisSessions.receive, list[bytes]()

    async def lose_the_first(self: RedisSessions, worker: str) -> list[bytes]:
        found = await receive(self, worker)
        if lost or not found:
            return found
        lost.extend(found)
        return []

    monkeypatch.setattr(RedisSessions, "receive", lose_the_first)
    monkeypatch.setattr(sessions, "REPEAT_SECONDS", 0.1)
    async with workers(store) as (first, second):
        session = await session_at(first)
        async with first.client(session).open(call("approve")) as calling:
            question = question_in(await calling.message())
            assert (await second.client(session).post(accepted(question))).status == 202
            assert text(await calling.message()) == "approved True"
        assert len(lost) == 1


async def test_an_answer_that_nobody_waits_for_is_taken_and_has_no_effect(store: str) -> None:
    async with workers(store) as (first, second):
        session = await session_at(first)
        assert (await second.client(session).post(accepted("q-unknown-1"))).status == 202
        assert (await second.client(session).post(accepted(1))).status == 202


async def test_a_request_is_cancelled_wherever_its_cancellation_arrives(store: str) -> None:
    async with workers(store) as (first, second):
        session = await session_at(first)
        async with first.client(session).open(call("approve", id_="mine")) as calling:
            question = question_in(await calling.message())
            assert (await second.client(session).post(cancelled("mine"))).status == 202
            withdrawn = await calling.message()
            assert (withdrawn["method"], withdrawn["params"]["requestId"]) == ("notifications/cancelled", question)
            assert await calling.rest() == []
        assert first.desk.log == []


@pytest.mark.long
async def test_a_session_that_is_ended_at_one_worker_is_ended_at_all(store: str) -> None:
    async with workers(store, 3) as (first, second, third):
        session = await session_at(first)
        async with second.client(session).open(call("approve")) as calling, third.client(session).stand() as standing:
            question_in(await calling.message())
            assert await standing.head() == 200
            assert (await first.client(session).delete()).status == 204
            ended = await calling.message()
            assert "the session has ended" in ended["error"]["message"]
            assert await standing.event() is None
        for worker in (first, second, third):
            assert (await worker.client(session).post(request("tools/list"))).status == 404


async def test_the_log_level_is_the_same_at_all_workers(store: str) -> None:
    async with workers(store) as (first, second):
        session = await session_at(first)
        levels = {"error": 0, "info": 1, "debug": 2}
        for level, expected in levels.items():
            reply = await first.client(session).post(request("logging/setLevel", {"level": level}))
            assert reply.json["result"] == {}
            async with second.client(session).open(call("speak", {"times": 1}, token="t")) as calling:
                messages = await calling.rest()
            assert sum(one.get("method") == "notifications/message" for one in messages) == expected


@pytest.mark.long
async def test_a_change_reaches_subscribers_of_both_eras_on_every_worker(store: str) -> None:
    async with workers(store, 3, with_resource) as (first, second, third):
        session = await session_at(first)
        async with second.client(session).stand() as standing:
            assert await standing.head() == 200
            subscribe = request("resources/subscribe", {"uri": FILE})
            assert (await third.client(session).post(subscribe)).json["result"] == {}
            listen = modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
            newer = third.client(version="2026-07-28")
            headers = {"mcp_protocol_version": "2026-07-28", "mcp_method": "subscriptions/listen"}
            async with newer.open(listen, **headers) as listening:
                assert (await listening.message())["method"] == "notifications/subscriptions/acknowledged"
                first.desk.mcp.notify_tools_changed()
                assert (await listening.message())["method"] == "notifications/tools/list_changed"
                assert (await standing.message())["method"] == "notifications/tools/list_changed"
            first.desk.mcp.notify_resource_updated(FILE)
            assert (await standing.message())["params"]["uri"] == FILE


@pytest.mark.long
async def test_who_unsubscribes_at_another_worker_is_told_no_more(store: str) -> None:
    async with workers(store, 2, with_resource) as (first, second):
        session = await session_at(first)
        for method in ("resources/subscribe", "resources/unsubscribe"):
            assert (await first.client(session).post(request(method, {"uri": FILE}))).json["result"] == {}
        async with second.client(session).stand() as standing:
            assert await standing.head() == 200
            first.desk.mcp.notify_resource_updated(FILE)
            first.desk.mcp.notify_tools_changed()
            assert (await standing.message())["method"] == "notifications/tools/list_changed"


async def test_sessions_are_counted_for_all_workers_together(store: str) -> None:
    async with workers(store, 2, max_sessions=2) as (first, second):
        sessions_ = [await session_at(worker) for worker in (first, second)]
        for worker, session in zip((second, first), sessions_, strict=True):
            assert (await worker.client(session).post(request("tools/list"))).status == 200
        for worker in (first, second):
            reply = await worker.client().post(
                request("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}}, id_=0), mcp_session_id=None
            )
            assert (reply.status, reply.reason.partition(";")[0]) == (
                429,
                "your address has 2 sessions, which is the limit while the server has many sessions",
            )


@pytest.mark.long
async def test_a_session_that_is_idle_for_too_long_is_gone_at_every_worker(store: str) -> None:
    async with workers(store, 2, session_idle_timeout=0.3) as (first, second):
        session = await session_at(first)
        assert (await second.client(session).post(request("tools/list"))).status == 200

        async def gone() -> bool:
            return (await first.client(session).post(request("ping"))).status == 404

        await until(gone)


async def test_a_part_of_a_session_lives_only_while_something_is_under_way_in_it(store: str) -> None:
    async with workers(store) as (first, second):
        session = await session_at(first)
        async with first.client(session).open(call("approve")) as calling:
            question = question_in(await calling.message())
            assert first.served.sessions == 1
            await second.client(session).post(accepted(question))
            await calling.message()
        await soon(lambda: first.served.sessions == 0)
        assert second.served.sessions == 0


@pytest.mark.long
async def test_a_subscription_too_many_is_refused_wherever_the_others_were_made_and_mail_still_arrives(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bespeak.server.features.subscriptions.MOST_URIS", 3)
    async with workers(store, 2, with_resource) as (first, second):
        session = await session_at(first)
        async with first.client(session).stand() as standing, second.client(session).stand() as other:
            assert (await standing.head(), await other.head()) == (200, 200)
            for uri in ("file:///1", "file:///2"):
                await first.client(session).post(request("resources/subscribe", {"uri": uri}))
            replies = await asyncio.gather(
                first.client(session).post(request("resources/subscribe", {"uri": "file:///3"}, id_=3)),
                second.client(session).post(request("resources/subscribe", {"uri": "file:///4"}, id_=4)),
            )
            assert sorted("error" in reply.json for reply in replies) == [False, True]
            first.desk.mcp.notify_tools_changed()
            assert (await other.message())["method"] == "notifications/tools/list_changed"


@pytest.mark.long
async def test_subscriptions_that_are_made_at_the_same_time_are_all_in_force(store: str) -> None:
    uris = [f"file:///{number}" for number in range(12)]
    async with workers(store, 2, with_resource) as (first, second):
        session = await session_at(first)
        async with first.client(session).stand() as standing:
            assert await standing.head() == 200
            replies = await asyncio.gather(
                *(
                    one.client(session).post(request("resources/subscribe", {"uri": uri}, id_=uri))
                    for uri, one in zip(uris, [first, second] * 6, strict=True)
                )
            )
            assert [reply.json["result"] for reply in replies] == [{}] * 12

            async def told(uri: str) -> None:
                while True:
                    second.desk.mcp.notify_resource_updated(uri)
                    try:
                        async with asyncio.timeout(1):
                            while (await standing.message()).get("params", {}).get("uri") != uri:
                                pass
                            return
                    except TimeoutError:  # the last refresh is still on its way
                        continue

            async with asyncio.timeout(20):
                for uri in uris:
                    await told(uri)


async def test_a_second_request_with_the_id_of_one_under_way_does_not_hide_it(store: str) -> None:
    async with workers(store) as (first, second):
        session = await session_at(first)
        async with first.client(session).open(call("approve", id_="mine")) as calling:
            question_in(await calling.message())
            assert "still under way" in (await first.client(session).post(call("echo", id_="mine"))).reason
            await second.client(session).post(cancelled("mine"))
            assert (await calling.message())["method"] == "notifications/cancelled"


async def test_a_session_sealed_with_other_keys_leaves_nothing_behind(store: str) -> None:
    async with workers(store, 1) as (first,):
        session = await session_at(first)
        other = MCPServer[Any]("desk", store=store, request_state_security=RequestStateSecurity(keys=["x" * 32]))
        async with Listening(other.streamable_http_app()) as stranger:
            for number in range(3):
                reply = await Older(stranger.port, NOVEMBER, session).post(call("echo", id_=f"left {number}"))
                assert reply.status == 404
            shared = other.shared_sessions
            assert shared is not None
            for number in range(3):
                assert not await first_has(first, session, f"left {number}")


async def first_has(worker: Worker, session: str, request_id: str) -> bool:
    """Whether any worker is recorded as serving a request, once what is under way in the background is done."""
    shared = worker.desk.mcp.shared_sessions
    assert isinstance(shared, sessions.SessionWorker)
    key, (name,) = sessions._key(session), sessions._names([request_id])  # pyright: ignore[reportPrivateUsage] - as the worker does
    for _ in range(200):
        if not await shared._store.workers_of(key, name):  # pyright: ignore[reportPrivateUsage] - as the worker does
            return False
        await asyncio.sleep(0.01)
    return True


# What lies in the store


async def test_nothing_that_a_client_said_lies_open_in_the_store(store: str) -> None:
    async with workers(store, 2, with_words) as (first, second):
        session = await session_at(first)
        async with first.client(session).open(call("say_it")) as calling:
            question = question_in(await calling.message())
            answer = {"jsonrpc": "2.0", "id": question, "result": accept(value="my secret answer")}
            await second.client(session).post(answer)
            assert "my secret answer" in text(await calling.message())
        found = await everything_in(store)
    assert found
    for secret in ("my secret answer", "an older client", session, KEYS[0]):
        assert secret.encode() not in found


async def test_a_message_that_no_worker_has_sealed_is_refused(store: str, caplog: pytest.LogCaptureFixture) -> None:
    async with workers(store, 1) as (first,):
        session = await session_at(first)
        async with first.client(session).open(call("approve")) as calling:
            question_in(await calling.message())
            shared = first.desk.mcp.shared_sessions
            assert isinstance(shared, sessions.SessionWorker)
            with caplog.at_level(logging.WARNING):
                await shared._store.send([first.name], b"forged")  # pyright: ignore[reportPrivateUsage] - as who writes to the store
                await soon(lambda: "a message from another worker was refused" in caplog.text)
        assert first.desk.log == []


async def test_workers_with_other_keys_do_not_know_the_session(store: str) -> None:
    async with workers(store) as (first, _):
        session = await session_at(first)
        other = MCPServer[Any]("desk", store=store, request_state_security=RequestStateSecurity(keys=["x" * 32]))
        async with workers(store, 0), Client(other) as client:
            assert client.protocol_version
            shared = other.shared_sessions
            assert shared is not None
            assert await shared.use(session, (), used=False, idle_seconds=None) is None


# Modern clients


def opened(worker: Worker) -> Client:
    return Client(worker.url, elicitation_callback=nobody)


async def begun(client: Client, tool: str = "approve") -> tuple[str, dict[str, Any]]:
    """Begin a call. Returns its state, and an acceptance of each of its questions."""
    asked = await send(client, tool)
    return asked["requestState"], {key: accept(value=True) for key in asked["inputRequests"]}


@pytest.mark.long
async def test_an_approval_sent_to_every_worker_at_once_is_spent_once_and_all_get_the_same_result(store: str) -> None:
    async with workers(store, 3) as all_:
        async with opened(all_[0]) as one, opened(all_[1]) as two, opened(all_[2]) as three:
            state, answers = await begun(one)
            results = await asyncio.gather(
                *(send(client, "approve", answers, state) for client in (one, two, three) for _ in range(4))
            )
        assert [said(result) for result in results] == ["approved True"] * 12
        assert sum(len(worker.desk.log) for worker in all_) == 1


async def test_the_same_request_waits_at_another_worker_for_the_one_that_runs(store: str) -> None:
    async with workers(store) as (first, second), opened(first) as one, opened(second) as two:
        state, answers = await begun(one, "approve_and_hold")
        running = asyncio.create_task(send(one, "approve_and_hold", answers, state))
        await first.desk.reached.wait()
        waiting = asyncio.create_task(send(two, "approve_and_hold", answers, state))
        first.desk.gate.set()
        assert said(await running) == said(await waiting) == "held True"


async def test_a_call_settled_otherwise_at_one_worker_is_refused_at_another(store: str) -> None:
    async with workers(store) as (first, second), opened(first) as one, opened(second) as two:
        state, answers = await begun(one)
        assert said(await send(one, "approve", answers, state)) == "approved True"
        other = {key: accept(value=False) for key in answers}
        assert "already settled with other answers" in said(await send(two, "approve", other, state))


# Streams that are resumed at another worker


class SharedEvents(MemoryEventStore):
    """An event store of one process, which is all that these workers have."""

    shared = True


@pytest.mark.long
async def test_who_comes_back_to_another_worker_gets_what_was_missed_and_what_follows(store: str) -> None:
    async with workers(store, 3, event_store=SharedEvents()) as (first, second, third):
        session = await session_at(first)
        async with first.client(session).open(call("hold_and_speak", token="t")) as calling:
            place = await calling.event()
            assert place is not None
            await first.desk.reached.wait()
        async with second.client(session).stand(last_event_id=place.id) as resumed:
            assert (await resumed.message())["params"]["progress"] == 1
            first.desk.gate.set()
            rest = await resumed.rest()
            assert [one.get("method") for one in rest] == ["notifications/progress", None]
            assert text(rest[-1]) == "held"
        assert (await third.client(session).get(last_event_id="unknown")).status == 400


async def test_streams_of_one_session_never_share_a_name(store: str) -> None:
    async with workers(store, 1, event_store=SharedEvents()) as (first,):
        session = await session_at(first)
        places: list[str | None] = []
        for number in range(2):
            async with first.client(session).open(call("echo", {"text": str(number)}, id_=number)) as calling:
                place = await calling.event()
                assert place is not None
                places.append(place.id)
                assert text(await calling.message()) == str(number)
            await soon(lambda: first.served.sessions == 0)
        async with first.client(session).stand(last_event_id=places[0]) as resumed:
            assert [text(one) for one in await resumed.rest()] == ["0"]


@pytest.mark.long
async def test_a_stream_of_a_worker_that_died_ends_though_the_session_has_a_standing_stream_elsewhere(
    store: str,
) -> None:
    async with workers(store, 3, event_store=SharedEvents()) as (first, second, third):
        session = await session_at(first)
        async with first.client(session).open(call("hold")) as calling, third.client(session).stand() as standing:
            assert await standing.head() == 200
            place = await calling.event()
            assert place is not None
            await first.desk.reached.wait()
            async with second.client(session).stand(last_event_id=place.id) as resumed:
                assert await resumed.head() == 200
                await kill(store, first)
                assert await resumed.event() is None
            first.desk.gate.set()


@pytest.mark.long
async def test_a_question_reaches_a_client_that_came_back_to_another_worker(store: str) -> None:
    async with workers(store, 3, event_store=SharedEvents()) as (first, second, third):
        session = await session_at(first)
        async with first.client(session).open(call("approve_twice")) as calling:
            place = await calling.event()
            assert place is not None
            question = question_in(await calling.message())
        async with second.client(session).stand(last_event_id=place.id) as resumed:
            assert question_in(await resumed.message()) == question
            assert (await third.client(session).post(accepted(question))).status == 202
            question = question_in(await resumed.message())
            assert (await second.client(session).post(accepted(question))).status == 202
            assert text(await resumed.message()) == "approved True and True"


@pytest.mark.long
async def test_what_another_worker_writes_is_no_longer_sent_when_the_event_store_fails(store: str) -> None:
    class Failing(SharedEvents):
        failing = False

        async def replay_events_after(self, last_event_id: str, send_callback: Any) -> str | None:
            if self.failing:
                raise OSError("no events")
            return await super().replay_events_after(last_event_id, send_callback)

    events = Failing()
    async with workers(store, 2, event_store=events) as (first, second):
        session = await session_at(first)
        async with first.client(session).open(call("hold")) as calling:
            place = await calling.event()
            assert place is not None
            await first.desk.reached.wait()
            async with second.client(session).stand(last_event_id=place.id) as resumed:
                assert await resumed.head() == 200
                events.failing = True
                assert await resumed.event() is None
            first.desk.gate.set()


@pytest.mark.parametrize("events", [MemoryEventStore(), object()], ids=["memory", "unknown"])
def test_an_event_store_of_one_process_is_refused_if_several_workers_may_serve(events: Any, tmp_path: Path) -> None:
    security = RequestStateSecurity(keys=KEYS)
    mcp = MCPServer[Any]("desk", store=f"sqlite:{tmp_path / 'shared.db'}", request_state_security=security)
    with pytest.raises(
        ValueError, match=r"but event_store keeps the events of one process\. Pass an event store that all"
    ):
        mcp.streamable_http_app(event_store=events)


# The store fails


@pytest.mark.long
async def test_while_the_store_cannot_be_reached_everybody_is_told_and_nothing_runs_and_then_it_goes_on(
    tmp_path: Path,
) -> None:
    with own_server(tmp_path) as redis:
        async with workers(redis.url) as (first, second), opened(first) as one, opened(second) as two:
            session = await session_at(first)
            state, answers = await begun(one)
            redis.stop()
            reply = await second.client(session).post(call("approve"))
            assert (reply.status, reply.code) == (503, -32603)
            assert reply.reason == "the server cannot reach the store that its workers share; try again later"
            for failed in (await send(one, "approve"), await send(two, "approve", answers, state)):
                assert "cannot use the store that remembers which calls were approved" in said(failed)
            redis.start()
            state, answers = await begun(one)
            assert said(await send(two, "approve", answers, state)) == "approved True"
            session = await session_at(second)  # this Redis keeps nothing when it stops
            async with first.client(session).open(call("approve")) as calling:
                question = question_in(await calling.message())
                assert (await second.client(session).post(accepted(question))).status == 202
                assert text(await calling.message()) == "approved True"
            assert [*first.desk.log, *second.desk.log] == ["approved True"] * 2


@pytest.mark.long
async def test_a_result_that_could_not_be_stored_reaches_its_client_and_later_the_store(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with own_server(tmp_path, "--appendonly", "yes") as redis:
        async with workers(redis.url) as (first, second), opened(first) as one, opened(second) as two:
            state, answers = await begun(one, "approve_and_hold")
            running = asyncio.create_task(send(one, "approve_and_hold", answers, state))
            await first.desk.reached.wait()
            redis.stop()
            first.desk.gate.set()
            assert said(await running) == "held True"
            assert "the result of a call could not be stored; will try again" in caplog.text
            redis.start()

            async def stored() -> bool:
                return said(await send(two, "approve_and_hold", answers, state)) == "held True"

            await until(stored)


@pytest.mark.long
async def test_an_approval_whose_claim_was_lost_on_the_way_can_be_spent_later(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bespeak.state.ledger.FINISH_PAUSES", (0.05, 0.05))
    async with workers(store) as (first, second), opened(first) as one, opened(second) as two:
        state, answers = await begun(one)
        kept: Any = first.desk.mcp._calls.ledger._store  # pyright: ignore[reportPrivateUsage] - its answers are lost
        claim = kept.claim

        async def lost(*arguments: Any) -> Any:
            await claim(*arguments)
            raise StoreUnavailable("the answer was lost")

        with monkeypatch.context() as patched:
            patched.setattr(kept, "claim", lost)
            assert "cannot be read now. Send the same request again later" in said(
                await send(one, "approve", answers, state)
            )

        async def spent() -> bool:
            return said(await send(two, "approve", answers, state)) == "approved True"

        await until(spent)
        assert [*first.desk.log, *second.desk.log] == ["approved True"]


async def test_a_store_that_cannot_be_reached_at_start_is_a_clear_error(tmp_path: Path) -> None:
    security = RequestStateSecurity(keys=KEYS)
    mcp = MCPServer[Any]("desk", store=f"sqlite:{tmp_path}/none/shared.db", request_state_security=security)
    with pytest.raises(CannotStart, match=r"the store sqlite:.*/none/shared\.db cannot be created: No such file"):
        async with mcp.running():
            pass
