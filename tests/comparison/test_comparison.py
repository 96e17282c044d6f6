"""The comparison: its page has what was measured, and Bespeak does what the page says."""

import re
import sys
from pathlib import Path

import pytest
from comparison.run import PAGE, ROOT, Failed, measure, publish
from comparison.table import FRAMEWORKS, ROWS, Measured, page

CELLS = {
    row: dict(zip(FRAMEWORKS, re.split(r" \| ", line.removesuffix(" |"))[1:], strict=True))
    for row, situation in ROWS.items()
    for line in PAGE.read_text().splitlines()
    if line.startswith(f"| {situation} |")
}


def cell(one: Measured) -> str:
    return f"**{one.says}**" if one.good else one.says


def test_each_row_has_a_program_and_each_program_a_row() -> None:
    programs = {file.stem for file in (ROOT / "comparison" / "rows").glob("*.py")} - {"__init__"}
    assert programs == ROWS.keys() == CELLS.keys()


def test_the_text_around_the_table_is_the_one_of_the_program() -> None:
    table = {row: {framework: Measured(False, "x") for framework in FRAMEWORKS} for row in ROWS}
    made, kept = (re.sub(r"(?m)^\|.*\n", "", text) for text in (page(table), PAGE.read_text()))
    assert made == kept


@pytest.mark.long
@pytest.mark.timing
@pytest.mark.parametrize("row", ROWS)
def test_bespeak_does_what_the_page_says(row: str) -> None:
    assert cell(measure(sys.executable, row, "bespeak")) == CELLS[row]["bespeak"]


def test_a_program_that_fails_is_shown() -> None:
    with pytest.raises(Failed, match=r"no_such_row with bespeak failed:\n.*No module named"):
        measure(sys.executable, "no_such_row", "bespeak")


def test_a_page_that_is_out_of_date_fails_in_ci(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "comparison.md"
    assert publish("new", file, check=True) == 1
    assert capsys.readouterr().err == "comparison.md is not what was measured; run `make comparison` and commit it.\n"
    assert publish("new", file, check=False) == 0
    assert publish("new", file, check=True) == 0
