"""A server whose tools ask, with a clock and a store of its own, and states sent back to it."""

import logging
import re
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel

from bespeak import Client, Elicit, MCPError, MCPServer, RequestStateSecurity, Resolve
from bespeak.state.stores.memory import MemoryStore

REFUSAL = "invalid or expired requestState; if the call may have taken effect, check before you start it again"


OLD, NEW = "old key " * 8, "new key " * 8


YES = {"approve": {"action": "accept", "content": {"reason": "broken"}}}


START = 1_000_000.0


class Approval(BaseModel):
    reason: str


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        return self.now


class Desk:
    """A server whose tools ask, and a note of everything of its author's that ran."""

    def __init__(self, name: str = "desk", **security: Any) -> None:
        self.ran: list[str] = []
        self.clock = Clock()
        self.store = Keeping()
        self.security = RequestStateSecurity(clock=self.clock, **security)
        self.mcp = MCPServer[Any](name, request_state_security=self.security, store=self.store)
        ran = self.ran

        def noted(order: str) -> str:
            ran.append("validator")
            return order

        async def may_refund(order: Annotated[str, AfterValidator(noted)]) -> None:
            ran.append("guard")

        async def approve(order: str) -> Elicit[Approval]:
            ran.append("resolver")
            return Elicit(f"Refund {order}?", Approval)

        async def second(order: str, first: Annotated[Approval, Resolve(approve, key="approve")]) -> Elicit[Approval]:
            return Elicit(f"Really refund {order}, {first.reason}?", Approval)

        @self.mcp.tool()
        async def refund(
            order: Annotated[str, AfterValidator(noted)],
            ok: Annotated[None, Resolve(may_refund, guard=True)],
            approval: Annotated[Approval, Resolve(approve, key="approve")],
        ) -> str:
            ran.append("body")
            return f"refunded {order}: {approval.reason}"

        @self.mcp.tool()
        async def cancel(order: str, approval: Annotated[Approval, Resolve(approve, key="approve")]) -> str:
            ran.append("body")
            return f"cancelled {order}"

        @self.mcp.tool()
        async def twice(
            order: str,
            approval: Annotated[Approval, Resolve(approve, key="approve")],
            again: Annotated[Approval, Resolve(second, key="again")],
        ) -> str:
            return f"{approval.reason}, {again.reason}"


class Keeping(MemoryStore):
    """Shows what it was given to keep."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[bytes] = []

    async def finish(self, call: str, owner: str, result: bytes) -> bool:
        self.kept.append(result)
        return await super().finish(call, owner, result)


async def ask(client: Client, tool: str = "refund", **arguments: Any) -> str:
    """The state that comes with the tool's first question."""
    asked = await client.session.request("tools/call", {"name": tool, "arguments": arguments or {"order": "o-1"}})
    assert asked["resultType"] == "input_required"
    return asked["requestState"]


async def retry(client: Client, state: Any, tool: str = "refund", **arguments: Any) -> dict[str, Any]:
    answered = {"inputResponses": YES, "requestState": state}
    return await client.session.request(
        "tools/call", {"name": tool, "arguments": arguments or {"order": "o-1"}, **answered}
    )


async def refused(client: Client, state: Any, tool: str = "refund", **arguments: Any) -> None:
    with pytest.raises(MCPError) as raised:
        await retry(client, state, tool, **arguments)
    assert (raised.value.code, raised.value.message, raised.value.data) == (-32602, REFUSAL, None)


def assert_logged(caplog: pytest.LogCaptureFixture, reason: str, token: Any, tool: str = "refund") -> None:
    """One warning, with the reason, the tool and the request's id, and without the token."""
    (record,) = [one for one in caplog.records if one.name == "bespeak.server"]
    assert record.levelno == logging.WARNING
    assert re.search(rf"requestState of '{tool}', request \d+: .*{reason}", record.getMessage())
    assert not isinstance(token, str) or len(token) < 20 or token not in caplog.text
