# pyright: basic, reportMissingImports=false
"""Two servers with the same keys: the call begins at one, and its approval is sent to both."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from comparison import frameworks as f
from comparison.paying import Price, shop

KEY = "k" * 32


def options(folder: str) -> dict[str, Any]:
    if f.FRAMEWORK == "fastmcp":
        from mcp.server.request_state import RequestStateSecurity

        return {"request_state_security": RequestStateSecurity(keys=[KEY])}
    security = {"request_state_security": f.RequestStateSecurity(keys=[KEY])}
    return {**security, "store": f"sqlite:{Path(folder) / 'store'}"} if f.FRAMEWORK == "bespeak" else security


async def main() -> None:
    charged: list[int] = []
    with tempfile.TemporaryDirectory() as folder:
        shared = options(folder)
        one, other = (shop(Price(), charged, **shared) for _ in range(2))
        async with f.connect(one) as first, f.connect(other) as second:
            asked = await f.send(first, "pay", {"order": "o-1"})
            finished = await f.send(second, "pay", {"order": "o-1"}, asked, f.yes(asked))
            await asyncio.gather(f.send(first, "pay", {"order": "o-1"}, asked, f.yes(asked)), return_exceptions=True)
    resumed = "the other finishes the call" if f.text(finished) == "Charged 100 EUR." else "the other refuses the call"
    times = "once" if len(charged) == 1 else f"{len(charged)} times"
    f.report(len(charged) == 1 and "finishes" in resumed, f"{resumed}; the body runs {times}")


asyncio.run(main())
