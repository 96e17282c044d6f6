"""Make refunds and check the results: with nothing to ask, with every question asked, and with two kinds of no.

    python -m examples.refund_desk.client            in one process
    python -m examples.refund_desk.client --stdio    with the server as a child process
    python -m examples.refund_desk.client --http     with the server behind a port, two workers sharing the calls
    python -m examples.refund_desk.client URL        with a server that already runs

With `--legacy` added, the client speaks 2025-11-25: the same questions are pushed to it in the middle of a call. `make demo` runs
all of these except the last.
"""

import asyncio
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from mcp_types import CallToolResult, ElicitRequestParams, ElicitResult, TextContent

from bespeak import Client, StdioServerParameters
from bespeak.client import ClientRequestContext, stdio_client, streamable_http_client
from bespeak.transports.interfaces import Transport
from bespeak.transports.memory import MemoryTransport
from examples.refund_desk.narrator import NarratedTransport
from examples.refund_desk.server import mcp

SERVER = Path(__file__).parent / "server.py"
ACCEPT_ALL = {
    "refund_scope": ElicitResult(action="accept", content={"full": True}),
    "ask_restock": ElicitResult(action="accept", content={"restock": True}),
}
DECLINE = ElicitResult(action="decline")

Reach = Callable[[], Transport]
"""Makes a transport to the server, for one client after another."""


class Person:
    """Answers by the name of the resolver that asks, and counts how often each one asks."""

    def __init__(self, **answers: ElicitResult) -> None:
        self._answers = {**ACCEPT_ALL, **answers}
        self.asked: Counter[str] = Counter()

    async def __call__(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        resolver = context.name.rpartition(":")[2]
        self.asked[resolver] += 1
        return self._answers[resolver]


async def refund(reach: Reach, mode: str, title: str, order_id: str, person: Person) -> CallToolResult:
    print(f"\n{title}")
    async with Client(NarratedTransport(reach()), mode=mode, elicitation_callback=person) as client:
        return await client.call_tool("refund_order", {"order_id": order_id, "reason": "changed my mind"})


async def show(reach: Reach, mode: str = "auto") -> None:
    async with Client(reach(), mode=mode) as client:
        (tool,) = (await client.list_tools()).tools
        print(f"\nAt {client.protocol_version}:")
    assert set(tool.input_schema["properties"]) == {"order_id", "reason"}, "the model sees the amount"
    assert set(tool.input_schema["required"]) == {"order_id", "reason"}
    print(f"The model sees {tool.name}({', '.join(tool.input_schema['properties'])}); it cannot set the amount.")

    person = Person()
    result = await refund(reach, mode, "One line: nothing to ask.", "ORD-7001", person)
    assert result.structured_content == {
        "order_id": "ORD-7001",
        "cents": 1299,
        "reason": "changed my mind",
        "restocked": False,
    }
    assert not person.asked

    person = Person()
    title = "Two lines: the scope is asked once, though two resolvers need it."
    result = await refund(reach, mode, title, "ORD-7002", person)
    assert result.structured_content is not None
    assert result.structured_content["cents"] == 5200
    assert result.structured_content["restocked"] is True
    assert person.asked == {"refund_scope": 1, "ask_restock": 1}

    one_line = ElicitResult(action="accept", content={"full": False, "sku": "BULB-2"})
    result = await refund(reach, mode, "One line of two, typed by a person.", "ORD-7002", Person(refund_scope=one_line))
    assert result.structured_content is not None
    assert result.structured_content["cents"] == 650

    typo = ElicitResult(action="accept", content={"full": False, "sku": "BULB-3"})
    result = await refund(reach, mode, "A SKU that is not in the order.", "ORD-7002", Person(refund_scope=typo))
    assert said(result).endswith("ORD-7002 has no line 'BULB-3'; it has LAMP-9, BULB-2")

    person = Person(refund_scope=DECLINE)
    result = await refund(reach, mode, "Declining the scope ends the call.", "ORD-7002", person)
    assert said(result) == (
        "Error executing tool refund_order: Resolver for parameter 'scope' could not resolve: elicitation was decline"
    )
    assert person.asked == {"refund_scope": 1}

    result = await refund(
        reach, mode, "Without restocking, the refund is still made.", "ORD-7002", Person(ask_restock=DECLINE)
    )
    assert result.structured_content is not None
    assert result.structured_content["cents"] == 5200
    assert result.structured_content["restocked"] is False

    print("\nAll checks passed.")


def said(result: CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, TextContent)
    assert result.is_error
    return block.text


@contextmanager
def listening(workers: int) -> Generator[str]:
    """Start a server on a free port. Each of its workers can finish a call that another began."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    command = [sys.executable, "-m", "bespeak.cli", "run", str(SERVER), "--http"]
    options = ["--port", str(port), "--workers", str(workers)]
    with subprocess.Popen([*command, *options]) as server:
        try:
            for _ in range(200):
                time.sleep(0.1)
                with socket.socket() as probe:
                    if server.poll() is None and not probe.connect_ex(("127.0.0.1", port)):
                        break
            else:
                raise RuntimeError("the server did not start to listen")
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            server.terminate()
            server.wait(20)


def main() -> None:
    arguments = sys.argv[1:]
    legacy = "--legacy" in arguments
    mode = "legacy" if legacy else "auto"
    how = next((one for one in arguments if one != "--legacy"), "")
    if how == "--stdio":
        parameters = StdioServerParameters(sys.executable, ["-m", "bespeak.cli", "run", str(SERVER)])
        asyncio.run(show(lambda: stdio_client(parameters), mode))
    elif how == "--http":
        # An older client keeps its session in one process.
        with listening(workers=1 if legacy else 2) as url:
            asyncio.run(show(lambda: streamable_http_client(url), mode))
    elif how:
        asyncio.run(show(lambda: streamable_http_client(how), mode))
    else:
        asyncio.run(show(lambda: MemoryTransport(mcp), mode))


if __name__ == "__main__":
    main()
