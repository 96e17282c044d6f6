"""A connection of uvicorn with httptools, the fast parser, within the bounds of `uvicorn_connections`.

A module of its own because httptools is not installed everywhere.
"""

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from bespeak.transports.http.framing import HEAD_BYTES, Framing
from bespeak.transports.http.uvicorn_connections import BoundedConnection


class HttptoolsConnection(BoundedConnection, HttpToolsProtocol):
    """Follows what arrives only where a request comes in pieces."""

    _between = True
    """Whether the parser is between two requests."""

    def data_received(self, data: bytes) -> None:
        if self._deaf:
            return self._discard(data)
        if self._table.pressed:
            self._choose_app()
        framing = self._framing
        if framing is None:
            if len(data) <= HEAD_BYTES:  # so is every head in it
                super().data_received(data)
                if self._between and self._busy():
                    return self._arrived() if self._expected else None
                if self._deaf or self._lost:
                    return None
                framing = self._framing = Framing()
                framing.feed(data)
                return self._follow(framing)
            framing = self._framing = Framing()
        fine = framing.feed(data)
        if fine < len(data):
            return self._too_long(data[:fine])
        super().data_received(data)
        if self._deaf or self._lost:
            return None
        if not self._unfinished():
            self._framing = None
        return self._follow(framing)

    def _unfinished(self) -> bool:
        return not self._between or super()._unfinished()

    def on_message_begin(self) -> None:
        self._between = False
        super().on_message_begin()

    def on_message_complete(self) -> None:
        self._between = True
        super().on_message_complete()
