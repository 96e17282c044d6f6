"""Spans of OpenTelemetry: one for each request, below the span that the client names."""

import subprocess
import sys
from typing import Annotated, Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from bespeak import Client, Elicit, MCPError, MCPServer, Resolve
from tests.answering import Person, accept
from tests.conftest import Connect

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    return exporter


def shop() -> MCPServer[Any]:
    mcp = MCPServer[Any]("shop")

    @mcp.tool()
    async def add(a: int, b: int) -> int:
        return a + b

    return mcp


async def sure() -> Elicit[bool]:
    return Elicit("Sure?", bool)


def span_of(exporter: InMemorySpanExporter, name: str) -> ReadableSpan:
    (found,) = [span for span in exporter.get_finished_spans() if span.name == name]
    return found


@pytest.mark.asking_revisions
async def test_a_request_has_a_span_below_the_one_in_its_metadata(
    connect: Connect, exporter: InMemorySpanExporter
) -> None:
    async with connect(shop()) as client:
        await client.call_tool("add", {"a": 1, "b": 2}, meta={"traceparent": PARENT})
        version = client.protocol_version
    span = span_of(exporter, "tools/call add")
    assert span.kind is SpanKind.SERVER
    assert span.parent is not None
    assert span.context is not None
    assert (span.context.trace_id, span.parent.span_id) == (int(PARENT[3:35], 16), int(PARENT[36:52], 16))
    attributes: Any = span.attributes
    assert (attributes["mcp.method.name"], attributes["mcp.target"]) == ("tools/call", "add")
    assert attributes["mcp.protocol.version"] == version


async def test_a_request_that_fails_says_so_in_its_span(exporter: InMemorySpanExporter) -> None:
    async with Client(shop()) as client:
        with pytest.raises(MCPError):
            await client.call_tool("nothing", meta={"traceparent": "no such thing"})
    span = span_of(exporter, "tools/call nothing")
    attributes: Any = span.attributes
    assert attributes["rpc.jsonrpc.error_code"] == -32602
    assert span.status.status_code is StatusCode.ERROR


async def test_a_method_without_a_target_is_named_alone(exporter: InMemorySpanExporter) -> None:
    async with Client(shop()) as client:
        await client.list_tools()
    assert span_of(exporter, "tools/list").parent is None


@pytest.mark.timing
@pytest.mark.long
def test_a_program_without_opentelemetry_loads_nothing_of_it() -> None:
    program = (
        "import asyncio, sys\n"
        "from bespeak import Client, MCPServer\n"
        "mcp = MCPServer('shop')\n"
        "mcp.add_tool(lambda: 'x', name='x')\n"
        "async def main():\n"
        "    async with Client(mcp) as client:\n"
        "        await client.call_tool('x')\n"
        "asyncio.run(main())\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=50, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.asking_revisions
async def test_a_decision_has_a_span_below_its_request_and_an_answer_lasts_as_long_as_it_took(
    connect: Connect, exporter: InMemorySpanExporter
) -> None:
    mcp = shop()

    @mcp.tool()
    async def buy(sure: Annotated[bool, Resolve(sure, key="sure")]) -> str:
        return "bought"

    async with connect(mcp, elicitation_callback=Person({"sure": accept(value=True)})) as client:
        await client.call_tool("buy")
    names = [span.name for span in exporter.get_finished_spans() if span.name.startswith("decision ")]
    assert names == [f"decision {event}" for event in ("asked", "answered", "claimed", "finished")]
    answered = span_of(exporter, "decision answered")
    attributes: Any = answered.attributes
    assert (attributes["bespeak.key"], attributes["bespeak.decided_by"]) == ("sure", "client")
    assert answered.start_time is not None
    assert answered.end_time is not None
    assert answered.end_time - answered.start_time == round(attributes["bespeak.seconds"] * 1e9)
    assert answered.parent is not None
    requests = {
        span.context.span_id for span in exporter.get_finished_spans() if span.name == "tools/call buy" and span.context
    }
    assert answered.parent.span_id in requests
