"""Suite files for tests: a good one, what may be put into it, and what is said of a bad one."""

from pathlib import Path

import pytest

from bespeak.testing.suite.loader import BadSuite, Suite, load_suite

GOOD = """\
version: 1
servers:
  desk: {python: "desk:mcp"}
tests:
  - name: one
    tool: pay
"""
NEXT = GOOD.count("\n") + 1
"""The line after it, which is one of its test."""


def in_test(*lines: str) -> str:
    """The good suite with more lines in its test."""
    return GOOD + "".join(f"    {line}\n" for line in lines)


def with_server(written: str) -> str:
    """The good suite with another server."""
    return GOOD.replace('{python: "desk:mcp"}', written)


def load(folder: Path, text: str | bytes) -> Suite:
    """A suite, written to a file and read."""
    path = folder / "desk.bespeak.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return load_suite(path)


def refused(folder: Path, text: str | bytes) -> list[tuple[int, str]]:
    """What is wrong with a suite: lines and messages."""
    with pytest.raises(BadSuite) as caught:
        load(folder, text)
    return [(fault.line, fault.message) for fault in caught.value.faults]


def only_fault(folder: Path, text: str | bytes) -> tuple[int, str]:
    """The one thing that is wrong with a suite."""
    told = refused(folder, text)
    assert len(told) == 1, told
    return told[0]
