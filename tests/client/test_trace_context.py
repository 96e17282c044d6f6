"""The trace context in `_meta`: given by the caller, or taken from OpenTelemetry if the program uses it."""

import sys
from types import ModuleType
from typing import Any

import pytest

from bespeak import Client
from bespeak.client.trace_context import current_trace_context
from tests.client.older_server import OldServer, plain
from tests.client.scripted_transport import COMPLETE, Fake

SPAN = {"traceparent": "00-aa-bb-01", "tracestate": "vendor=1", "baggage": "user=ana", "x-custom": "no"}


def use_opentelemetry(monkeypatch: pytest.MonkeyPatch, injected: dict[str, Any]) -> None:
    """Stand in for `opentelemetry-api`: `inject` writes what the current span and baggage are."""
    package, trace, propagate = (ModuleType(f"opentelemetry{name}") for name in ("", ".trace", ".propagate"))
    propagate.inject = lambda carrier: carrier.update(injected)  # type: ignore[attr-defined]
    for module in (package, trace, propagate):
        monkeypatch.setitem(sys.modules, module.__name__, module)


async def sent(meta: dict[str, Any] | None = None) -> dict[str, Any]:
    fake = Fake(COMPLETE)
    async with Client(fake) as client:
        await client.call_tool("tool", meta=meta)
    return {name: value for name, value in fake.params[0]["_meta"].items() if "/" not in name}


async def test_what_the_caller_gives_is_sent_as_it_is() -> None:
    assert await sent({"traceparent": "00-1", "tracestate": "x", "baggage": "y"}) == {
        "traceparent": "00-1",
        "tracestate": "x",
        "baggage": "y",
    }


async def test_the_current_span_is_sent_and_nothing_else_of_what_is_injected(monkeypatch: pytest.MonkeyPatch) -> None:
    use_opentelemetry(monkeypatch, SPAN)
    assert await sent() == {"traceparent": "00-aa-bb-01", "tracestate": "vendor=1", "baggage": "user=ana"}


async def test_a_trace_that_the_caller_gives_is_not_mixed_with_the_current_one(monkeypatch: pytest.MonkeyPatch) -> None:
    use_opentelemetry(monkeypatch, SPAN)
    assert await sent({"traceparent": "00-1"}) == {"traceparent": "00-1"}
    assert (await sent({"baggage": "mine"}))["baggage"] == "mine"


async def test_without_a_span_nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    use_opentelemetry(monkeypatch, {"baggage": 5})
    assert await sent() == {}


def test_a_program_that_does_not_use_opentelemetry_does_not_import_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "opentelemetry.trace", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.propagate", None)  # an import would fail
    assert current_trace_context() == {}


async def test_an_older_server_is_sent_only_what_the_caller_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    use_opentelemetry(monkeypatch, SPAN)
    server = OldServer(tool=plain)
    async with Client(server, mode="legacy") as client:
        await client.call_tool("tool")
        await client.call_tool("tool", meta={"traceparent": "00-1"})
    first, second = server.told("tools/call")
    assert "_meta" not in first["params"]
    assert second["params"]["_meta"] == {"traceparent": "00-1"}
