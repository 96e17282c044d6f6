"""Messages that the documents quote are messages of the package, word for word."""

import re
from functools import cache
from pathlib import Path

import pytest
from scripts.messages import all_messages

ROOT = Path(__file__).parent.parent
STOPPING = (ROOT / "docs" / "stopping.md").read_text()
LOGGED = [
    line
    for block in re.findall(r"^```text\n(.*?)^```$", STOPPING, re.DOTALL | re.MULTILINE)
    for line in block.splitlines()
]
QUOTED = [
    ("docs/explanation/older-clients.md", "Waiting for an answer"),
    ("docs/consent.md", "nobody answered within 600 s"),
    ("docs/deployment.md", "State keys outlive this run, its ledger does not; give --store"),
    (
        "docs/testing.md",
        "the name 'city' fits several open questions: 'city~1a2b3c4d', 'city~5e6f7a8b'; write the whole key",
    ),
]
PLACEHOLDER = re.compile(r"%[-.\d]*[a-z]|\{[^{}]*\}")
FEWEST = 12
"""Letters that a message must have beside what is filled in, so that it does not match everything."""


@cache
def patterns() -> list[re.Pattern[str]]:
    """Return each message of the package as a pattern, with anything in place of what is filled in."""
    texts = [" ".join(message.text.split()) for message in all_messages()]
    parts = [PLACEHOLDER.split(text) for text in texts]
    return [re.compile(".*".join(map(re.escape, part))) for part in parts if len("".join(part)) >= FEWEST]


@pytest.mark.parametrize("line", LOGGED)
@pytest.mark.long
def test_a_log_line_of_the_page_about_stopping_is_logged(line: str) -> None:
    assert any(pattern.fullmatch(line) for pattern in patterns())


@pytest.mark.parametrize(("document", "quoted"), QUOTED)
def test_a_message_that_is_quoted_exists(document: str, quoted: str) -> None:
    assert quoted in (ROOT / document).read_text()
    assert any(pattern.search(quoted) for pattern in patterns())


def test_the_page_about_stopping_quotes_the_log() -> None:
    assert len(LOGGED) == 6
