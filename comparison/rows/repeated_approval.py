# pyright: basic, reportMissingImports=false
"""The same approved request is sent twelve times at once."""

import asyncio

from comparison import frameworks as f
from comparison.paying import Price, shop


async def main() -> None:
    charged: list[int] = []
    async with f.connect(shop(Price(), charged)) as client:
        asked = await f.send(client, "pay", {"order": "o-1"})
        again = [f.send(client, "pay", {"order": "o-1"}, asked, f.yes(asked)) for _ in range(12)]
        await asyncio.gather(*again, return_exceptions=True)
    f.report(len(charged) == 1, f"the body runs {'once' if len(charged) == 1 else f'{len(charged)} times'}")


asyncio.run(main())
