"""Servers of 2025-11-25 that refuse a request until a person has opened a page (error -32042)."""

from typing import Any

import pytest
from mcp_types import ElicitRequestURLParams, ElicitResult

from bespeak import Client, InputRequiredRoundsExceededError, MCPError, MCPServer
from bespeak.client import (
    CallbackFailed,
    ClientRequestContext,
    InputRequiredQuestionsExceededError,
    InvalidServerResponse,
)
from bespeak.protocol.errors import UrlElicitationRequiredError
from tests.answering import text
from tests.client.older_server import OldServer, result_of
from tests.waiting import eventually
from tests.wires import OverHttp, OverPipes


def page(name: str, url: str = "https://pay.example/1") -> dict[str, Any]:
    return {"mode": "url", "elicitationId": name, "url": url, "message": f"Open {name}"}


class Till:
    """A tool that refuses with the same data until a number of requests have been made."""

    def __init__(self, data: Any, refusals: int = 1, code: int = -32042) -> None:
        self._error = {"code": code, "message": "pay first", "data": data}
        self._refusals = refusals
        self.calls = 0

    async def __call__(self, server: OldServer, message: dict[str, Any]) -> Any:
        self.calls += 1
        return self._error if self.calls <= self._refusals else result_of("paid")


class Visitor:
    """An elicitation callback that remembers what it was asked to open."""

    def __init__(self, *actions: Any) -> None:
        self._actions = list(actions)
        self.opened: list[tuple[str, str]] = []

    async def __call__(self, context: ClientRequestContext, params: Any) -> ElicitResult:
        assert isinstance(params, ElicitRequestURLParams)
        self.opened.append((context.key, params.url))
        return ElicitResult(action=self._actions.pop(0) if self._actions else "accept")


async def call(till: Till, visitor: Visitor | None, version: str = "2025-11-25", **options: Any) -> str:
    async with Client(OldServer(version, tool=till), mode=version, elicitation_callback=visitor, **options) as client:
        return text(await client.call_tool("tool"))


async def test_each_page_is_opened_and_the_call_is_made_again() -> None:
    till, visitor = Till({"elicitations": [page("a"), page("b", "https://pay.example/2")]}), Visitor()
    assert await call(till, visitor) == "paid"
    assert visitor.opened == [("a", "https://pay.example/1"), ("b", "https://pay.example/2")]
    assert till.calls == 2


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_person_who_does_not_open_a_page_ends_the_call_with_the_server_s_error(action: str) -> None:
    till = Till({"elicitations": [page("a"), page("b")]})
    with pytest.raises(MCPError, match="pay first") as refused:
        await call(till, Visitor("accept", action))
    assert (refused.value.code, till.calls) == (-32042, 1)


async def test_a_server_that_refuses_again_and_again_is_not_asked_for_ever() -> None:
    till, visitor = Till({"elicitations": [page("a")]}, refusals=100), Visitor()
    with pytest.raises(InputRequiredRoundsExceededError, match=r"round 3: a \(Open a\)"):
        await call(till, visitor, input_required_max_rounds=2)
    assert (till.calls, len(visitor.opened)) == (3, 2)


async def test_too_many_pages_are_an_error_and_none_is_opened() -> None:
    visitor = Visitor()
    with pytest.raises(InputRequiredQuestionsExceededError):
        await call(Till({"elicitations": [page("a"), page("b")]}), visitor, input_required_max_questions=1)
    assert visitor.opened == []


async def test_a_url_that_is_not_allowed_reaches_nobody() -> None:
    visitor = Visitor()
    with pytest.raises(InvalidServerResponse, match="with the scheme 'javascript'"):
        await call(Till({"elicitations": [page("a", "javascript:alert(1)")]}), visitor)
    assert visitor.opened == []


async def test_a_callback_that_fails_ends_the_call() -> None:
    with pytest.raises(CallbackFailed, match="the question 'a'"):
        await call(Till({"elicitations": [page("a")]}), Visitor("nonsense"))


@pytest.mark.parametrize(("visitor", "options"), [(Visitor(), {"elicitation_url_schemes": ()}), (None, {})])
async def test_a_client_that_opens_no_urls_gets_the_server_s_error(
    visitor: Visitor | None, options: dict[str, Any]
) -> None:
    with pytest.raises(MCPError, match="pay first"):
        await call(Till({"elicitations": [page("a")]}), visitor, **options)


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        {},
        {"elicitations": []},
        {"elicitations": 5},
        {"elicitations": [5]},
        {"elicitations": [{"mode": "form"}]},
    ],
)
async def test_an_error_that_names_no_pages_is_raised_as_it_is(data: Any) -> None:
    with pytest.raises(MCPError, match="pay first"):
        await call(Till(data), Visitor())


async def test_pages_with_the_same_id_or_none_are_all_opened() -> None:
    nameless = {name: value for name, value in page("a").items() if name != "elicitationId"}
    visitor = Visitor()
    assert await call(Till({"elicitations": [page("a"), page("a"), nameless]}), visitor) == "paid"
    assert [key for key, _ in visitor.opened] == ["a", "#1", "#2"]


@pytest.mark.parametrize(("version", "code"), [("2025-06-18", -32042), ("2025-11-25", -32602)])
async def test_the_error_has_this_meaning_only_at_2025_11_25(version: str, code: int) -> None:
    visitor = Visitor()
    with pytest.raises(MCPError, match="pay first"):
        await call(Till({"elicitations": [page("a")]}, code=code), visitor, version)
    assert visitor.opened == []


async def test_the_message_handler_hears_that_a_page_is_done() -> None:
    heard: list[Any] = []

    async def hear(message: dict[str, Any]) -> None:
        heard.append((message["method"], message["params"]))

    async def tool(server: OldServer, message: dict[str, Any]) -> Any:
        server.note("elicitation/complete", elicitationId="a")
        return result_of("paid")

    async with Client(OldServer(tool=tool), mode="legacy", message_handler=hear) as client:
        await client.call_tool("tool")
        await eventually(lambda: heard)
    assert heard == [("notifications/elicitation/complete", {"elicitationId": "a"})]


@pytest.mark.parametrize("wire", ["memory", "stdio", "http"])
async def test_a_served_tool_that_needs_a_page_is_called_again_once_the_page_was_opened(wire: str) -> None:
    mcp = MCPServer[Any]("till")
    calls: list[str] = []

    @mcp.tool()
    async def pay() -> str:
        calls.append("pay")
        if len(calls) == 1:
            needed = ElicitRequestURLParams.model_validate(page("a"))
            raise UrlElicitationRequiredError([needed])
        return "paid"

    target: Any = {"memory": mcp, "stdio": OverPipes(mcp), "http": OverHttp(mcp, "h11")}[wire]
    visitor = Visitor()
    async with Client(target, mode="2025-11-25", elicitation_callback=visitor) as client:
        assert text(await client.call_tool("pay")) == "paid"
    assert visitor.opened == [("a", "https://pay.example/1")]
    assert calls == ["pay", "pay"]
