"""The listing of all messages: it has what users read, each with its place, and the messages are in plain English."""

import re
from pathlib import Path

import pytest
from scripts.messages import all_messages, main, messages_of

RIDDLE = re.compile(r"(?<![Tt]here )\b(is|are) (no (?!longer\b)\w|none\b)")
"""'X is no Y' and 'X is none', where plain English has 'X is not a Y'.."""

MODULE = '''
"""About the module."""
import logging

LIMIT = 3
"""What the limit is."""
_HIDDEN = 4
"""What is hidden."""


class Public:
    """About the class."""

    def method(self, name: "dict[str, int]") -> None:
        """About the method."""
        raise ValueError(f"{name!r} is wrong: " f"{len(name)} of {LIMIT}" + " at most")

    def _private(self) -> None:
        """About something private."""
        logging.warning("one two %s", 3)


def command(port: Annotated[int, Option("--port", help="The port.")] = 1) -> None:
    """About the command.

    At length.
    """
    x = cast("dict[str, int]", {"key": "a value"})
'''


def test_a_listing_has_texts_help_and_public_docstrings(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text(MODULE)
    assert [message.text for message in messages_of(file)] == [
        "About the module.",
        "What the limit is.",
        "About the class.",
        "About the method.",
        "{name} is wrong: {len(name)} of {LIMIT} at most",
        "one two %s",
        "The port.",
        "About the command.\n\nAt length.",
        "a value",
    ]


def test_each_message_is_printed_with_its_file_and_line(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text(MODULE)
    first, *_, command, _ = messages_of(file)
    assert str(first) == f"{file}:2: About the module."
    assert str(command) == f"{file}:24: About the command.\n\n    At length."


@pytest.mark.long
def test_the_program_prints_every_message_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    main()
    printed = capsys.readouterr().out
    assert printed == "".join(f"{message}\n" for message in all_messages())
    assert "src/bespeak/__init__.py:1: MCP servers whose tools" in printed


@pytest.mark.long
def test_messages_say_is_not_a_and_never_is_no() -> None:
    assert [str(message) for message in all_messages() if RIDDLE.search(" ".join(message.text.split()))] == []
