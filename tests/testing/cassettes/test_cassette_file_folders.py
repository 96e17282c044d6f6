"""Folders of this machine in recorded conversations: a cassette fits in another checkout, and with another server folder."""

import json
import shutil
from pathlib import Path

import pytest

from tests.testing.taping import Desk, Trip, form, run_suite, stale, text, trip


@pytest.fixture
def taped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    return Desk(tmp_path / "here", monkeypatch)


def says(folder: Path) -> Trip:
    """A server that says its folder, in a text and in a question."""
    return Trip(rounds=[{"city": form(f"Use {folder}/city?")}], result=text(f"Allowed directories:\n{folder}/shared"))


ALONE = trip(inputResponses={"city": "Lisbon"})


async def test_a_cassette_has_a_placeholder_in_place_of_the_suites_folder(taped: Desk) -> None:
    taped.server = says(taped.folder)
    recorded = (await taped.recorded(ALONE)).decode()
    assert str(taped.folder) not in recorded
    assert r"Allowed directories:\n[suiteFolder]/shared" in recorded
    assert "Use [suiteFolder]/city?" in recorded


async def test_a_cassette_verifies_and_replays_in_another_checkout(taped: Desk, tmp_path: Path) -> None:
    there = tmp_path / "there"
    expect = {"expect": {"text": {"matches": r"/(t?here)/shared$"}}}
    taped.server = says(taped.folder)
    await taped.recorded(trip(inputResponses={"city": "Lisbon"}, **expect))
    shutil.copytree(taped.folder, there)
    taped.server = says(there)
    suite = there / "trip.bespeak.yaml"
    assert [one.failures for one in await run_suite(suite, verify=True)] == [[]]
    assert [one.failures for one in await run_suite(suite)] == [[]]


async def test_what_is_expected_of_a_path_holds_on_replay_as_it_does_live(taped: Desk) -> None:
    whole = {"expect": {"text": f"Allowed directories:\n{taped.folder}/shared"}}
    taped.server = says(taped.folder)
    await taped.recorded(trip(inputResponses={"city": "Lisbon"}, **whole))
    assert (await taped.run(trip(inputResponses={"city": "Lisbon"}, **whole))).passed


async def test_another_folder_than_the_recorded_one_is_found(taped: Desk, tmp_path: Path) -> None:
    taped.server = says(taped.folder)
    await taped.recorded(ALONE)
    taped.server = says(tmp_path / "elsewhere")
    assert "[suiteFolder]" in stale(await taped.run(ALONE, verify=True)).message


async def test_an_argument_with_a_captured_path_is_replayed_in_another_checkout(taped: Desk, tmp_path: Path) -> None:
    there = tmp_path / "there"
    first = {"name": "first", "tool": "where", "capture": {"at": "text"}}
    taped.server = Trip(rounds=[], result=text(f"{taped.folder}/shared"))
    assert (await taped.run(first, {"name": "next", "tool": "use", "arguments": {"at": "${at}"}}, record="once")).passed
    assert not any(str(taped.folder) in tape.read_text() for tape in taped.tapes.iterdir())
    shutil.copytree(taped.folder, there)
    assert [one.failures for one in await run_suite(there / "trip.bespeak.yaml")] == [[], []]


async def test_the_folder_that_the_command_runs_in_has_a_placeholder_too(taped: Desk, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    server = {"command": ["no-such-command"], "protocol": "2026-07-28", "cwd": str(elsewhere)}
    taped.server = says(elsewhere)
    assert b"Use [serverFolder]/city?" in await taped.recorded(ALONE, servers={"trip": server})


async def test_a_snapshot_has_a_placeholder_in_place_of_the_suites_folder(taped: Desk) -> None:
    taped.server = says(taped.folder)
    test = trip(inputResponses={"city": "Lisbon"}, expect={"text": {"snapshot": "said"}})
    assert (await taped.run(test, record="rewrite")).passed
    kept = json.loads((taped.folder / "trip.snapshots.json").read_text())
    assert kept == {"a trip": {"said": "Allowed directories:\n[suiteFolder]/shared"}}
    for verify in (False, True):
        assert (await taped.run(test, verify=verify)).passed
