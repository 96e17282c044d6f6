# pyright: basic, reportMissingImports=false
"""The first request of a call brings an answer to a question that this call has not asked."""

import asyncio

from mcp_types import InputRequiredResult

from comparison import frameworks as f
from comparison.paying import Price, shop


async def main() -> None:
    charged: list[int] = []
    async with f.connect(shop(Price(), charged)) as client:
        asked = await f.send(client, "pay", {"order": "o-1"})
        then = await f.send(client, "pay", {"order": "o-1"}, None, f.yes(asked))
    if isinstance(then, InputRequiredResult):
        f.report(not charged, "the person is asked")
    else:
        f.report(False, f"nobody is asked: {f.text(then)}")


asyncio.run(main())
