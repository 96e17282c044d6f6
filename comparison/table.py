"""The rows of the comparison, and the page that they make."""

from collections.abc import Mapping
from dataclasses import dataclass

FRAMEWORKS = {"bespeak": "Bespeak", "mcp": "official SDK", "fastmcp": "FastMCP"}


@dataclass(frozen=True, slots=True)
class Measured:
    """What one framework did in one situation."""

    good: bool
    says: str


ROWS = {
    "sent_value": "A client sends a value for a parameter that the server fills in",
    "forgotten_marker": "A parameter takes the outcome of a question (`ElicitationResult`), and its marker was forgotten (1)",
    "misspelt_argument": "A function that fills in a parameter misspells the argument it needs",
    "repeated_approval": "An approved request is sent twelve times at once (2)",
    "two_workers": "Two servers share keys (Bespeak: and a store); an approval is sent to both (2)",
    "moved_price": "The price in the question changes before the answer arrives (3)",
    "kept_answer": "A later call is answered with the answer kept from an earlier one (3)",
    "unasked_answer": "A call begins with an answer to what it has not asked yet",
    "both_eras": "One tool that asks, for clients of 2026-07-28 and of 2025-11-25",
    "independent_lookups": "Two independent lookups of 200 ms each",
    "client_sign_in": "Signing a client in (OAuth)",
    "tasks": "The Tasks extension",
    "releases": "Version, and Pythons it can be installed on",
}
"""The programs in `comparison/rows`, in the order of the page."""

Table = Mapping[str, Mapping[str, Measured]]
"""What was measured, by row and framework."""

_BEFORE = """# Comparison

What Bespeak, the official Python SDK and FastMCP do in the same situations. `make comparison` runs one small program for each
row with each framework, in an environment of its own, and writes this page. The programs are in `comparison/rows`; run one
with `.venv/bin/python -m comparison.rows.moved_price bespeak`. A cell in bold is what we would wish for; that is our
judgement.

"""
_AFTER = """
1. FastMCP does not inject outcomes of questions. Its program has an `AcceptedElicitation` parameter whose `Depends(...)` was
   forgotten.
2. The protocol leaves it to servers whether an approval can be used twice. A tool of any framework can keep a record of its
   own.
3. At 2026-07-28, a FastMCP tool returns its questions and reads the answers itself. The program does that in the simplest
   way. A tool that needs more can carry the price in `request_state` and compare it.

FastMCP is the newest version whose requirements could be installed when this page was written, not the newest there is.

## What the table does not show

* **Maturity.** The official SDK and FastMCP have had many releases, and many servers use them. Bespeak is new: it has no
  release yet, and its public names may change.
* **Ecosystem.** The official SDK is maintained with the protocol itself. FastMCP can also make servers from OpenAPI
  descriptions, act as a proxy, and transform tools. Bespeak does none of this.
* **Speed.** [How fast it is](speed.md) has the figures of one machine, and the goals that are not reached. `make bench`
  measures all three on yours.
"""


def page(table: Table) -> str:
    """Return the page."""
    lines = [f"| | {' | '.join(FRAMEWORKS.values())} |", "|---|---|---|---|"]
    for row, situation in ROWS.items():
        cells = [
            f"**{one.says}**" if one.good else one.says for one in (table[row][framework] for framework in FRAMEWORKS)
        ]
        lines.append(f"| {situation} | {' | '.join(cells)} |")
    return _BEFORE + "\n".join(lines) + "\n" + _AFTER
