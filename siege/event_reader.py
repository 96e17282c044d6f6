"""A client that is sent one large event, and prints its MiB before and at the peak: `python -m siege.event_reader PORT`."""

import asyncio
import json
import sys
from pathlib import Path

from bespeak import Client


def own_memory(name: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) / 1024
    raise LookupError(name)


async def read(port: int) -> None:
    async with Client(f"http://127.0.0.1:{port}/mcp", mode="2026-07-28") as client:
        await client.call_tool("small", {})  # so that what every call needs is there before
        before = own_memory("VmRSS")
        await client.call_tool("large", {})
        print(json.dumps({"before": before, "peak": own_memory("VmHWM")}))


if __name__ == "__main__":
    asyncio.run(read(int(sys.argv[1])))
