"""uvicorn's fast HTTP parser with what it lacks: a bound on the head of a request, and an end to streams when it stops."""

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from bespeak.transports.ending_http import end_stream

HEAD_BYTES = 64 * 1024
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class LimitedHttp(HttpToolsProtocol):
    """Refuses a request whose head does not come to an end."""

    _head = 0
    _in_body = False
    _ended = False
    """Whether the last piece of data ended a head or a whole request."""

    def data_received(self, data: bytes) -> None:
        in_body, self._ended = self._in_body, False
        super().data_received(data)
        if in_body or self._ended:
            self._head = 0
            return
        self._head += len(data)
        transport: asyncio.Transport = self.transport
        if self._head > HEAD_BYTES and not transport.is_closing():
            transport.write(_TOO_LARGE)
            transport.close()

    def shutdown(self) -> None:
        super().shutdown()
        end_stream(self.scope)

    def on_headers_complete(self) -> None:
        self._in_body = self._ended = True
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_body, self._ended = False, True
        super().on_message_complete()
