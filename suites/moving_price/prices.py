"""What both shops sell: the price of each order at each look, and what was charged. The standard library only."""

LOOKS = {"steady": [100], "moving": [100, 200]}
"""The price of an order in EUR at each look. The last one stays."""
CHARGED: list[int] = []


def price_of(order: str) -> int:
    prices = LOOKS[order]
    return prices.pop(0) if len(prices) > 1 else prices[0]


def charge(eur: int) -> str:
    CHARGED.append(eur)
    return f"Charged {eur} EUR."
