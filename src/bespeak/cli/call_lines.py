"""The log of calls on stderr: every call at a terminal, otherwise those that asked something, failed or took over a second."""

import logging
import sys

from bespeak.terminal.safe_text import marked

logger = logging.getLogger("bespeak.calls")


class _Line(logging.Formatter):
    """The time and the message. A client's text cannot control the terminal."""

    def format(self, record: logging.LogRecord) -> str:
        return marked(f"{self.formatTime(record, '%H:%M:%S')} {record.getMessage()}")


def show_calls(*, all_of_them: bool) -> None:
    """Print a line for each call from now on. An author who has configured logging gets the lines there instead."""
    if all_of_them:
        logger.setLevel(logging.DEBUG)
    if not logger.hasHandlers():
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(_Line())
        logger.addHandler(handler)
