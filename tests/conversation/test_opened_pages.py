"""`notifications/elicitation/complete`: which pages a server of 2025-11-25 may report as opened."""

from pathlib import Path
from typing import Any

import pytest

from tests.conversation.raw_runs import held
from tests.conversation.raw_servers import NOVEMBER, Raw, done, failed, note

OLD = {"resultType": ...}
PAGES = {"elicitations": [{"mode": "url", "elicitationId": "7", "url": "https://x.example", "message": "Open"}]}
TEST = "tool: x, expect: {error: {code: -32042}}, verify: {tool: x}"


@pytest.mark.parametrize(
    ("page", "rules"), [("7", []), ("8", ["elicitation-complete"]), ({}, ["elicitation-complete"])]
)
async def test_a_page_that_an_error_named_was_asked_for(page: Any, rules: list[str], tmp_path: Path) -> None:
    complete = note("elicitation/complete", elicitationId=page)
    raw = Raw([[failed(-32042, data=PAGES)], [complete, done(**OLD)]], revision=NOVEMBER, test=TEST)
    assert [one.rule for one in (await held(raw, tmp_path)).failures] == rules
