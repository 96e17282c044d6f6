"""Cassettes as files: one for each test under a name of its own, sorted, whole, and never of a test that failed."""

import os
import stat
import threading
from pathlib import Path
from typing import Any, cast

import pytest

from bespeak.conversation.connection import Connection
from bespeak.testing.cassettes.cassette_file import CassetteFile
from bespeak.testing.cassettes.recorder import Recorder
from bespeak.testing.redaction.redactor import Redactor
from bespeak.testing.report.results import Kind
from bespeak.testing.suite.loader import load_suite
from bespeak.testing.suite.plan import items_of
from tests.testing.taping import (
    MODERN,
    Desk,
    Json,
    Trip,
    anyhow,
    form,
    only,
    run_suite,
    text,
    trip,
    write_suite,
)


@pytest.fixture
def taped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    return Desk(tmp_path, monkeypatch)


async def names(taped: Desk, *tests: Json, **more: Any) -> list[str]:
    results = await run_suite(taped.suite(*tests, **more), record="once")
    assert [result.failures for result in results if not result.passed] == []
    return sorted(path.name for path in taped.tapes.iterdir())


# Their form


async def test_the_keys_of_a_cassette_are_sorted_at_every_depth(taped: Desk) -> None:
    def keys_sorted(value: Any) -> bool:
        if isinstance(value, list):
            return all(map(keys_sorted, cast("list[Any]", value)))
        if not isinstance(value, dict):
            return True
        members = cast("Json", value)
        return list(members) == sorted(members) and all(map(keys_sorted, members.values()))

    await taped.recorded(trip())
    assert keys_sorted(taped.cassette)


async def test_nobody_else_may_read_a_cassette(taped: Desk) -> None:
    before = os.umask(0)
    try:
        await taped.recorded(trip())
    finally:
        os.umask(before)
    assert [stat.S_IMODE(file.stat().st_mode) for file in taped.tapes.iterdir()] == [0o600]


async def test_a_cassette_is_text_of_many_lines_and_ends_with_a_newline(taped: Desk) -> None:
    tape = await taped.recorded(trip())
    assert tape.count(b"\n") > 20
    assert tape.endswith(b"}\n")
    assert not tape.endswith(b"\n\n")


async def test_each_test_case_and_era_has_a_cassette_of_its_own(taped: Desk) -> None:
    cases = [{"name": "one"}, {"name": "two"}]
    assert len(await names(taped, trip(cases=cases), trip(name="another"))) == 3


async def test_nothing_else_stays_in_the_folder(taped: Desk) -> None:
    await taped.recorded(trip())
    await taped.recorded(trip())
    assert [path.suffix for path in taped.tapes.iterdir()] == [".json"]


# Their names

ODD = {
    "slashes": "../../etc/passwd",
    "unicode": "Größe 東京 🗼",
    "nothing a slug keeps": "東京",
    "very long": "long " * 400,
    "control characters": "bell \x07 and \x1b[31m",
}


@pytest.mark.parametrize("title", ODD.values(), ids=ODD)
async def test_a_test_with_an_odd_title_is_recorded_in_the_folder_and_replayed(taped: Desk, title: str) -> None:
    (name,) = await names(taped, trip(name=title))
    assert (taped.tapes / name).resolve().parent == taped.tapes.resolve()
    assert len(name) <= 140, "there are file systems that take no more, with a name for the file beside"
    assert name.isascii()
    assert name.isprintable()
    assert not name.startswith((".", "-"))
    assert (await taped.run(trip(name=title))).passed


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a trip", "a-trip"),
        ("a trip", "A trip"),
        ("東京", "大阪"),
        ("x" * 300, "x" * 301),
    ],
)
async def test_titles_that_look_alike_have_different_cassettes(taped: Desk, one: str, other: str) -> None:
    found = await names(taped, trip(name=one), trip(name=other))
    assert len({name.lower() for name in found}) == 2, "not even where upper and lower case are the same"


async def test_the_same_test_of_two_suites_in_one_folder_has_two_cassettes(taped: Desk) -> None:
    await names(taped, trip(), name="one")
    assert len(await names(taped, trip(), name="two")) == 2


async def test_suites_of_the_same_name_can_share_one_folder_of_cassettes(taped: Desk) -> None:
    shared = taped.folder / "shared"
    for folder in ("x", "y"):
        (taped.folder / folder).mkdir()
        suite = write_suite(taped.folder / folder, trip())
        assert (await run_suite(suite, record="once", cassettes=shared, start=taped.folder))[0].passed
    assert len(list(shared.iterdir())) == 2


async def test_a_cassette_is_called_the_same_wherever_its_suite_lies(taped: Desk) -> None:
    called: list[str] = []
    for folder in ("x", "y"):
        (taped.folder / folder).mkdir()
        await run_suite(write_suite(taped.folder / folder, trip()), record="once")
        called += [path.name for path in (taped.folder / folder / "tapes").iterdir()]
    assert called[0] == called[1]


# A test that fails

FAILING = {
    "what is expected": trip(expect={"text": "Rainy."}),
    "an answer nobody asked for": trip(inputResponses={"city": "Lisbon", "units": "C", "nights": 3}),
    "a call afterwards": trip(verify=[{"tool": "balance", "inputResponses": {"city": "Rome", "units": "F", "x": 1}}]),
    "a round that was never reached": trip(tamper={"round": 3, "requestState": "flip"}),
}


@pytest.mark.parametrize("test", FAILING.values(), ids=FAILING)
async def test_a_failing_test_writes_no_cassette(taped: Desk, test: Json) -> None:
    test = {name: value for name, value in test.items() if value is not None}
    result = await taped.run(test, record="once")
    assert [failure.kind for failure in result.failures] == [Kind.FAILED]
    assert not taped.tapes.exists()


async def test_a_server_that_breaks_a_rule_is_not_recorded(taped: Desk) -> None:
    taped.server = Trip([{"city": form("Which?")}], result={"resultType": "complete"})
    result = await taped.run(trip(inputResponses={"city": "decline"}), record="once")
    assert only(result).rule == "content"
    assert not taped.tapes.exists()


# What cannot be written


async def test_a_folder_that_is_a_file_fails_the_test_and_says_so(taped: Desk) -> None:
    taped.tapes.write_text("not a folder", encoding="utf-8")
    failure = only(await taped.run(trip(), record="once"))
    assert failure.kind is Kind.CASSETTE
    assert "tapes" in failure.message


async def test_a_folder_in_place_of_a_cassette_fails_the_test_and_leaves_nothing_beside_it(taped: Desk) -> None:
    path = _book(taped).path
    path.mkdir(parents=True)
    assert only(await taped.run(trip(), record="rewrite")).kind is Kind.CASSETTE
    assert list(taped.tapes.iterdir()) == [path]


async def test_text_that_is_not_unicode_is_recorded_all_the_same(taped: Desk) -> None:
    taped.server = Trip([], result=text("half a pair: \ud800"))
    await taped.recorded(anyhow())
    assert taped.cassette["turns"][0]["result"]["content"][0]["text"] == "half a pair: \ud800"
    assert (await taped.run(anyhow())).passed
    assert (await taped.run(anyhow(), verify=True)).passed


# Several at once


def _book(taped: Desk) -> CassetteFile:
    (item,) = items_of(load_suite(taped.suite(trip())))
    return CassetteFile(taped.tapes, item, Redactor())


class _Held:
    """As much of a connection as a recorder looks at when it is written down."""

    version = MODERN


def test_threads_that_write_one_cassette_do_not_get_in_each_others_way(taped: Desk) -> None:
    failed: list[Exception] = []

    def write(book: CassetteFile) -> None:
        recorder: Recorder = book.recorder(cast("Connection", _Held()))
        recorder.turns += [{"method": "tools/call"}] * 200
        try:
            for _ in range(30):
                book.write()
        except Exception as error:  # noqa: BLE001 - whatever it is, the test fails with it
            failed.append(error)

    threads = [threading.Thread(target=write, args=(_book(taped),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert [path.suffix for path in taped.tapes.iterdir()] == [".json"]
