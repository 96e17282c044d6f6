"""The JSON report is the same for two runs with the same outcome."""

import json
from dataclasses import replace
from typing import Any

from bespeak.testing.report.json_report import JsonReport
from bespeak.testing.report.pretty_report import PrettyReport
from bespeak.testing.report.results import Result
from bespeak.testing.report.summary import Summary
from tests.testing.runs import FAILED, PASSED, RUN, SKIPPED, XFAILED, with_failure, written


def test_the_json_report_is_one_document() -> None:
    assert json.loads(written(JsonReport, RUN)) == {
        "version": 1,
        "summary": {"passed": 1, "failed": 1, "skipped": 0, "xfailed": 0, "deselected": 2, "interrupted": False},
        "notes": [],
        "results": [PASSED.as_json(), FAILED.as_json()],
    }


def test_the_json_report_has_sorted_keys_an_indent_of_two_and_ends_with_a_newline() -> None:
    text = written(JsonReport, RUN)

    assert text == json.dumps(json.loads(text), indent=2, sort_keys=True) + "\n"


def test_two_runs_give_the_same_json_whatever_their_order_and_times() -> None:
    eras = [None, "", "2025-11-25", "2026-07-28"]
    results = [replace(PASSED, name=name, case=case, era=era) for name in "ab" for case in (None, "") for era in eras]
    later = [replace(result, seconds=9.0) for result in reversed(results)]

    assert written(JsonReport, Summary(results, seconds=1)) == written(JsonReport, Summary(later, seconds=2))


def test_results_are_sorted_by_suite_line_name_case_and_era() -> None:
    places = [("a", 2), ("a", 10), ("b", 1)]
    results = [replace(PASSED, suite=suite, line=line) for suite, line in reversed(places)]
    told = json.loads(written(JsonReport, Summary(results)))["results"]

    assert [(one["suite"], one["line"]) for one in told] == places


def test_a_value_nested_without_end_is_cut_and_not_the_end_of_the_report() -> None:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    summary = Summary([with_failure(path="a", expected=deep, actual=deep)])

    assert json.loads(written(JsonReport, summary))["summary"]["failed"] == 1
    assert "    expected [[[[" in written(PrettyReport, summary)


def test_outcomes_reasons_tags_and_files_are_in_the_json_report_and_can_be_read_back() -> None:
    tagged = replace(PASSED, tags=("slow",), file="common.yaml")
    read = json.loads(written(JsonReport, Summary([SKIPPED, XFAILED, tagged])))
    counts = {"passed": 1, "failed": 0, "skipped": 1, "xfailed": 1, "deselected": 0, "interrupted": False}
    assert read["summary"] == counts
    told = {one["outcome"]: one for one in read["results"]}
    assert told["skipped"]["skipped"] == "takes an hour"
    assert told["xfailed"]["xfailed"] == "known since May"
    assert told["xfailed"]["failures"]
    assert (told["passed"]["tags"], told["passed"]["file"]) == (["slow"], "common.yaml")
    assert [Result.from_json(one).outcome for one in read["results"]] == [one["outcome"] for one in read["results"]]
