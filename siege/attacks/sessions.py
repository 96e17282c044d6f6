"""Sessions that are opened and never used."""

from siege.attacks.settling import said
from siege.orders import Orders
from siege.pipeline import Exchange, flood
from siege.wire import initialize


async def initialize_only(orders: Orders) -> None:
    """Handshakes, one after the other, and not a word after."""
    request = orders.place.legacy(initialize())

    def exchange(_: int) -> Exchange:
        response = yield request
        if b"mcp-session-id: " in response[0].lower():
            orders.tally["sessions opened"] += 1
        else:
            orders.refused(said(response))

    await flood(orders, exchange)
