"""Requests at the limits and one byte beyond: what is served, and how the rest is refused."""

import asyncio

from siege.orders import Orders
from siege.wire import META, Closed, Place, message, read_head

PIECE = 16 * 1024


async def edges(orders: Orders) -> None:
    """Try each limit, and report what was not as it should be."""
    place, head, body = orders.place, orders.number("head"), orders.number("body")
    tries: dict[str, tuple[list[bytes], int]] = {}
    for how, cut in {"in one piece": 1 << 30, "in pieces": PIECE}.items():
        tries[f"a head at the limit, {how}"] = (pieces(_call(place, head), cut), 200)
        tries[f"a head one byte over, {how}"] = (pieces(_call(place, head + 1), cut), 431)
        tries[f"a body at the limit, {how}"] = (pieces(_padded(place, body), cut), 200)
        tries[f"a body one byte over, {how}"] = (pieces(_padded(place, body + 1), cut), 413)
        tries[f"an upload one byte over, {how}"] = (pieces(_upload(place, body + 1), cut), 413)
    tries["an upload at the limit"] = ([_upload(place, body)], 200)
    tries["a body one byte over without a length"] = ([_chunked(place, body + 1, "/mcp")], 413)
    tries["an upload one byte over without a length"] = ([_chunked(place, body + 1, "/upload")], 413)
    for name, (data, expected) in tries.items():
        got = await _status(place, data)
        orders.tally["as it should be" if got == str(expected) else f"{name}: {expected} was due, but {got}"] += 1
    orders.holding()


def pieces(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


def _body() -> bytes:
    params = {"name": "plain", "arguments": {"a": 1, "b": 2}, "_meta": META}
    return message({"id": 1, "method": "tools/call", "params": params})


def _call(place: Place, size: int) -> bytes:
    """A call whose head has exactly so many bytes."""
    bare = place.post(_body(), *place.modern_head("plain"), "X-Pad: ").partition(b"\r\n\r\n")[0]
    pad = "x" * (size - len(bare) - 4)
    return place.post(_body(), *place.modern_head("plain"), f"X-Pad: {pad}")


def _padded(place: Place, size: int) -> bytes:
    return place.post(_body().ljust(size), *place.modern_head("plain"))


def _upload(place: Place, size: int) -> bytes:
    return place.post(b"x" * size, path="/upload")


def _chunked(place: Place, size: int, path: str) -> bytes:
    head = place.head(*place.modern_head("plain"), "Transfer-Encoding: chunked", path=path)
    return f"{head}\r\n{size:x}\r\n".encode() + _body().ljust(size) + b"\r\n0\r\n\r\n"


async def _status(place: Place, data: list[bytes]) -> str:
    """What a client reads that first sends everything: a status, or how it was cut off."""
    reader, writer = await place.connect()
    try:
        async with asyncio.timeout(20):
            for piece in data:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0.001)
            return str((await read_head(reader)).status)
    except (Closed, EOFError):
        return "the connection was closed"
    except ConnectionError:
        return "the connection was reset"
    except TimeoutError:
        return "there was no answer"
    finally:
        writer.close()
