# pyright: basic, reportMissingImports=false
"""One tool that asks, called by a client of 2026-07-28 and by one of 2025-11-25."""

import asyncio

from comparison import frameworks as f
from comparison.paying import Price, shop


async def called(mode: str) -> str:
    async with f.connect(shop(Price(), []), mode) as client:
        try:
            return f.text(await client.call_tool("pay", {"order": "o-1"}))
        except Exception as error:  # noqa: BLE001 - whatever a framework's client raises for an error of the server
            return str(error)


async def main() -> None:
    modern, legacy = await called(f.MODERN), await called(f.LEGACY)
    assert modern == "Charged 100 EUR.", modern
    if legacy == modern:
        f.report(True, "the same code asks in both")
    elif "Use ctx.elicit()" in legacy:
        f.report(False, "asks in the newer; in the older, an error that says to use `ctx.elicit()` there")
    else:
        f.report(False, f"asks in the newer; in the older: {legacy}")


asyncio.run(main())
