"""Redaction by pattern and for one test (testing.md section 3): in what is written and compared with it, never before expect."""

import json
from pathlib import Path
from typing import Any

import pytest

from bespeak.conversation.matchers import Difference
from bespeak.conversation.patterns import Expression, PatternTimeout
from bespeak.testing.expect.expectations import Telling, as_told
from bespeak.testing.redaction.declared import matched
from bespeak.testing.redaction.redactor import REDACTED, Redactor
from bespeak.testing.suite.redact_keys import Redact
from tests.testing.taping import Desk, Trip, anyhow, form, only, text, trip

ORDER = "ord-[0-9]+"


@pytest.fixture
def taped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.delenv("CI", raising=False)
    return Desk(tmp_path, monkeypatch)


def number(order: int) -> Trip:
    """A server that names an order, in its question and in its result."""
    asked = {"city": form(f"Which city is ord-{order} for?")}
    said = text(f"Sent ord-{order}.", structuredContent={"id": f"ord-{order}", "type": "parcel"})
    note = {"method": "notifications/message", "params": {"level": "info", "data": f"packing ord-{order}"}}
    return Trip([asked], result=said, notes=[[], [note]])


def test_what_a_pattern_finds_is_redacted_in_every_text() -> None:
    redactor = Redactor(patterns=[Expression(ORDER)])
    value = {"ord-1": ["a ord-1 and ord-22", {"type": "ord-1", "x": 5}], "role": "ord-2"}
    assert redactor.apply(value) == {
        "ord-1": [f"a {REDACTED} and {REDACTED}", {"type": "ord-1", "x": 5}],
        "role": "ord-2",
    }
    assert redactor.message("no ord-3") == f"no {REDACTED}"
    assert redactor.text("ord-3") == "ord-3"  # a name


def test_a_pattern_that_takes_too_long_leaves_nothing_of_a_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bespeak.conversation.patterns.SECONDS", 0.05)
    redactor = Redactor(patterns=[Expression("^(a|a)*$", seconds=0.05)])
    assert redactor.apply({"x": "a" * 40 + "b"}) == {"x": REDACTED}


def test_secrets_are_still_named_where_a_pattern_would_find_them() -> None:
    redactor = Redactor(secrets={"KEY": "ord-77"}, patterns=[Expression("[0-9]+")])
    assert redactor.apply("a ord-77 b 5") == f"a ${{env:KEY}} b {REDACTED}"


@pytest.mark.parametrize("where", ["suite", "test"])
async def test_a_pattern_keeps_a_value_out_of_a_cassette_and_of_a_report(taped: Desk, where: str) -> None:
    redact: Any = {"redact": [{"pattern": ORDER}]}
    test = anyhow(arguments={"order": "ord-1"}, expect={"text": "Sent ord-7."}, **(redact if where == "test" else {}))
    more: Any = redact if where == "suite" else {}
    taped.server = number(7)
    first = await taped.recorded(test, **more)
    assert "ord-" not in first.decode()
    assert "Which city is [redacted] for?" in first.decode()
    result = await taped.run({**test, "expect": {"text": "no"}}, record="rewrite", **more)
    assert "ord-" not in json.dumps(result.as_json())
    assert not result.passed
    taped.server = number(8)
    assert (
        await taped.run(
            anyhow(arguments={"order": "ord-1"}, **(redact if where == "test" else {})), verify=True, **more
        )
    ).passed


async def test_an_expectation_sees_what_is_redacted_and_is_not_held_against_a_replay(taped: Desk) -> None:
    taped.server = number(7)
    redact: Any = [{"pattern": ORDER}, "structuredContent.id"]
    expect = {"text": {"matches": "ord-7"}, "structuredContent": {"id": "ord-7", "type": "parcel"}}
    await taped.recorded(anyhow(expect=expect, redact=redact))
    assert (await taped.run(anyhow(expect=expect, redact=redact))).passed
    wrong = {"structuredContent": {"id": "ord-7", "type": "letter"}}
    assert "structuredContent.type" in only(await taped.run(anyhow(expect=wrong, redact=redact))).message
    live = only(
        await taped.run(
            anyhow(expect={"structuredContent": {"id": "ord-8", "type": "parcel"}}, redact=redact), record="rewrite"
        )
    )
    assert live.message == "structuredContent.id: is not as expected"


async def test_the_message_of_a_round_is_compared_as_it_is(taped: Desk) -> None:
    taped.server = number(7)
    redact = ["inputRequests.city.params.message"]
    rounds = [{"expect": {"messages": {"city": {"contains": "ord-7"}}}, "answer": {"city": "Rome"}}]
    test = {"name": "a trip", "tool": "forecast", "rounds": rounds, "redact": redact}
    await taped.recorded(test)
    assert (await taped.run(test)).passed
    rounds[0]["expect"] = {"messages": {"city": {"contains": "ord-8"}}}
    failure = only(await taped.run(test, record="rewrite"))
    assert "ord-7" not in json.dumps(failure.as_json())


async def test_a_snapshot_has_no_value_that_is_redacted(taped: Desk) -> None:
    taped.server = number(7)
    expect = {
        "structuredContent": {"snapshot": "all"},
        "text": {"snapshot": "said"},
        "result": {"contains": {"structuredContent": {"id": {"snapshot": "id"}, "type": "parcel"}}},
    }
    test = anyhow(expect=expect, redact=["structuredContent.id", {"pattern": ORDER}])
    await taped.recorded(test)
    kept = (taped.folder / "trip.snapshots.json").read_text()
    assert json.loads(kept) == {
        "a trip": {"all": {"id": REDACTED, "type": "parcel"}, "said": f"Sent {REDACTED}.", "id": REDACTED}
    }
    taped.server = number(8)
    assert (await taped.run(test, verify=True)).passed


async def test_a_url_remains_one_when_a_part_of_it_is_redacted(taped: Desk) -> None:
    page = {
        "method": "elicitation/create",
        "params": {"mode": "url", "message": "Pay ord-7", "url": "https://pay.example/ord-7"},
    }
    taped.server = Trip([{"pay": page}])
    test = trip(inputResponses={"pay": {"url": "done"}}, redact=[{"pattern": ORDER}])
    await taped.recorded(test)
    (asked,) = taped.cassette["turns"][0]["asked"]
    assert asked["request"]["params"]["url"] == "https://pay.example/redacted"
    assert (await taped.run(test)).passed


# Redactions that match nothing


async def test_a_redaction_of_a_test_that_matches_nothing_is_reported(taped: Desk) -> None:
    taped.server = number(7)
    redact = [{"pattern": ORDER}, "structuredContent.id", "structuredContent.nr", {"pattern": "inv-[0-9]+"}]
    result = await taped.run(anyhow(redact=redact), record="rewrite")
    assert list(result.notes) == [
        "trip.bespeak.yaml:1: redact: 'structuredContent.nr' matched nothing in this test",
        "trip.bespeak.yaml:1: redact: 'inv-[0-9]+' matched nothing in this test",
    ]
    replayed = await taped.run(anyhow(redact=redact))
    assert list(replayed.notes) == [result.notes[0]]  # in a replay, there is nothing left for a pattern


async def test_a_failed_test_is_not_said_to_have_useless_redactions(taped: Desk) -> None:
    taped.server = number(7)
    result = await taped.run(anyhow(redact=["nothing"], expect={"text": "x"}), record="rewrite")
    assert list(result.notes) == []


@pytest.mark.parametrize(
    "path",
    [
        "inputRequests.city.params.message",
        'inputRequests["city"].params.message',
        "inputResponses.*.action",
        "params.data",
        "*.id",
        "arguments.loc",
        "content[0].text",
    ],
)
async def test_a_redaction_matches_wherever_something_is_written(taped: Desk, path: str) -> None:
    taped.server = number(7)
    result = await taped.run(anyhow(redact=[path]), record="rewrite")
    assert (result.passed, list(result.notes)) == (True, [])


async def test_what_is_redacted_by_path_is_not_in_another_text_of_a_report(taped: Desk) -> None:
    taped.server = number(7)
    result = await taped.run(anyhow(redact=["structuredContent.id"]), record="rewrite")
    assert "Sent [redacted]." in json.dumps(result.as_json())
    assert "ord-7" not in json.dumps(result.as_json())


async def test_a_snapshot_of_something_inside_a_redacted_value_is_redacted(taped: Desk) -> None:
    taped.server = number(7)
    expect = {"structuredContent": {"contains": {"id": {"snapshot": "id"}}}}
    await taped.recorded(anyhow(expect=expect, redact=["structuredContent"]))
    assert json.loads((taped.folder / "trip.snapshots.json").read_text()) == {"a trip": {"id": REDACTED}}


async def test_an_expectation_of_a_list_with_something_redacted_is_not_held_against_a_replay(taped: Desk) -> None:
    taped.server = number(7)
    expect = {"content": {"contains": {"text": "Sent ord-7.", "type": "text"}}, "notifications": {"length": 1}}
    test = anyhow(expect=expect, redact=[{"pattern": ORDER}])
    await taped.recorded(test)
    assert (await taped.run(test)).passed


def test_a_search_that_was_stopped_tells_nothing_that_is_redacted_by_path() -> None:
    found = Difference("text", "the search was stopped", {"matches": "x"}, "ord-7", stopped=True)
    told = as_told(found, {"matches": "x"}, "ord-7", "text", lambda value: value, ({"matches": "x"}, REDACTED))
    assert (told.expected, told.actual) == (REDACTED, REDACTED)


def test_what_is_no_matcher_any_more_when_it_is_hidden_has_no_diff() -> None:
    def hide(value: Any) -> Any:
        return {"matches": "("} if isinstance(value, dict) else value

    (told, diff) = Telling(hide).difference({"matches": "ord"}, "a\nb", "text", None) or (None, None)
    assert told is not None
    assert (told.message, diff) == ("is not as expected", ())


def test_a_pattern_that_takes_too_long_counts_as_one_that_matches(monkeypatch: pytest.MonkeyPatch) -> None:
    def found_in(*_: object) -> bool:
        raise PatternTimeout("x")

    monkeypatch.setattr(Expression, "found_in", found_in)
    assert matched([Redact(pattern="x")], [["a"]]) == {"x"}


async def test_the_text_of_a_sampling_request_is_redacted(taped: Desk) -> None:
    said = {"role": "user", "content": {"type": "text", "text": "Where is ord-7?"}}
    asked = {"method": "sampling/createMessage", "params": {"messages": [said], "maxTokens": 5}}
    taped.server = Trip([{"model": asked}])
    test = trip(inputResponses={"model": {"sample": "In Rome."}}, redact=[{"pattern": ORDER}])
    await taped.recorded(test)
    assert "Where is [redacted]?" in taped.tape.read_text()
    assert (await taped.run(test)).passed
