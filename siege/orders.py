"""What an attack is told and what it reports: the two ends of the attacker process speak in lines of JSON."""

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from siege.wire import Place


@dataclass(slots=True)
class Orders:
    """One attack: where to, how much, and when to stop."""

    place: Place
    numbers: dict[str, int]
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    tally: Counter[str] = field(default_factory=Counter[str])
    """What happened, by the name of it."""
    said_holding: bool = False

    def number(self, name: str) -> int:
        return self.numbers[name]

    def holding(self) -> None:
        """Report that everything is in place, or has been sent."""
        if not self.said_holding:
            self.said_holding = True
            say({"event": "holding", "tally": self.tally})

    def refused(self, why: str) -> None:
        self.tally["refused"] += 1
        self.tally[f"refused with {why[:160]}"] += 1


Attack = Callable[[Orders], Awaitable[None]]


def say(content: dict[str, Any]) -> None:
    print(json.dumps(content), flush=True)


async def listen_for_the_end(orders: Orders) -> None:
    """Set `stop` when the line that says so comes, or nobody is there to send it."""
    await asyncio.to_thread(sys.stdin.readline)
    orders.stop.set()
