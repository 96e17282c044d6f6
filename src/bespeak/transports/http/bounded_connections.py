"""One connection within its bounds: what is expected of its client, why it is refused, and how it ends.

Knows no HTTP server: what it needs of one is a `RequestHandler`.
"""

import asyncio
from typing import Literal, Protocol

from bespeak.transports.http.client_addresses import ClientAddresses
from bespeak.transports.http.connection_limits import Connections
from bespeak.transports.http.framing import HEAD_BYTES, Framing
from bespeak.transports.http.refusals import Refusal

LINGER_BYTES = 16 * 1024 * 1024
"""How much of what a refused client still sends is thrown away before it is cut off."""

HEAD_TOO_LONG = Refusal(431, f"the head of the request is longer than {HEAD_BYTES} bytes")
LATE_HEAD = Refusal(408, "the head of the request did not arrive in time")
LATE_BODY = Refusal(408, "the body of the request did not arrive in time")


class RequestHandler(Protocol):
    """The part of an HTTP server that parses the requests of one connection and has an app answer them."""

    def parse(self, data: bytes) -> None:
        """Take what has arrived."""
        ...

    def in_request(self) -> bool:
        """Whether the parser is in the middle of a request, if it tells."""
        ...

    def busy(self) -> bool:
        """Whether a request is under way."""
        ...

    def has_whole_body(self) -> bool:
        """Whether all of the request under way has arrived."""
        ...

    def is_responding(self) -> bool:
        """Whether the response to the request under way has begun."""
        ...

    def waits_for_next(self) -> bool:
        """Whether the last response has been sent, and the next request has not begun."""
        ...

    def reading_paused(self) -> bool:
        """Whether nothing is read from the client."""
        ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def lose_client(self) -> None:
        """Tell the app that the client of the request under way is gone."""
        ...

    def close_after_response(self) -> None:
        """Close the connection when the request under way has its response."""
        ...

    def mute(self) -> None:
        """Let nothing more be written: the app may still be at it."""
        ...


class BoundedConnection:
    """A connection as the table of connections knows it. Bytes and events come in; the transport and the handler are told."""

    __slots__ = (
        "_discarded",
        "_ending",
        "_expected",
        "_handler",
        "_lost",
        "_malformed",
        "_refusal",
        "_stopping",
        "_table",
        "_transport",
        "address",
        "deaf",
        "framing",
        "silent",
    )

    def __init__(self, transport: asyncio.Transport, handler: RequestHandler, table: Connections) -> None:
        self._transport = transport
        self._handler = handler
        self._table = table
        self.address: str | None = None
        self.silent = True
        self.deaf = False
        """Whether what the client sends is thrown away."""
        self.framing: Framing | None = None
        """Where a request that comes in pieces has got to."""
        self._expected: Literal["request", "head", "body"] | None = "request"
        self._refusal: Refusal | None = None
        """What is still to be sent to the client before the connection ends."""
        self._ending = False
        """Whether the connection is only there for the client to read what it was told."""
        self._lost = False
        self._stopping = False
        self._malformed = False
        """Whether the parser gave up: then it is not known what the client is still sending."""
        self._discarded = 0

    # What the HTTP server calls

    def begin(self, host: str | None, addresses: ClientAddresses) -> None:
        """Called when the connection is made, with the address of its other end."""
        self.address = None if addresses.is_proxy(host) else addresses.of_peer(host)
        refusal = self._table.admit(self)
        if refusal is not None:  # told when the client speaks: not every client listens before
            self._refusal = refusal
            self._linger()

    def lose(self) -> None:
        """Called when the connection is lost."""
        self._lost = True
        self._table.leave(self)

    def forget(self) -> None:
        """Let go of the handler of a lost connection, so that both are freed at once."""
        del self._handler

    def stalled(self) -> None:
        """Called when the client does not read as fast as it is written to."""
        self._table.stalled(self)

    def flowing(self) -> None:
        """Called when it has caught up."""
        self._table.flowing(self)

    def malformed(self) -> None:
        """Called when the parser gives up."""
        self._malformed = True

    def stop(self) -> bool:
        """Called when the server stops. Returns whether a request may still be under way."""
        self._stopping = True
        if self._ending:
            self.hang_up()
            return False
        return True

    def finish(self) -> None:
        """Called when the server closes the connection."""
        if self._ending or self._lost:
            return
        if self._refusal is not None or ((self._malformed or self._unfinished()) and not self._stopping):
            self._tell()
            return
        self._transport.close()
        if self._transport.get_write_buffer_size():
            self._table.stalled(self)

    def must_read_first(self) -> bool:
        """Whether the client is to read its responses before it asks for more."""
        return self._table.must_wait(self)

    # What arrives

    def receive(self, data: bytes) -> None:
        """Have data parsed that may be part of a head too long, and follow it."""
        framing = self.framing
        if framing is None:
            framing = self.framing = Framing()
        fine = framing.feed(data)
        if fine < len(data):
            self._too_long(data[:fine])
            return
        self._handler.parse(data)
        if self.deaf or self._lost:
            return
        if not self._unfinished():
            self.framing = None
        self._follow(framing)

    def follow_up(self, data: bytes) -> None:
        """Follow data that has been parsed and was not a whole request."""
        if self.deaf or self._lost:
            return
        framing = self.framing = Framing()
        framing.feed(data)
        self._follow(framing)

    def arrived(self) -> None:
        """A whole request has arrived, and nothing more."""
        if self._expected is not None:
            self.silent, self._expected = False, None
            self._table.received(self)

    def discard(self, data: bytes) -> None:
        """Throw data away that nobody listens to any more."""
        if self._refusal is not None and self._ending:
            self._say()
        self._discarded += len(data)
        if self._discarded > LINGER_BYTES:
            self._transport.abort()

    def _unfinished(self) -> bool:
        """Whether the client is in the middle of a request."""
        framing = self.framing
        return self._handler.in_request() or (framing is not None and (framing.in_head or framing.in_body))

    def _follow(self, framing: Framing) -> None:
        """Wait for the rest of what has begun to arrive."""
        if framing.in_body:
            self.silent = False
            if self._expected != "body":
                self._expected = "body"
                self._table.expect_body(self)
        elif framing.in_head or not self._handler.busy():
            if self._expected != "head":
                self._expected = "head"
                self._table.expect_head(self)
        else:
            self.arrived()

    # What the table calls

    def idle(self) -> bool:
        return self._handler.waits_for_next() and self._expected is None

    def overdue(self) -> None:
        handler = self._handler
        if self._expected == "request":
            self._transport.close()
        elif self._expected == "head":
            if handler.busy():  # with what came before: it gets its response first
                self._table.expect_head(self)
            else:
                self._refuse(LATE_HEAD)
        elif handler.reading_paused():  # it is the app that does not read
            self._table.expect_body(self)
        elif handler.busy() and not handler.is_responding():
            self._refuse(LATE_BODY)
        else:
            self.abort()

    def turn_out(self, refusal: Refusal) -> None:
        if self._expected == "head":
            self._refuse(refusal)
        else:  # there is nothing to be answered, unless a request is on its way
            self._refusal = refusal
            self._linger()

    def unread(self) -> int:
        return self._transport.get_write_buffer_size()

    def abort(self) -> None:
        self._transport.abort()

    def hang_up(self) -> None:
        if self._refusal is not None and self._expected is not None:  # an idle client does not ask
            self._say()
        if self._transport.get_write_buffer_size():
            self._transport.abort()
        else:
            self._transport.close()

    # Refusing

    def _too_long(self, before: bytes) -> None:
        if before:  # requests of their own, perhaps
            self._handler.parse(before)
        if not self._ending:
            self._refuse(HEAD_TOO_LONG)

    def _refuse(self, refusal: Refusal) -> None:
        """End the connection, as soon as what came before has its response."""
        self._refusal = refusal
        handler = self._handler
        if handler.busy():
            if not handler.has_whole_body() and not handler.is_responding():
                handler.lose_client()
            else:
                handler.close_after_response()
                self.deaf = True
                handler.pause_reading()
                return
        self._tell()

    def _tell(self) -> None:
        """Send the reason, and wait for the client to read it: closing at once would reset the connection while it still sends."""
        if self._refusal is not None:
            self._say()
        self._linger()

    def _say(self) -> None:
        refusal, self._refusal = self._refusal, None
        if refusal is not None:
            self._transport.write(refusal.written())
        if self._transport.can_write_eof():
            self._transport.write_eof()

    def _linger(self) -> None:
        self._ending = self.deaf = True
        self._handler.mute()
        if self._refusal is None and self._transport.can_write_eof():
            self._transport.write_eof()
        self._handler.resume_reading()
        self._table.linger(self)
