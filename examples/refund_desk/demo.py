"""Show the refund desk's conversation once in full, then the result over each transport and in each era. `make demo` runs it."""

import asyncio
import io
import time
from contextlib import redirect_stdout

from examples.refund_desk.client import desk, show

TRANSPORTS = {"": "in process", "--stdio": "stdio", "--http": "HTTP, 2 workers"}
ERAS = {"auto": "2026-07-28, asked in rounds", "legacy": "2025-11-25, asked in mid-call"}


def main() -> None:
    with desk("") as server:
        asyncio.run(show(server))
    print("\nThe same server and the same calls, over each transport and in each era:\n")
    for how, transport in TRANSPORTS.items():
        for mode, era in ERAS.items():
            print(f"  {transport:<16} {era:<30} {summary(how, mode)}", flush=True)


def summary(how: str, mode: str) -> str:
    """Make all calls once more, without a word, and return how that went."""
    with desk(how) as server, redirect_stdout(io.StringIO()):
        began = time.perf_counter()
        asked = asyncio.run(show(server, mode))
        took = time.perf_counter() - began
    return f"6 calls, {asked} questions asked and answered, every result as expected ({took:.1f} s)"


if __name__ == "__main__":
    main()
