"""What the clients share: where the servers are, a person who answers, and checks that are reported one a line.

Imported by the Python of every framework: the standard library only.
"""

import argparse
import asyncio
import json
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
SCOPE = "ORD-7002 has 2 lines: LAMP-9 (Desk lamp, $45.50), BULB-2 (Light bulb, $6.50). Refund all of it?"
RESTOCK = "Put Desk lamp and Light bulb back on the shelf?"
REFUND = {"order_id": "ORD-7002", "reason": "changed my mind"}
REFUNDED = {**REFUND, "cents": 5200, "restocked": True}
NOTHING_ASKED = {"order_id": "ORD-7001", "reason": "changed my mind"}
NOTHING_ASKED_REFUNDED = {**NOTHING_ASKED, "cents": 1299, "restocked": False}
DECLINED = "Resolver for parameter 'scope' could not resolve: elicitation was decline"
NO_FORMS = "the client must declare elicitation.form"
NO_SAMPLING = "the client must declare sampling"
NO_ROOTS = "the client must declare roots"


@dataclass(frozen=True, slots=True)
class Servers:
    """Where each server is reached."""

    desk: str
    questions: str
    moving_price: str
    paid_once: str
    desk_command: list[str]
    """How the refund desk is started on stdio."""
    calls: int
    """How many calls are suspended and resumed where many are due."""


class Person:
    """Accepts every form with `True`, or what is given for its first field. Remembers what was shown."""

    def __init__(self, **answers: Any) -> None:
        self._answers = answers
        self.asked: list[str] = []

    async def __call__(self, message: str, schema: Mapping[str, Any]) -> dict[str, Any] | None:
        """The content of the answer, or `None` if the person declines."""
        self.asked.append(message)
        field = next(iter(schema["properties"]))
        answer = self._answers.get(field, True)
        return None if answer is None else {field: answer}


class SlowPerson(Person):
    """Takes a while for the first question."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds

    async def __call__(self, message: str, schema: Mapping[str, Any]) -> dict[str, Any] | None:
        if not self.asked:
            await asyncio.sleep(self._seconds)
        return await super().__call__(message, schema)


Check = Callable[[Servers], Awaitable[str | None]]
"""Raises `AssertionError` if something is not as expected. May return a note for the report."""


def main(checks: Mapping[str, Check]) -> None:
    """Run every check, print a line of JSON for each, and exit with 1 if any failed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("servers", help="where the servers are, as JSON")
    servers = Servers(**json.loads(parser.parse_args().servers))
    failures = 0
    for name, check in checks.items():
        began = time.monotonic()
        held, note = asyncio.run(_outcome(check, servers))
        failures += not held
        line = {"check": name, "held": held, "note": note, "seconds": round(time.monotonic() - began, 2)}
        _say(line)
    _say({"checks": len(checks)})
    sys.exit(1 if failures else 0)


def _say(line: Mapping[str, Any]) -> None:
    print(f"\n{json.dumps(line)}", flush=True)  # on a line of its own: some frameworks print what a model says


async def _outcome(check: Check, servers: Servers) -> tuple[bool, str]:
    """Whether it held, and what it says of it."""
    try:
        async with asyncio.timeout(600):
            return True, await check(servers) or ""
    except Exception:  # noqa: BLE001 - whatever a framework raises is what the report is to show
        return False, traceback.format_exc()


def equal(found: object, expected: object) -> None:
    assert found == expected, f"expected {expected!r}, found {found!r}"


def contains(found: object, expected: str) -> None:
    assert expected in str(found), f"expected {expected!r} in {found!r}"
