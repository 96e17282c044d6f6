"""The table of connections: where its limits come from, and which connection makes room for another."""

import resource
import sys
from typing import Any

import pytest

from bespeak import MCPServer
from bespeak.transports.http import connection_limits as connections
from bespeak.transports.http.connection_limits import (
    FULL,
    MOST_CONNECTIONS,
    TOO_MANY,
    ConnectionLimits,
    Connections,
    Refusal,
)
from bespeak.transports.http.uvicorn_server import uvicorn_options
from tests.waiting import pass_time

# Limits


def open_files(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    def getrlimit(kind: int) -> tuple[int, int]:
        return limit, limit

    monkeypatch.setattr(resource, "getrlimit", getrlimit)


@pytest.mark.parametrize(
    ("files", "allowed", "backlog"),
    [(1024, 682, 136), (64, 42, 16), (4, 8, 16), (20_000, 13_333, 2048), (10**6, MOST_CONNECTIONS, 2048)],
)
def test_there_are_as_many_connections_as_two_thirds_of_the_files(
    files: int, allowed: int, backlog: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_files(monkeypatch, files)
    limits = ConnectionLimits()
    assert (limits.connections(), limits.backlog(at_once=True), limits.backlog(at_once=False)) == (
        allowed,
        backlog,
        2048,
    )
    assert uvicorn_options("127.0.0.1", 1, {"loop": "asyncio"})["backlog"] == backlog
    assert uvicorn_options("127.0.0.1", 1, {"loop": "uvloop"})["backlog"] == 2048


@pytest.mark.parametrize(("found", "backlog"), [(object(), 2048), (None, 136)])
def test_where_there_is_uvloop_connections_are_accepted_one_by_one(
    found: object, backlog: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find_spec(name: str) -> object:
        assert name == "uvloop"
        return found

    open_files(monkeypatch, 1024)
    monkeypatch.setattr("importlib.util.find_spec", find_spec)
    assert uvicorn_options("127.0.0.1", 1, {})["backlog"] == backlog


def test_files_without_a_limit_are_no_reason_for_connections_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    open_files(monkeypatch, resource.RLIM_INFINITY)
    assert ConnectionLimits().connections() == MOST_CONNECTIONS


def test_where_no_limit_on_files_is_known_there_is_one_on_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "resource", None)
    assert ConnectionLimits().connections() == 1024


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ({"max_connections": 0}, "max_connections must be at least 1, or None for what the limit on open files allows"),
        ({"request_head_timeout": 0}, "request_head_timeout must be a positive number of seconds"),
        ({"request_body_timeout": -1}, "request_body_timeout must be a positive number of seconds"),
        ({"response_read_timeout": float("nan")}, "response_read_timeout must be a positive number of seconds"),
        ({"max_unread_output": 0}, "max_unread_output must be a positive number of bytes"),
        ({"trusted_proxies": ["nginx"]}, "trusted_proxies: 'nginx' is not an IP address"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused_before_anything_listens(option: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        MCPServer("shop").run("streamable-http", **option)


# Who makes room


class Someone:
    """A connection that remembers what became of it."""

    def __init__(self, address: str | None, *, silent: bool = True, idle: bool = False, unread: int = 0) -> None:
        self.address = address
        self.silent = silent
        self.size = unread
        self.told: list[Refusal | str] = []
        self._idle = idle

    def idle(self) -> bool:
        return self._idle

    def overdue(self) -> None:
        self.told.append("overdue")

    def turn_out(self, refusal: Refusal) -> None:
        self.told.append(refusal)

    def hang_up(self) -> None:
        self.told.append("hung up")

    def unread(self) -> int:
        return self.size

    def abort(self) -> None:
        self.told.append("aborted")


def table(most: int, **limits: Any) -> Connections:
    return Connections(ConnectionLimits(max_connections=most, **limits))


@pytest.fixture
def old(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everybody has been there long enough to make room."""
    monkeypatch.setattr(connections, "YOUNG_SECONDS", -1.0)


def admit(to: Connections, number: int, address: str | None, **what: Any) -> list[Someone]:
    crowd = [Someone(address, **what) for _ in range(number)]
    assert [to.admit(one) for one in crowd] == [None] * number
    return crowd


async def test_one_address_gets_half_of_the_room_and_others_a_tenth_each() -> None:
    room = table(100)
    admit(room, 50, "a")
    assert room.admit(Someone("a")) == TOO_MANY
    for address in "bcdef":
        admit(room, 10, address)
        assert room.admit(Someone(address)) in (TOO_MANY, FULL)
    assert len(room) == 100
    assert room.admit(Someone("g")) == FULL


async def test_without_an_address_only_the_whole_is_bounded() -> None:
    room = table(100)
    admit(room, 100, None)
    assert room.admit(Someone(None)) == FULL


@pytest.mark.usefixtures("old")
async def test_an_address_makes_room_for_its_own_newcomers_the_silent_ones_first() -> None:
    room = table(20)
    (idle,) = admit(room, 1, "a", silent=False, idle=True)
    admit(room, 7, "a", silent=False)
    first, second = admit(room, 2, "a")
    (other,) = admit(room, 1, "b")
    for turned_out in (first, second, idle):
        admit(room, 1, "a", silent=False)
        assert turned_out.told == [TOO_MANY]
    assert room.admit(Someone("a")) == TOO_MANY
    assert other.told == []


@pytest.mark.usefixtures("old")
async def test_when_the_server_is_full_the_address_with_the_most_connections_makes_room() -> None:
    room = table(20)
    crowd = admit(room, 10, "a")
    others = [one for address in "bcdef" for one in admit(room, 2, address)]
    admit(room, 1, "g")
    assert crowd[0].told == [FULL]
    assert all(one.told == [] for one in [*crowd[1:], *others])


@pytest.mark.usefixtures("old")
async def test_when_the_server_is_full_a_proxy_makes_room_last() -> None:
    room = table(4)
    proxies = admit(room, 3, None)
    (one,) = admit(room, 1, "a")
    admit(room, 1, "b")
    assert one.told == [FULL]
    admit(room, 1, None)
    admit(room, 1, None)
    assert [proxy.told for proxy in proxies] == [[FULL], [], []]


async def test_a_newcomer_is_not_turned_out_at_once() -> None:
    room = table(4)
    crowd = admit(room, 4, None)
    assert room.admit(Someone("a")) == FULL
    assert all(one.told == [] for one in crowd)


async def test_when_nobody_could_make_room_nobody_is_searched_for_again_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    room = table(4)
    crowd = admit(room, 4, None)
    assert room.admit(Someone("a")) == FULL
    monkeypatch.setattr(connections, "YOUNG_SECONDS", -1.0)
    assert room.admit(Someone("a")) == FULL
    assert all(one.told == [] for one in crowd)


async def test_who_leaves_makes_room_for_anybody() -> None:
    room = table(4)
    crowd = admit(room, 4, None)
    room.leave(crowd[0])
    room.leave(crowd[0])  # twice is once
    assert len(room) == 3
    admit(room, 1, "a")


async def test_unread_output_is_dropped_of_those_who_hold_the_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "YOUNG_SECONDS", -1.0)
    room = table(100, max_unread_bytes=1000)
    (honest,) = admit(room, 1, "a", unread=300)
    room.stalled(honest)
    crowd = admit(room, 10, "b", unread=200)
    for one in crowd:
        room.stalled(one)
    assert honest.told == []
    assert [one.told for one in crowd[:-3]] == [["aborted"]] * 7
    assert [one.told for one in crowd[-3:]] == [[]] * 3
    assert not room.pressed


async def test_output_that_is_read_meanwhile_stays() -> None:
    room = table(100, max_unread_bytes=10_000_000, read_timeout=5)
    reading, stuck = admit(room, 2, "a", unread=5_000_000)
    room.stalled(reading)
    room.stalled(stuck)

    for _ in range(16):
        reading.size -= 50_000
        stuck.size -= 10  # too little
        await pass_time(0.5)
    assert (reading.told, stuck.told) == ([], ["aborted"])


async def test_an_address_that_does_not_read_waits_and_no_other() -> None:
    room = table(100, max_unread_bytes=1000)
    one, other = admit(room, 1, "a", unread=2000)[0], admit(room, 1, "b")[0]
    assert not room.must_wait(one)
    room.stalled(one)
    assert (room.must_wait(one), room.must_wait(other)) == (True, False)
    one.size = 100
    room.stalled(one)
    assert not room.must_wait(one)
    one.size = 2000
    room.stalled(one)
    room.flowing(one)
    assert not room.must_wait(one)
