"""The trace context of OpenTelemetry, which requests carry in `_meta` if the program uses it."""

import sys
from importlib import import_module
from typing import Any

TRACEPARENT = "traceparent"
TRACE_CONTEXT = (TRACEPARENT, "tracestate", "baggage")
"""The members of `_meta` without a prefix that the protocol allows."""


def is_tracing() -> bool:
    """Return whether the program uses OpenTelemetry. If it does not, it has no spans, and nothing is imported for it."""
    return "opentelemetry.trace" in sys.modules


def current_trace_context() -> dict[str, str]:
    """Return what describes the current span; nothing if there is none."""
    if not is_tracing():
        return {}
    carrier: dict[str, Any] = {}
    import_module("opentelemetry.propagate").inject(carrier)
    return {name: carrier[name] for name in TRACE_CONTEXT if isinstance(carrier.get(name), str)}
