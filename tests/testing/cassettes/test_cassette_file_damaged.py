"""Cassettes damaged by hand: whatever is in the file, a clear failure about the cassette, never a crash and never a hang."""

import asyncio
import copy
import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bespeak.testing.report.results import Kind, Result
from bespeak.testing.runner import Options, Runner
from bespeak.testing.suite.loader import load_suite
from bespeak.testing.suite.plan import items_of
from tests.testing.desk import OURS
from tests.testing.taping import LEGACY, MODERN, Desk, Json, run_suite, stale, trip, write_suite

INTERNALS = (
    "Traceback",
    "object has no attribute",
    "NoneType",
    "unhashable",
    "codec can't",
    "recursion",
    "Errno",
    "sys.",
)
"""What a person who reads a failure has no use for."""

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
MEMBERS = (
    "method",
    "sent",
    "asked",
    "answered",
    "asking",
    "state",
    "notifications",
    "result",
    "error",
    "$state",
    "params",
)
TURN = st.dictionaries(st.sampled_from(MEMBERS), ANY_JSON | st.dictionaries(st.sampled_from(MEMBERS), ANY_JSON))
NEARLY = st.fixed_dictionaries({
    "format": st.just(1) | ANY_JSON,
    "revision": st.sampled_from([MODERN, LEGACY]) | ANY_JSON,
    "turns": st.lists(TURN, max_size=4) | ANY_JSON,
})  # fmt: skip


@pytest.fixture
def taped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    return Desk(tmp_path, monkeypatch)


class Tape:
    """A recorded test, whose cassette is changed again and again."""

    def __init__(self, folder: Path, era: str, loop: asyncio.Runner) -> None:
        folder.mkdir()
        suite = write_suite(folder, trip(), servers=OURS, eras=[era])
        (self._item,) = items_of(load_suite(suite))
        self._loop = loop
        (result,) = loop.run(run_suite(suite, record="once"))
        assert result.passed
        (self._path,) = (folder / "tapes").iterdir()
        self.cassette: Json = json.loads(self._path.read_bytes())

    def replay(self, written: Any, *, verify: bool = False) -> Result:
        """The result of the test, with these bytes or this JSON for a cassette."""
        self._path.write_bytes(written if isinstance(written, bytes) else json.dumps(written).encode())
        return self._loop.run(self._run(Options(verify=verify)))

    async def _run(self, options: Options) -> Result:
        runner = Runner(options)
        try:
            async with asyncio.timeout(20):
                return await runner.run(self._item)
        finally:
            await runner.close()


Tapes = dict[str, Tape]


@pytest.fixture(scope="module")
def tapes() -> Iterator[Tapes]:
    """One for each era."""
    with tempfile.TemporaryDirectory() as folder, asyncio.Runner() as loop:
        yield {era: Tape(Path(folder) / era, era, loop) for era in (MODERN, LEGACY)}


# Anything


@given(ANY_JSON | NEARLY)
@settings(max_examples=40)
@pytest.mark.long
def test_any_json_in_place_of_a_cassette_fails_as_a_cassette(tapes: Tapes, found: Any) -> None:
    assert stale(tapes[MODERN].replay(found)).message


@given(st.binary(max_size=60))
@settings(max_examples=25)
def test_any_bytes_in_place_of_a_cassette_fail_as_a_cassette(tapes: Tapes, found: bytes) -> None:
    failure = stale(tapes[MODERN].replay(found))
    assert [word for word in INTERNALS if word in failure.message] == []


def places(value: Any, steps: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Where there is something in a value."""
    if isinstance(value, dict):
        inside: Any = cast("Json", value).items()
    else:
        inside = enumerate(cast("list[Any]", value)) if isinstance(value, list) else ()
    for step, member in inside:
        yield (*steps, step)
        yield from places(member, (*steps, step))


@pytest.mark.parametrize("era", [MODERN, LEGACY])
@given(data=st.data())
@settings(max_examples=40)
@pytest.mark.long
def test_a_cassette_with_one_thing_changed_never_crashes_the_run(tapes: Tapes, era: str, data: st.DataObject) -> None:
    cassette = tapes[era].cassette
    changed = copy.deepcopy(cassette)
    *way, last = data.draw(st.sampled_from(list(places(cassette))))
    inside: Any = changed
    for step in way:
        inside = inside[step]
    if data.draw(st.booleans()):
        del inside[last]
    else:
        inside[last] = data.draw(ANY_JSON)
    result = tapes[era].replay(changed)
    assert all(failure.kind in (Kind.CASSETTE, Kind.FAILED) for failure in result.failures)


@pytest.mark.parametrize("era", [MODERN, LEGACY])
@given(data=st.data())
@settings(max_examples=25)
@pytest.mark.long
def test_verifying_finds_whatever_was_changed_in_a_cassette(tapes: Tapes, era: str, data: st.DataObject) -> None:
    cassette = tapes[era].cassette
    changed = copy.deepcopy(cassette)
    *way, last = data.draw(st.sampled_from(list(places(cassette))))
    inside: Any = changed
    for step in way:
        inside = inside[step]
    inside[last] = data.draw(ANY_JSON.filter(lambda value: json.dumps(value) != json.dumps(inside[last])))
    same = json.dumps(changed, sort_keys=True).replace("1.0", "1") == json.dumps(cassette, sort_keys=True)
    assert same or stale(tapes[era].replay(changed, verify=True))


# One thing, by name


def at(cassette: Json, number: int, **members: Any) -> Json:
    """A cassette with one turn changed; `...` takes a member out."""
    changed = copy.deepcopy(cassette)
    turn = {**changed["turns"][number], **members}
    changed["turns"][number] = {name: value for name, value in turn.items() if value is not ...}
    return changed


DAMAGED: dict[str, Callable[[Json], Any]] = {
    "a state that is a number": lambda tape: at(tape, 0, state=5),
    "a state with more than a handle": lambda tape: at(tape, 0, state={"$state": 1, "length": 40}),
    "notifications that are none": lambda tape: at(tape, 0, notifications=None),
    "a notification that is a text": lambda tape: at(tape, 0, notifications=["progress"]),
    "asking that is a list": lambda tape: at(tape, 0, asking=[1]),
    "a question that is a number": lambda tape: at(tape, 0, asked=[1]),
    "a question without a request": lambda tape: at(tape, 0, asked=[{"key": "city"}]),
    "a question without a method": lambda tape: at(tape, 0, asked=[{"key": "city", "request": {}}]),
    "one key twice": lambda tape: at(tape, 0, asked=tape["turns"][0]["asked"] * 2),
    "questions of both dialects": lambda tape: at(tape, 0, listed=[{"id": "city"}]),
    "a result that is a number": lambda tape: at(tape, 2, result=1),
    "an error that is a number": lambda tape: at(tape, 2, error=1, result=...),
    "a result and an error": lambda tape: at(tape, 2, error={"code": 1, "message": "no"}),
    "neither a result nor an error": lambda tape: at(tape, 2, result=...),
    "a turn with a member nobody knows": lambda tape: at(tape, 0, at="12:00"),
    "no turns": lambda tape: {**tape, "turns": []},
    "a revision that is none": lambda tape: {**tape, "revision": "tomorrow"},
    "a format that is true": lambda tape: {**tape, "format": True},
    "a number that is none": lambda tape: at(tape, 0, sent=float("nan")),
    "what is nested too deep": lambda tape: at(tape, 0, sent=json.loads("[" * 600 + "]" * 600)),
}


@pytest.mark.parametrize("damage", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_cassette_fails_as_a_cassette(tapes: Tapes, damage: Callable[[Json], Any]) -> None:
    failure = stale(tapes[MODERN].replay(damage(tapes[MODERN].cassette)))
    assert [word for word in INTERNALS if word in failure.message] == []


PUSHED: dict[str, Any] = {
    "a question that is a number": [{"key": "city", "request": 1}],
    "a question without a method": [{"key": "city", "request": {"params": {}}}],
    "a question of a method that asks nothing": [{"key": "city", "request": {"method": "ping"}}],
    "params that are a number": [{"key": "city", "request": {"method": "elicitation/create", "params": 4}}],
    "no questions": [],
}


@pytest.mark.parametrize("asked", PUSHED.values(), ids=PUSHED)
def test_a_pushed_question_that_is_damaged_fails_as_a_cassette(tapes: Tapes, asked: Any) -> None:
    failure = stale(tapes[LEGACY].replay(at(tapes[LEGACY].cassette, 0, asked=asked)))
    assert [word for word in INTERNALS if word in failure.message] == []


WRITTEN = {
    "nothing": b"",
    "no UTF-8": b"\xff\xfe\x00",
    "a conflict": b'<<<<<<< HEAD\n{"format": 1}\n=======\n{}\n>>>>>>> theirs\n',
    "a number of 5000 digits": b"1" * 5000,
    "nested 100,000 deep": b"[" * 100_000,
    "a byte order mark": b"\xef\xbb\xbf{}",
}


@pytest.mark.parametrize("written", WRITTEN.values(), ids=WRITTEN)
@pytest.mark.parametrize("verify", [False, True], ids=["replayed", "verified"])
def test_what_cannot_be_read_is_named_with_what_to_do(tapes: Tapes, written: bytes, verify: bool) -> None:
    failure = stale(tapes[MODERN].replay(written, verify=verify))
    assert failure.message.startswith("trip-a-trip-2026-07-28.")
    assert "--record new" in failure.message
    assert [word for word in INTERNALS if word in failure.message] == []


async def test_a_folder_in_place_of_a_cassette_cannot_be_read(taped: Desk) -> None:
    await taped.recorded(trip())
    tape = taped.tape
    tape.unlink()
    tape.mkdir()
    failure = stale(await taped.run(trip()))
    assert "cannot be read" in failure.message
    assert str(taped.folder) not in failure.message, "a report is the same on every machine"
