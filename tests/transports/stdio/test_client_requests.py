"""A client's requests over stdio (protocol sections 1, 16, 18 and 22), each matched with its response."""

import asyncio
import json
import logging
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bespeak.transports.interfaces import Lost, Outgoing
from bespeak.transports.stdio.client_requests import ClientRequests
from tests.waiting import turns

LIMIT = 1000


class Line:
    """Requests of a client whose server is the test."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.notes: dict[int, list[Any]] = {}
        self.stuck = asyncio.Event()
        self.stuck.set()
        self.requests = ClientRequests(self._write, LIMIT)

    async def _write(self, line: bytes) -> None:
        self.written.append(line)
        await self.stuck.wait()

    def ask(self, id_: int) -> "asyncio.Task[Any]":
        self.notes[id_] = []

        async def exchange() -> Any:
            request = Outgoing(id_, "tools/call", f"request {id_}".encode(), {})
            return json.loads(await self.requests.exchange(request, self._note(id_)))

        return asyncio.create_task(exchange())

    def _note(self, id_: int) -> Callable[[bytes], None]:
        return lambda raw: self.notes[id_].append(json.loads(raw))

    async def asked(self, *ids: int) -> "list[asyncio.Task[Any]]":
        tasks = [self.ask(id_) for id_ in ids]
        await turns()
        return tasks

    def say(self, message: Any) -> None:
        self.requests.feed(json.dumps(message).encode() + b"\n")

    @property
    def cancelled(self) -> list[Any]:
        """What was written beside the requests."""
        return [json.loads(line) for line in self.written if not line.startswith(b"request")]


def result(id_: Any, value: Any = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id_, "result": {"value": value}}


def progress(token: Any, at: int = 1) -> dict[str, Any]:
    params = {"progressToken": token, "progress": at}
    return {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}


def log(text: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": text}}


async def value(task: "asyncio.Task[Any]") -> Any:
    return (await asyncio.wait_for(task, 5))["result"]["value"]


# Responses


async def test_responses_find_their_request_in_any_order() -> None:
    line = Line()
    tasks = await line.asked(1, 2, 3)
    for id_ in (2, 3, 1):
        line.say(result(id_, id_ * 10))
    assert [await value(task) for task in tasks] == [10, 20, 30]


@settings(deadline=None)
@given(st.permutations(range(1, 8)), st.integers(1, 40))
def test_responses_find_their_request_however_the_stream_is_cut(order: list[int], size: int) -> None:
    async def run() -> None:
        line = Line()
        tasks = await line.asked(*range(1, 8))
        stream = b"".join(json.dumps(result(id_, f"é{id_}"), ensure_ascii=False).encode() + b"\r\n\n" for id_ in order)
        for at in range(0, len(stream), size):
            line.requests.feed(stream[at : at + size])
        assert [await value(task) for task in tasks] == [f"é{id_}" for id_ in range(1, 8)]

    asyncio.run(run())


@pytest.mark.parametrize("id_", ["1", True, 99], ids=str)
async def test_an_answer_to_nobody_s_request_is_ignored(id_: Any) -> None:
    line = Line()
    (task, other) = await line.asked(1, 2)
    line.say(result(id_, "not for you"))
    await turns()
    assert not task.done()
    assert not other.done()
    line.say(result(1, "for you"))
    line.say(result(2, "for you"))
    assert [await value(task), await value(other)] == ["for you", "for you"]


@pytest.mark.parametrize("unread", [{"id": None}, {}], ids=["null id", "no id"])
async def test_an_error_about_an_unread_message_is_for_the_only_one_who_waits(unread: dict[str, Any]) -> None:
    line = Line()
    (task,) = await line.asked(4)
    line.say({"jsonrpc": "2.0", "error": {"code": -32700, "message": "what?"}, **unread})
    assert (await asyncio.wait_for(task, 5))["error"]["code"] == -32700


async def test_whether_the_other_end_ever_answered_is_known() -> None:
    line = Line()
    (task,) = await line.asked(1)
    line.say(log("starting"))
    line.requests.feed(b"starting up...\n")
    assert not line.requests.answered
    line.say(result(1))
    assert line.requests.answered
    await task


# What is no message


@pytest.mark.parametrize("garbage", [b"starting up...", b"17", b"{", b"\xff\xfe"], ids=repr)
async def test_what_is_no_message_is_logged_and_skipped(garbage: bytes, caplog: pytest.LogCaptureFixture) -> None:
    line = Line()
    (task,) = await line.asked(1)
    line.requests.feed(garbage + b"\n")
    logged = [record.message for record in caplog.records if record.name == "bespeak.client"]
    assert len(logged) == 1
    assert "the server wrote a line that is not a message: b" in logged[0]
    line.say(result(1, "a"))
    assert await value(task) == "a"


async def test_empty_lines_are_nothing_to_speak_of(caplog: pytest.LogCaptureFixture) -> None:
    Line().requests.feed(b"\n\r\n  \n")
    assert not caplog.records


async def test_garbage_of_any_length_is_logged_once_and_skipped(caplog: pytest.LogCaptureFixture) -> None:
    line = Line()
    (task,) = await line.asked(1)
    for _ in range(5):
        line.requests.feed(b"x" * LIMIT)
    line.requests.feed(b"\n")
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.getMessage() == "the server sent a line of more than 1000 bytes; skipping it"
    line.say(result(1, "a"))
    assert await value(task) == "a"


async def test_a_message_that_is_too_long_ends_the_conversation_for_it_may_be_anybody_s_answer() -> None:
    line = Line()
    (task,) = await line.asked(1)
    line.requests.feed(b'{"jsonrpc": "2.0", "id": 1, "result": "' + b"x" * LIMIT)
    with pytest.raises(Lost, match="the server sent a message of more than 1000 bytes before the response arrived"):
        await task


async def test_a_request_of_the_server_is_logged_and_not_answered(caplog: pytest.LogCaptureFixture) -> None:
    line = Line()
    (task,) = await line.asked(1)
    line.say({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": {}})
    await turns()
    assert "the server sent a request, which this revision does not allow" in caplog.text
    assert (line.written, task.done()) == ([b"request 1\n"], False)
    line.say(result(1))
    await task


# Notifications


async def test_progress_goes_to_the_request_of_its_token() -> None:
    line = Line()
    tasks = await line.asked(1, 2)
    line.say(progress(2, 5))
    line.say(progress(1, 7))
    assert line.notes == {1: [progress(1, 7)], 2: [progress(2, 5)]}
    for task in tasks:
        task.cancel()


@pytest.mark.parametrize("token", [99, "1", True], ids=repr)
async def test_progress_of_an_unknown_token_goes_to_nobody(token: Any) -> None:
    line = Line()
    (task,) = await line.asked(1)
    line.say(progress(token))
    assert line.notes == {1: []}
    task.cancel()


async def test_a_log_entry_is_handed_on_once_though_two_wait() -> None:
    line = Line()
    tasks = await line.asked(1, 2)
    line.say(log("hello"))
    assert line.notes[1] + line.notes[2] == [log("hello")]
    for task in tasks:
        task.cancel()


# Cancelling


async def test_cancelling_the_wait_says_so_to_the_server() -> None:
    line = Line()
    task, other = await line.asked(7, 8)
    task.cancel()
    await asyncio.wait({task})
    await turns()
    assert task.cancelled()
    (said,) = line.cancelled
    assert (said["jsonrpc"], said["method"], said["params"]["requestId"]) == ("2.0", "notifications/cancelled", 7)
    assert "id" not in said
    line.say(result(7, "late"))
    line.say(result(8, "in time"))
    assert await value(other) == "in time"


async def test_nothing_is_said_to_a_server_that_is_gone() -> None:
    line = Line()
    (task,) = await line.asked(7)
    line.requests.end(ConnectionError("it left"))
    task.cancel()
    await asyncio.wait({task})
    await turns()
    assert line.written == [b"request 7\n"]


# The end


async def test_when_the_other_end_is_gone_nobody_knows_what_was_carried_out() -> None:
    line = Line()
    tasks = await line.asked(1, 2)
    line.requests.end(ConnectionError("the server 'x' exited with code 3"))
    for task in tasks:
        with pytest.raises(Lost) as caught:
            await task
        assert str(caught.value) == (
            "the server 'x' exited with code 3 before the response arrived; whether the request was carried out is not known"
        )


async def test_after_the_end_nothing_is_sent() -> None:
    line = Line()
    line.requests.end(ConnectionError("it left"))
    (task,) = await line.asked(1)
    with pytest.raises(ConnectionError, match="it left") as caught:
        await task
    assert not isinstance(caught.value, Lost), "it was never sent"
    assert line.written == []


async def test_the_first_reason_of_the_end_is_kept() -> None:
    line = Line()
    line.requests.end(ConnectionError("first"))
    line.requests.end(ConnectionError("second"))
    assert str(line.requests.over) == "first"


async def test_an_answer_that_came_before_the_end_counts() -> None:
    line = Line()
    (task,) = await line.asked(1)
    line.say(result(1, "just in time"))
    line.requests.end(ConnectionError("it left"))
    assert await value(task) == "just in time"


async def test_the_end_reaches_a_request_that_is_still_being_written() -> None:
    line = Line()
    line.stuck.clear()
    (task,) = await line.asked(1)
    line.requests.end(ConnectionError("it left"))
    with pytest.raises(Lost):
        await asyncio.wait_for(task, 5)
    line.stuck.set()


async def test_the_end_drops_cancellations_that_are_still_being_written() -> None:
    line = Line()
    line.stuck.clear()
    (task,) = await line.asked(1)
    task.cancel()
    await asyncio.wait({task})
    await turns()
    line.requests.end(ConnectionError("it left"))
    await turns()
    names = {one.get_name() for one in asyncio.all_tasks()}
    assert "bespeak cancellation" not in names


async def test_a_request_that_cannot_be_written_is_lost() -> None:
    async def broken(line: bytes) -> None:
        raise BrokenPipeError("nobody reads")

    conversation = ClientRequests(broken, 1000)
    with pytest.raises(Lost, match="cannot write to the server: nobody reads"):
        await asyncio.wait_for(conversation.exchange(Outgoing(1, "tools/call", b"{}", {}), lambda _: None), 5)


async def test_a_second_answer_to_the_same_request_is_ignored() -> None:
    line = Line()
    (task,) = await line.asked(1)
    line.say(result(1, "first"))
    line.say(result(1, "second"))
    assert await value(task) == "first"
    line.say(result(1, "third"))


# Notifications of subscriptions

TAG = "io.modelcontextprotocol/subscriptionId"


def tagged(id_: Any, method: str = "notifications/tools/list_changed") -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": {"_meta": {TAG: id_}}}


async def test_a_notification_of_a_subscription_goes_to_the_request_that_opened_it() -> None:
    line = Line()
    await line.asked(1, 2, 3)
    line.say(tagged(2))
    line.say(tagged(3))
    line.say(tagged(2, "notifications/subscriptions/acknowledged"))
    assert {id_: len(notes) for id_, notes in line.notes.items()} == {1: 0, 2: 2, 3: 1}


@pytest.mark.parametrize("id_", [9, "2", True, 2.0, []])
async def test_a_notification_of_a_subscription_that_is_not_open_goes_to_no_other_request(id_: Any) -> None:
    line = Line()
    await line.asked(1, 2)
    line.say(tagged(id_))
    assert line.notes == {1: [], 2: []}


async def test_a_cancellation_goes_to_the_request_that_it_names() -> None:
    line = Line()
    await line.asked(1, 2)
    line.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}})
    assert [len(notes) for notes in line.notes.values()] == [0, 1]


async def test_a_cancellation_of_a_request_of_the_server_goes_to_any_request() -> None:
    line = Line()
    await line.asked(1, 2)
    line.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "q"}})
    assert [len(notes) for notes in line.notes.values()] == [1, 0]


@pytest.mark.parametrize("params", [None, 5, {"_meta": 5}, {}])
async def test_a_notification_that_names_no_request_goes_to_any(params: Any) -> None:
    line = Line()
    await line.asked(1)
    line.say({"jsonrpc": "2.0", "method": "notifications/message", "params": params})
    assert len(line.notes[1]) == 1
