"""Very short values of the environment: they are in no report, and a note says why words look odd."""

from pathlib import Path

import pytest

from bespeak.testing.run_options import Options
from bespeak.testing.runner import Runner
from bespeak.testing.suite.loader import load_suite
from bespeak.testing.suite.plan import items_of

SUITE = """version: 1
servers: {desk: {command: [nobody-has-this, "${env:M}", "${env:LONG}", "${env:EMPTY}"]}}
tests:
  - {name: a, tool: x}
  - {name: b, tool: x}
"""


async def test_a_very_short_value_is_redacted_and_noted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"M": "e", "LONG": "quite long", "EMPTY": ""}.items():
        monkeypatch.setenv(name, value)
    path = tmp_path / "desk.bespeak.yaml"
    path.write_text(SUITE)
    runner = Runner(Options(start=tmp_path))
    results = [await runner.run(item) for item in items_of(load_suite(path))]
    await runner.close()
    assert "th${env:M}r${env:M}" in results[0].failures[0].message
    assert runner.notes() == [
        "desk.bespeak.yaml:2: the value of ${env:M} is shorter than 4 characters, so it is redacted within other words, "
        "too, and the reports are hard to read"
    ]
