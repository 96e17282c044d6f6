"""Output whose reader has gone away."""

import os
from collections.abc import Generator
from typing import TextIO

import pytest

from bespeak.terminal.closed_pipes import flush


@pytest.fixture
def unread() -> Generator[TextIO]:
    """A pipe that nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as stream:
        yield stream


def test_what_nobody_reads_is_thrown_away_without_a_complaint(unread: TextIO) -> None:
    unread.write("first")
    assert not flush(unread)
    unread.write("second")
    assert flush(unread)  # and closing it does not fail either


def test_what_is_read_is_written() -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as stream:
        stream.write("first")
        assert flush(stream)
        assert os.read(reading, 9) == b"first"
    os.close(reading)
