"""The page about errors shows what is really said: each mistake on it is made, and the message compared."""

import re
from pathlib import Path

import pytest

from tests.mistakes import calling, clients, commands, registering, serving
from tests.mistakes.mistake import Mistake, message

PAGE = (Path(__file__).parent.parent / "docs" / "reference" / "errors.md").read_text()
TABLES: list[dict[str, Mistake]] = [one.MISTAKES for one in (registering, calling, commands, serving, clients)]
MISTAKES: dict[str, Mistake] = {heading: mistake for table in TABLES for heading, mistake in table.items()}
ENTRY = re.compile(r"^### ([^\n]+)\n\n```text\n(.*?)^```\n\n(\S.*?)(?=\n\n###? |\Z)", re.DOTALL | re.MULTILINE)
ENTRIES: dict[str, str] = {heading: shown for heading, shown, _ in ENTRY.findall(PAGE)}


def test_the_page_has_every_mistake_and_no_other() -> None:
    assert len(MISTAKES) == sum(map(len, TABLES))
    assert set(ENTRIES) == set(re.findall(r"^### (.+)$", PAGE, re.MULTILINE)) == set(MISTAKES)


@pytest.mark.timing
@pytest.mark.parametrize("heading", MISTAKES)
def test_a_mistake_is_answered_with_the_message_of_the_page(
    heading: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = [line.strip() for line in message(MISTAKES[heading], tmp_path, monkeypatch).splitlines()]
    for shown in ENTRIES[heading].splitlines():
        pattern = ".+?".join(map(re.escape, shown.strip().split("...")))
        found = [number for number, line in enumerate(said) if re.fullmatch(pattern, line)]
        assert found, (shown, said)
        del said[: found[0] + 1]
