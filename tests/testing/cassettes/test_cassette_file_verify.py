"""Verify: the live server is driven again from the answers, and whatever it does otherwise than recorded is found."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from bespeak.cli.commands import app
from bespeak.testing.report.results import Kind
from bespeak.testing.suite.yaml_positions import read_yaml
from tests.testing.desk import BEHAVIOURS, OURS
from tests.testing.taping import (
    CITY,
    LEGACY,
    MODERN,
    UNITS,
    Desk,
    Json,
    Trip,
    anyhow,
    form,
    named,
    only,
    run_suite,
    stale,
    text,
    trip,
    write_suite,
)

NOTE: Json = {"method": "notifications/message", "params": {"level": "info", "data": "on the way"}}
LOUDER: Json = {"method": "notifications/message", "params": {"level": "info", "data": "almost there"}}


@pytest.fixture
def taped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    return Desk(tmp_path, monkeypatch)


# A server that does the same


@pytest.mark.parametrize("era", [MODERN, LEGACY])
@pytest.mark.long
async def test_a_server_that_does_the_same_again_is_verified(tmp_path: Path, era: str) -> None:
    suite = write_suite(tmp_path, *named(BEHAVIOURS), servers=OURS, eras=[era])
    await run_suite(suite, record="once")
    results = await run_suite(suite, verify=True)
    assert {result.name: result.failures for result in results if not result.passed} == {}


async def test_recorded_retries_are_never_sent_again(taped: Desk) -> None:
    await taped.recorded(trip())
    handed_out = list(taped.server.tokens)
    taped.server = Trip()
    assert (await taped.run(trip(), verify=True)).passed
    echoed = [params["requestState"] for params in taped.server.received if "requestState" in params]
    assert echoed == taped.server.tokens
    assert not set(echoed) & set(handed_out)


async def test_verifying_writes_nothing(taped: Desk) -> None:
    before = await taped.recorded(trip())
    taped.server = Trip(result=text("Rainy."))
    assert not (await taped.run(trip(), verify=True)).passed
    assert taped.tape.read_bytes() == before


async def test_a_test_that_was_never_recorded_is_not_verified_and_no_server_is_started(taped: Desk) -> None:
    result = await taped.run(trip(), verify=True)
    assert stale(result).message.startswith("never recorded: there is no trip-a-trip")
    assert (taped.connections, taped.tapes.exists()) == (0, False)


# A server that does something else

FIRST = [CITY, UNITS]
OTHERWISE: dict[str, tuple[Trip, str]] = {
    "another text of a question": (
        Trip([{"city": form("Which town?")}, UNITS]),
        'turns[0].asked[0].request.params.message: expected "Which city?", got "Which town?"',
    ),
    "another schema": (
        Trip([{"city": form("Which city?", value={"type": "string", "maxLength": 9})}, UNITS]),
        "turns[0].asked[0].request.params.requestedSchema.properties.value.maxLength: was not expected",
    ),
    "a question under another key": (
        Trip([{"town": form("Which city?")}, UNITS]),
        'turns[0].asked[0].key: expected "city", got ',
    ),
    "one question more": (
        Trip([{**CITY, "when": form("When?")}, UNITS]),
        "turns[0].asked[1]: was not expected; the list should have 1 entry, but has 2",
    ),
    "another result": (
        Trip(FIRST, result=text("Rainy.")),
        'turns[2].result.content[0].text: expected "Sunny.", got "Rainy."',
    ),
    "one round more": (Trip([*FIRST, {"nights": form("How long?")}]), "turns[2]"),
    "one round fewer": (Trip([CITY]), "turns[1]"),
    "a round that only hands out a state": (Trip([None, CITY, UNITS]), "turns[0]"),
    "a notification": (Trip(FIRST, notes=[[NOTE]]), "turns[0].notifications: was never recorded"),
    "no state": (Trip(FIRST, with_state=False), "turns[0].state: is missing"),
    "a description of the questions": (
        Trip(FIRST, resulting={"resultType": "input_required", "description": "Two questions"}),
        "turns[0].asking.description: was not expected",
    ),
}


@pytest.mark.parametrize(("server", "where"), OTHERWISE.values(), ids=OTHERWISE)
async def test_what_the_server_does_otherwise_is_found(taped: Desk, server: Trip, where: str) -> None:
    # The first difference is the first in the conversation: a question comes before what is answered to it.
    await taped.recorded(anyhow())
    taped.server = server
    failure = stale(await taped.run(anyhow(), verify=True))
    assert failure.message.startswith("diverged at round ")
    assert where in failure.message
    assert (failure.path or "").startswith(where.partition(":")[0])


NOTED: dict[str, tuple[list[list[Json]], str]] = {
    "another": ([[LOUDER]], 'turns[0].notifications[0].params.data: expected "on the way", got "almost there"'),
    "none": ([], "turns[0].notifications: is missing"),
    "one more": (
        [[NOTE, LOUDER]],
        "turns[0].notifications[1]: was not expected; the list should have 1 entry, but has 2",
    ),
    "one in another turn": ([[], [NOTE]], "turns[0].notifications: is missing"),
}


@pytest.mark.parametrize(("notes", "where"), NOTED.values(), ids=NOTED)
async def test_another_notification_is_found(taped: Desk, notes: list[list[Json]], where: str) -> None:
    taped.server = Trip(notes=[[NOTE]])
    await taped.recorded(trip())
    taped.server = Trip(notes=notes)
    assert where.partition(":")[0] in stale(await taped.run(trip(), verify=True)).message


async def test_a_state_that_is_there_now_is_found(taped: Desk) -> None:
    taped.server = Trip([CITY], with_state=False)
    await taped.recorded(anyhow())
    taped.server = Trip([CITY])
    assert "turns[0].state: was never recorded" in stale(await taped.run(anyhow(), verify=True)).message


async def test_what_differs_from_a_recording_is_told_as_a_diff(taped: Desk) -> None:
    taped.server = Trip([], result=text("one\ntwo\nthree"))
    await taped.recorded(trip(inputResponses={}))
    taped.server = Trip([], result=text("one\n2\nthree"))
    assert list(stale(await taped.run(trip(inputResponses={}), verify=True)).diff)[3:] == [
        " one",
        "-two",
        "+2",
        " three",
    ]


async def test_the_order_of_the_questions_of_a_round_means_nothing(taped: Desk) -> None:
    taped.server = Trip([{**CITY, **UNITS}])
    await taped.recorded(trip())
    first = taped.tape.read_bytes()
    taped.server = Trip([{**UNITS, **CITY}])
    assert (await taped.run(trip(), verify=True)).passed
    assert (await taped.run(trip(), record="rewrite")).passed
    assert taped.tape.read_bytes() == first


async def test_the_order_of_the_questions_of_the_compatibility_dialect_means_nothing(taped: Desk) -> None:
    fields = [{"id": id_, "kind": "string", "description": f"Which {id_}?", "required": True} for id_ in ("b", "a")]
    test = anyhow(wire="list")
    taped.server = Trip([fields], resulting={})
    await taped.recorded(test)
    taped.server = Trip([fields[::-1]], resulting={})
    assert (await taped.run(test, verify=True)).passed
    assert (await taped.run(test)).passed


async def test_a_cassette_with_questions_in_any_order_still_verifies(taped: Desk) -> None:
    taped.server = Trip([{**CITY, **UNITS}])
    await taped.recorded(trip())
    taped.alter(lambda tape: tape["turns"][0]["asked"].reverse())
    assert (await taped.run(trip())).passed
    assert (await taped.run(trip(), verify=True)).passed


async def test_an_error_where_there_was_a_result_is_found(taped: Desk) -> None:
    test = anyhow(expect={"rounds": 2})
    await taped.recorded(test)
    taped.server = Trip(error={"code": -32000, "message": "the desk is closed"})
    failure = only(await taped.run(test, verify=True))
    assert "the desk is closed" in failure.message


async def test_another_field_of_the_compatibility_dialect_is_found(taped: Desk) -> None:
    def fields(**more: Any) -> list[Json]:
        return [{"id": "city", "kind": "string", "description": "Which city?", "required": True, **more}]

    test = anyhow(wire="list")
    taped.server = Trip([fields()], resulting={})
    await taped.recorded(test)
    taped.server = Trip([fields(required=False)], resulting={})
    assert "turns[0].listed[0].required: expected true, got false" in stale(await taped.run(test, verify=True)).message


async def test_a_server_that_asks_in_the_other_dialect_is_found(taped: Desk) -> None:
    test = anyhow(wire="any")
    taped.server = Trip([CITY])
    await taped.recorded(test)
    field = {"id": "city", "kind": "string", "description": "Which city?", "required": True}
    taped.server = Trip([[field]], resulting={})
    assert "turns[0]" in stale(await taped.run(test, verify=True)).message


async def test_what_a_call_afterwards_finds_is_compared_too(taped: Desk) -> None:
    test = trip(verify=[{"tool": "forecast", "arguments": {"loc": "SFO"}, "inputResponses": [{"otherwise": "Rome"}]}])
    await taped.recorded(test)
    taped.alter(lambda cassette: cassette["turns"][5]["result"]["content"][0].update(text="Rainy."))
    assert "turns[5].result.content[0].text" in stale(await taped.run(test, verify=True)).message


async def test_another_revision_is_found(taped: Desk) -> None:
    await taped.recorded(trip())
    taped.alter(lambda cassette: cassette.update(revision=LEGACY))
    failure = stale(await taped.run(trip(), verify=True))
    assert f'revision: expected "{LEGACY}", got "{MODERN}"' in failure.message


async def test_a_pushed_question_that_says_something_else_is_found(tmp_path: Path) -> None:
    suite = write_suite(tmp_path, trip(), servers=OURS, eras=[LEGACY])
    await run_suite(suite, record="once")
    (tape,) = (tmp_path / "tapes").iterdir()
    tape.write_bytes(tape.read_bytes().replace(b"Which units for Lisbon?", b"Units?"))
    (result,) = await run_suite(suite, verify=True)
    assert "turns[1].asked[0].request.params.message" in stale(result).message


async def test_what_the_test_itself_expects_fails_first(taped: Desk) -> None:
    test = trip(expect={"text": "Sunny."})
    await taped.recorded(test)
    taped.server = Trip(result=text("Rainy."))
    assert only(await taped.run(test, verify=True)).kind is Kind.FAILED


async def test_what_is_expected_is_what_was_recorded(taped: Desk) -> None:
    await taped.recorded(trip())
    taped.server = Trip(result=text("Rainy."))
    failure = stale(await taped.run(trip(), verify=True))
    assert (failure.expected, failure.actual) == ("Sunny.", "Rainy.")


async def test_a_server_that_differs_is_reported_with_what_to_do(taped: Desk) -> None:
    await taped.recorded(trip())
    taped.server = Trip(result=text("Rainy."))
    failure = stale(await taped.run(trip(), verify=True))
    assert "--record rewrite" in f"{failure.message} {failure.hint}"
    assert failure.hint == "if this value is different every time, list it in redact: content[0].text, and record again"


async def test_a_value_that_differs_in_an_answer_or_in_what_is_sent_may_be_redacted(taped: Desk) -> None:
    await taped.recorded(trip())
    failure = stale(await taped.run(trip(arguments={"loc": "LHR"})))
    assert failure.hint == "if this value is different every time, list it in redact: arguments.loc, and record again"
    failure = stale(await taped.run(trip(inputResponses={"city": "Rome", "units": "C"})))
    assert failure.hint == "if this value is different every time, list it in redact, and record again"


async def test_all_places_that_differ_are_named_at_once(taped: Desk) -> None:
    test = trip()
    taped.server = Trip(result=text("Sunny.", structuredContent={"content": "Sunny.", "at": [{"odd key: ": 1}]}))
    await taped.recorded(test)
    taped.server = Trip(result=text("Rainy.", structuredContent={"content": "Rainy.", "at": [{"odd key: ": 2}]}))
    failure = stale(await taped.run(test, verify=True))
    assert failure.hint == (
        "if these values are different every time, list them in redact, and record again:\n"
        "  redact:\n"
        "    - content[0].text\n"
        '    - "structuredContent.at[0][\\"odd key: \\"]"\n'
        "    - structuredContent.content"
    )
    redacted = {**test, "redact": [read_yaml(one).value for one in failure.hint.split("- ")[1:]]}
    assert (await taped.run(redacted, record="new")).failures == []
    assert (await taped.run(redacted, verify=True)).failures == []


async def test_lines_that_differ_are_left_out_by_a_pattern(taped: Desk) -> None:
    def info(month: str, size: int) -> Json:
        said = f"size: {size}\nmodified (UTC): Mon {month} 9\ntype: it's a file"
        return text(said, structuredContent={"content": said})

    test = trip()
    taped.server = Trip(result=info("Nov", 12))
    await taped.recorded(test)
    taped.server = Trip(result=info("Dec", 12))
    failure = stale(await taped.run(test, verify=True))
    assert failure.hint == (
        "if this is different every time, list it in redact, and record again:\n"
        "  redact:\n"
        "    - pattern: 'modified \\(UTC\\): Mon .+'"
    )
    redacted = {**test, "redact": [read_yaml(failure.hint.partition("- ")[2]).value]}
    assert (await taped.run(redacted, record="new")).failures == []
    taped.server = Trip(result=info("Jan", 12))
    assert (await taped.run(redacted, verify=True)).failures == []


async def test_a_difference_that_cannot_be_redacted_has_no_such_hint(taped: Desk) -> None:
    await taped.recorded(trip())
    assert stale(await taped.run(trip(arguments={}))).hint is None
    taped.alter(lambda cassette: cassette.update(revision=LEGACY))
    assert stale(await taped.run(trip(), verify=True)).hint is None


# At the command line


@pytest.mark.timing
def test_a_server_that_cannot_be_reached_ends_with_3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    CliRunner().invoke(app, ["test", str(write_suite(tmp_path, trip(), servers=OURS)), "--record", "once"])
    ended = CliRunner().invoke(app, ["test", str(write_suite(tmp_path, trip())), "--verify"])
    assert ended.exit_code == 3
