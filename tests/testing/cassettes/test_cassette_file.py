"""Recording: two recordings of the same behaviour are the same bytes, and there is nothing in them that would be another."""

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest

import bespeak
from tests.testing import desk
from tests.testing.desk import BEHAVIOURS, OURS
from tests.testing.taping import (
    CITY,
    LEGACY,
    MODERN,
    Desk,
    Json,
    Trip,
    anyhow,
    form,
    named,
    run_suite,
    text,
    trip,
    write_suite,
)
from tests.testing.taping import VERSION as TRIP_VERSION
from tests.wires import Listening

BROKEN = Path(__file__).resolve().parents[3] / "suites" / "broken"
PAY: Json = {"tool": "pay", "arguments": {"cents": 500, "to": "Ada"}, "inputResponses": {"confirm": True}}
TILL: dict[str, Json] = {
    "a payment": {**PAY, "fresh": True, "verify": [{"tool": "balance", "expect": {"text": "1 payments, 500 cents"}}]},
    "two questions": {"tool": "ask_twice", "inputResponses": {"color": "red", "shade": "dark"}},
    **{f"a state altered by {how}": {**PAY, "tamper": {"round": 1, "requestState": how}} for how in ("flip", "drop")},
    "a lost response": {
        **PAY,
        "fresh": True,
        "fault": {"round": 1, "drop": "response"},
        "retry": 2,
        "verify": [{"tool": "balance", "expect": {"text": "1 payments, 500 cents"}}],
    },
}


@pytest.fixture
def taped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    return Desk(tmp_path, monkeypatch)


async def record(folder: Path, servers: Json, tests: dict[str, Json], **more: Any) -> dict[str, bytes]:
    """The cassettes of tests, by the names of the files."""
    results = await run_suite(
        write_suite(folder, *named(tests), name="desk", servers=servers, **more), record="rewrite"
    )
    assert [result.failures for result in results if not result.passed] == []
    return {path.name: path.read_bytes() for path in (folder / "tapes").iterdir()}


# The same bytes


@pytest.mark.parametrize("era", [MODERN, LEGACY])
@pytest.mark.parametrize("behaviour", BEHAVIOURS)
async def test_two_recordings_of_the_same_behaviour_are_the_same_bytes(
    tmp_path: Path, behaviour: str, era: str
) -> None:
    tests = {behaviour: BEHAVIOURS[behaviour]}
    once = await record(tmp_path / "once", OURS, tests, eras=[era])
    again = await record(tmp_path / "again", OURS, tests, eras=[era])
    assert len(once) == 1
    assert once == again


class Tills(NamedTuple):
    """What was recorded of a program, twice, and the folder of the first suite."""

    folder: Path
    once: dict[str, bytes]
    again: dict[str, bytes]


@pytest.fixture(scope="module")
def tills(tmp_path_factory: pytest.TempPathFactory) -> Tills:
    """Cassettes of a till that is a program, and makes new keys and tokens whenever it is started: recorded twice."""
    servers = {"till": {"command": ["python", str(BROKEN / "good.py")]}}
    folders = [tmp_path_factory.mktemp("till") for _ in range(2)]
    return Tills(folders[0], *(asyncio.run(record(folder, servers, TILL, eras=[MODERN])) for folder in folders))


def tape_of(tapes: dict[str, bytes], name: str) -> bytes:
    (found,) = (tape for file, tape in tapes.items() if file.startswith(f"desk-{name.replace(' ', '-')}-2026"))
    return found


@pytest.mark.timing
@pytest.mark.parametrize("name", TILL)
def test_two_processes_of_a_server_with_other_tokens_each_time_give_the_same_bytes(tills: Tills, name: str) -> None:
    assert tape_of(tills.once, name) == tape_of(tills.again, name)


@pytest.mark.timing
@pytest.mark.long
async def test_two_recordings_in_the_compatibility_dialect_are_the_same_bytes(tmp_path: Path) -> None:
    servers = {"till": {"command": ["python", str(BROKEN / "listing.py")]}}
    tests = {"two questions": TILL["two questions"], "a payment": TILL["a payment"]}
    once = await record(tmp_path / "once", servers, tests, wire="any")
    again = await record(tmp_path / "again", servers, tests, wire="any")
    assert len(once) == 2
    assert once == again
    assert b'"id": "shade"' in b"".join(once.values())


@pytest.mark.parametrize("era", [MODERN, LEGACY])
async def test_what_carries_the_messages_does_not_show_in_a_cassette(tmp_path: Path, era: str) -> None:
    tests = {name: BEHAVIOURS[name] for name in ("two rounds", "sampling", "notifications", "an error")}
    in_process = await record(tmp_path / "in process", OURS, tests, eras=[era])
    async with Listening(desk.mcp.streamable_http_app()) as listening:
        over_http = await record(tmp_path / "http", {"desk": {"url": listening.url}}, tests, eras=[era])
    assert over_http == in_process


@pytest.mark.long
async def test_a_test_run_among_others_is_recorded_as_if_it_were_alone(tmp_path: Path) -> None:
    alone = await record(tmp_path / "alone", OURS, {"two rounds": BEHAVIOURS["two rounds"]}, eras=[MODERN])
    among = await record(tmp_path / "among", OURS, BEHAVIOURS, eras=[LEGACY, MODERN])
    assert alone.items() <= among.items()


# What is not in them


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for key, member in cast("Json", value).items():
            yield key
            yield from leaves(member)
    elif isinstance(value, list):
        for member in cast("list[Any]", value):
            yield from leaves(member)
    else:
        yield value


async def test_no_token_is_in_a_cassette_nor_any_part_of_one(taped: Desk) -> None:
    tape = (await taped.recorded(trip())).decode()
    parts = {token[start : start + 6] for token in taped.server.tokens for start in range(len(token) - 5)}
    assert len(taped.server.tokens) == 2
    assert [part for part in parts if part in tape] == []


async def test_a_token_that_a_server_quotes_is_not_recorded(taped: Desk) -> None:
    taped.server = Trip([CITY], always="a-token-that-is-quoted", result=text("Thanks for a-token-that-is-quoted."))
    assert b"a-token-that-is-quoted" not in await taped.recorded(anyhow())


@pytest.mark.parametrize("era", [MODERN, LEGACY])
async def test_no_version_of_the_server_or_of_the_package_is_in_a_cassette(tmp_path: Path, era: str) -> None:
    tapes = await record(tmp_path, OURS, BEHAVIOURS, eras=[era])
    everything = b"".join(tapes.values()).decode()
    assert len(tapes) == len(BEHAVIOURS)
    assert desk.VERSION not in everything
    assert bespeak.__version__ not in everything
    assert "serverInfo" not in everything


@pytest.mark.parametrize("era", [MODERN, LEGACY])
async def test_no_path_and_no_time_is_in_a_cassette(tmp_path: Path, era: str) -> None:
    everything = b"".join((await record(tmp_path, OURS, BEHAVIOURS, eras=[era])).values()).decode()
    assert str(tmp_path) not in everything
    assert str(Path(__file__).parent) not in everything
    assert re.search(r"[0-9]{2}:[0-9]{2}|\b1[0-9]{9}", everything) is None


async def test_what_a_result_says_beside_its_content_is_kept_without_the_servers_name(taped: Desk) -> None:
    taped.server = Trip([], result=text("Sunny.", _meta={"example.com/station": "north"}))
    tape = await taped.recorded(anyhow())
    assert taped.cassette["turns"][0]["result"]["_meta"] == {"example.com/station": "north"}
    assert TRIP_VERSION.encode() not in tape


@pytest.mark.parametrize(
    "result",
    [
        pytest.param(text("Sunny.", requestState="token-of-a-server"), id="complete"),
        pytest.param({"content": [], "requestState": "token-of-a-server"}, id="without a resultType"),
    ],
)
async def test_a_state_in_a_result_that_asks_nothing_is_not_recorded_either(taped: Desk, result: Json) -> None:
    taped.server = Trip([], result=result)
    assert b"token-of-a-server" not in await taped.recorded(anyhow(wire="any"))


# Handles


def handles(cassette: Json) -> list[tuple[Any, Any]]:
    """The state that each turn sends, and the one that it is handed."""
    return [(turn["sent"].get("requestState"), turn.get("state")) for turn in cassette["turns"]]


async def test_states_are_numbered_in_the_order_they_are_returned(taped: Desk) -> None:
    await taped.recorded(trip())
    assert handles(taped.cassette) == [
        (None, {"$state": 1}),
        ({"$state": 1}, {"$state": 2}),
        ({"$state": 2}, None),
    ]


async def test_a_round_without_a_state_has_no_handle(taped: Desk) -> None:
    taped.server = Trip([CITY], with_state=False)
    await taped.recorded(anyhow())
    assert handles(taped.cassette) == [(None, None), (None, None)]


async def test_a_round_that_only_returns_a_state_asks_and_answers_nothing(taped: Desk) -> None:
    taped.server = Trip([None])
    await taped.recorded(anyhow())
    turn = taped.cassette["turns"][0]
    assert ("asked" in turn, "answered" in turn, turn["state"]) == (False, False, {"$state": 1})


async def test_an_altered_state_is_none_that_was_returned(taped: Desk) -> None:
    await taped.recorded(trip(inputResponses={"city": "Lisbon"}, tamper={"round": 1, "requestState": "flip"}))
    assert handles(taped.cassette)[1] == ({"$state": "altered"}, None)


async def test_the_states_of_calls_afterwards_are_numbered_on(taped: Desk) -> None:
    after = {name: value for name, value in trip().items() if name != "name"}
    await taped.recorded(trip(verify=[after]))
    assert [given["$state"] for _, given in handles(taped.cassette) if given] == [1, 2, 3, 4]


async def test_a_turn_has_what_was_sent_asked_answered_and_in_the_end_the_result(taped: Desk) -> None:
    taped.server = Trip([{"city": form("Which?")}], result=text("Sunny."))
    await taped.recorded(trip(inputResponses={"city": "Lisbon"}))
    first, last = taped.cassette["turns"]
    assert first["sent"] == {"name": "forecast", "arguments": {"loc": "SFO"}}
    assert first["asked"] == [{"key": "city", "request": form("Which?")}]
    assert first["answered"] == {"city": {"action": "accept", "content": {"value": "Lisbon"}}}
    assert last["result"]["content"] == [{"type": "text", "text": "Sunny."}]
    assert "inputResponses" not in last["sent"]


@pytest.mark.parametrize("era", [MODERN, LEGACY])
async def test_notifications_stand_in_the_turn_in_which_they_came(tmp_path: Path, era: str) -> None:
    name = "notifications on both sides"
    (tape,) = (await record(tmp_path, OURS, {name: BEHAVIOURS[name]}, eras=[era])).values()
    told = [[note["params"]["data"] for note in turn["notifications"]] for turn in json.loads(tape)["turns"]]
    assert told == [["before the question"], ["after the answer"]]


async def test_no_progress_token_of_ours_is_in_a_cassette(tmp_path: Path) -> None:
    tapes = await record(tmp_path, OURS, {"notifications": BEHAVIOURS["notifications"]}, eras=[LEGACY, MODERN])
    assert b"notifications/progress" in b"".join(tapes.values())
    assert b"progressToken" not in b"".join(tapes.values())
