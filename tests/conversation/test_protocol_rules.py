"""Each rule catches a raw server that breaks just it, names its clause, and lets a legal neighbour of that server pass.

protocol.md, clause by clause. The same table keeps every rule from being invented: the neighbour differs in one thing.
"""

from pathlib import Path

import pytest

from bespeak.conversation.protocol_rules import RULES
from bespeak.conversation.rule_types import Strength
from tests.conversation.broken_servers import SERVERS
from tests.conversation.raw_runs import held
from tests.conversation.raw_servers import Raw


async def found(raw: Raw, folder: Path) -> list[tuple[str | None, Strength, str]]:
    """All rules that a server breaks, with what is said."""
    result_ = await held(raw, folder)
    failures = [(one.rule, Strength.MUST, str(one)) for one in result_.failures]
    return failures + [(one.rule, Strength.ADVICE, str(one)) for one in result_.advice]


def test_every_rule_has_a_server_that_breaks_it() -> None:
    assert SERVERS.keys() == RULES.keys()


@pytest.mark.parametrize("rule", SERVERS)
async def test_a_server_that_breaks_a_rule_is_caught_with_its_clause(rule: str, tmp_path: Path) -> None:
    broken = await found(SERVERS[rule][0], tmp_path)
    assert {name for name, _, _ in broken} == {rule}
    for _, strength, text in broken:
        assert (strength is Strength.ADVICE) is (RULES[rule].strength is Strength.ADVICE)
        assert text.endswith(f"({rule}: {RULES[rule].sentence}; see {RULES[rule].clause})")


@pytest.mark.parametrize("rule", SERVERS)
async def test_a_legal_neighbour_of_a_broken_server_passes(rule: str, tmp_path: Path) -> None:
    assert await found(SERVERS[rule][1], tmp_path) == []
