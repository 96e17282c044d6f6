"""Spans of OpenTelemetry, if the program uses it: one for each request, below the span that the client names in `_meta`, and one
for each decision below that."""

import sys
import time
from collections.abc import Coroutine, Mapping
from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any

from bespeak.protocol.messages import Request
from bespeak.protocol.methods import TARGET_PARAMETERS
from bespeak.transports.interfaces import WrittenResponse

_TRACE = "opentelemetry.trace"
_CARRIED = ("traceparent", "tracestate", "baggage")


def is_tracing() -> bool:
    """Return whether the program uses OpenTelemetry. If it does not, nothing is imported for it."""
    return _TRACE in sys.modules


async def traced(request: Request, work: Coroutine[Any, Any, WrittenResponse]) -> WrittenResponse:
    """Serve a request inside its span."""
    trace = import_module(_TRACE)
    with _span(trace, request) as span:
        response = await work
        if response.code is not None:
            span.set_attribute("rpc.jsonrpc.error_code", response.code)
            span.set_status(trace.Status(trace.StatusCode.ERROR))
        return response


def _span(trace: Any, request: Request) -> AbstractContextManager[Any]:
    target = request.params.get(TARGET_PARAMETERS[request.method]) if request.method in TARGET_PARAMETERS else None
    named = target if isinstance(target, str) else None
    raw = request.meta.raw
    carrier = {name: raw[name] for name in _CARRIED if isinstance(raw.get(name), str)}
    attributes = {
        "rpc.system": "jsonrpc",
        "mcp.method.name": request.method,
        "mcp.protocol.version": request.meta.protocol_version,
        "jsonrpc.request.id": str(request.id),
        **({"mcp.target": named} if named is not None else {}),
    }
    return trace.get_tracer("bespeak").start_as_current_span(
        f"{request.method} {named}" if named is not None else request.method,
        context=import_module("opentelemetry.propagate").extract(carrier),
        kind=trace.SpanKind.SERVER,
        attributes=attributes,
    )


def trace_decision(decision: Mapping[str, Any]) -> None:
    """Add a span for a decision. It begins when the question was asked, or the call was claimed, if that is known."""
    now = time.time_ns()
    began = now - round((decision["seconds"] or 0.0) * 1e9)
    attributes = {f"bespeak.{name}": value for name, value in decision.items() if value is not None}
    span = (
        import_module(_TRACE)
        .get_tracer("bespeak")
        .start_span(f"decision {decision['event']}", attributes=attributes, start_time=began)
    )
    span.end(now)
