"""Finds where the heads and bodies of HTTP/1.1 requests begin and end in a stream of bytes.

The parser does not report how long a head was, or how much of the next one has arrived. The parser refuses malformed
requests; here they only must not do any harm.
"""

import re

HEAD_BYTES = 64 * 1024
"""The maximum length of a head, from its first line to the empty line, and of the trailer of a chunked body."""

_BLANK_LINE = re.compile(rb"\n\r?\n")
_SOMETHING = re.compile(rb"[^\r\n]")
_LENGTH = re.compile(rb"\ncontent-length:[ \t]*([0-9]{1,18})[ \t]*\r?\n", re.IGNORECASE)
_CHUNKED = re.compile(rb"\ntransfer-encoding:", re.IGNORECASE)
_CHUNK_SIZE = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,16})")


class Framing:
    """Follows the bytes of one connection, in pieces of any size."""

    def __init__(self, head_bytes: int = HEAD_BYTES) -> None:
        self._most = head_bytes
        self._head = bytearray()
        self._rest = 0
        """What is still to come of a body, or of a chunk and its line break."""
        self._chunked = False
        self._trailer: int | None = None
        """The bytes of the trailer so far, once the last chunk has come."""
        self._line = b""
        self.heads = 0
        """How many heads have come to their end."""

    @property
    def in_head(self) -> bool:
        return bool(self._head)

    @property
    def in_body(self) -> bool:
        return self._chunked or self._rest > 0

    def feed(self, data: bytes) -> int:
        """Follow more bytes. Returns how many are accepted: all, or those before a head or trailer that is too long."""
        place, end = 0, len(data)
        while place < end:
            before = place
            if self._rest:
                step = min(self._rest, end - place)
                self._rest -= step
                place += step
            elif self._chunked:
                place = self._chunk_line(data, place)
                if (self._trailer or 0) + len(self._line) > self._most:
                    return before
            else:
                place = self._head_line(data, place)
                if len(self._head) > self._most:
                    return before
        return end

    def _head_line(self, data: bytes, place: int) -> int:
        """Take the rest of a head, or what there is of it; one that is too long stays, for all to see."""
        if not self._head:
            begins = _SOMETHING.search(data, place)
            if begins is None:  # empty lines before a request are nothing
                return len(data)
            place = begins.start()
            found = _BLANK_LINE.search(data, place)
            head = data[place : found.end()] if found else data[place:]
            if found is None or len(head) > self._most:
                self._head += head
                return len(data)
            self._ended(head)
            return found.end()
        before = len(self._head)
        self._head += data  # nothing stands before the rest of a head
        found = _BLANK_LINE.search(self._head, max(0, before - 2))
        if found is None or found.end() > self._most:
            return len(data)
        head = bytes(self._head[: found.end()])
        self._head.clear()
        self._ended(head)
        return found.end() - before

    def _ended(self, head: bytes) -> None:
        self.heads += 1
        if _CHUNKED.search(head):
            self._chunked = True
        elif length := _LENGTH.search(head):
            self._rest = int(length[1])

    def _chunk_line(self, data: bytes, place: int) -> int:
        """Take a line between chunks: the size of the next one, or a line of the trailer."""
        newline = data.find(b"\n", place)
        if newline < 0:
            self._line += data[place:]
            return len(data)
        line, self._line = self._line + data[place : newline + 1], b""
        if self._trailer is not None:
            self._trailer += len(line)
            if not line.strip():
                self._chunked, self._trailer = False, None
        elif size := _CHUNK_SIZE.match(line):
            self._rest = int(size[1], 16)
            if self._rest:
                self._rest += 2
            else:
                self._trailer = 0
        return newline + 1
