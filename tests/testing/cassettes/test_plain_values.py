"""Cassettes that were recorded before a value was redacted: they are found, and the value is in no report."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bespeak.conversation.patterns import Expression
from bespeak.testing.cassettes.cassette_format import Writing
from bespeak.testing.cassettes.plain_values import plain_value
from bespeak.testing.redaction.redactor import Redactor
from bespeak.testing.report.results import Result
from tests.testing.desk import OURS
from tests.testing.taping import (
    CITY,
    LEGACY,
    MODERN,
    Desk,
    Json,
    Trip,
    anyhow,
    form,
    run_suite,
    stale,
    text,
    trip,
    write_suite,
)

PLAIN = "4711-" + "a long value " * 20
"""What is redacted too late. It is longer than a message shows of a value."""


@pytest.fixture
def taped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    return Desk(tmp_path, monkeypatch)


def note(**params: Any) -> list[list[Json]]:
    return [[{"method": "notifications/message", "params": {"level": "info", **params}}]]


PLACES: dict[str, tuple[Trip, Json, str, str]] = {
    "a result": (
        Trip([CITY], text("ok", structuredContent={"id": PLAIN})),
        anyhow(),
        "structuredContent.id",
        "turns[1].result.structuredContent.id",
    ),
    "a text": (Trip([CITY], text(PLAIN)), anyhow(), "content[*].text", "turns[1].result.content[0].text"),
    "an error": (
        Trip([CITY], error={"code": -32000, "message": "no", "data": {"id": PLAIN}}),
        anyhow(expect={"error": {"code": -32000}}),
        "data.id",
        "turns[1].error.data.id",
    ),
    "an argument": (Trip([CITY]), anyhow(arguments={"loc": PLAIN}), "arguments.loc", "turns[0].sent.arguments.loc"),
    "an answer": (
        Trip([CITY]),
        trip(inputResponses={"city": PLAIN}),
        "inputResponses.city.content",
        "turns[0].answered.city.content",
    ),
    "a question": (
        Trip([{"city": form(PLAIN)}]),
        anyhow(),
        "inputRequests.city.params.message",
        "turns[0].asked[0].request.params.message",
    ),
    "a question with a key that changes": (
        Trip([{"city~01234567": form(PLAIN)}]),
        anyhow(),
        "inputRequests.city.params.message",
        "turns[0].asked[0].request.params.message",
    ),
    "a notification": (
        Trip([CITY], notes=note(data=PLAIN)),
        anyhow(),
        "params.data",
        "turns[0].notifications[0].params.data",
    ),
}
MODES = {"a replay": {}, "verifying": {"verify": True}}


def found(taped: Desk, result: Result, path: str, mode: str = "new") -> None:
    assert stale(result).message == (
        f"{taped.tape.name} has a value that is redacted now, at {path}; record it again with --record {mode}"
    )
    assert "4711" not in json.dumps(result.as_json())


@pytest.mark.parametrize("more", MODES.values(), ids=MODES)
@pytest.mark.parametrize("how", ["path", "pattern"])
@pytest.mark.parametrize(("server", "test", "path", "place"), PLACES.values(), ids=PLACES)
async def test_a_value_that_is_redacted_later_is_found_and_not_shown(
    taped: Desk, server: Trip, test: Json, path: str, place: str, how: str, more: Json
) -> None:
    taped.server = server
    await taped.recorded(test)
    redact: list[Any] = [path] if how == "path" else [{"pattern": "4711.*"}]
    result = await taped.run(test, redact=redact, **more)
    deeper = ".value" if how == "pattern" and place.endswith(".content") else ""
    found(taped, result, place + deeper)


@pytest.mark.parametrize("mode", ["new", "rewrite"])
@pytest.mark.parametrize("redact", [["structuredContent.id"], [{"pattern": "4711.*"}]])
async def test_recording_again_removes_it(taped: Desk, redact: list[Any], mode: str) -> None:
    taped.server = Trip([CITY], text("ok", structuredContent={"id": PLAIN}))
    await taped.recorded(anyhow())
    assert (await taped.run(anyhow(), record=mode, redact=redact)).failures == []
    assert b"4711" not in taped.tape.read_bytes()
    assert (await taped.run(anyhow(), redact=redact)).failures == []
    assert (await taped.run(anyhow(), redact=redact, verify=True)).failures == []


@pytest.mark.parametrize("more", MODES.values(), ids=MODES)
async def test_a_literal_that_became_a_variable_is_found(
    taped: Desk, monkeypatch: pytest.MonkeyPatch, more: Json
) -> None:
    monkeypatch.setenv("TOK", "tok-4711")
    await taped.recorded(anyhow(arguments={"token": "tok-4711"}))
    found(taped, await taped.run(anyhow(arguments={"token": "${env:TOK}"}), **more), "turns[0].sent.arguments.token")


async def test_a_short_literal_that_became_a_variable_is_not_shown_as_different(
    taped: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOK", "4711")
    await taped.recorded(anyhow(arguments={"token": "4711"}))
    test, place = anyhow(arguments={"token": "${env:TOK}"}), "turns[0].sent.arguments.token"
    found(taped, await taped.run(test), place)
    found(taped, await taped.run(test, verify=True), place, "rewrite")
    assert (await taped.run(test, record="new")).failures == []
    assert (await taped.run(test, verify=True)).failures == []


async def test_a_short_secret_may_be_in_what_was_recorded_of_the_server(
    taped: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOK", "another secret")
    await taped.recorded(anyhow(arguments={"token": "${env:TOK}"}))
    monkeypatch.setenv("TOK", "Sunny")  # whatever the machine has that replays it
    assert (await taped.run(anyhow(arguments={"token": "${env:TOK}"}))).failures == []


@pytest.mark.parametrize("era", [MODERN, LEGACY])
async def test_a_pushed_question_and_its_answer_are_searched(tmp_path: Path, era: str) -> None:
    test = trip()
    await run_suite(write_suite(tmp_path, test, servers=OURS, eras=[era]), record="once")
    for redact in ("inputRequests.city.params.message", "inputResponses.city.content"):
        suite = write_suite(tmp_path, test, servers=OURS, eras=[era], redact=[redact])
        (result,) = await run_suite(suite)
        assert "has a value that is redacted now, at turns[0]" in stale(result).message


PATTERNS = ["^.", "^..", r"\b\d", ".$", ".*", ".+", "...", "(?<!1)1", r"(?<!\d\d)\d", "ab|(?<!ab)1", "a.*b|1"]
OTHERS = [r"\w+", "redact.*", r"\[.*", "1", "a b", "(?=b)b|a"]


@given(pattern=st.sampled_from(PATTERNS + OTHERS), said=st.text("ab1[ -", max_size=12))
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_whatever_is_redacted_what_was_recorded_has_nothing_left(pattern: str, said: str) -> None:
    redactor = Redactor(patterns=[Expression(pattern)])
    recorded = Writing(redactor).came({"result": text(said, structuredContent={"said": said})})
    assert plain_value({"turns": [recorded]}, redactor) is None


@pytest.mark.parametrize(
    ("pattern", "said"),
    [("2", "[redacted]2"), (".+", "[redacted] 2"), (r"\d+", "a[redacted]b 2"), (r"\b\d{4}\b", "[redacted], 4711")],
)
def test_what_is_left_beside_a_mark_is_found(pattern: str, said: str) -> None:
    redactor = Redactor(patterns=[Expression(pattern)])
    assert plain_value({"turns": [{"result": text(said)}]}, redactor) == "turns[0].result.content[0].text"
