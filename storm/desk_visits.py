"""Many refunds at the refund desk by one kind of client: each call asks two questions, and its result must be its own.

Knows no SDK, like `interop.checks`: both Python clients have the methods that are used here.
"""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from interop.checks import RESTOCK, SCOPE, Person
from mcp_types import CallToolResult

CLIENTS = 4
"""How many clients there are in one program at the same time, each with a session of its own if it has sessions."""
CALL_SECONDS = 60.0


class Desk(Protocol):
    """A connected client."""

    @property
    def protocol_version(self) -> str: ...

    async def call_tool(self, name: str, arguments: dict[str, Any], /) -> CallToolResult: ...


Connect = Callable[[Person], AbstractAsyncContextManager[Desk]]


@dataclass(slots=True)
class Visits:
    """What became of the calls of one program. The TypeScript client reports the same."""

    calls: int = 0
    refunded: int = 0
    unasked: int = 0
    """Calls that were not asked exactly their two questions."""
    doubled: int = 0
    """Approvals that gave two different refunds."""
    slowest: float = 0.0
    """The longest time that a call took, in seconds."""
    failures: list[str] = field(default_factory=list[str])


def expected(reason: str) -> dict[str, Any]:
    """Return the refund of the order with two lines, if both are refunded and put back."""
    return {"order_id": "ORD-7002", "cents": 5200, "reason": reason, "restocked": True}


async def visit(connect: Connect, name: str, revision: str, calls: int) -> Visits:
    """Make so many calls."""
    visits = Visits()
    numbers = iter(range(calls))

    async def one_client() -> None:
        person = Person()
        async with connect(person) as desk:
            assert desk.protocol_version == revision, desk.protocol_version
            for number in numbers:
                await _refund(desk, person, f"{name} {number}", visits)

    async with asyncio.TaskGroup() as group:
        for _ in range(CLIENTS):
            group.create_task(one_client())
    return visits


async def _refund(desk: Desk, person: Person, reason: str, visits: Visits) -> None:
    visits.calls += 1
    person.asked.clear()
    began = time.perf_counter()
    try:
        async with asyncio.timeout(CALL_SECONDS):
            result = await desk.call_tool("refund_order", {"order_id": "ORD-7002", "reason": reason})
    except Exception as error:  # noqa: BLE001 - whatever a client raises is a failure of the call
        visits.failures.append(f"{reason}: {type(error).__name__}: {error}")
        return
    visits.slowest = max(visits.slowest, time.perf_counter() - began)
    visits.unasked += person.asked != [SCOPE, RESTOCK]
    if result.structured_content == expected(reason):
        visits.refunded += 1
    else:
        visits.failures.append(f"{reason}: {result!r}")


def main(connect: Callable[[str, str, Person], AbstractAsyncContextManager[Desk]]) -> None:
    """Run a program: `URL REVISION MODE CALLS`. Prints what became of its calls as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("revision")
    parser.add_argument("mode", help="how the client connects: auto, legacy, or a revision")
    parser.add_argument("calls", type=int)
    told = parser.parse_args()
    name = f"{Path(sys.argv[0]).stem} {told.mode}"
    visits = asyncio.run(visit(lambda person: connect(told.url, told.mode, person), name, told.revision, told.calls))
    print(json.dumps(asdict(visits)))
