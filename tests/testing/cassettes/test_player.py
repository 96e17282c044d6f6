"""Replay: no server, a token of its own for each handle, the exact echo demanded, every turn played, and clear misses."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bespeak.conversation.responses import Question
from bespeak.testing.cassettes.cassette_format import StaleCassette
from bespeak.testing.cassettes.player import Player
from bespeak.testing.redaction.redactor import Redactor
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
    only,
    run_suite,
    stale,
    text,
    trip,
    write_suite,
)


@pytest.fixture
def taped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    return Desk(tmp_path, monkeypatch)


# Without a server


@pytest.mark.parametrize("era", [MODERN, LEGACY])
@pytest.mark.parametrize("behaviour", BEHAVIOURS)
async def test_what_was_recorded_is_replayed_without_its_server(tmp_path: Path, behaviour: str, era: str) -> None:
    test = {"name": behaviour, **BEHAVIOURS[behaviour]}
    (live,) = await run_suite(write_suite(tmp_path, test, servers=OURS, eras=[era]), record="once")
    (replayed,) = await run_suite(write_suite(tmp_path, test, eras=[era]))
    assert replayed.failures == []
    assert replayed.rounds == live.rounds


HELD = {
    "notifications": trip(
        expect={"notifications": [{"method": "notifications/message", "params": {"level": "info", "data": "x"}}]}
    ),
    "rounds": trip(expect={"rounds": 2}),
    "asked": trip(expect={"asked": ["city", "units"]}),
    "the result": trip(expect={"result": {"content": [{"type": "text", "text": "Sunny."}]}}),
    "what each round asks": {
        **{name: value for name, value in trip().items() if name != "inputResponses"},
        "rounds": [
            {"expect": {"state": "present", "messages": {"city": "Which city?"}}, "answer": {"city": "Lisbon"}},
            {"expect": {"asks": ["units"]}, "answer": {"units": "C"}},
        ],
    },
    "an altered state": trip(inputResponses={"city": "Lisbon"}, tamper={"round": 1, "requestState": "flip"}),
    "a dropped state": trip(inputResponses={"city": "Lisbon"}, tamper={"round": 1, "requestState": "empty"}),
}


@pytest.mark.parametrize("test", HELD.values(), ids=HELD)
async def test_what_holds_live_holds_on_replay(taped: Desk, test: Json) -> None:
    taped.server = Trip(notes=[[{"method": "notifications/message", "params": {"level": "info", "data": "x"}}]])
    await taped.recorded(test)
    assert (await taped.run(test)).failures == []


async def test_the_questions_of_a_round_are_replayed_in_the_order_they_came(taped: Desk) -> None:
    taped.server = Trip([{"units": form("Which units?"), "city": form("Which city?"), "at": form("When?")}])
    test = anyhow(expect={"asked": ["units", "city", "at"]})
    await taped.recorded(test)
    assert (await taped.run(test)).failures == []


@pytest.mark.parametrize("state", ["present", "absent"])
async def test_whether_a_round_has_a_state_is_replayed(taped: Desk, state: str) -> None:
    taped.server = Trip([CITY], with_state=state == "present")
    rounds = [{"expect": {"state": state}, "answer": {"city": "Lisbon"}}]
    test = {"name": "a trip", "tool": "forecast", "rounds": rounds}
    await taped.recorded(test)
    assert (await taped.run(test)).failures == []


async def test_a_captured_value_is_handed_on_by_a_replay(taped: Desk) -> None:
    taped.server = Trip([], result=text("Sunny.", structuredContent={"id": "order-7"}))
    first = {"name": "first", "tool": "order", "capture": {"order": "structuredContent.id"}}
    second = {"name": "second", "tool": "look", "arguments": {"order": "${order}"}}
    await taped.run(first, second, record="once")
    assert (await taped.run(first, second)).failures == []


async def test_the_compatibility_dialect_is_replayed(taped: Desk) -> None:
    field = {"id": "city", "kind": "string", "description": "Which city?", "required": True}
    taped.server = Trip([[field]], resulting={"description": "Some questions"})
    test = trip(inputResponses={"city": "Lisbon"}, wire="list")
    await taped.recorded(test)
    assert (await taped.run(test)).failures == []


@pytest.mark.parametrize("era", [MODERN, LEGACY])
async def test_a_recorded_question_without_an_answer_fails_as_it_does_live(tmp_path: Path, era: str) -> None:
    await run_suite(write_suite(tmp_path, trip(), servers=OURS, eras=[era]), record="once")
    unanswered = trip(inputResponses={"units": "C"})
    (replayed,) = await run_suite(write_suite(tmp_path, unanswered, servers=OURS, eras=[era]))
    assert only(replayed).message == "there is no answer to 'city' (Which city of SFO?); not used so far: 'units'"
    assert 'city: "..."' in (only(replayed).hint or "")


# The exact echo

PARAMS: Json = {"name": "forecast", "arguments": {"loc": "SFO"}}
ANSWERS = [
    {name: {"action": "accept", "content": {"value": said}}} for name, said in (("city", "Lisbon"), ("units", "C"))
]


async def nobody(question: Question) -> Any:
    raise AssertionError(f"{question.key} was pushed")


async def player(taped: Desk) -> Player:
    """One that plays a trip of two rounds."""
    await taped.recorded(trip())
    return Player(taped.cassette, Redactor())


async def send(player: Player, **retry: Any) -> Json:
    received = await player.send("tools/call", {**PARAMS, **retry}, nobody)
    return received.envelope["result"]


async def test_replay_returns_a_token_of_its_own_for_each_handle_and_takes_them_back(taped: Desk) -> None:
    playing = await player(taped)
    first = await send(playing)
    second = await send(playing, requestState=first["requestState"], inputResponses=ANSWERS[0])
    last = await send(playing, requestState=second["requestState"], inputResponses=ANSWERS[1])
    tokens = {first["requestState"], second["requestState"]}
    assert len(tokens | set(taped.server.tokens)) == 4, "none is the other, and none is the server's"
    assert last["content"] == [{"type": "text", "text": "Sunny."}]
    playing.check_played()


Wrong = Callable[[str, str], Json]
WRONG: dict[str, Wrong] = {
    "another": lambda first, second: {"requestState": "mine"},
    "an older one": lambda first, second: {"requestState": first},
    "an empty one": lambda first, second: {"requestState": ""},
    "none": lambda first, second: {},
    "null": lambda first, second: {"requestState": None},
    "its handle": lambda first, second: {"requestState": {"$state": 2}},
    "one in quotes": lambda first, second: {"requestState": f'"{second}"'},
    "one with a space": lambda first, second: {"requestState": f"{second} "},
    "one in capitals": lambda first, second: {"requestState": second.swapcase()},
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
async def test_a_client_that_does_not_echo_the_last_state_diverges(taped: Desk, wrong: Wrong) -> None:
    playing = await player(taped)
    first = (await send(playing))["requestState"]
    second = (await send(playing, requestState=first, inputResponses=ANSWERS[0]))["requestState"]
    with pytest.raises(StaleCassette, match=r"diverged at round [0-9]: turns\[2\]\.sent\.requestState"):
        await send(playing, inputResponses=ANSWERS[1], **wrong(first, second))


async def test_a_client_that_sends_a_state_where_none_was_returned_diverges(taped: Desk) -> None:
    taped.server = Trip([CITY], with_state=False)
    await taped.recorded(trip(inputResponses={"city": "Lisbon"}))
    playing = Player(taped.cassette, Redactor())
    await send(playing)
    with pytest.raises(StaleCassette, match=r"turns\[1\]\.sent\.requestState: was not expected"):
        await send(playing, requestState="mine", inputResponses=ANSWERS[0])


async def test_a_client_that_leaves_its_answers_out_diverges(taped: Desk) -> None:
    playing = await player(taped)
    first = await send(playing)
    with pytest.raises(StaleCassette, match=r"turns\[0\]\.answered"):
        await send(playing, requestState=first["requestState"])


async def test_a_client_that_answers_what_nobody_asked_diverges(taped: Desk) -> None:
    taped.server = Trip([None])
    await taped.recorded(anyhow())
    playing = Player(taped.cassette, Redactor())
    first = await send(playing)
    with pytest.raises(StaleCassette, match=r"turns\[0\]\.answered"):
        await send(playing, requestState=first["requestState"], inputResponses=ANSWERS[0])


async def test_a_client_that_sends_answers_with_its_first_request_diverges(taped: Desk) -> None:
    with pytest.raises(StaleCassette, match="diverged at round "):
        await send(await player(taped), inputResponses=ANSWERS[0])


# Misses

OTHER = {
    "another tool": (trip(tool="weather"), 'turns[0].sent.name: expected "forecast", got "weather"'),
    "another argument": (trip(arguments={"loc": "LIS"}), 'turns[0].sent.arguments.loc: expected "SFO", got "LIS"'),
    "one argument more": (trip(arguments={"loc": "SFO", "days": 3}), "turns[0].sent.arguments.days: was not expected"),
    "one argument fewer": (trip(arguments={}), "turns[0].sent.arguments.loc: is missing"),
    "true for 1": (trip(arguments={"loc": True}), 'turns[0].sent.arguments.loc: expected "SFO", got true'),
    "another answer": (
        trip(inputResponses={"city": "Porto", "units": "C"}),
        'turns[0].answered.city.content.value: expected "Lisbon", got "Porto"',
    ),
    "another answer to the second question": (
        trip(inputResponses={"city": "Lisbon", "units": "F"}),
        'turns[1].answered.units.content.value: expected "C", got "F"',
    ),
    "a decline": (trip(inputResponses={"city": "decline", "units": "C"}), "turns[0].answered.city.action: expected"),
    "another method": (
        {"name": "a trip", "prompt": "forecast", "arguments": {"loc": "SFO"}},
        'turns[0].method: expected "tools/call", got "prompts/get"',
    ),
}


@pytest.mark.parametrize(("test", "where"), OTHER.values(), ids=OTHER)
async def test_a_miss_says_where_it_diverged_and_shows_the_first_difference(
    taped: Desk, test: Json, where: str
) -> None:
    await taped.recorded(trip())
    failure = stale(await taped.run(test))
    assert failure.message.startswith("diverged at round ")
    assert where in failure.message
    assert failure.path == where.partition(":")[0]


async def test_what_was_expected_and_what_was_sent_are_in_the_failure(taped: Desk) -> None:
    await taped.recorded(trip())
    failure = stale(await taped.run(trip(arguments={"loc": "LIS"})))
    assert (failure.expected, failure.actual) == ("SFO", "LIS")


async def test_a_missing_cassette_was_never_recorded(taped: Desk) -> None:
    failure = stale(await taped.run(trip()))
    assert failure.message.startswith("never recorded: there is no trip-a-trip")
    assert failure.message.endswith("run with --record once")


async def test_one_request_more_than_was_recorded_was_never_recorded(taped: Desk) -> None:
    await taped.recorded(trip())
    failure = stale(await taped.run(trip(verify=[{"tool": "balance"}])))
    assert failure.message.startswith("never recorded: the cassette has no more turns, but another request was sent")


async def test_unplayed_turns_fail(taped: Desk) -> None:
    await taped.recorded(trip(verify=[{"tool": "forecast", "arguments": {"loc": "SFO"}, **_answers()}]))
    assert stale(await taped.run(trip())).message.startswith("3 recorded turns were never played")


def _answers() -> Json:
    return {"inputResponses": {"city": "Lisbon", "units": "C"}}


async def test_a_lost_response_that_is_asked_for_less_often_leaves_turns_unplayed(taped: Desk) -> None:
    taped.server = Trip([])
    await taped.recorded(anyhow(fault={"round": 0, "drop": "response"}, retry=3))
    failure = stale(await taped.run(anyhow(fault={"round": 0, "drop": "response"}, retry=1)))
    assert "2 recorded turns were never played" in failure.message


async def test_a_pushed_answer_that_differs_diverges(tmp_path: Path) -> None:
    await run_suite(write_suite(tmp_path, trip(), servers=OURS, eras=[LEGACY]), record="once")
    other = trip(inputResponses={"city": "Lisbon", "units": "F"})
    (result,) = await run_suite(write_suite(tmp_path, other, servers=OURS, eras=[LEGACY]))
    assert 'turns[1].answered["units~1"].content.value: expected "C", got "F"' in stale(result).message


def _cut(cassette: Json) -> None:
    cassette["turns"] = cassette["turns"][:1]


def _lengthened(cassette: Json) -> None:
    cassette["turns"].append(cassette["turns"][-1])


def _of_another_format(cassette: Json) -> None:
    cassette["format"] = 0


@pytest.mark.parametrize(
    ("test", "change"),
    [
        pytest.param(trip(arguments={"loc": "LIS"}), copy.copy, id="diverged"),
        pytest.param(trip(), _cut, id="one more was sent"),
        pytest.param(trip(), _lengthened, id="never played"),
        pytest.param(trip(), _of_another_format, id="another format"),
    ],
)
async def test_whatever_is_wrong_with_a_cassette_the_failure_says_how_to_record_it(
    taped: Desk, test: Json, change: Callable[[Json], Any]
) -> None:
    await taped.recorded(trip())
    taped.alter(change)
    failure = stale(await taped.run(test))
    assert "--record " in f"{failure.message} {failure.hint}"


async def test_the_command_that_runs_it_again_replays_from_the_same_folder(taped: Desk) -> None:
    folder = taped.folder / "elsewhere"
    (result,) = await run_suite(taped.suite(trip()), cassettes=folder)
    assert "--cassettes" in result.again
