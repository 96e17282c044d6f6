"""One item for each test, case and era, in the order of the file; and which of them `-k` and `--era` leave."""

import shlex
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.protocol.versions import SPOKEN
from bespeak.testing.runner import Runner
from bespeak.testing.suite.eras import revision
from bespeak.testing.suite.keyword_filter import keyword
from bespeak.testing.suite.plan import Item, at_era, items_of
from tests.testing.suite_files import GOOD, NEXT, in_test, load, with_server


def items(folder: Path, text: str) -> list[Item]:
    return items_of(load(folder, text))


def cases(folder: Path, *lines: str) -> list[Item]:
    """The cases of one test."""
    return items(folder, in_test(*lines))


# Items


def test_a_test_is_one_item_whose_era_is_left_to_the_server(tmp_path: Path) -> None:
    (item,) = items(tmp_path, GOOD)
    assert (item.title, item.case, item.era, item.line) == ("one", None, None, 5)


def test_a_test_is_one_item_for_each_case_and_era_in_the_order_of_the_file(tmp_path: Path) -> None:
    found = cases(tmp_path, "eras: [2026-07-28, 2025-11-25]", "cases:", "  - name: b", "  - name: a")
    assert [item.title for item in found] == [
        "one [b, 2026-07-28]",
        "one [b, 2025-11-25]",
        "one [a, 2026-07-28]",
        "one [a, 2025-11-25]",
    ]


def test_an_item_has_the_line_of_its_case_or_else_of_its_test(tmp_path: Path) -> None:
    text = in_test("cases:", "  - name: a", "  - name: b") + "  # a comment\n  - name: two\n    tool: pay\n"
    assert [item.line for item in items(tmp_path, text)] == [NEXT + 1, NEXT + 2, NEXT + 4]


def test_the_eras_of_a_suite_are_for_tests_that_name_none(tmp_path: Path) -> None:
    text = in_test("eras: [2026-07-28]") + "  - name: two\n    tool: pay\neras: [2025-11-25, 2025-06-18]\n"
    assert [item.title for item in items(tmp_path, text)] == [
        "one [2026-07-28]",
        "two [2025-11-25]",
        "two [2025-06-18]",
    ]


@pytest.mark.parametrize(("named", "meant"), [("", "desk"), ("server: till\n", "till"), ("    server: till\n", "till")])
def test_the_server_of_an_item_is_the_tests_own_the_suites_or_the_only_one(
    tmp_path: Path, named: str, meant: str
) -> None:
    servers = "{python: x}" if meant == "desk" else "{python: x}\n  till: {python: y}"
    (item,) = items(tmp_path, with_server(servers) + named)
    assert item.server_name == meant
    assert item.server.python == ("x" if meant == "desk" else "y")


def test_the_tests_server_goes_before_the_suites(tmp_path: Path) -> None:
    text = with_server("{python: x}\n  till: {python: y}") + "    server: desk\nserver: till\n"
    assert items(tmp_path, text)[0].server_name == "desk"


# What a case says is put over what its test says


def test_the_arguments_of_a_case_are_put_over_those_of_its_test(tmp_path: Path) -> None:
    lines = [
        "arguments: {cents: 5, to: {name: Ada}}",
        "cases:",
        "  - {name: a, arguments: {to: {id: 7}, at: 3}}",
        "  - name: b",
    ]
    a, b = cases(tmp_path, *lines)
    assert a.test.arguments == {"cents": 5, "to": {"id": 7}, "at": 3}
    assert b.test.arguments == {"cents": 5, "to": {"name": "Ada"}}


def test_the_answers_of_a_case_are_put_over_those_of_its_test(tmp_path: Path) -> None:
    lines = ["inputResponses: {city: Paris, units: C}", "cases:", "  - {name: a, input_responses: {units: F}}"]
    assert cases(tmp_path, *lines)[0].test.inputResponses == {"city": "Paris", "units": "F"}


@pytest.mark.parametrize("mine", ["{city: Paris}", "[{otherwise: decline}]"])
def test_rules_in_a_case_take_the_place_of_the_tests_answers(tmp_path: Path, mine: str) -> None:
    lines = [f"inputResponses: {mine}", "cases:", "  - {name: a, inputResponses: [{otherwise: omit}]}"]
    assert cases(tmp_path, *lines)[0].test.inputResponses == [{"otherwise": "omit"}]


def test_the_expectations_of_a_case_are_put_over_those_of_its_test_one_by_one(tmp_path: Path) -> None:
    lines = [
        "expect: {rounds: 1, structuredContent: {a: 1, b: 2}}",
        "cases:",
        "  - {name: a, expect: {structuredContent: {a: 3}, text: x}}",
        "  - {name: b}",
    ]
    a, b = cases(tmp_path, *lines)
    assert a.test.expect.model_dump(exclude_unset=True) == {"rounds": 1, "structuredContent": {"a": 3}, "text": "x"}
    assert b.test.expect.model_dump(exclude_unset=True) == {"rounds": 1, "structuredContent": {"a": 1, "b": 2}}


def test_what_a_case_expects_to_be_null_is_expected(tmp_path: Path) -> None:
    lines = ["expect: {structuredContent: 1}", "cases:", "  - {name: a, expect: {structuredContent: null}}"]
    assert cases(tmp_path, *lines)[0].test.expect.model_dump(exclude_unset=True) == {"structuredContent": None}


def test_the_rounds_of_a_case_take_the_place_of_the_tests(tmp_path: Path) -> None:
    lines = [
        "rounds: [{answer: {a: 1}}, {answer: {b: 1}}]",
        "cases:",
        "  - {name: a, rounds: [{answer: {c: 1}}]}",
        "  - name: b",
    ]
    a, b = cases(tmp_path, *lines)
    assert [one.answer for one in a.test.rounds or ()] == [{"c": 1}]
    assert [one.answer for one in b.test.rounds or ()] == [{"a": 1}, {"b": 1}]


def test_the_rest_of_a_test_is_in_each_of_its_cases(tmp_path: Path) -> None:
    lines = ["fresh: true", "timeout: 2", "declare: {}", "verify: {tool: balance}", "cases:", "  - name: a"]
    text = with_server("{command: [serve]}") + "".join(f"    {line}\n" for line in lines)
    test = items(tmp_path, text)[0].test
    assert (test.name, test.tool, test.fresh, test.timeout, test.declare) == ("one", "pay", True, 2, {})
    assert [one.tool for one in test.verify or ()] == ["balance"]


def test_cases_do_not_alter_one_another(tmp_path: Path) -> None:
    lines = ["arguments: {n: 0}", "expect: {text: x}", "cases:"]
    lines += [f"  - {{name: c{n}, arguments: {{n: {n}}}, expect: {{rounds: {n}}}}}" for n in (1, 2)]
    lines += ["  - name: plain"]
    found = [(item.test.arguments, item.test.expect.model_dump(exclude_unset=True)) for item in cases(tmp_path, *lines)]
    assert found == [
        ({"n": 1}, {"text": "x", "rounds": 1}),
        ({"n": 2}, {"text": "x", "rounds": 2}),
        ({"n": 0}, {"text": "x"}),
    ]


# `--era`


@pytest.mark.parametrize(
    ("era", "meant"), [("modern", "2026-07-28"), ("legacy", "2025-11-25"), *((one, one) for one in SPOKEN)]
)
def test_an_era_is_a_revision_or_the_newest_of_its_kind(era: str, meant: str) -> None:
    assert revision(era) == meant


@pytest.mark.parametrize("era", ["", "Modern", "2025", "auto", "2027-01-01"])
def test_an_era_that_is_none_is_refused_with_those_there_are(era: str) -> None:
    with pytest.raises(ValueError, match=r"an era is modern, legacy or one of 2026-07-28, .*not ") as caught:
        revision(era)
    assert repr(era) in str(caught.value)


def test_an_era_leaves_the_tests_that_name_it_and_those_that_leave_it_open(tmp_path: Path) -> None:
    text = in_test("eras: [2025-11-25, 2026-07-28]") + (
        "  - {name: two, tool: pay}\n  - {name: three, tool: pay, eras: [2025-06-18]}\n"
    )
    chosen = at_era(items(tmp_path, text), "2026-07-28")
    assert [item.title for item in chosen] == ["one [2026-07-28]", "two [2026-07-28]"]


def test_an_era_keeps_cases_and_lines(tmp_path: Path) -> None:
    (item,) = at_era(cases(tmp_path, "cases:", "  - {name: a, arguments: {n: 1}}"), "2025-11-25")
    assert (item.title, item.case, item.line, item.test.arguments) == ("one [a, 2025-11-25]", "a", NEXT + 1, {"n": 1})


# `-k`


@pytest.mark.parametrize(
    ("expression", "title", "meant"),
    [
        ("refund", "asks what to Refund", True),
        ("REFUND", "a refund", True),
        ("refund", "a payment", False),
        ("what to refund", "asks what to refund", True),
        ("to what refund", "asks what to refund", False),
        ("asks and refund", "asks what to refund", True),
        ("asks and not refund", "asks what to refund", False),
        ("pay or asks", "asks what to refund", True),
        ("not pay", "asks what to refund", True),
        ("not not pay", "pay", True),
        ("a and b or c", "c", True),
        ("c or a and b", "c", True),
        ("a and (b or c)", "c", False),
        ("not (a or b)", "a", False),
        ("not a or b", "b", True),
        ("2025-11-25", "one [b, 2025-11-25]", True),
        ("[b,", "one [b, 2025-11-25]", True),
        ('"one [b, 2025-11-25]"', "one [b, 2025-11-25]", True),
        ('"this and that"', "this and that", True),
        ('"this and that"', "that and this", False),
        ("'not found'", "is not found", True),
        ('"f(x)"', "calls f(x) twice", True),
        ("it's", "it's there", True),
        ("AND or that", "that", None),
        ("this AND that", "that and this", True),
    ],
)
def test_an_expression_means_the_titles_it_fits(expression: str, title: str, meant: bool | None) -> None:
    if meant is None:
        with pytest.raises(ValueError, match="-k"):
            keyword(expression)
    else:
        assert keyword(expression)(title) is meant


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("", "a word is missing; write words with and, or, not and parentheses"),
        ("   ", "a word is missing"),
        ("and", "a word is missing"),
        ("a and", "a word is missing"),
        ("or a", "a word is missing"),
        ("not", "a word is missing"),
        ("()", "a word is missing"),
        ("(a", "a parenthesis is not closed"),
        ("(a or b", "a parenthesis is not closed"),
        ("a)", "there is one ')' too many in 'a)'"),
        ("a not b", "too many in 'a not b'"),
        ('""', "-k"),
        ('"', "-k"),
        ("(" * 5000 + "a" + ")" * 5000, "-k"),
        ("not " * 5000 + "a", "-k"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_an_expression_that_is_none_is_refused(expression: str, said: str) -> None:
    with pytest.raises(ValueError, match="-k: ") as caught:
        keyword(expression)
    assert said in str(caught.value)
    assert len(str(caught.value)) < 500


@given(st.text(max_size=30))
def test_no_expression_does_anything_but_choose_or_be_refused(expression: str) -> None:
    with suppress(ValueError):
        keyword(expression)("a title")


NAMES: list[Any] = [
    "plain",
    "this and that or not",
    'says "hello" twice',
    '"quoted"',
    "it's there",
    "'quoted'",
    "f(x)",
    "two  spaces",
    " around ",
    r"back\slash",
    "$HOME `id`",
    "Größe",
    "[b, c]",
    "-x",
]


@pytest.mark.parametrize("name", NAMES)
async def test_the_command_that_runs_a_test_again_chooses_it(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BESPEAK_NOT_SET", raising=False)  # so that it fails at once, and no server is needed
    suite = load(
        tmp_path,
        GOOD.replace("one", "'" + name.replace("'", "''") + "'") + "    arguments: {a: '${env:BESPEAK_NOT_SET}'}\n",
    )
    (item,) = items_of(suite)
    result = await Runner().run(item)
    *_, option, expression = shlex.split(result.again)
    assert option == "-k"
    assert keyword(expression)(item.title)
    assert not keyword(expression)("another")
