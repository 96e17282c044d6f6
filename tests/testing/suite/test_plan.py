"""One item for each test, case and era, in the order of the file; and which of them `-k` and `--era` leave."""

from pathlib import Path

import pytest

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


def test_modern_and_legacy_mean_the_newest_revision_of_each_era(tmp_path: Path) -> None:
    text = in_test("eras: [modern, legacy]") + "  - name: two\n    tool: pay\neras: [legacy]\n"
    found = [(item.test.name, item.era) for item in items_of(load(tmp_path, text))]
    assert found == [("one", "2026-07-28"), ("one", "2025-11-25"), ("two", "2025-11-25")]
    server = load(tmp_path, with_server('{python: "desk:mcp", protocol: modern}')).model.servers["desk"]
    assert server.protocol == "2026-07-28"


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
def test_rules_in_a_case_replace_the_tests_answers(tmp_path: Path, mine: str) -> None:
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


def test_the_rounds_of_a_case_replace_the_tests(tmp_path: Path) -> None:
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


def test_an_era_leaves_the_tests_that_name_it_and_those_that_leave_it_open(tmp_path: Path) -> None:
    text = in_test("eras: [2025-11-25, 2026-07-28]") + (
        "  - {name: two, tool: pay}\n  - {name: three, tool: pay, eras: [2025-06-18]}\n"
    )
    chosen = at_era(items(tmp_path, text), "2026-07-28")
    assert [item.title for item in chosen] == ["one [2026-07-28]", "two [2026-07-28]"]


# `-k`
