"""The key `probe`: which unusual requests a test sends to see how the server answers them."""

from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field, WithJsonSchema

from bespeak.conversation.json_values import as_array

ProbeName = Literal[
    "metadata",
    "method",
    "version",
    "headers",
    "origin",
    "get",
    "ping",
    "notification",
    "tool",
    "prompt",
    "resource",
    "cursor",
    "level",
    "undeclared",
    "order",
    "handshake",
    "session",
    "subscription",
    "token",
    "all",
]
ALL = "all"
PROBE_NAMES: tuple[str, ...] = tuple(name for name in get_args(ProbeName) if name != ALL)


def _listed(written: Any) -> Any:
    """Read one name, or a list of names without repetitions."""
    names = as_array(written)
    for number, name in enumerate(names):
        if name in names[:number]:
            raise ValueError(f"{name} is listed twice")
        if name == ALL:
            raise ValueError("all stands alone: probe: all")
    return [written] if isinstance(written, str) else written


Probes = Annotated[
    list[ProbeName],
    Field(min_length=1),
    BeforeValidator(_listed),
    WithJsonSchema(
        {
            "description": "Unusual requests to send: all, or some of them. Those that do not apply to a server are left out.",
            "anyOf": [
                {"enum": [ALL, *PROBE_NAMES]},
                {"type": "array", "minItems": 1, "uniqueItems": True, "items": {"enum": list(PROBE_NAMES)}},
            ],
        }
    ),
]
WITH_PROBE = frozenset(
    ("name", "server", "probe", "eras", "declare", "timeout", "fresh", "skip", "xfail", "tags", "setup", "teardown")
)
"""The keys of a test that go with `probe`."""
