"""Snapshots: values kept beside the suite for `{snapshot: NAME}`, by the rules of cassettes: modes, bytes, damage, secrets."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bespeak.testing.report.results import Failure, Result
from tests.testing.desk import OURS
from tests.testing.taping import (
    MODERN,
    Desk,
    Json,
    Trip,
    only,
    run_suite,
    text,
    trip,
    without_cassettes,
    write_suite,
)

SUNNY: Json = {"name": "a trip", "tool": "forecast", "expect": {"text": {"snapshot": "weather"}}}


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A server that asks nothing, and says that it is sunny."""
    desk = Desk(tmp_path, monkeypatch)
    desk.server = Trip([])
    return desk


def kept(desk: Desk) -> Path:
    return desk.folder / "trip.snapshots.json"


async def run(desk: Desk, *tests: Json, record: str = "none", **more: Any) -> Result:
    """The result of the last test of a suite without cassettes."""
    path = write_suite(desk.folder, *(tests or (SUNNY,)), **more)
    if "cassettes" not in more:
        without_cassettes(path)
    return (await run_suite(path, record=record))[-1]


async def keep(desk: Desk, *tests: Json, **more: Any) -> Json:
    """What is kept once the tests were recorded."""
    assert (await run(desk, *tests, record="rewrite", **more)).failures == []
    return json.loads(kept(desk).read_bytes())


# What is kept


async def test_a_value_is_kept_by_the_title_of_its_test_and_its_name(desk: Desk) -> None:
    assert await keep(desk) == {"a trip": {"weather": "Sunny."}}
    assert (await run(desk)).failures == []


async def test_two_recordings_are_the_same_bytes_whatever_the_order_they_came_in(desk: Desk) -> None:
    other = {**SUNNY, "name": "b trip"}
    await keep(desk, SUNNY, other)
    once = kept(desk).read_bytes()
    kept(desk).unlink()
    await keep(desk, other, SUNNY)
    assert kept(desk).read_bytes() == once
    assert once.endswith(b"}\n")


async def test_a_call_afterwards_can_have_snapshots(desk: Desk) -> None:
    test = {**SUNNY, "verify": [{"tool": "forecast", "expect": {"text": {"snapshot": "after"}}}]}
    assert await keep(desk, test) == {"a trip": {"after": "Sunny.", "weather": "Sunny."}}


async def test_text_that_is_not_unicode_is_kept_all_the_same(desk: Desk) -> None:
    desk.server = Trip([], result=text("half a pair: \ud800"))
    assert await keep(desk) == {"a trip": {"weather": "half a pair: \ud800"}}
    assert (await run(desk)).failures == []


# Modes


async def test_the_record_mode_none_keeps_no_snapshot_and_says_what_to_do(desk: Desk) -> None:
    assert only(await run(desk)).message == "text: there is no snapshot 'weather' yet; run with --record once"
    assert not kept(desk).exists()


@pytest.mark.parametrize("mode", ["once", "new", "rewrite"])
async def test_every_other_mode_keeps_what_is_not_there(desk: Desk, mode: str) -> None:
    assert (await run(desk, record=mode)).failures == []
    assert json.loads(kept(desk).read_bytes()) == {"a trip": {"weather": "Sunny."}}


@pytest.mark.parametrize("mode", ["none", "once"])
async def test_a_value_that_differs_fails_with_its_path_and_is_not_replaced(desk: Desk, mode: str) -> None:
    await keep(desk)
    desk.server = Trip([], result=text("Rainy."))
    failure = only(await run(desk, record=mode))
    again = "if that is right, record the snapshot 'weather' again with --record new"
    assert failure.message == f'text: expected "Sunny.", got "Rainy."; {again}'
    assert (failure.path, failure.expected, failure.actual) == ("text", "Sunny.", "Rainy.")
    assert json.loads(kept(desk).read_bytes()) == {"a trip": {"weather": "Sunny."}}


@pytest.mark.parametrize("mode", ["new", "rewrite"])
async def test_new_and_rewrite_replace_what_no_longer_fits(desk: Desk, mode: str) -> None:
    await keep(desk)
    desk.server = Trip([], result=text("Rainy."))
    assert (await run(desk, record=mode)).failures == []
    assert json.loads(kept(desk).read_bytes()) == {"a trip": {"weather": "Rainy."}}


async def test_a_snapshot_that_fits_the_recording_is_only_replaced_by_rewrite(desk: Desk) -> None:
    assert (await desk.run(SUNNY, record="once")).failures == []
    desk.server = Trip([], result=text("Rainy."))
    failure = only(await desk.run(SUNNY, verify=True))
    assert failure.message.endswith("; if that is right, record the snapshot 'weather' again with --record rewrite")
    assert (await desk.run(SUNNY, record="rewrite")).failures == []
    assert (await desk.run(SUNNY, verify=True)).failures == []


async def test_nothing_in_a_snapshot_is_a_matcher(desk: Desk) -> None:
    test = {**SUNNY, "expect": {"structuredContent": {"snapshot": "all"}}}
    desk.server = Trip([], result=text("Sunny.", structuredContent={"matches": ".*"}))
    await keep(desk, test)
    assert (await run(desk, test)).failures == []
    desk.server = Trip([], result=text("Sunny.", structuredContent={"matches": "x"}))
    assert only(await run(desk, test)).path == "structuredContent.matches"


async def test_the_snapshots_of_other_tests_stay_as_they_are(desk: Desk) -> None:
    other = {**SUNNY, "name": "b trip"}
    await keep(desk, SUNNY, other)
    desk.server = Trip([], result=text("Rainy."))
    assert await keep(desk, other) == {"a trip": {"weather": "Sunny."}, "b trip": {"weather": "Rainy."}}


TWICE: dict[str, Json] = {
    "one name for each entry": {"structuredContent": {"days": {"each": {"snapshot": "day"}}}},
    "one name in two places": {"text": {"snapshot": "day"}, "structuredContent": {"snapshot": "day"}},
}


@pytest.mark.parametrize("mode", ["once", "rewrite"])
@pytest.mark.parametrize("expect", TWICE.values(), ids=TWICE)
async def test_one_name_for_different_values_fails_at_once_and_not_only_next_time(
    desk: Desk, expect: Json, mode: str
) -> None:
    desk.server = Trip([], result=text("Sunny.", structuredContent={"days": [1, 2]}))
    assert not (await run(desk, {**SUNNY, "expect": expect}, record=mode)).passed


# A test that fails


@pytest.mark.parametrize("mode", ["once", "new", "rewrite"])
@pytest.mark.parametrize(
    "more", [{"expect": {"text": {"snapshot": "weather"}, "isError": True}}, {"inputResponses": {"city": "Lisbon"}}]
)
async def test_a_failing_test_keeps_no_snapshot(desk: Desk, mode: str, more: Json) -> None:
    assert not (await run(desk, {**SUNNY, **more}, record=mode)).passed
    assert not kept(desk).exists()


async def test_a_replay_that_turns_out_to_be_stale_keeps_nothing(desk: Desk) -> None:
    plain: Json = {**SUNNY, "expect": {}}
    assert (await run(desk, plain, record="once", cassettes="tapes")).passed
    desk.alter(lambda cassette: cassette["turns"].append(cassette["turns"][0]))
    desk.server = Trip([], result=text("Rainy."))
    assert (await run(desk, record="new", cassettes="tapes")).failures == []
    assert json.loads(kept(desk).read_bytes()) == {"a trip": {"weather": "Rainy."}}


# Damage

DAMAGED = {
    "a conflict": b'<<<<<<< HEAD\n{"b trip": {"weather": "Dry."}}\n=======\n{}\n>>>>>>> theirs\n',
    "half of it": b'{"b trip": {"weather"',
    "nothing": b"",
    "no UTF-8": b"\xff\xfe",
    "a list": b"[]",
    "a number": b"5",
    "a test that is a number": b'{"a trip": 5, "b trip": {"weather": "Dry."}}',
    "a test that is a text": b'{"a trip": "weather"}',
    "a test that is a list": b'{"a trip": ["weather"]}',
    "a number that is none": b'{"a trip": {"weather": NaN}}',
    "nested too deep": b'{"a trip": {"weather": ' + b"[" * 600 + b"]" * 600 + b"}}",
    "nested 100,000 deep": b"[" * 100_000,
}
INTERNALS = ("Traceback", "codec can't", "recursion", "Errno", "not iterable", "indices must be")


def cannot_be_read(failure: Failure) -> bool:
    named = "trip.snapshots.json" in failure.message
    return named and not any(word in failure.message for word in INTERNALS)


@pytest.mark.parametrize("mode", ["none", "once"])
@pytest.mark.parametrize("damaged", DAMAGED.values(), ids=DAMAGED)
async def test_a_file_that_cannot_be_read_fails_the_test_and_is_left_alone(
    desk: Desk, damaged: bytes, mode: str
) -> None:
    kept(desk).write_bytes(damaged)
    assert cannot_be_read(only(await run(desk, record=mode)))
    assert kept(desk).read_bytes() == damaged


async def test_a_folder_in_place_of_the_file_fails_the_test(desk: Desk) -> None:
    kept(desk).mkdir()
    assert cannot_be_read(only(await run(desk, record="once")))
    assert sorted(path.name for path in desk.folder.iterdir()) == ["trip.bespeak.yaml", "trip.snapshots.json"]


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    test = trip(expect={"text": {"snapshot": "weather"}})
    return without_cassettes(write_suite(tmp_path_factory.mktemp("any"), test, servers=OURS, eras=[MODERN]))


@given(
    found=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from([f"a trip [{MODERN}]", "weather", "x"]), inner, max_size=3)
        ),
        max_leaves=6,
    )
)
@settings(max_examples=25)
@pytest.mark.long
def test_any_json_in_place_of_the_file_fails_the_test_and_crashes_nothing(suite: Path, found: Any) -> None:
    suite.with_name("trip.snapshots.json").write_text(json.dumps(found), encoding="utf-8")
    (result,) = asyncio.run(run_suite(suite))
    assert only(result).path == "text"


# Secrets


async def test_no_secret_is_kept_and_another_one_fits(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "hunter2")
    test = {**SUNNY, "arguments": {"key": "${env:SECRET}"}}
    desk.server = Trip([], result=text("Your key is hunter2."))
    assert await keep(desk, test) == {"a trip": {"weather": "Your key is ${env:SECRET}."}}
    monkeypatch.setenv("SECRET", "another")
    desk.server = Trip([], result=text("Your key is another."))
    assert (await run(desk, test)).failures == []


async def test_what_is_declared_is_redacted_when_it_is_kept_and_when_it_is_compared(desk: Desk) -> None:
    test = {**SUNNY, "expect": {"structuredContent": {"snapshot": "all"}}}
    for number in ("4711", "8150"):
        desk.server = Trip([], result=text("Sunny.", structuredContent={"id": number}))
        assert (await run(desk, test, record="once", redact=["structuredContent.id"])).failures == []
        assert json.loads(kept(desk).read_bytes()) == {"a trip": {"all": {"id": "[redacted]"}}}


@pytest.mark.parametrize("redact", ["structuredContent.ids[*].id", {"pattern": r"4711\d*"}], ids=["path", "pattern"])
async def test_a_value_that_is_redacted_later_is_found_and_not_shown(desk: Desk, redact: Any) -> None:
    test = {**SUNNY, "expect": {"structuredContent": {"snapshot": "all"}}}
    ids: list[Json] = [{"id": "4711"}, {"id": "47112"}]
    desk.server = Trip([], result=text("Sunny.", structuredContent={"ids": ids}))
    await keep(desk, test)
    result = await run(desk, test, redact=[redact])
    what = "structuredContent: the snapshot 'all' has a value that is redacted now; record it again with --record new"
    assert (only(result).message, "4711" in json.dumps(result.as_json())) == (what, False)
    desk.server = Trip([], result=text("Sunny.", structuredContent={"ids": ids[:1]}))
    result = await run(desk, test, redact=[redact])
    assert (len(result.failures), "4711" in json.dumps(result.as_json())) == (1, False)
    assert await keep(desk, test, redact=[redact]) == {"a trip": {"all": {"ids": [{"id": "[redacted]"}]}}}


async def test_a_snapshot_that_was_kept_live_fits_the_replay(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "hunter2")
    test = {**SUNNY, "arguments": {"key": "${env:SECRET}"}}
    desk.server = Trip([], result=text("Your key is hunter2."))
    assert (await run(desk, test, record="once", cassettes="tapes")).failures == []
    assert (await run(desk, test, cassettes="tapes")).failures == []


# Several at once, and CI


def many(folder: Path) -> Path:
    """A suite of 24 tests, each with a snapshot: those of two who run it at the same time."""
    test: Json = {"tool": "plain", "expect": {"text": {"snapshot": "weather"}}}
    tests = [{"name": f"{who} {number}", **test} for who in ("one", "other") for number in range(12)]
    return without_cassettes(write_suite(folder, *tests, servers=OURS, eras=[MODERN]))


def test_threads_that_keep_snapshots_of_one_suite_lose_none(desk: Desk) -> None:
    suite = many(desk.folder)
    results: list[Result] = []

    def work(who: str) -> None:
        results.extend(asyncio.run(run_suite(suite, record="once", titles=who)))

    with ThreadPoolExecutor() as pool:
        list(pool.map(work, ("one", "other")))
    assert [result.failures for result in results if not result.passed] == []
    assert len(json.loads(kept(desk).read_bytes())) == 24
