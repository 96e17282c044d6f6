"""A report has a bound, however much a server says: what is left out is counted, and nothing of a secret is left at the cut."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.cli.test_command import exit_code_of
from bespeak.conversation.call_rounds import Round
from bespeak.conversation.matchers import ABSENT
from bespeak.testing.cassettes import cassette_file
from bespeak.testing.expect import snapshots
from bespeak.testing.report.excerpts import (
    LARGEST_REPORT,
    LARGEST_TEST,
    LARGEST_VALUE,
    LEFT_OUT,
    LONGEST_TEXT,
    bounded,
    excerpt,
    round_excerpt,
    shortened,
    without_middle,
)
from bespeak.testing.report.json_report import JsonReport
from bespeak.testing.report.junit_report import JunitReport
from bespeak.testing.report.pretty_report import PrettyReport, describe
from bespeak.testing.report.results import Failure, Kind, Result
from bespeak.testing.report.summary import Summary
from tests.testing.canned import Canned, Hold, asking, error, form, round_of, told
from tests.testing.canned import hold as hold
from tests.testing.taping import Desk, Trip, text

LARGE = "x" * 60_000_000


def of(failures: Any = (), rounds: Any = (), name: str = "a") -> Result:
    return Result("a.bespeak.yaml", 1, name, None, None, "desk", failures, rounds)


def reports(*results: Result) -> dict[str, str]:
    written: dict[str, str] = {}
    for form_, writer in (("pretty", PrettyReport), ("json", JsonReport), ("junit", JunitReport)):
        out = io.StringIO()
        writer(out).ended(Summary(results))
        written[form_] = out.getvalue()
    return written


# Values


@pytest.mark.parametrize("value", ["a", 5, None, True, 1.5, [], {}, {"a": [1, {"b": "c"}]}, ABSENT, ["x" * 1000] * 10])
def test_what_is_small_is_reported_in_full(value: Any) -> None:
    assert excerpt(value) == value


def test_a_long_text_is_reported_in_part_with_how_much_was_left_out() -> None:
    assert excerpt("x" * (LONGEST_TEXT + 1234)) == "x" * LONGEST_TEXT + "... (1,234 more characters)"
    assert excerpt({"x" * 300: 1}) == {"x" * 200 + "... (100 more characters)": 1}
    assert shortened("abc", 3) == "abc"
    assert without_middle("a" * 50 + "b" * 50, 40) == "a" * 10 + "\n... (60 characters left out)\n" + "b" * 30


def test_a_large_collection_is_reported_in_part_with_how_much_was_left_out() -> None:
    entries = excerpt(["x" * 1000] * 1000)
    assert entries[-1] == f"({1000 - len(entries) + 1} more entries)"
    members = excerpt({f"k{number}": "x" * 1000 for number in range(1000)})
    assert members["..."] == f"({1000 - len(members) + 1} more members)"


def test_a_deep_value_and_a_huge_number_are_reported_in_part() -> None:
    deep: Any = "end"
    for _ in range(5000):
        deep = [deep]
    assert "..." in json.dumps(excerpt(deep))
    assert excerpt(10**5000) == "(a number of 16,610 bits)"


VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=30) | st.sampled_from(["x" * 9000, "\U0001f600" * 9000]),
    lambda inner: st.lists(inner, max_size=300) | st.dictionaries(st.text(max_size=30), inner, max_size=300),
    max_leaves=60,
)


@given(VALUES)
@pytest.mark.long
def test_no_value_comes_to_more_than_its_bound(value: Any) -> None:
    assert len(json.dumps(excerpt(value))) < LARGEST_VALUE * 1.5
    assert len(json.dumps(excerpt([value] * 200))) < LARGEST_VALUE * 1.5


# Tests and reports


def test_a_round_with_many_questions_counts_those_it_leaves_out() -> None:
    told_ = round_excerpt(Round({f"k{number}": "x" * 300 for number in range(500)}, {}, True))
    assert told_.left_out == 500 - len(told_.asked)
    assert Round(**told_.as_json()) == told_
    assert f"    and {500 - 20} more\n" in describe(of(rounds=[told_], failures=[Failure("no")])) + "\n"


def test_a_test_with_many_failures_and_rounds_counts_those_it_leaves_out() -> None:
    failures = [Failure("x" * 4000)] * 100
    rounds = [Round({"k": "x" * 4000}, {}, False)] * 100
    told_ = bounded(of([*failures, Failure("gone", Kind.UNREACHABLE)], rounds))
    assert told_.failures[-1].message == f"{101 - len(told_.failures) + 1} more failures are left out of this report"
    assert told_.rounds[-1].asked == {"...": f"({100 - len(told_.rounds) + 1} more rounds)"}
    assert len(json.dumps(told_.as_json())) < LARGEST_TEST * 1.5


def test_what_is_left_out_counts_for_the_exit_code() -> None:
    failures = [Failure("x" * 4000, Kind.CASSETTE)] * 100
    assert exit_code_of(Summary([bounded(of([*failures, Failure("no", Kind.FAILED)]))])) == 1


@pytest.mark.long
def test_a_report_with_many_large_tests_tells_the_last_ones_in_one_line_each() -> None:
    failures = [Failure("m" * 300, path="a", expected="x" * 4000, actual="y" * 4000)] * 5
    results = [bounded(of(failures, [Round({"k": "x" * 4000}, {}, True)], f"t{number:04}")) for number in range(600)]
    written = reports(*results)
    assert {form_: len(text_) < 2 * LARGEST_REPORT for form_, text_ in written.items()} == dict.fromkeys(written, True)
    first, *_, last = json.loads(written["json"])["results"]
    assert len(first["failures"]) == 5
    assert last["failures"] == [
        {"kind": "failed", "message": "m" * 200 + "... (100 more characters)", "hint": LEFT_OUT}
    ]
    assert last["rounds"] == []
    assert "the report has reached 8 MiB" in written["pretty"]
    assert written["junit"].count("<testcase ") == 600


@pytest.mark.long
def test_a_test_that_passed_is_reported_in_a_full_report_too() -> None:
    results = [bounded(of([Failure("x" * 4000)] * 15, name=f"t{number:04}")) for number in range(200)]
    passed = of(rounds=[Round({"k": "?"}, {}, False)], name="t9999")
    told_ = json.loads(reports(*results, passed)["json"])["results"][-1]
    assert (told_["outcome"], told_["rounds"]) == ("passed", [])


# A server that says too much

MANY = "x" * 6_000_000
REPLIES: dict[str, tuple[Any, str]] = {
    "a text": (told(LARGE), "expect: {text: no}"),
    "a failure": (told(MANY, isError=True), ""),
    "an error": (error(MANY), ""),
    "a value": (told(structuredContent={"a": [MANY[:1000]] * 6_000}), "expect: {structuredContent: {b: 1}}"),
    "a name": (told(structuredContent={MANY: 1}), "expect: {structuredContent: {}}"),
    "names": (told(structuredContent={f"k{n}": MANY[:100] for n in range(30_000)}), "expect: {structuredContent: {}}"),
    "a message": (asking(city=form(MANY)), ""),
    "an answered message": (asking(city=form(MANY)), "inputResponses: {city: x}"),
    "a key": (round_of({MANY: form()}), ""),
    "questions": (round_of({f"k{n}": form(MANY[:1000]) for n in range(2_000)}), "inputResponses: [{otherwise: x}]"),
    "a type": ({"resultType": MANY}, ""),
}


QUICK = ("a failure", "names", "questions")


@pytest.mark.parametrize(
    ("reply", "more"),
    [pytest.param(*two, id=name, marks=[] if name in QUICK else [pytest.mark.long]) for name, two in REPLIES.items()],
)
async def test_a_server_that_says_too_much_makes_no_large_report(hold: Hold, reply: Any, more: str) -> None:
    (result,) = await hold(Canned(reply), f"  - {{name: a, tool: x{', ' if more else ''}{more}}}")
    assert not result.passed
    assert {form_: len(text_) for form_, text_ in reports(result).items() if len(text_) > 3 * LARGEST_TEST} == {}


@pytest.mark.parametrize("before", [LONGEST_TEXT - 20, LONGEST_TEXT // 4 - 10, LONGEST_TEXT - 3])
async def test_nothing_of_a_secret_is_left_where_a_report_is_cut(
    hold: Hold, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    monkeypatch.setenv("PASSWORD", "hunter2-is-the-password")
    long = "x" * before + "hunter2-is-the-password" + "y" * 10_000
    call = "  - {name: a, tool: x, arguments: {p: '${env:PASSWORD}'}"
    results = await hold(Canned(told(long, isError=True)), f"{call}}}")
    results += await hold(
        Canned(told(structuredContent={"a": long})), f"{call}, expect: {{structuredContent: {{a: 1}}}}}}"
    )
    written = "".join(text_ for result in results for text_ in reports(result).values())
    assert "hunt" not in written
    assert "more characters" in written
    assert "characters left out" in written


# What is kept


@pytest.fixture
def taped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    return Desk(tmp_path, monkeypatch)


async def test_a_conversation_that_is_too_large_is_not_kept(taped: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cassette_file.LARGEST == 16 * 2**20
    monkeypatch.setattr(cassette_file, "LARGEST", 10_000)
    taped.server = Trip([], result=text("Done.", structuredContent={"a": "x" * 20_000}))
    result = await taped.run({"name": "a trip", "tool": "forecast"}, record="once")
    (failure,) = result.failures
    assert failure.kind is Kind.CASSETTE
    assert "was not written: the conversation has 20," in failure.message
    assert "but a cassette may have at most 10,000; keep large values out of it with redact" in failure.message
    assert not list(taped.tapes.glob("*.json"))
    kept = await taped.run({"name": "a trip", "tool": "forecast"}, record="once", redact=["structuredContent.a"])
    assert kept.passed


async def test_snapshots_that_are_too_large_are_not_kept(taped: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "LARGEST", 10_000)
    taped.server = Trip([], result=text("x" * 20_000))
    test = {"name": "a trip", "tool": "forecast", "expect": {"text": {"snapshot": "all"}}}
    (failure,) = (await taped.run(test, record="once")).failures
    assert "the snapshots could not be saved: " in failure.message
    assert "bytes; the limit is 10,000" in failure.message
