"""The line in which uvicorn says where it listens, with the path of the MCP endpoint: clients need the whole URL."""

import contextlib
import logging
from collections.abc import Generator

_BEGINNING = "Uvicorn running on "
_PORT = ":%d"
_COLOURED = "color_message"
"""What uvicorn logs at a terminal instead of the message."""


class EndpointLine(logging.Filter):
    """Adds the path to the line. A socket file has no URL; a line that uvicorn words differently stays as it is."""

    def __init__(self, log: logging.Logger, path: str) -> None:
        super().__init__()
        self._log = log
        self._port = _PORT + path.replace("%", "%%")

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.msg, str) and record.msg.startswith(_BEGINNING):
            record.msg = record.msg.replace(_PORT, self._port)
            coloured: object = record.__dict__.get(_COLOURED)
            if isinstance(coloured, str):
                record.__dict__[_COLOURED] = coloured.replace(_PORT, self._port)
        return True

    @contextlib.contextmanager
    def shown(self) -> Generator[None]:
        """Add the path to what is logged in the block."""
        self._log.addFilter(self)
        try:
            yield
        finally:
            self._log.removeFilter(self)
