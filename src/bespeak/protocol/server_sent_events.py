"""Server-sent events: writing and reading streams of JSON-RPC messages, one message per event."""

from collections.abc import Iterator

KEEP_ALIVE = b":\r\n\r\n"
"""A comment line, sent so that proxies do not take the stream for dead."""

LONGEST_ID = 1024
LONGEST_RETRY = 9
"""Digits of the longest `retry` value, in milliseconds, that is read."""
LONGEST_NAME = len("event")
"""Length of the longest field name that is read."""
SLICE_BYTES = 16 * 1024
"""How much of a chunk is split into lines at a time."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class EventTooLong(ValueError):
    """An event is longer than the reader's limit."""


def write_event(message: bytes, id_: str | None = None) -> bytes:
    """Write a message as an event. The JSON of our messages contains no line breaks."""
    named = b"" if id_ is None else b"id: " + id_.encode() + b"\r\n"
    return named + b"event: message\r\ndata: " + message + b"\r\n\r\n"


def write_first_event(id_: str, retry_ms: int | None) -> bytes:
    """Write an event without a message. Its id lets a reader resume the stream from here."""
    pause = b"" if retry_ms is None else b"retry: %d\r\n" % retry_ms
    return b"id: " + id_.encode() + b"\r\n" + pause + b"data:\r\n\r\n"


class EventReader:
    """Reads the messages of a stream that arrives in chunks. Holds at most about twice the length of an event."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held = bytearray()
        """The beginning of a line that is not complete yet."""
        self._data: bytearray | None = None
        self._of_another_kind = False
        self._after_return = False
        self._first = True
        self._id: str | None = None
        self.last_id: str | None = None
        """The id from which to resume if the stream breaks off; `None` if the stream has none."""
        self.retry_ms: int | None = None
        """How long to wait before resuming."""

    def restart(self) -> None:
        """Prepare to read the same stream from a new connection: drop an event that was not complete."""
        self._held, self._data, self._of_another_kind = bytearray(), None, False
        self._after_return, self._first, self._id = False, True, self.last_id

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Yield the data of each event that this chunk completes. Raises `EventTooLong`."""
        # A decompressed chunk may be long, and splitting it at once would take many times its size.
        for start in range(0, len(piece), SLICE_BYTES):
            yield from self._slice(piece[start : start + SLICE_BYTES])

    def _slice(self, piece: bytes) -> Iterator[bytes]:
        # A line may end in CR, LF, or both, and the two may arrive in different chunks.
        if self._after_return:
            piece = piece.removeprefix(b"\n")
        self._after_return = piece.endswith(b"\r")
        *lines, rest = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        for line in lines:
            self._check_room(len(line))
            if not self._held:
                yield from self._line(line)
                continue
            self._held += line
            whole, self._held = self._held, bytearray()
            yield from self._line(whole)
            del whole
        self._check_room(len(rest))
        self._held += rest

    def _check_room(self, more: int) -> None:
        data = 0 if self._data is None else len(self._data) + 1
        if len(self._held) + more + data > self._limit:
            raise EventTooLong

    def _line(self, line: bytes | bytearray) -> Iterator[bytes]:
        if self._first:
            self._first = False
            if line.startswith(_BYTE_ORDER_MARK):
                line = line[len(_BYTE_ORDER_MARK) :]
        if not line:
            data = None if self._data is None or self._of_another_kind else bytes(self._data)
            self._data, self._of_another_kind = None, False
            self.last_id = self._id
            if data is not None:
                yield data
            return
        colon = line.find(b":", 0, LONGEST_NAME + 1)
        name = bytes(line[: LONGEST_NAME + 1 if colon < 0 else colon])
        start = len(line) if colon < 0 else colon + (2 if line[colon + 1 : colon + 2] == b" " else 1)
        if name == b"data":
            self._add(line, start)
        elif name == b"event":
            self._of_another_kind = line[start:] not in (b"", b"message")
        elif name == b"id" and b"\0" not in line and len(line) - start <= LONGEST_ID:
            self._id = line[start:].decode(errors="replace") or None
        elif name == b"retry" and len(line) - start <= LONGEST_RETRY and line[start:].isdigit():
            self.retry_ms = int(line[start:])

    def _add(self, line: bytes | bytearray, start: int) -> None:
        if self._data is None:
            self._data = bytearray()
        else:
            self._data += b"\n"
        with memoryview(line) as view:
            self._data += view[start:]
