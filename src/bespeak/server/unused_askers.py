"""Functions that ask, beside a server's tools, and that nothing uses: a marker was probably forgotten, so nobody is asked."""

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from bespeak.resolve.graph.replacements import identity
from bespeak.resolve.reading.returned_values import asked_class
from bespeak.resolve.reading.signatures import Signature, read
from bespeak.resolve.reading.type_hints import spell
from bespeak.server.features.registered import Registered


@dataclass(frozen=True, slots=True)
class UnusedAsker:
    """A function whose return annotation says that it asks, and that no resolver is made of."""

    signature: Signature

    def __str__(self) -> str:
        asked = asked_class(self.signature.question_arms)
        takes = f"Annotated[{spell(asked) if asked else '...'}, Resolve({self.signature.name})]"
        return (
            f"{self.signature.name} asks, but nothing uses it, so nobody is asked; "
            f"mark the parameter that takes its answer: {takes}"
        )


def unused_askers(registered: Sequence[Registered]) -> list[UnusedAsker]:
    """Return the functions that ask and are not used, in the modules of the functions that are registered.

    Modules with several servers are left out: another server may use them.
    """
    used = {who for one in registered for who in one.graph.identities} | {identity(one.fn) for one in registered}
    found: dict[int, UnusedAsker] = {}
    for names in _modules(registered):
        for value in list(names.values()):
            ours = isinstance(value, FunctionType) and value.__module__ == names.get("__name__")
            if ours and identity(value) not in used and "return" in value.__annotations__:
                signature = read(value)
                if signature.question_arms:
                    found[id(value)] = UnusedAsker(signature)
    return list(found.values())


def _modules(registered: Sequence[Registered]) -> Iterator[dict[str, Any]]:
    """The names in the modules of registered functions, without modules that have several servers."""
    from bespeak.server.server import MCPServer

    seen: dict[int, dict[str, Any]] = {}
    for one in registered:
        names: dict[str, Any] | None = getattr(inspect.unwrap(one.fn), "__globals__", None)
        if names is not None:
            seen[id(names)] = names
    for names in seen.values():
        servers: list[object] = [value for value in names.values() if isinstance(value, MCPServer)]
        if len(set(map(id, servers))) == 1:
            yield names
