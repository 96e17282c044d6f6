"""The tables of results, and the page that shows them."""

from pathlib import Path

import pytest
from conformance.expected import CHECKS, PARSERS, REVISIONS
from conformance.page import BEGIN, END, tables, written
from conformance.results import Outcome

PAGE = Path(__file__).parent.parent.parent / "docs" / "conformance.md"


def all_passed() -> str:
    """Return the tables of a run in which every check passes."""
    server = {
        (revision, parser): {name: Outcome(checks) for name, checks in CHECKS["server", revision].items()}
        for revision in REVISIONS
        for parser in PARSERS
    }
    client = {
        revision: {name: Outcome(checks) for name, checks in CHECKS["client", revision].items()}
        for revision in REVISIONS
    }
    return tables(server, client)


def row(shown: str, start: str) -> str:
    (found,) = [line for line in shown.splitlines() if line.startswith(start)]
    return found


def test_a_row_has_the_passed_checks_of_each_run_and_a_dash_where_there_is_no_such_scenario() -> None:
    shown = all_passed()
    assert row(shown, "| `tools-list`") == "| `tools-list` | 3 of 3 | 3 of 3 | 4 of 4 | 4 of 4 |"
    assert row(shown, "| `caching`") == "| `caching` | - | - | 8 of 8 | 8 of 8 |"
    assert row(shown, "| `sse-retry`") == "| `sse-retry` | 3 of 3 | - |"


def test_the_last_row_of_each_table_adds_up() -> None:
    server, client = [line for line in all_passed().splitlines() if line.startswith("| **all**")]
    assert server == "| **all** | **84 of 84** | **84 of 84** | **152 of 152** | **152 of 152** |"
    assert client == "| **all** | **20 of 20** | **64 of 64** |"


def test_a_failure_a_shortfall_and_a_missing_run_are_marked() -> None:
    found = {"ping": Outcome(1, ("FAILURE ping: no",)), "tools-list": Outcome(2)}
    shown = tables({(REVISIONS[0], "h11"): found}, {})
    assert row(shown, "| `ping`") == "| `ping` | **failed**, 1 of 2 | **failed**, 0 of 2 | - | - |"
    assert row(shown, "| `tools-list`").startswith("| `tools-list` | **failed**, 2 of 3 | **failed**, 0 of 3 |")


def test_only_the_part_between_the_marks_is_written() -> None:
    page = f"# Title\n\n{BEGIN}\n\nold\n\n{END}\n\nThe end.\n"
    assert written(page, "new") == f"# Title\n\n{BEGIN}\n\nnew\n\n{END}\n\nThe end.\n"
    assert written(written(page, "new"), "old") == page


@pytest.mark.parametrize("page", ["# Title\n", f"{BEGIN}\n", f"{END}\n"])
def test_a_page_without_the_marks_is_not_written(page: str) -> None:
    with pytest.raises(ValueError, match="the page must contain the lines"):
        written(page, "new")


def test_the_page_of_the_documentation_is_what_a_run_writes_in_which_everything_passes() -> None:
    page = PAGE.read_text()
    assert written(page, all_passed()) == page
