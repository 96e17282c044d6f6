"""uvicorn's connections with what they lack: bounds on heads, bodies and unread output, refusals that a client can read, and
an end to streams when uvicorn stops.

Relies on the insides of uvicorn, as do `uvicorn_httptools` and `uvicorn_server`, and nothing else in this package.
"""

import asyncio
from typing import TYPE_CHECKING, Any, Literal, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from bespeak.transports.http.asgi import Receive, Scope, Send, end_stream
from bespeak.transports.http.client_addresses import ClientAddresses
from bespeak.transports.http.connection_limits import Connections
from bespeak.transports.http.framing import HEAD_BYTES, Framing
from bespeak.transports.http.refusals import Refusal, refuse

if TYPE_CHECKING:
    from uvicorn.config import Config
    from uvicorn.protocols.http.flow_control import FlowControl
    from uvicorn.server import ServerState

LINGER_BYTES = 16 * 1024 * 1024
"""How much of what a refused client still sends is thrown away before it is cut off."""

HEAD_TOO_LONG = Refusal(431, f"the head of the request is longer than {HEAD_BYTES} bytes")
LATE_HEAD = Refusal(408, "the head of the request did not arrive in time")
LATE_BODY = Refusal(408, "the body of the request did not arrive in time")
READ_FIRST = "clients at this address do not read their responses; read them, then try again"


class BoundedConnection(asyncio.Protocol):
    """The bounds on a connection, for both parsers: a mixin before uvicorn's own protocol class."""

    if TYPE_CHECKING:  # uvicorn's own, in both
        app: Any
        client: tuple[str, int] | None
        config: Config
        cycle: Any
        flow: FlowControl
        scope: Any
        timeout_keep_alive_task: asyncio.TimerHandle | None
        transport: asyncio.Transport

    address: str | None = None
    silent = True
    _raw: asyncio.Transport
    _table: Connections
    _addresses: ClientAddresses
    _framing: Framing | None = None
    _expected: Literal["request", "head", "body"] | None = "request"
    _refusal: Refusal | None = None
    """What is still to be sent to the client before the connection ends."""
    _deaf = False
    """Whether what the client sends is thrown away."""
    _ending = False
    """Whether the connection is only there for the client to read what it was told."""
    _lost = False
    _stopping = False
    _malformed = False
    """Whether the parser gave up: then it is not known what the client is still sending."""
    _discarded = 0

    def attach(self, table: Connections, addresses: ClientAddresses) -> None:
        """Set the table that this connection is counted in."""
        self._table, self._addresses = table, addresses

    # What the transport calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._raw = cast("asyncio.Transport", transport)
        super().connection_made(_UvicornTransport(self._raw, self))
        host = self.client[0] if self.client else None
        self.address = None if self._addresses.is_proxy(host) else self._addresses.of_peer(host)
        refusal = self._table.admit(self)
        if refusal is not None:  # told when the client speaks: not every client listens before
            self._refusal = refusal
            self._linger()

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = True
        self._table.leave(self)
        super().connection_lost(exc)
        cast("_UvicornTransport", self.transport).forget()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._table.stalled(self)

    def resume_writing(self) -> None:
        self._table.flowing(self)
        super().resume_writing()

    # What uvicorn calls

    def shutdown(self) -> None:
        """Called when uvicorn stops."""
        self._stopping = True
        if self._ending:
            return self.hang_up()
        cast("Any", super()).shutdown()
        return end_stream(self.scope)

    def send_400_response(self, msg: str) -> None:
        """Called when the parser gives up."""
        self._malformed = True
        cast("Any", super()).send_400_response(msg)

    def finish(self) -> None:
        """Called when uvicorn closes the connection."""
        if self._ending or self._lost:
            return
        if self._refusal is not None or ((self._malformed or self._unfinished()) and not self._stopping):
            self._tell()
            return
        self._raw.close()
        if self._raw.get_write_buffer_size():
            self._table.stalled(self)

    # What the table calls

    def idle(self) -> bool:
        return self.timeout_keep_alive_task is not None and self._expected is None

    def overdue(self) -> None:
        if self._expected == "request":
            self._raw.close()
        elif self._expected == "head":
            if self._busy():  # with what came before: it gets its response first
                self._table.expect_head(self)
            else:
                self._refuse(LATE_HEAD)
        elif self.flow.read_paused:  # it is the app that does not read
            self._table.expect_body(self)
        elif self._busy() and not self.cycle.response_started:
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
        return self._raw.get_write_buffer_size()

    def abort(self) -> None:
        self._raw.abort()

    def hang_up(self) -> None:
        if self._refusal is not None and self._expected is not None:  # an idle client does not ask
            self._say()
        if self._raw.get_write_buffer_size():
            self._raw.abort()
        else:
            self._raw.close()

    # Refusing

    def _too_long(self, before: bytes) -> None:
        if before:  # requests of their own, perhaps
            super().data_received(before)
        if not self._ending:
            self._refuse(HEAD_TOO_LONG)

    def _refuse(self, refusal: Refusal) -> None:
        """End the connection, as soon as what came before has its response."""
        self._refusal = refusal
        cycle = self.cycle
        if self._busy():
            if cycle.more_body and not cycle.response_started:
                cycle.disconnected = True
                cycle.message_event.set()
            else:
                cycle.keep_alive = False
                self._deaf = True
                self.flow.pause_reading()
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
            self._raw.write(refusal.written())
        if self._raw.can_write_eof():
            self._raw.write_eof()

    def _linger(self) -> None:
        self._ending = self._deaf = True
        cast("_UvicornTransport", self.transport).end()
        if self._refusal is None and self._raw.can_write_eof():
            self._raw.write_eof()
        self.flow.resume_reading()
        self._table.linger(self)

    def _discard(self, data: bytes) -> None:
        if self._refusal is not None and self._ending:
            self._say()
        self._discarded += len(data)
        if self._discarded > LINGER_BYTES:
            self._raw.abort()

    # What arrives

    def _busy(self) -> bool:
        """Whether a request is under way."""
        return self.cycle is not None and not self.cycle.response_complete

    def _unfinished(self) -> bool:
        """Whether the client is in the middle of a request."""
        framing = self._framing
        return framing is not None and (framing.in_head or framing.in_body)

    def _choose_app(self) -> None:
        self.app = _read_first if self._table.must_wait(self) else cast("Any", self.config).loaded_app

    def _follow(self, framing: Framing) -> None:
        """Wait for the rest of what has begun to arrive."""
        if framing.in_body:
            self.silent = False
            if self._expected != "body":
                self._expected = "body"
                self._table.expect_body(self)
        elif framing.in_head or not self._busy():
            if self._expected != "head":
                self._expected = "head"
                self._table.expect_head(self)
        else:
            self._arrived()

    def _arrived(self) -> None:
        """A whole request has arrived, and nothing more."""
        self.silent, self._expected = False, None
        self._table.received(self)


class _UvicornTransport(asyncio.Transport):
    """A transport as uvicorn sees it; closing it is left to the connection."""

    def __init__(self, raw: asyncio.Transport, protocol: BoundedConnection) -> None:
        super().__init__()
        self._raw = raw
        self._protocol: BoundedConnection | None = protocol
        self._ended = False
        self.write = raw.write
        self.get_extra_info = raw.get_extra_info
        self.pause_reading = raw.pause_reading
        self.resume_reading = raw.resume_reading

    def close(self) -> None:
        if self._protocol is not None:
            self._protocol.finish()

    def is_closing(self) -> bool:
        return self._ended or self._raw.is_closing()

    def end(self) -> None:
        """Let nothing more be written: the app may still be at it."""
        self._ended = True
        self.write = _ignore

    def forget(self) -> None:
        """Let go of a protocol that has lost its connection, so that both are freed at once."""
        self._protocol = None


def _ignore(data: Any) -> None:
    pass


class H11Connection(BoundedConnection, H11Protocol):
    """A connection with h11, the parser that is always installed."""

    def __init__(
        self,
        config: "Config",
        server_state: "ServerState",
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        # What is too long is for `Framing` to say: h11 counts what it happens to hold.
        self.conn = h11.Connection(h11.SERVER, 2 * HEAD_BYTES)
        self._framing = Framing()

    def data_received(self, data: bytes) -> None:
        if self._deaf:
            return self._discard(data)
        if self._table.pressed:
            self._choose_app()
        framing = self._framing or Framing()
        fine = framing.feed(data)
        if fine < len(data):
            return self._too_long(data[:fine])
        super().data_received(data)
        return None if self._deaf else self._follow(framing)


async def _read_first(scope: Scope, receive: Receive, send: Send) -> None:
    await refuse(send, 429, READ_FIRST)
