"""A till that charges after it has asked, and writes into its book what it does: `bespeak run storm/till.py --http`."""

import asyncio
import os
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel

from bespeak import Context, Elicit, MCPServer, Resolve
from storm.book import BOOK_VARIABLE, Entry, Event, write

mcp = MCPServer("Till", version="1.0.0")


class Receipt(BaseModel):
    call: str
    order: str
    cents: int
    pid: int


async def consent(order: str, cents: int) -> Elicit[bool]:
    return Elicit(f"Charge {cents} cents for {order}?", bool)


async def tip(order: str) -> Elicit[int]:
    return Elicit(f"How many cents of tip for {order}?", int)


async def consent_with_tip(order: str, cents: int, tip: Annotated[int, Resolve(tip)]) -> Elicit[bool]:
    return Elicit(f"Charge {cents} cents and {tip} cents of tip for {order}?", bool)


@mcp.tool()
async def charge(
    order: str, cents: int, pause_ms: int, consent: Annotated[bool, Resolve(consent)], context: Context
) -> Receipt:
    """Charge for an order."""
    return await _charge(context.call_id, order, cents, pause_ms)


@mcp.tool()
async def charge_with_tip(
    order: str,
    cents: int,
    pause_ms: int,
    tip: Annotated[int, Resolve(tip)],
    consent: Annotated[bool, Resolve(consent_with_tip)],
    context: Context,
) -> Receipt:
    """Charge for an order and a tip. The second question depends on the answer to the first."""
    return await _charge(context.call_id, order, cents + tip, pause_ms)


async def _charge(call: str, order: str, cents: int, pause_ms: int) -> Receipt:
    book, pid = Path(os.environ[BOOK_VARIABLE]), os.getpid()
    write(book, Entry(Event.BEGUN, call, order, cents, pid))
    if pause_ms:
        await asyncio.sleep(pause_ms / 1000)
    write(book, Entry(Event.ENDED, call, order, cents, pid))
    return Receipt(call=call, order=order, cents=cents, pid=pid)
