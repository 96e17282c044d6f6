"""Make refunds and check the results: with nothing to ask, with every question asked, and with two kinds of no.

    python -m examples.refund_desk.client            in one process
    python -m examples.refund_desk.client --stdio    with the server as a child process
    python -m examples.refund_desk.client --http     with the server behind a port, two workers sharing the calls
    python -m examples.refund_desk.client URL        with a server that already runs

With `--legacy` added, the client speaks 2025-11-25: the same questions are pushed to it in the middle of a call. `make demo` shows
the first of these in full, and one line for each of the others.
"""

import asyncio
import json
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mcp_types import CallToolResult, ElicitRequest, ElicitRequestParams, ElicitResult, TextContent

from bespeak import Client, MCPServer, StdioServerParameters
from bespeak.client import ClientRequestContext
from examples.refund_desk.server import mcp

SERVER = Path(__file__).parent / "server.py"
ACCEPT_ALL = {
    "refund_scope": ElicitResult(action="accept", content={"full": True}),
    "ask_restock": ElicitResult(action="accept", content={"restock": True}),
}
DECLINE = ElicitResult(action="decline")

Server = MCPServer[Any] | StdioServerParameters | str
"""What a client can connect to."""


class Person:
    """Answers by the name of the resolver that asks, and counts how often each one asks."""

    def __init__(self, **answers: ElicitResult) -> None:
        self._answers = {**ACCEPT_ALL, **answers}
        self.asked: Counter[str] = Counter()

    def answer(self, resolver: str) -> ElicitResult:
        self.asked[resolver] += 1
        return self._answers[resolver]

    async def __call__(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        """Answer a question that the server has pushed."""
        resolver = resolver_of(context)
        tell("server -> client", f"{resolver} asks: {params.message}")
        answer = self.answer(resolver)
        tell("client -> server", f"{resolver}: {shown(answer)}")
        return answer


async def refund(server: Server, mode: str, title: str, order_id: str, person: Person) -> CallToolResult:
    """Send one call round by round, and print what is sent. `client.call_tool` does the same in one step."""
    print(f"\n{title}")
    arguments = {"order_id": order_id, "reason": "changed my mind"}
    call = f"refund_order({json.dumps(arguments)})"
    async with Client(server, mode=mode, elicitation_callback=person) as client:
        tell("client -> server", call, "call" if mode == "legacy" else "round 1")
        result = await client.session.call_tool("refund_order", arguments, allow_input_required=True)
        number = 1
        while not isinstance(result, CallToolResult):
            number += 1
            answers: dict[str, ElicitResult] = {}
            told: dict[str, Any] = {}
            for key, question in (result.input_requests or {}).items():
                assert isinstance(question, ElicitRequest)
                resolver = resolver_of(ClientRequestContext(client.session, key, question.method))
                tell("server -> client", f"{resolver} asks: {question.params.message}")
                answers[key] = person.answer(resolver)
                told[resolver] = shown(answers[key])
            tell("", f"(progress sealed in {len(result.request_state or '')} characters)")
            tell("client -> server", f"{call}, answering {told}", f"round {number}")
            result = await client.session.call_tool(
                "refund_order",
                arguments,
                input_responses=answers,
                request_state=result.request_state,
                allow_input_required=True,
            )
    tell("server -> client", f"{'failed' if result.is_error else 'done'}: {' '.join(text(result).split())}")
    return result


def tell(way: str, what: str, when: str = "") -> None:
    print(f"  {when:<7}  {way:<16}   {what}")


def resolver_of(context: ClientRequestContext) -> str:
    return context.name.rpartition(":")[2]


def shown(answer: ElicitResult) -> Any:
    return answer.content or answer.action


async def show(server: Server, mode: str = "auto") -> int:
    """Make six calls, print them, check their results, and return how many questions were asked."""
    asked: Counter[str] = Counter()
    async with Client(server, mode=mode) as client:
        (tool,) = (await client.list_tools()).tools
        print(f"\nAt {client.protocol_version}:")
    assert set(tool.input_schema["properties"]) == {"order_id", "reason"}, "the model sees the amount"
    assert set(tool.input_schema["required"]) == {"order_id", "reason"}
    print(f"The model sees {tool.name}({', '.join(tool.input_schema['properties'])}); it cannot set the amount.")

    person = Person()
    result = await refund(server, mode, "One line: nothing to ask.", "ORD-7001", person)
    assert result.structured_content == {
        "order_id": "ORD-7001",
        "cents": 1299,
        "reason": "changed my mind",
        "restocked": False,
    }
    assert not person.asked

    person = Person()
    title = "Two lines: the scope is asked once, though two resolvers need it."
    result = await refund(server, mode, title, "ORD-7002", person)
    assert result.structured_content is not None
    assert result.structured_content["cents"] == 5200
    assert result.structured_content["restocked"] is True
    assert person.asked == {"refund_scope": 1, "ask_restock": 1}
    asked += person.asked

    one_line = ElicitResult(action="accept", content={"full": False, "sku": "BULB-2"})
    person = Person(refund_scope=one_line)
    result = await refund(server, mode, "One line of two, typed by a person.", "ORD-7002", person)
    assert result.structured_content is not None
    assert result.structured_content["cents"] == 650
    asked += person.asked

    typo = ElicitResult(action="accept", content={"full": False, "sku": "BULB-3"})
    person = Person(refund_scope=typo)
    result = await refund(server, mode, "A SKU that is not in the order.", "ORD-7002", person)
    assert said(result).endswith("ORD-7002 has no line 'BULB-3'; it has LAMP-9, BULB-2")
    asked += person.asked

    person = Person(refund_scope=DECLINE)
    result = await refund(server, mode, "Declining the scope ends the call.", "ORD-7002", person)
    assert said(result) == (
        "Error executing tool refund_order: Resolver for parameter 'scope' could not resolve: "
        "elicitation was decline. A person said no. Do not try again in another way."
    )
    assert person.asked == {"refund_scope": 1}
    asked += person.asked

    person = Person(ask_restock=DECLINE)
    result = await refund(server, mode, "Without restocking, the refund is still made.", "ORD-7002", person)
    assert result.structured_content is not None
    assert result.structured_content["cents"] == 5200
    assert result.structured_content["restocked"] is False
    asked += person.asked

    print("\nAll checks passed.")
    return asked.total()


def said(result: CallToolResult) -> str:
    assert result.is_error
    return text(result)


def text(result: CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


@contextmanager
def listening(workers: int) -> Generator[str]:
    """Start a server on a free port. Each of its workers can finish a call that another began."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    command = [sys.executable, "-m", "bespeak.cli", "run", str(SERVER), "--http"]
    options = ["--port", str(port), "--workers", str(workers)]
    with tempfile.TemporaryFile() as log, subprocess.Popen([*command, *options], stderr=log) as server:
        try:
            for _ in range(200):
                time.sleep(0.1)
                with socket.socket() as probe:
                    if server.poll() is None and not probe.connect_ex(("127.0.0.1", port)):
                        break
            else:
                log.seek(0)
                raise RuntimeError(f"the server did not start to listen:\n{log.read().decode()}")
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            server.terminate()
            server.wait(20)


@contextmanager
def desk(how: str) -> Generator[Server]:
    """A refund desk to connect to: in this process, as a child process, behind a port, or at a URL."""
    if how == "--http":
        with listening(workers=2) as url:
            yield url
    elif how == "--stdio":
        # Not with `bespeak run`, which would log a line for each call in between.
        yield StdioServerParameters(sys.executable, [str(SERVER)])
    else:
        yield how or mcp


def main() -> None:
    arguments = sys.argv[1:]
    mode = "legacy" if "--legacy" in arguments else "auto"
    with desk(next((one for one in arguments if one != "--legacy"), "")) as server:
        asyncio.run(show(server, mode))


if __name__ == "__main__":
    main()
