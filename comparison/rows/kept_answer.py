# pyright: basic, reportMissingImports=false
"""A second call asks the same, or the same at another price, and the client sends the answer that it kept from the first call."""

import asyncio

from comparison import frameworks as f
from comparison.paying import Price, shop


async def counts(later: int) -> bool:
    """Whether the kept answer made the second call charge the later price."""
    price, charged = Price(100), list[int]()
    async with f.connect(shop(price, charged)) as client:
        asked = await f.send(client, "pay", {"order": "o-1"})
        kept = f.yes(asked)
        await f.send(client, "pay", {"order": "o-1"}, asked, kept)
        price.eur = later
        asked = await f.send(client, "pay", {"order": "o-1"})
        await f.send(client, "pay", {"order": "o-1"}, asked, kept)
    assert charged[:1] == [100], charged
    return charged == [100, later]


async def main() -> None:
    same, other = await counts(100), await counts(200)
    says = {
        (True, False): "counts for the same question, not for another price",
        (True, True): "counts, also for another price",
        (False, False): "does not count",
    }
    f.report(not other, says[same, other])


asyncio.run(main())
