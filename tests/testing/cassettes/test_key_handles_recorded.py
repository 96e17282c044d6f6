"""Keys in cassettes: one that depends on the wording is kept as a handle, and a suite that writes names never knows."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import pytest

from bespeak import Elicit, MCPServer, Resolve
from bespeak.conversation.servers import Reached
from bespeak.testing import converse
from bespeak.transports.memory import MemoryTransport
from tests.testing.canned import Pushing
from tests.testing.taping import (
    LEGACY,
    MODERN,
    Desk,
    Json,
    Trip,
    anyhow,
    form,
    only,
    run_suite,
    stale,
    text,
    trip,
    write_suite,
)

SECRET = "hunter2-öäü"


@pytest.fixture
def taped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.setenv("SECRET", SECRET)
    return Desk(tmp_path, monkeypatch)


def asking(digits: str, city: str = "city", units: str = "units", **more: Any) -> Trip:
    """A server whose keys end in these digits."""
    rounds = [{f"{city}~{digits}": form("Which city?")}, {f"{units}~{digits}": form("Which units?")}]
    return Trip(rounds, **more)


def keys(cassette: Json) -> list[list[str]]:
    """The keys that each turn asks under."""
    return [[one["key"] for one in turn.get("asked", [])] for turn in cassette["turns"]]


async def test_a_key_is_kept_as_a_handle_wherever_it_stands(taped: Desk) -> None:
    quoting = text("city~0000aaaa was asked", structuredContent={"city~0000aaaa": ["units~0000aaaa"]})
    note = {"method": "notifications/message", "params": {"level": "info", "data": "for units~0000aaaa"}}
    taped.server = asking("0000aaaa", result=quoting, notes=[[], [], [note]])
    tape = await taped.recorded(trip())
    assert b"0000aaaa" not in tape
    first, second, last = taped.cassette["turns"]
    assert keys(taped.cassette) == [["city~1"], ["units~1"], []]
    assert (list(first["answered"]), list(second["answered"])) == (["city~1"], ["units~1"])
    assert last["result"]["structuredContent"] == {"city~1": ["units~1"]}
    assert last["result"]["content"] == [{"type": "text", "text": "city~1 was asked"}]
    assert last["notifications"][0]["params"]["data"] == "for units~1"
    assert taped.cassette["keys"] == ["city~1", "units~1"]


async def test_recordings_with_other_keys_of_the_same_names_are_the_same_bytes(taped: Desk) -> None:
    taped.server = asking("0000aaaa")
    once = await taped.recorded(trip())
    taped.server = asking("ffff0000")
    assert await taped.recorded(trip()) == once


async def test_a_suite_with_names_is_replayed(taped: Desk) -> None:
    taped.server = asking("0000aaaa")
    rounds = [
        {"expect": {"asks": ["city"], "messages": {"city": "Which city?"}}, "answer": {"city": "Lisbon"}},
        {"expect": {"asks": ["units"], "schemas": {"units": {"present": True}}}, "answer": {"units": "C"}},
    ]
    by_round = {name: value for name, value in trip(rounds=rounds).items() if name != "inputResponses"}
    by_rule = trip(name="rules", inputResponses=[{"when": {"key": "city"}, "answer": "Lisbon"}, {"otherwise": "C"}])
    tests = [
        {**by_round, "expect": {"asked": ["city", "units"]}},
        trip(name="names", expect={"asked": ["city", "units"], "text": "Sunny."}),
        by_rule,
    ]
    suite = taped.suite(*tests)
    for mode in ("rewrite", "none"):
        assert [result.failures for result in await run_suite(suite, record=mode)] == [[], [], []]
    assert taped.connections == 1, "while recording"


async def test_a_live_server_with_other_keys_of_the_same_names_is_verified(taped: Desk) -> None:
    taped.server = asking("0000aaaa")
    await taped.recorded(trip())
    taped.server = asking("ffff0000")
    assert (await taped.run(trip(), verify=True)).passed


async def test_a_live_server_that_asks_under_another_name_is_not_verified(taped: Desk) -> None:
    taped.server = asking("0000aaaa")
    await taped.recorded(anyhow())
    taped.server = asking("0000aaaa", units="scale")
    failure = stale(await taped.run(anyhow(), verify=True))
    assert failure.path == "turns[1].asked[0].key"
    assert (failure.expected, failure.actual) == ("units~1", "scale~1")


async def test_a_question_that_changes_in_the_middle_of_a_call_has_two_handles(taped: Desk) -> None:
    price = [{"pay~0000aaaa": form("Pay 5?")}, {"pay~0000bbbb": form("Pay 6?")}, {"pay~0000aaaa": form("Pay 5?")}]
    taped.server = Trip(price)
    test = trip(inputResponses={"pay": "yes"}, expect={"asked": ["pay", "pay", "pay"]})
    await taped.recorded(test)
    assert keys(taped.cassette) == [["pay~1"], ["pay~2"], ["pay~1"], []]
    assert (await taped.run(test)).passed
    taped.server = Trip([{"pay~0000cccc": form("Pay 5?")}, *price[1:]])
    failure = stale(await taped.run(test, verify=True))
    assert (failure.path, failure.expected, failure.actual) == ("turns[2].asked[0].key", "pay~1", "pay~3")


async def test_an_answer_under_another_key_than_the_one_that_was_asked_diverges(taped: Desk) -> None:
    taped.server = Trip([{"pay~0000aaaa": form("Pay 5?"), "tip": form("Tip?")}])
    await taped.recorded(anyhow())
    taped.alter(lambda tape: tape["turns"][0].update(answered={"pay~2": {}, "tip": {}}))
    assert only(await taped.run(anyhow())).message.startswith("diverged at round 1: turns[0].answered")


async def test_the_place_where_a_replay_parts_is_reported_as_the_cassette_has_it(taped: Desk) -> None:
    taped.server = asking("0000aaaa")
    await taped.recorded(trip())
    failure = stale(await taped.run(trip(inputResponses={"city": "Oslo", "units": "C"})))
    assert failure.path == 'turns[0].answered["city~1"].content.value'


async def test_the_ids_of_the_compatibility_dialect_are_kept_as_handles(taped: Desk) -> None:
    fields = [{"id": "city~0000aaaa", "kind": "string", "description": "Which?", "required": True}]
    taped.server = Trip([fields], resulting={})
    test = trip(inputResponses={"city": "Lisbon"}, wire="list")
    tape = await taped.recorded(test)
    assert b"0000aaaa" not in tape
    assert taped.cassette["turns"][0]["answered"] == [{"id": "city~1", "value": "Lisbon"}]
    assert (await taped.run(test)).passed


async def test_nothing_is_left_of_a_question_that_is_redacted_by_name(taped: Desk) -> None:
    redact = ["inputRequests.city.params.message", "inputResponses.city.content.value"]
    taped.server = asking("0000aaaa")
    tape = await taped.recorded(trip(), redact=redact)
    first = taped.cassette["turns"][0]
    assert first["asked"][0]["request"]["params"]["message"] == "[redacted]"
    assert first["answered"]["city~1"]["content"] == {"value": "[redacted]"}
    assert b"Lisbon" not in tape
    assert b"0000aaaa" not in tape, "these digits are made of what is kept out"
    assert (await taped.run(trip(), redact=redact)).passed


async def test_a_secret_in_a_key_is_redacted_and_put_back(taped: Desk) -> None:
    taped.server = asking("0000aaaa", city=f"of {SECRET}", result=text(f"asked of {SECRET}~0000aaaa"))
    test = trip(
        inputResponses={"of ${env:SECRET}": "Lisbon", "units": "C"}, expect={"asked": ["of ${env:SECRET}", "units"]}
    )
    tape = await taped.recorded(test)
    assert b"hunter2" not in tape
    assert keys(taped.cassette)[0] == ["of ${env:SECRET}~1"]
    assert taped.cassette["turns"][2]["result"]["content"][0]["text"] == "asked of ${env:SECRET}~1"
    assert (await taped.run(test)).passed


# Keys that the suite writes out, and keys that only look like handles


async def test_a_key_that_the_suite_writes_out_is_recorded_and_replayed_as_it_is(taped: Desk) -> None:
    taped.server = Trip([{"x~deadbeef": form("One?"), "x~0000aaaa": form("Two?"), "y~0000bbbb": form("Three?")}])
    test = trip(inputResponses={"x~deadbeef": "one", "x~0000aaaa": "two", "y": "three"})
    await taped.recorded(test)
    assert keys(taped.cassette)[0] == ["x~deadbeef", "x~0000aaaa", "y~1"]
    assert (await taped.run(test)).passed
    assert (await taped.run(test, verify=True)).passed


async def test_a_key_that_looks_like_a_handle_is_replayed_as_it_is(taped: Desk) -> None:
    taped.server = Trip([{"x~1": form("One?"), "x~0000aaaa": form("Two?")}, {"x~2": form("Three?")}])
    test = trip(inputResponses={"x~1": "one", "x": "two", "x~2": "three"})
    await taped.recorded(test)
    assert keys(taped.cassette) == [["x~3", "x~1"], ["x~2"], []]
    assert taped.cassette["keys"] == ["x~3"]
    assert (await taped.run(test)).passed
    assert (await taped.run(test, verify=True)).passed


# Cassettes that were recorded before


def as_before(tape: Json) -> None:
    """A cassette as it was written when keys were written down as they are."""
    text = json.dumps(tape).replace("city~1", "city~0000aaaa").replace("units~1", "units~0000aaaa")
    tape.update(json.loads(text))
    del tape["keys"]


async def test_a_cassette_with_keys_written_out_is_replayed_and_verified(taped: Desk) -> None:
    taped.server = asking("0000aaaa")
    await taped.recorded(trip())
    taped.alter(as_before)
    assert (await taped.run(trip())).passed
    assert (await taped.run(trip(), verify=True)).passed
    taped.server = asking("ffff0000")
    assert (await taped.run(trip(), verify=True)).passed


@pytest.mark.parametrize("listed", [None, "city~1", ["city"], ["city~0"], [5], ["city~1", "city~1"], {"city~1": 1}])
async def test_handles_that_are_invalid_make_no_cassette(taped: Desk, listed: Any) -> None:
    taped.server = asking("0000aaaa")
    await taped.recorded(trip())
    taped.alter(lambda tape: tape.update(keys=listed))
    assert "is not a cassette of format 1; run with --record new" in stale(await taped.run(trip())).message


# A server of ours


class Shop:
    """A server whose question holds a receipt's number, which is another in every recording."""

    def __init__(self, number: str) -> None:
        async def approve() -> Elicit[bool]:
            return Elicit(f"Pay receipt {number}?", bool)

        async def thank(ok: Annotated[bool, Resolve(approve, key="approve")]) -> Elicit[str]:
            return Elicit("Whom may we thank?", str)

        async def buy(
            ok: Annotated[bool, Resolve(approve, key="approve")], who: Annotated[str, Resolve(thank, key="thank")]
        ) -> str:
            return f"{who} paid: {ok}"

        self.mcp = MCPServer[Any]("shop")
        self.mcp.add_tool(buy)


@pytest.mark.parametrize("era", [MODERN, LEGACY])
async def test_what_is_redacted_of_a_question_of_ours_does_not_show_in_its_cassette(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, era: str
) -> None:
    number, asked = "4711-a", list[str]()

    @asynccontextmanager
    async def reach(*_: object) -> AsyncGenerator[Reached]:
        yield Reached(MemoryTransport(Shop(number).mcp))

    monkeypatch.setattr("bespeak.conversation.connection_pool.reach", reach)
    test = {
        "name": "a purchase",
        "tool": "buy",
        "rounds": [
            {"expect": {"asks": ["approve"]}, "answer": {"approve": True}},
            {"expect": {"asks": ["thank"]}, "answer": [{"when": {"key": "thank"}, "answer": "Ada"}]},
        ],
        "expect": {"asked": ["approve", "thank"], "text": "Ada paid: True"},
    }
    suite = write_suite(tmp_path, test, eras=[era], redact=["inputRequests.approve.params.message"])
    tapes: list[bytes] = []
    for number in ("4711-a", "4711-b"):
        asked += (await converse(Shop(number).mcp, "buy", answers={"approve": True, "thank": "Ada"}, era=era)).keys
        assert [result.failures for result in await run_suite(suite, record="rewrite")] == [[]]
        tapes += [path.read_bytes() for path in (tmp_path / "tapes").iterdir()]
    assert len(set(asked)) == 4, "both keys are others, since the second depends on the first"
    assert tapes[0] == tapes[1]
    assert [key for key in asked if key[-8:].encode() in tapes[0]] == []
    number = "4711-c"
    for verify in (False, True):
        assert [result.failures for result in await run_suite(suite, verify=verify)] == [[]]


# Pushed questions


def pushed(key: str) -> Json:
    question = form("Which city?")
    return {**question, "params": {**question["params"], "_meta": {"bespeak/key": key}}}


async def test_the_key_of_a_pushed_question_is_kept_as_a_handle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digits = "0000aaaa"

    @asynccontextmanager
    async def reach(*_: object) -> AsyncGenerator[Reached]:
        yield Reached(Pushing(pushed(f"city~{digits}"), pushed(f"city~{digits[::-1]}")))

    monkeypatch.setattr("bespeak.conversation.connection_pool.reach", reach)
    test = trip(inputResponses={"city": "Lisbon"}, expect={"asked": ["city", "city"]})
    suite = write_suite(tmp_path, test, servers={"desk": {"command": ["no-such-command"], "protocol": "legacy"}})
    for mode in ("rewrite", "none"):
        assert [result.failures for result in await run_suite(suite, record=mode)] == [[]]
    (tape,) = (tmp_path / "tapes").iterdir()
    before = tape.read_bytes()
    assert keys(json.loads(before)) == [["city~1"], ["city~2"], []]
    assert digits.encode() not in before
    digits = "12345678"
    assert [result.failures for result in await run_suite(suite, verify=True)] == [[]]
    assert [result.failures for result in await run_suite(suite, record="rewrite")] == [[]]
    assert tape.read_bytes() == before
