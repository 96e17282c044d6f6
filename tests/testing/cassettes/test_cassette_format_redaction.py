"""Redaction: what is declared, and every secret of the environment, is kept out on both sides, recording and comparing."""

import json
from base64 import b64encode
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from bespeak.testing.suite.loader import BadSuite
from tests.testing.taping import (
    CITY,
    LEGACY,
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


def in_any_form(secret: str, tape: bytes) -> bool:
    forms = [secret, json.dumps(secret)[1:-1], secret.encode().hex(), b64encode(secret.encode()).decode()[:-4]]
    return any(form.encode() in tape for form in [*forms, secret.replace("-", "%2d")])


# Paths


def order(number: int, **more: Any) -> Trip:
    """A server that says another number every time."""
    result = {"id": f"{number}1", "lines": [{"id": f"{number}2"}, {"id": f"{number}3"}]}
    return Trip([CITY], result=text("Done.", structuredContent=result), **more)


REDACT = ["structuredContent.id", "structuredContent.lines[*].id"]


async def test_what_lies_at_a_declared_path_is_not_recorded(taped: Desk) -> None:
    taped.server = order(471)
    tape = await taped.recorded(anyhow(), redact=REDACT)
    assert b"471" not in tape
    assert taped.cassette["turns"][1]["result"]["structuredContent"] == {
        "id": "[redacted]",
        "lines": [{"id": "[redacted]"}, {"id": "[redacted]"}],
    }


async def test_what_differs_only_at_a_declared_path_is_verified(taped: Desk) -> None:
    taped.server = order(471)
    await taped.recorded(anyhow(), redact=REDACT)
    taped.server = order(815)
    assert (await taped.run(anyhow(), verify=True, redact=REDACT)).failures == []


async def test_what_is_missing_at_a_declared_path_is_found(taped: Desk) -> None:
    taped.server = order(471)
    await taped.recorded(anyhow(), redact=REDACT)
    taped.server = Trip([CITY], result=text("Done.", structuredContent={"lines": []}))
    failure = stale(await taped.run(anyhow(), verify=True, redact=REDACT))
    assert "turns[1].result.structuredContent" in failure.message


async def test_what_differs_beside_a_declared_path_is_found(taped: Desk) -> None:
    taped.server = order(471)
    await taped.recorded(anyhow(), redact=["structuredContent.id"])
    taped.server = order(815)
    failure = stale(await taped.run(anyhow(), verify=True, redact=["structuredContent.id"]))
    assert "turns[1].result.structuredContent.lines[0].id" in failure.message


PLACES = {
    "an argument": ("arguments.loc", trip(arguments={"loc": "4711"}), trip(arguments={"loc": "8150"})),
    "an answer": (
        "inputResponses.city.content.value",
        trip(inputResponses={"city": "4711", "units": "C"}),
        trip(inputResponses={"city": "8150", "units": "C"}),
    ),
    "any answer": (
        "inputResponses.*.content",
        trip(inputResponses={"city": "4711", "units": "C"}),
        trip(inputResponses={"city": "8150", "units": "F"}),
    ),
}


@pytest.mark.parametrize(("path", "recorded", "sent"), PLACES.values(), ids=PLACES)
async def test_what_is_sent_at_a_declared_path_is_redacted_on_both_sides(
    taped: Desk, path: str, recorded: Json, sent: Json
) -> None:
    assert b"4711" not in await taped.recorded(recorded, redact=[path])
    assert (await taped.run(sent, redact=[path])).failures == []


async def test_a_question_is_redacted_when_it_is_recorded_and_when_it_is_compared(taped: Desk) -> None:
    redact = ["inputRequests.city.params.message"]
    taped.server = Trip([{"city": form("Which city, order 4711?")}])
    assert b"4711" not in await taped.recorded(anyhow(), redact=redact)
    taped.server = Trip([{"city": form("Which city, order 8150?")}])
    assert (await taped.run(anyhow(), verify=True, redact=redact)).failures == []
    assert (await taped.run(anyhow(), redact=redact)).failures == []


@pytest.mark.parametrize("record", ["once", "none"])
async def test_a_declared_question_is_in_no_report(taped: Desk, record: str) -> None:
    redact = ["inputRequests.city.params.message"]
    taped.server = Trip([{"city": form("Which city, order 4711?")}])
    await taped.recorded(anyhow(), redact=redact)
    result = await taped.run(anyhow(expect={"rounds": 7}), record=record, redact=redact)
    assert "4711" not in json.dumps(result.as_json())


async def test_a_pushed_answer_is_redacted_on_both_sides(tmp_path: Path) -> None:
    more: Json = {
        "servers": {"desk": {"python": "tests.testing.desk:mcp"}},
        "eras": [LEGACY],
        "redact": [
            "inputResponses.city.content.value",
            "inputRequests.units.params.message",
            "structuredContent",
            "content",
        ],
    }
    await run_suite(write_suite(tmp_path, trip(), **more), record="once")
    (tape,) = (tmp_path / "tapes").iterdir()
    assert b"Lisbon" not in tape.read_bytes()
    other = trip(inputResponses={"city": "Porto", "units": "C"})
    assert (await run_suite(write_suite(tmp_path, other, **more)))[0].failures == []
    assert (await run_suite(write_suite(tmp_path, other, **more), verify=True))[0].failures == []


async def test_an_expectation_of_what_is_redacted_holds_live_and_on_replay(taped: Desk) -> None:
    taped.server = order(471)
    test = anyhow(expect={"structuredContent": {"contains": {"id": {"present": True}}}})
    await taped.recorded(test, redact=REDACT)
    assert (await taped.run(test, redact=REDACT)).failures == []


WIDE = [
    "inputRequests",
    "inputRequests.*",
    "inputRequests.city",
    "inputRequests.city.method",
    "inputRequests.city.params",
    "inputRequests.city.params.requestedSchema",
    "inputResponses",
    "inputResponses.city",
    "resultType",
    "requestState",
    "name",
    "arguments",
    "method",
    "params",
    "_meta",
    "*",
    "*.*",
    "[*].params",
]


@pytest.mark.parametrize("path", WIDE)
async def test_whatever_is_declared_what_could_be_recorded_can_be_replayed(taped: Desk, path: str) -> None:
    taped.server = Trip(
        [CITY], notes=[[{"method": "notifications/message", "params": {"level": "info", "data": "on the way"}}]]
    )
    with suppress(BadSuite):  # to refuse such a path is as good
        if (await taped.run(anyhow(), record="once", redact=[path])).passed:
            assert (await taped.run(anyhow(), redact=[path])).failures == []


SCHEMA = "inputRequests.city.params.requestedSchema"
CHOICES = {"type": "string", "enum": ["Lisbon", "order 4711"]}
TITLED = {"type": "string", "title": "order 4711"}
SAMPLED: Json = {
    "method": "sampling/createMessage",
    "params": {"messages": [{"role": "user", "content": {"type": "text", "text": "order 4711"}}], "maxTokens": 4711},
}
PAGE: Json = {
    "method": "elicitation/create",
    "params": {"mode": "url", "message": "order 4711", "url": "https://example.com/4711"},
}
FIELD: Json = {"id": "4711", "kind": "string", "description": "order 4711", "required": True}
INSIDE: dict[str, tuple[list[str], Any, Any]] = {
    "choices": ([f"{SCHEMA}.properties.value.enum"], form("Which?", value=CHOICES), "Lisbon"),
    "a bound": (
        [f"{SCHEMA}.properties.value.maxLength"],
        form("Which?", value={"type": "string", "maxLength": 4711}),
        "Lisbon",
    ),
    "a form": ([SCHEMA], form("Which?", value=TITLED), "Lisbon"),
    "a text for a model": (
        ["inputRequests.city.params.messages[*].content.text", "inputRequests.city.params.maxTokens"],
        SAMPLED,
        {"sample": "Lisbon"},
    ),
    "params": (["inputRequests.city.params"], PAGE, {"url": "done"}),
    "fields of the compatibility dialect": (["inputRequests", "inputResponses"], [FIELD], "Lisbon"),
    "an id of the compatibility dialect": (
        ["inputRequests[*].id", "inputRequests[*].description", "inputResponses[*].id"],
        [FIELD],
        "Lisbon",
    ),
}


@pytest.mark.parametrize(("paths", "asked", "answer"), INSIDE.values(), ids=INSIDE)
async def test_what_is_declared_inside_a_question_is_redacted_or_not_recorded_at_all(
    taped: Desk, paths: list[str], asked: Any, answer: Any
) -> None:
    if isinstance(asked, list):
        taped.server = Trip([asked], resulting={})
    else:
        taped.server = Trip([{"city": asked}])
    test = trip(inputResponses=[{"otherwise": answer}], wire="any")
    with suppress(BadSuite):  # to refuse such a path is as good
        if (await taped.run(test, record="once", redact=paths)).passed:
            assert b"4711" not in taped.tape.read_bytes()
            assert (await taped.run(test, redact=paths)).failures == []
            assert (await taped.run(test, verify=True, redact=paths)).failures == []


# Secrets of the environment


def keyed(**more: Any) -> Json:
    """A test that sends a secret."""
    return {"name": "a trip", "tool": "forecast", "arguments": {"key": "${env:SECRET}"}, **more}


SAYS: dict[str, tuple[Trip, Json]] = {
    "an argument": (Trip([]), keyed()),
    "a text": (Trip([], result=text(f"Your key is {SECRET}.")), keyed()),
    "a value": (Trip([], result=text("Done.", structuredContent={"key": SECRET})), keyed()),
    "a key": (Trip([], result=text("Done.", structuredContent={SECRET: 1})), keyed()),
    "base64": (Trip([], result=text(f"Basic {b64encode(f'ada:{SECRET}'.encode()).decode()}")), keyed()),
    "hex": (Trip([], result=text(SECRET.encode().hex())), keyed()),
    "an escaped part": (Trip([], result=text(f"?key={SECRET.replace('-', '%2d')}")), keyed()),
    "an answer": (Trip([CITY]), keyed(inputResponses={"city": "${env:SECRET}"})),
    "a question": (Trip([{"city": form(f"Which city for {SECRET}?")}]), keyed(inputResponses={"city": "Lisbon"})),
    "the key of a question": (Trip([{SECRET: form("Which?")}]), keyed(inputResponses=[{"otherwise": "Lisbon"}])),
    "a notification": (
        Trip([], notes=[[{"method": "notifications/message", "params": {"level": "info", "data": SECRET}}]]),
        keyed(),
    ),
    "an error": (
        Trip([], error={"code": -32000, "message": f"no {SECRET}", "data": {"key": SECRET}}),
        keyed(expect={"error": {"code": -32000}}),
    ),
}


@pytest.mark.parametrize(("server", "test"), SAYS.values(), ids=SAYS)
async def test_a_secret_is_in_no_cassette_wherever_it_turns_up(taped: Desk, server: Trip, test: Json) -> None:
    taped.server = server
    tape = await taped.recorded(test)
    assert not in_any_form(SECRET, tape)
    assert b"${env:SECRET}" in tape


@pytest.mark.parametrize(("server", "test"), SAYS.values(), ids=SAYS)
async def test_what_has_a_secret_in_it_is_replayed_and_verified(taped: Desk, server: Trip, test: Json) -> None:
    taped.server = server
    await taped.recorded(test)
    assert (await taped.run(test)).failures == []
    assert (await taped.run(test, verify=True)).failures == []


async def test_another_secret_plays_the_same_cassette(taped: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    taped.server = Trip([])
    once = await taped.recorded(keyed())
    monkeypatch.setenv("SECRET", "another one")
    assert (await taped.run(keyed())).failures == []
    assert await taped.recorded(keyed()) == once


EXPECTED = {
    "a text": (Trip([], result=text(f"Your key is {SECRET}.")), keyed(expect={"text": "Your key is ${env:SECRET}."})),
    "a value": (
        Trip([], result=text("Done.", structuredContent={"key": SECRET})),
        keyed(expect={"structuredContent": {"key": "${env:SECRET}"}}),
    ),
    "a part": (Trip([], result=text(f"Key {SECRET}.")), keyed(expect={"text": {"contains": "${env:SECRET}"}})),
    "a message": (
        Trip([{"city": form(f"Which city for {SECRET}?")}]),
        keyed(
            rounds=[{"expect": {"messages": {"city": "Which city for ${env:SECRET}?"}}, "answer": {"city": "Lisbon"}}]
        ),
    ),
    "a rule": (
        Trip([{"city": form(f"Which city for {SECRET}?")}]),
        keyed(inputResponses=[{"when": {"message": {"contains": "${env:SECRET}"}}, "answer": "Lisbon"}]),
    ),
    "an error": (
        Trip([], error={"code": -32000, "message": f"no {SECRET}"}),
        keyed(expect={"error": {"message": "no ${env:SECRET}"}}),
    ),
}


@pytest.mark.parametrize(("server", "test"), EXPECTED.values(), ids=EXPECTED)
async def test_what_is_expected_of_a_secret_holds_on_replay_as_it_does_live(
    taped: Desk, server: Trip, test: Json
) -> None:
    taped.server = server
    await taped.recorded(test)
    assert (await taped.run(test)).failures == []


async def test_a_captured_secret_is_handed_on_by_a_replay(taped: Desk) -> None:
    taped.server = Trip([], result=text("Done.", structuredContent={"key": SECRET}))
    first = keyed(name="first", capture={"found": "structuredContent.key"})
    second = keyed(name="second", arguments={"key": "${found}"})
    await taped.run(first, second, record="once")
    assert (await taped.run(first, second)).failures == []
    assert not any(in_any_form(SECRET, tape.read_bytes()) for tape in taped.tapes.iterdir())


async def test_no_secret_is_in_a_failure_about_a_cassette(taped: Desk) -> None:
    taped.server = Trip([])
    await taped.recorded(keyed(arguments={"key": "mine", "of": "${env:SECRET}"}))
    failure = stale(await taped.run(keyed(arguments={"key": "${env:SECRET}", "of": "${env:SECRET}"})))
    assert 'turns[0].sent.arguments.key: expected "mine", got "${env:SECRET}"' in failure.message
    assert failure.actual == "${env:SECRET}"


async def test_a_secret_that_a_server_no_longer_tells_is_found(taped: Desk) -> None:
    taped.server = Trip([], result=text(f"Your key is {SECRET}."))
    await taped.recorded(keyed())
    taped.server = Trip([], result=text("Your key is safe."))
    failure = stale(await taped.run(keyed(), verify=True))
    assert failure.expected == "Your key is ${env:SECRET}."


async def test_a_secret_that_is_not_set_is_named(taped: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SECRET")
    assert "SECRET" in only(await taped.run(keyed(), record="once")).message
    assert not taped.tapes.exists()
