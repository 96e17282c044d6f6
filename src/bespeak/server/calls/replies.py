"""What a call runs, and how it ended: a consumer, and the reply that is stored for repeated requests."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from pydantic_core import from_json, to_json

from bespeak.protocol.errors import MCPError
from bespeak.resolve.errors import Refusal
from bespeak.resolve.graph.model import Graph
from bespeak.resolve.reading.callables import Kind


class ReadsArguments(Protocol):
    """What a call needs to know of the arguments."""

    def read(self, sent: dict[str, Any]) -> dict[str, Any]:
        """Return the values of the parameters. Raises `InvalidArguments`."""
        ...


class Consumer(Protocol):
    """What a call needs to know about the tool, prompt, resource or completion it runs."""

    @property
    def name(self) -> str: ...
    @property
    def method(self) -> str: ...
    @property
    def fn(self) -> Callable[..., Any]: ...
    @property
    def kind(self) -> Kind: ...
    @property
    def graph(self) -> Graph: ...
    @property
    def arguments(self) -> ReadsArguments: ...
    @property
    def context_parameters(self) -> tuple[str, ...]: ...
    @property
    def idempotent(self) -> bool: ...
    @property
    def home(self) -> Any:
        """The server it was registered on, if that is included in the one that serves it."""
        ...

    @property
    def plain(self) -> bool:
        """Whether a call only has to call the function."""
        ...

    @property
    def may_ask(self) -> bool:
        """Whether a call may ask something."""
        ...

    @property
    def at_once(self) -> bool:
        """Whether its function is async and never waits."""
        ...

    @property
    def may_wait(self) -> bool:
        """Whether its function may wait for something while it runs."""
        ...

    def result(self, value: Any) -> dict[str, Any]:
        """Return what the body returned, as a wire result."""
        ...

    def failure(self, error: Exception) -> dict[str, Any]:
        """Return a failed call as a wire result; raises `MCPError` where it is a protocol error."""
        ...


class Reply(NamedTuple):
    """How a call ended, as it is stored for repeated requests."""

    result: dict[str, Any] | None
    error: MCPError | None = None
    refusal: Refusal | None = None
    """How a person ended the call, if one did."""

    @property
    def failure(self) -> str | None:
        """How the call failed, in one word; `None` if it did not."""
        failed = self.error is not None or bool(self.result and self.result.get("isError"))
        return self.refusal or ("failed" if failed else None)

    def encode(self) -> bytes:
        end = {"error": self.error.body()} if self.error else {"result": self.result}
        return to_json({**end, "refusal": self.refusal} if self.refusal else end)

    @staticmethod
    def decode(raw: bytes) -> "Reply":
        reply = from_json(raw)
        error = reply.get("error")
        return Reply(reply.get("result"), MCPError(**error) if error else None, reply.get("refusal"))

    def unwrap(self) -> dict[str, Any]:
        if self.error is not None:
            raise self.error
        return self.result or {}
