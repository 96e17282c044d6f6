"""The trace context of OpenTelemetry, which requests carry in `_meta` if the program uses it."""

import sys
from importlib import import_module
from typing import Any

TRACEPARENT = "traceparent"
TRACE_CONTEXT = (TRACEPARENT, "tracestate", "baggage")
"""The members of `_meta` without a prefix that the protocol allows."""


def current_trace_context() -> dict[str, str]:
    """Return what describes the current span; nothing if there is none.

    A program without `opentelemetry.trace` has no spans, so nothing is imported for it.
    """
    if "opentelemetry.trace" not in sys.modules:
        return {}
    carrier: dict[str, Any] = {}
    import_module("opentelemetry.propagate").inject(carrier)
    return {name: carrier[name] for name in TRACE_CONTEXT if isinstance(carrier.get(name), str)}
