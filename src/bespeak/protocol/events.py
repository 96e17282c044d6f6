"""Event streams: one JSON-RPC message an event, written and read."""

from collections.abc import Iterator

KEEP_ALIVE = b":\r\n\r\n"
"""A comment: whatever lies between the two ends sees that the stream lives."""

LONGEST_ID = 1024
LONGEST_RETRY = 9
"""Digits of the longest pause, in milliseconds, that is listened to."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class EventTooLong(ValueError):
    """An event exceeds what its reader is willing to hold."""


def write_event(message: bytes, id_: str | None = None) -> bytes:
    """A message as an event. JSON as it is written here has no line breaks."""
    named = b"" if id_ is None else b"id: " + id_.encode() + b"\r\n"
    return named + b"event: message\r\ndata: " + message + b"\r\n\r\n"


def write_first_event(id_: str, retry_ms: int | None) -> bytes:
    """An event without a message: from here on a reader can come back for the rest."""
    pause = b"" if retry_ms is None else b"retry: %d\r\n" % retry_ms
    return b"id: " + id_.encode() + b"\r\n" + pause + b"data:\r\n\r\n"


class EventReader:
    """Finds the messages in a stream that arrives in pieces."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pieces: list[bytes] = []
        self._held = 0
        self._data: list[bytes] = []
        self._length = 0
        self._kind = b""
        self._after_return = False
        self._first = True
        self._id: str | None = None
        self.last_id: str | None = None
        """Where to go on reading if the stream breaks off; `None` if it does not say."""
        self.retry_ms: int | None = None
        """How long to wait before that."""

    def again(self) -> None:
        """The same stream comes over another connection: what had begun on the old one does not go on."""
        self._pieces, self._held, self._data, self._length, self._kind = [], 0, [], 0, b""
        self._after_return, self._first, self._id = False, True, self.last_id

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """The data of each event that this piece completes. Raises `EventTooLong`."""
        if not piece:
            return
        # A line may end in CR, LF, or both, and the two may come in different pieces.
        if self._after_return:
            piece = piece.removeprefix(b"\n")
        self._after_return = piece.endswith(b"\r")
        lines = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        for line in lines[:-1]:
            self._hold(line)
            whole = b"".join(self._pieces)
            self._pieces, self._held = [], 0
            yield from self._line(whole)
        self._hold(lines[-1])

    def _hold(self, part: bytes) -> None:
        self._pieces.append(part)
        self._held += len(part)
        if self._held + self._length > self._limit:
            raise EventTooLong

    def _line(self, line: bytes) -> Iterator[bytes]:
        if self._first:
            line, self._first = line.removeprefix(_BYTE_ORDER_MARK), False
        if not line:
            data, kind = self._data, self._kind
            self._data, self._length, self._kind = [], 0, b""
            self.last_id = self._id
            if data and kind in (b"", b"message"):
                yield b"\n".join(data)
            return
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
            self._length += len(value) + 1
        elif name == b"event":
            self._kind = value
        elif name == b"id" and b"\0" not in value and len(value) <= LONGEST_ID:
            self._id = value.decode(errors="replace") or None
        elif name == b"retry" and value.isdigit() and len(value) <= LONGEST_RETRY:
            self.retry_ms = int(value)
