# pyright: basic, reportMissingImports=false
"""The price rises from 100 to 200 EUR while the person thinks about 100, and then the person says yes."""

import asyncio

from mcp_types import InputRequiredResult

from comparison import frameworks as f
from comparison.paying import Price, shop


async def main() -> None:
    price, charged = Price(100), list[int]()
    async with f.connect(shop(price, charged)) as client:
        asked = await f.send(client, "pay", {"order": "o-1"})
        price.eur = 200
        then = await f.send(client, "pay", {"order": "o-1"}, asked, f.yes(asked))
    if isinstance(then, InputRequiredResult):
        f.report(not charged, "asked again with the new price")
    else:
        f.report(charged == [100], f"said yes to 100 EUR: {f.text(then)}")


asyncio.run(main())
