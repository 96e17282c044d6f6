"""Many exchanges over few connections."""

import asyncio

from siege.orders import Orders
from siege.pipeline import Exchange, flood
from siege.wire import Place


async def test_exchanges_of_several_requests_keep_their_responses_apart() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(line), line))
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        place = Place(server.sockets[0].getsockname()[1], "127.0.0.1")
        orders = Orders(place, {"count": 50, "most": 50, "connections": 2, "depth": 4})
        orders.said_holding = True
        heard: list[tuple[int, bytes, bytes]] = []

        def exchange(number: int) -> Exchange:
            _, first = yield b"first %d\n" % number
            _, second = yield b"second %d\n" % number
            heard.append((number, first, second))

        async with asyncio.timeout(30):
            await flood(orders, exchange)
    assert sorted(heard) == [(n, b"first %d\n" % n, b"second %d\n" % n) for n in range(1, 51)]
    assert orders.tally["exchanges"] == 50
    assert orders.tally.keys() == {"exchanges", "exchanges a second"}
