"""The attacker, a process of its own: `python -m siege.attacker ORDERS`. Reports on stdout; a line on stdin ends the attack."""

import asyncio
import json
import os
import resource
import sys
import time
from typing import Any

from siege.attacks import ATTACKS
from siege.orders import Orders, listen_for_the_end, say
from siege.wire import Place

NICENESS = 10
"""The honest client shares the attacker's core; what is measured is the server, not who of the two gets the core."""


async def attack(told: dict[str, Any]) -> None:
    orders = Orders(Place(told["port"], told["address"], told["forwarded"]), told["numbers"])
    listening = asyncio.create_task(listen_for_the_end(orders))
    started = time.perf_counter()
    await ATTACKS[told["attack"]](orders)
    orders.holding()
    say({"event": "done", "tally": orders.tally, "seconds": time.perf_counter() - started})
    await listening  # one line ends every attack, so that whoever waits for the end need not know how it came


def main() -> None:
    told: dict[str, Any] = json.loads(sys.argv[1])
    if told["core"] is not None:
        os.sched_setaffinity(0, {told["core"]})
    os.nice(NICENESS)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    asyncio.run(attack(told))


if __name__ == "__main__":
    main()
