"""Many exchanges at once over few connections, with as little work for the client as Python allows."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Generator

from siege.orders import Orders

Response = tuple[bytes, bytes]
"""A head and a body."""
Exchange = Generator[bytes, Response, None]
"""Yields requests and is sent the response to each."""
PAUSE_SECONDS = 0.2
"""Before a connection that the server has closed is opened anew."""


class Connection(asyncio.Protocol):
    """One connection with so many exchanges under way, until there are no more."""

    def __init__(self, orders: Orders, more: Callable[[], Exchange | None], depth: int) -> None:
        self._orders = orders
        self._more = more
        self._depth = depth
        self._under_way: deque[Exchange] = deque()
        self._data = b""
        self._transport: asyncio.Transport | None = None
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._send(b"".join(self._begin() for _ in range(self._depth)))

    def data_received(self, data: bytes) -> None:
        self._data += data
        requests: list[bytes] = []
        while (response := self._take()) is not None:
            requests.append(self._next(response))
        self._send(b"".join(requests))

    def connection_lost(self, exc: Exception | None) -> None:
        if self._under_way:
            self._orders.tally["exchanges cut off"] += len(self._under_way)
        if not self.closed.done():
            self.closed.set_result(None)

    def _begin(self) -> bytes:
        exchange = self._more()
        if exchange is None:
            return b""
        self._under_way.append(exchange)
        return next(exchange)

    def _next(self, response: Response) -> bytes:
        if not self._under_way:
            self._orders.tally["responses to nothing"] += 1
            return b""
        exchange = self._under_way.popleft()
        try:
            request = exchange.send(response)
        except StopIteration:
            return self._begin()
        self._under_way.append(exchange)
        return request

    def _take(self) -> Response | None:
        head, end, rest = self._data.partition(b"\r\n\r\n")
        if not end:
            return None
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        if not length:
            self._orders.tally["streams where none was due"] += 1
            self._data = b""
            assert self._transport is not None
            self._transport.abort()
            return None
        size = int(length)
        if len(rest) < size:
            return None
        self._data = rest[size:]
        return head, rest[:size]

    def _send(self, data: bytes) -> None:
        assert self._transport is not None
        if data:
            self._transport.write(data)
        elif not self._under_way:
            self._transport.close()


async def flood(orders: Orders, exchange: Callable[[int], Exchange]) -> None:
    """Make at least `count` exchanges, and go on until told to stop; at most `most`."""
    count, most = orders.number("count"), orders.numbers.get("most", 10 * orders.number("count"))
    begun = 0
    started = time.perf_counter()

    def more() -> Exchange | None:
        nonlocal begun
        if begun >= most or (orders.stop.is_set() and begun >= count):
            return None
        if begun == count:
            orders.holding()
        begun += 1
        return exchange(begun)

    async def keep_one() -> None:
        while begun < most and not (orders.stop.is_set() and begun >= count):
            loop = asyncio.get_running_loop()
            try:
                _, connection = await loop.create_connection(
                    lambda: Connection(orders, more, orders.number("depth")),
                    "127.0.0.1",
                    orders.place.port,
                    local_addr=(orders.place.address, 0),
                )
                await connection.closed
            except OSError as error:
                orders.tally[f"no connection: {error.strerror}"] += 1
            await asyncio.sleep(PAUSE_SECONDS)

    await asyncio.gather(*(keep_one() for _ in range(orders.number("connections"))))
    orders.tally["exchanges"] = begun
    orders.tally["exchanges a second"] = round(begun / (time.perf_counter() - started))
