"""The results as tables, and the page of the documentation that shows them."""

from collections.abc import Mapping, Sequence

from conformance.expected import CHECKS, PARSERS, REVISIONS
from conformance.results import NOT_RUN, Outcome

BEGIN = "<!-- written by `make conformance`; changes by hand are lost -->"
END = "<!-- end of what `make conformance` writes -->"

ServerOutcomes = Mapping[tuple[str, str], Mapping[str, Outcome]]
"""Outcomes by scenario, for each revision and parser."""
ClientOutcomes = Mapping[str, Mapping[str, Outcome]]
"""Outcomes by scenario, for each revision."""


def tables(server: ServerOutcomes, client: ClientOutcomes) -> str:
    """Return the tables of both sides."""
    columns = [(revision, parser) for revision in REVISIONS for parser in PARSERS]
    of_server = _table(
        [f"{revision}, {parser}" for revision, parser in columns],
        [CHECKS["server", revision] for revision, _ in columns],
        [server.get(column, {}) for column in columns],
    )
    of_client = _table(
        list(REVISIONS),
        [CHECKS["client", revision] for revision in REVISIONS],
        [client.get(revision, {}) for revision in REVISIONS],
    )
    return f"### Server\n\n{of_server}\n\n### Client\n\n{of_client}"


def written(page: str, content: str) -> str:
    """Return a page with its generated part replaced. Raises `ValueError` if the page has none."""
    before, begin, rest = page.partition(f"{BEGIN}\n")
    _, end, after = rest.partition(f"\n{END}")
    if not begin or not end:
        raise ValueError(f"the page must contain the lines {BEGIN} and {END}")
    return f"{before}{begin}\n{content}\n{end}{after}"


def _table(titles: Sequence[str], expected: Sequence[Mapping[str, int]], found: Sequence[Mapping[str, Outcome]]) -> str:
    """Return one row for each scenario and one column for each run, with the checks passed out of those there are."""
    rows = [["scenario", *titles], ["---"] * (1 + len(titles))]
    for scenario in dict.fromkeys(scenario for checks in expected for scenario in checks):
        cells = [
            _cell(results.get(scenario, NOT_RUN), checks[scenario]) if scenario in checks else "-"
            for checks, results in zip(expected, found, strict=True)
        ]
        rows.append([f"`{scenario}`", *cells])
    totals = [
        f"**{sum(results.get(name, NOT_RUN).passed for name in checks)} of {sum(checks.values())}**"
        for checks, results in zip(expected, found, strict=True)
    ]
    rows.append(["**all**", *totals])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _cell(outcome: Outcome, expected: int) -> str:
    counted = f"{outcome.passed} of {max(expected, outcome.checks)}"
    return f"**failed**, {counted}" if outcome.shortfalls(expected) else counted
