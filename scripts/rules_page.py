"""Write docs/rules.md, the table of the protocol's clauses about servers: `make rules`."""

from pathlib import Path

from bespeak.conversation.probe_rules import PROBE_RULES
from bespeak.conversation.protocol_rules import RULES
from bespeak.conversation.rule_types import Rule
from scripts.unchecked_clauses import UNCHECKED, Unchecked

PAGE = Path(__file__).parent.parent / "docs" / "rules.md"
_INTRODUCTION = """\
# The rules of the test tool

`bespeak test` checks what a server sends against the MCP specification. This table has each clause that concerns a server, and
whether it is checked. A clause is named by its page in the specification: `server/tools` is
`docs/specification/2026-07-28/server/tools.mdx`, or the page of that name in an older revision. `schema` is the schema of the
revision.

A **must** fails the test. **Advice** stands for a SHOULD: reports show it apart, and it fails nothing. An **attack** stands for a
SHOULD, too; only a test that attacks the server in this way (`tamper`, `fault`, `--as`) fails. Rules apply to live servers. A
replayed cassette was checked when it was recorded.

A rule with *(probe)* is checked by tests with [`probe`](testing.md#probes), which send what an ordinary client does not send. All
others are checked in every test.

| status | meaning |
|---|---|
| `name` | checked by the rule of this name, which failures and reports give |
| cannot be seen | a client cannot tell whether a server keeps the clause |
| not yet | a client could tell, but this one does not check it |

This page is generated. To change it, change the rules and run `make rules`.

"""
_HEAD = "| clause | revisions | a server keeps it if | strength | status |\n|---|---|---|---|---|\n"


def page() -> str:
    """Return the whole page."""
    rows = sorted([*map(_checked, RULES.values()), *map(_unchecked, UNCHECKED)], key=lambda row: row[0])
    counts = f"{len(RULES)} rules, {sum(not one.later for one in UNCHECKED)} clauses that cannot be seen, "
    counts += f"{sum(one.later for one in UNCHECKED)} not checked yet.\n\n"
    return _INTRODUCTION + counts + _HEAD + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _checked(rule: Rule) -> tuple[str, ...]:
    return (*_clause(rule), f"`{rule.name}`{' (probe)' if rule in PROBE_RULES else ''}")


def _unchecked(clause: Unchecked) -> tuple[str, ...]:
    return (*_clause(clause), f"{'not yet' if clause.later else 'cannot be seen'}: {clause.why}")


def _clause(clause: Rule | Unchecked) -> tuple[str, ...]:
    return clause.clause, clause.revisions, clause.sentence.replace("|", "\\|"), clause.strength.value


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
