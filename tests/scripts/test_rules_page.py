"""docs/rules.md: generated from the rules and from the clauses without one."""

import re

from scripts.rules_page import PAGE, page
from scripts.unchecked_clauses import UNCHECKED

from bespeak.conversation.protocol_rules import RULES
from bespeak.conversation.rule_types import Strength

TEXT = PAGE.read_text(encoding="utf-8")
ROWS = [line.strip("| ").split(" | ") for line in TEXT.partition("| clause |")[2].splitlines()[2:]]


def test_the_page_is_the_one_that_the_rules_make() -> None:
    assert page() == TEXT, "run `make rules`"


def test_each_rule_and_each_clause_without_one_has_a_row() -> None:
    assert len(ROWS) == len(RULES) + len(UNCHECKED)
    assert {row[-1].split("`")[1] for row in ROWS if row[-1].startswith("`")} == RULES.keys()
    assert {tuple(row) for row in ROWS} >= {
        (one.clause, one.revisions, one.sentence, one.strength.value, f"not yet: {one.why}")
        for one in UNCHECKED
        if one.later
    }


def test_no_clause_is_there_twice() -> None:
    told = [(row[0], row[2]) for row in ROWS]
    assert len(set(told)) == len(told)


def test_only_a_must_does_not_say_should_or_need() -> None:
    """Except for the rule about the compatibility dialect, all sentences say what a server that keeps the rule does."""
    for one in (*RULES.values(), *UNCHECKED):
        assert bool(re.search(r"\b(should|need)\b", one.sentence)) is (one.strength is not Strength.MUST), one.sentence


def test_revisions_are_told_in_words() -> None:
    assert {row[1] for row in ROWS} <= {
        "all",
        "2026-07-28",
        "2025-11-25",
        "2025-03-26",
        "from 2025-03-26",
        "from 2025-06-18",
        "from 2025-11-25",
        "up to 2025-03-26",
        "up to 2025-11-25",
        "2025-03-26 to 2025-11-25",
        "2025-06-18 to 2025-11-25",
    }
