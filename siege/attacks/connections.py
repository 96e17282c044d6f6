"""Connections that say too little, too slowly, or do not listen. One that the server ends is opened again a second later."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable

from siege.orders import Orders
from siege.wire import Closed, parse_head, read_json, reason

REOPEN_SECONDS = 1.0
DRIP_SECONDS = 1.0
OPENING = 50
"""Connections opened at once."""
READING_SECONDS = 5.0

Drip = Callable[[Orders], AsyncIterator[bytes]]
"""What a connection sends, piece by piece."""


async def half_heads(orders: Orders) -> None:
    """Heads that never come to an end."""
    await _keep_open(orders, _half_head)


async def idle(orders: Orders) -> None:
    """Connections that send nothing."""
    await _keep_open(orders, _nothing)


async def slow(orders: Orders) -> None:
    """Heads and bodies that come at one byte a second, to the endpoint and to a route of the author's own."""
    await _keep_open(
        orders, _slow_head, lambda orders: _slow_body(orders, "/mcp"), lambda orders: _slow_body(orders, "/upload")
    )


async def unfinished_bodies(orders: Orders) -> None:
    """Large bodies whose last byte never comes."""
    await _keep_open(orders, _unfinished_body)


async def _unfinished_body(orders: Orders) -> AsyncIterator[bytes]:
    body = b" " * orders.number("size")
    yield orders.place.post(body, *orders.place.modern_head("plain"))[:-1]


async def _half_head(orders: Orders) -> AsyncIterator[bytes]:
    yield orders.place.head("X-More: ").removesuffix("\r\n").encode()


async def _nothing(orders: Orders) -> AsyncIterator[bytes]:
    for piece in ():
        yield piece


async def _slow_head(orders: Orders) -> AsyncIterator[bytes]:
    yield orders.place.head().encode() + b"X-More: "
    while True:
        await asyncio.sleep(DRIP_SECONDS)
        yield b"x"


async def _slow_body(orders: Orders, path: str) -> AsyncIterator[bytes]:
    yield orders.place.head(*orders.place.modern_head("plain"), "Content-Length: 100000\r\n", path=path).encode()
    while True:
        yield b" "
        await asyncio.sleep(DRIP_SECONDS)


async def _keep_open(orders: Orders, *drips: Drip) -> None:
    count = orders.number("count")
    opening = asyncio.Semaphore(OPENING)
    opened = 0

    async def keep(drip: Drip) -> None:
        nonlocal opened
        first = True
        while not orders.stop.is_set():
            async with opening:
                try:
                    reader, writer = await orders.place.connect()
                except OSError as error:
                    orders.tally[f"no connection: {error.strerror}"] += 1
                    reader = writer = None
            if first:
                first, opened = False, opened + 1
                if opened == count:
                    orders.holding()
            if reader is not None and writer is not None:
                await _until_ended(orders, reader, writer, drip)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(orders.stop.wait(), REOPEN_SECONDS)

    await asyncio.gather(*(keep(drips[number % len(drips)]) for number in range(count)))


async def _until_ended(orders: Orders, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, drip: Drip) -> None:
    """Send what is to be sent until the server ends the connection, or the siege is over."""

    async def send() -> None:
        with contextlib.suppress(ConnectionError):
            async for piece in drip(orders):
                writer.write(piece)
                await writer.drain()

    orders.tally["connections"] += 1
    sending = asyncio.create_task(send())
    reading = asyncio.create_task(_read_all(reader))
    stopping = asyncio.create_task(orders.stop.wait())
    await asyncio.wait({reading, stopping}, return_when=asyncio.FIRST_COMPLETED)
    sending.cancel()
    stopping.cancel()
    orders.tally[reading.result() if reading.done() else "still open at the end"] += 1
    reading.cancel()
    await asyncio.wait({sending, reading, stopping})
    writer.close()


async def _read_all(reader: asyncio.StreamReader) -> str:
    """How the server ended a connection."""
    data = b""
    try:
        while piece := await reader.read(65536):
            data += piece
    except ConnectionError:
        if not data:
            return "reset by the server"
    if not data:
        return "closed without a word"
    head = parse_head(data.partition(b"\r\n\r\n")[0])
    retry = ", Retry-After" if "retry-after" in head.headers else ""
    return f"answered {head.status}{retry}"


async def stay_connected(orders: Orders) -> None:
    """Connections that are used once, in order, and kept."""
    held: list[asyncio.StreamWriter] = []
    for number in range(orders.number("count")):
        try:
            reader, writer = await orders.place.connect()
            held.append(writer)
            writer.write(orders.place.modern("plain", {"a": number, "b": 2}))
            head, content = await read_json(reader)
        except (Closed, OSError, EOFError) as error:
            orders.refused(str(error))
        else:
            if head.status == 200 and "result" in content:
                orders.tally["served"] += 1
            else:
                orders.refused(reason(head, content))
    orders.holding()
    await orders.stop.wait()
    for writer in held:
        writer.close()


async def unread(orders: Orders) -> None:
    """Ask for large answers and never read them."""
    request = orders.place.modern("large", {"size": orders.number("size")})
    sockets: list[socket.socket] = []
    loop = asyncio.get_running_loop()
    for _ in range(orders.number("count")):
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.bind((orders.place.address, 0))
        one.setblocking(False)
        await loop.sock_connect(one, ("127.0.0.1", orders.place.port))
        await loop.sock_sendall(one, request)
        sockets.append(one)
    orders.tally["answers asked for"] = len(sockets)
    orders.holding()
    await orders.stop.wait()
    await asyncio.gather(*(_see_what_is_left(orders, one) for one in sockets))


async def _see_what_is_left(orders: Orders, one: socket.socket) -> None:
    """Read at last, to see whether the server has kept the whole answer all the time."""
    loop = asyncio.get_running_loop()
    read = 0
    try:
        async with asyncio.timeout(READING_SECONDS):
            while piece := await loop.sock_recv(one, 1 << 20):
                read += len(piece)
                if read > orders.number("size"):
                    break
    except (TimeoutError, ConnectionError):
        pass
    finally:
        one.close()
    kept = read > orders.number("size")
    orders.tally["answers kept to the end" if kept else "answers given up by the server"] += 1
