"""A proxy in front of several workers: each request goes to the next worker that accepts a connection.

It has no memory of clients and tries nothing twice. When a worker dies in the middle of a response, it breaks the client's
connection too, because it cannot know what the worker has done.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from storm.records import Break

WORKER_HEADER = "storm-worker"
"""The header that the proxy adds to responses: which worker sent it."""
HEAD_BYTES = 64 * 1024
PIECE_BYTES = 64 * 1024
CONNECT_SECONDS = 10.0
"""How long all workers together may refuse connections."""
PAUSE_SECONDS = 0.02
LAST_CHUNK = b"0\r\n\r\n"


class RoundRobin:
    """Takes turns among so many workers."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._next = 0

    def candidates(self) -> list[int]:
        """Return the workers in the order in which they are tried for a request."""
        return [(self._next + step) % self._workers for step in range(self._workers)]

    def chose(self, worker: int) -> None:
        """Go on with the worker after the one that has accepted a request."""
        self._next = (worker + 1) % self._workers


@dataclass(slots=True)
class BodyEnd:
    """Tells whether the body of a response is complete."""

    length: int | None
    """`None` for a body in chunks."""
    _seen: int = field(default=0, init=False)
    _tail: bytes = field(default=b"", init=False)

    @classmethod
    def after(cls, head: bytes) -> "BodyEnd":
        """Return it for the body that follows the head of a response."""
        length = header(head, b"content-length")
        return cls(int(length) if length is not None else None if _has_body(head) else 0)

    def feed(self, piece: bytes) -> None:
        self._seen += len(piece)
        self._tail = (self._tail + piece)[-len(LAST_CHUNK) :]

    @property
    def complete(self) -> bool:
        return self._tail == LAST_CHUNK if self.length is None else self._seen >= self.length


def header(head: bytes, name: bytes) -> bytes | None:
    """Return the value of a header; `None` if it is not there."""
    for line in head.split(b"\r\n")[1:]:
        key, _, value = line.partition(b":")
        if key.strip().lower() == name:
            return value.strip()
    return None


def _has_body(head: bytes) -> bool:
    return head.split(b" ", 2)[1] not in (b"204", b"304")


def for_worker(head: bytes) -> bytes:
    """Return the head of a request as it is sent on: its connection serves this one request."""
    first, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    kept = [line for line in lines if line.partition(b":")[0].strip().lower() != b"connection"]
    return b"\r\n".join([first, *kept, b"Connection: close", b"", b""])


def from_worker(head: bytes, worker: int) -> bytes:
    """Return the head of a response with the header that names the worker."""
    return head.removesuffix(b"\r\n") + f"{WORKER_HEADER}: {worker}\r\n\r\n".encode()


class Proxy:
    """Serves clients until its block is closed."""

    def __init__(self, ports: list[int], pid_of: Callable[[int], int]) -> None:
        self._ports = ports
        self._pid_of = pid_of
        self._turns = RoundRobin(len(ports))
        self.breaks: list[Break] = []
        self.requests = 0

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[int]:
        """Listen on a free port while the block is open."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=HEAD_BYTES, backlog=512)
        async with server:
            yield server.sockets[0].getsockname()[1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            body = await reader.readexactly(int(header(head, b"content-length") or b"0"))
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()
            return
        self.requests += 1
        try:
            worker, pid, upstream, downstream = await self._connect()
        except ConnectionError:
            writer.transport.abort()
            return
        answering = asyncio.create_task(self._pass_on(for_worker(head) + body, worker, upstream, downstream, writer))
        leaving = asyncio.create_task(reader.read(1))
        try:
            await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if answering.done() and not answering.result():
                self.breaks.append(Break(pid, head.split(b"\r\n", 1)[0].decode("latin-1")))
                writer.transport.abort()
        finally:
            answering.cancel()
            leaving.cancel()
            await asyncio.wait({answering, leaving})
            downstream.close()
            writer.close()

    async def _connect(self) -> tuple[int, int, asyncio.StreamReader, asyncio.StreamWriter]:
        """Return a worker that accepts a connection, its process id, and the connection. Raises `ConnectionError`."""
        until = asyncio.get_running_loop().time() + CONNECT_SECONDS
        while asyncio.get_running_loop().time() < until:
            for worker in self._turns.candidates():
                pid = self._pid_of(
                    worker
                )  # not later: it may have died and another have begun when we hear of the connection
                with contextlib.suppress(OSError):
                    upstream, downstream = await asyncio.open_connection(
                        "127.0.0.1", self._ports[worker], limit=HEAD_BYTES
                    )
                    self._turns.chose(worker)
                    return worker, pid, upstream, downstream
            await asyncio.sleep(PAUSE_SECONDS)
        raise ConnectionError(f"no worker accepted a connection for {CONNECT_SECONDS:g} s")

    async def _pass_on(
        self,
        request: bytes,
        worker: int,
        upstream: asyncio.StreamReader,
        downstream: asyncio.StreamWriter,
        client: asyncio.StreamWriter,
    ) -> bool:
        """Send a request to a worker and its response to the client, piece by piece. Return whether all of it came."""
        try:
            downstream.write(request)
            head = await upstream.readuntil(b"\r\n\r\n")
            end = BodyEnd.after(head)
            client.write(from_worker(head, worker))
            while not end.complete and (piece := await upstream.read(PIECE_BYTES)):
                end.feed(piece)
                client.write(piece)
                await client.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            return False
        return end.complete
