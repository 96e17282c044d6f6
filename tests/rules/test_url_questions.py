"""URL questions (design section 5): to accept means "opened" and settles nothing; the resolver is run again for its value."""

import asyncio
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from mcp_types import ElicitRequestURLParams, ElicitResult, InputRequiredResult

from bespeak import (
    Client,
    Context,
    Elicit,
    ElicitationResult,
    ElicitUrl,
    InvalidSignature,
    MCPError,
    MCPServer,
    Resolve,
    UrlElicitationRequiredError,
)
from bespeak.server.calls import held_calls
from bespeak.server.resolve import build_resolver_plans, find_resolved_parameters, resolve_arguments
from tests.answering import accept, text, unresolved
from tests.conftest import Connect
from tests.waiting import eventually, pass_time
from tests.wires import OverHttp

ACCEPT, DECLINE, CANCEL = (ElicitResult(action=action) for action in ("accept", "decline", "cancel"))


class Bank:
    """A person's account is there once a page was completed."""

    def __init__(
        self, *, url: Callable[[], str] = lambda: "https://bank.example/connect", every: float | None = None
    ) -> None:
        self.account: str | None = None
        self.looked = 0
        self.mcp = MCPServer[Any]("bank")

        async def connected() -> str | ElicitUrl:
            self.looked += 1
            return self.account or ElicitUrl("Connect your account", url(), every=every)

        async def confirm(account: Annotated[str, Resolve(connected)]) -> Elicit[bool]:
            return Elicit(f"Pay from {account}?", bool)

        @self.mcp.tool()
        async def pay(account: Annotated[str, Resolve(connected)], ok: Annotated[bool, Resolve(confirm)]) -> str:
            return f"paid from {account}: {ok}"

        @self.mcp.tool()
        async def show(outcome: Annotated[ElicitationResult[str], Resolve(connected)]) -> str:
            return repr(outcome)


class Visitor:
    """Opens pages; each time, something may happen there."""

    def __init__(self, answer: ElicitResult = ACCEPT, then: Callable[[], object] = lambda: None) -> None:
        self.urls: list[str] = []
        self._answer = answer
        self._then = then

    async def __call__(self, context: Any, params: Any) -> ElicitResult:
        if isinstance(params, ElicitRequestURLParams):
            self.urls.append(params.url)
            self._then()
            return self._answer
        return accept(value=True)


@pytest.mark.asking_revisions
@pytest.mark.long
async def test_the_resolver_is_run_again_inside_the_request_until_it_returns_its_value(connect: Connect) -> None:
    bank = Bank()
    visitor = Visitor(then=lambda: asyncio.get_running_loop().call_later(0.3, setattr, bank, "account", "DE-7"))
    async with connect(bank.mcp, elicitation_callback=visitor) as client:
        if client.protocol_version < "2025-11-25":
            with pytest.raises(MCPError, match=r"elicitation\.url"):
                await client.call_tool("pay")
            return
        assert text(await client.call_tool("pay")) == "paid from DE-7: True"
    assert visitor.urls == ["https://bank.example/connect"]
    assert bank.looked > 2


@pytest.mark.parametrize("mode", ["2026-07-28", "2025-11-25"])
@pytest.mark.parametrize(("answer", "said"), [(DECLINE, "decline"), (CANCEL, "cancel")])
async def test_decline_and_cancel_are_outcomes_as_usual(mode: str, answer: ElicitResult, said: str) -> None:
    async with Client(Bank().mcp, mode=mode, elicitation_callback=Visitor(answer)) as client:
        ended = text(await client.call_tool("pay"))
        assert ended.endswith(unresolved("account", said))
        assert said in text(await client.call_tool("show"))


@pytest.mark.parametrize("mode", ["2026-07-28", "2025-11-25"])
async def test_after_25_seconds_without_a_value_the_identical_question_is_asked_again(mode: str) -> None:
    bank, opened = Bank(), asyncio.Event()
    visitor = Visitor(then=opened.set)
    async with Client(bank.mcp, mode=mode, elicitation_callback=visitor) as client:
        calling = asyncio.create_task(client.call_tool("pay"))
        await eventually(lambda: visitor.urls)
        while len(visitor.urls) < 2:
            assert not calling.done()
            await pass_time(1.0)
        bank.account = "DE-7"
        while not calling.done():
            await pass_time(1.0)
        assert text(calling.result()) == "paid from DE-7: True"
    assert visitor.urls == ["https://bank.example/connect"] * 2


def in_memory(mcp: MCPServer[Any], **options: Any) -> Client:
    return Client(mcp, **options)


def over_http(mcp: MCPServer[Any], **options: Any) -> Client:
    return Client(OverHttp(mcp, "httptools"), **options)


@pytest.mark.parametrize("mode", ["2026-07-28", "2025-11-25"])
@pytest.mark.parametrize(("connected", "held"), [(in_memory, 4), (over_http, 3)], ids=["nobody", "one address"])
async def test_where_too_many_calls_are_held_already_the_same_question_is_asked_again_at_once(
    connected: Connect, held: int, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_calls, "MOST_HELD", 4)
    bank, asked = Bank(), list[str]()

    async def person(context: Any, params: ElicitRequestURLParams) -> ElicitResult:
        asked.append(params.url)
        if len(asked) == held + 2:
            await asyncio.Event().wait()
        return ACCEPT

    async with connected(bank.mcp, mode=mode, elicitation_callback=person) as client, asyncio.TaskGroup() as group:
        calling: list[asyncio.Task[Any]] = []
        for number in range(1, held + 1):
            calling.append(group.create_task(client.call_tool("pay")))
            looked = bank.looked
            await eventually(lambda looked=looked: bank.looked > looked + 2)
            assert len(asked) == number
        calling.append(group.create_task(client.call_tool("pay")))
        await eventually(lambda: len(asked) == held + 2)
        assert asked == ["https://bank.example/connect"] * (held + 2)
        for call in calling:
            call.cancel()


async def test_a_call_that_resolves_its_arguments_by_hand_is_held_like_any_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(held_calls, "MOST_HELD", 0)
    looked = list[int]()

    async def connected() -> str | ElicitUrl:
        looked.append(1)
        return ElicitUrl("Connect your account", "https://bank.example/connect")

    async def account(account: Annotated[str, Resolve(connected)]) -> None: ...

    resolved = find_resolved_parameters(account)
    plans = build_resolver_plans(resolved, set())
    mcp = MCPServer[Any]("bank")

    @mcp.tool()
    async def pay(ctx: Context) -> str | InputRequiredResult:
        values = await resolve_arguments(resolved, plans, {}, ctx)
        return values if isinstance(values, InputRequiredResult) else f"paid from {values['account']}"

    async with Client(mcp, elicitation_callback=Visitor()) as client:
        asked: Any = await client.session.call_tool("pay", allow_input_required=True)
        again: Any = await client.session.call_tool(
            "pay",
            input_responses=dict.fromkeys(asked.input_requests, ACCEPT),
            request_state=asked.request_state,
            allow_input_required=True,
        )
    assert list(again.input_requests) == list(asked.input_requests)
    assert len(looked) == 2


@pytest.mark.parametrize("mode", ["2026-07-28", "2025-11-25"])
async def test_the_author_says_how_often_a_resolver_may_be_run_again_while_its_call_is_held(mode: str) -> None:
    bank, opened = Bank(every=5.0), list[int]()
    visitor = Visitor(then=lambda: opened.append(bank.looked))
    async with Client(bank.mcp, mode=mode, elicitation_callback=visitor) as client:
        calling = asyncio.create_task(client.call_tool("pay"))
        await eventually(lambda: opened)
        while len(opened) < 2:
            assert not calling.done()
            await pass_time(0.25)
        calling.cancel()
    rounds = 1 if mode == "2026-07-28" else 0  # a modern retry runs the resolver, too
    assert opened[1] - opened[0] - rounds in (4, 5), "25 seconds, one run every 5"


@pytest.mark.parametrize("every", [0, -1.0, 25.1, float("nan"), "2", True])
async def test_a_time_between_runs_that_does_not_fit_is_the_authors_mistake(
    every: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async with Client(Bank(every=every).mcp, elicitation_callback=Visitor()) as client:
        ended = text(await client.call_tool("pay"))
    assert "cannot be sent: every must be more than 0 and at most 25 seconds; leave it out, or write a" in ended


async def test_an_older_client_is_sent_to_a_page_ten_times_at_most() -> None:
    visitor = Visitor()
    async with Client(Bank().mcp, mode="2025-11-25", elicitation_callback=visitor) as client:
        calling = asyncio.create_task(client.call_tool("pay"))
        while not calling.done():
            await pass_time(5.0)
        assert text(calling.result()).endswith("has no value after its page was opened 10 times")
    assert len(visitor.urls) == 10


async def test_a_url_that_changes_is_another_question_and_drifts() -> None:
    numbers = iter(range(1000))
    bank = Bank(url=lambda: f"https://bank.example/{next(numbers)}")
    async with Client(bank.mcp, elicitation_callback=Visitor()) as client:
        ended = text(await client.call_tool("pay"))
    assert "asks a question that changes from round to round" in ended


async def test_an_answer_that_is_no_elicitation_result_is_a_tool_error() -> None:
    async with Client(Bank().mcp, elicitation_callback=Visitor()) as client:
        session = client.session
        asked: Any = await session.call_tool("pay", allow_input_required=True)
        (key,) = asked.input_requests
        wrongs: list[dict[str, Any]] = [{"roots": []}, {"action": "opened"}]
        for wrong in wrongs:
            result = await session.call_tool(
                "pay", input_responses={key: wrong}, request_state=asked.request_state, allow_input_required=True
            )
            assert "it has no valid action" in text(result)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("bank.example/connect", "the URL has no scheme"),
        ("ftp://bank.example", "the URL has the scheme 'ftp'"),
        ("https://", "the URL has no valid host"),
        ("https://bank.example/\n", "the URL contains characters that are not allowed in a URL"),
        (7, "the URL is not a string"),
    ],
)
async def test_a_url_that_nobody_could_open_is_the_authors_mistake(
    url: Any, problem: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with Client(Bank(url=lambda: url).mcp, elicitation_callback=Visitor()) as client:
        assert f"returned a question that cannot be sent: {problem}" in text(await client.call_tool("pay"))


async def test_a_message_that_is_not_text_is_the_authors_mistake() -> None:
    mcp = MCPServer[Any]("bank")

    async def connected() -> str | ElicitUrl:
        return ElicitUrl(7, "https://bank.example")  # type: ignore[arg-type]

    @mcp.tool()
    async def pay(account: Annotated[str, Resolve(connected)]) -> str:
        return account

    async with Client(mcp, elicitation_callback=Visitor()) as client:
        assert "cannot be sent: the message is not a string" in text(await client.call_tool("pay"))


def test_a_resolver_that_only_returns_a_url_question_is_refused() -> None:
    async def connected() -> ElicitUrl:
        return ElicitUrl("Connect", "https://bank.example")

    mcp = MCPServer[Any]("bank")
    with pytest.raises(InvalidSignature, match="it returns only ElicitUrl, which settles nothing"):

        @mcp.tool()
        async def pay(account: Annotated[str, Resolve(connected)]) -> str:
            return account


def test_a_forgotten_resolve_on_a_url_question_is_refused() -> None:
    mcp = MCPServer[Any]("bank")
    with pytest.raises(InvalidSignature, match="would let a client supply ElicitUrl"):

        @mcp.tool()
        async def pay(account: str | ElicitUrl) -> str:
            return str(account)


# As the official SDK has it at 2025-11-25


def till() -> MCPServer[Any]:
    mcp = MCPServer[Any]("till")

    @mcp.tool()
    async def pay() -> str:
        page = ElicitRequestURLParams(message="Sign in", url="https://bank.example", elicitation_id="e-1")
        raise UrlElicitationRequiredError([page])

    @mcp.tool()
    async def done(ctx: Context[Any, Any]) -> str:
        await ctx.session.send_elicit_complete("e-1")
        return "told"

    return mcp


async def test_at_2025_11_25_a_tool_may_fail_with_the_pages_to_open_first() -> None:
    async with Client(till(), mode="2025-11-25") as client:
        with pytest.raises(MCPError, match="URL elicitation required") as failed:
            await client.session.call_tool("pay")
    assert failed.value.code == -32042
    page = {"mode": "url", "message": "Sign in", "url": "https://bank.example", "elicitationId": "e-1"}
    assert failed.value.data == {"elicitations": [page]}


async def test_at_2026_07_28_that_error_does_not_exist() -> None:
    async with Client(till()) as client:
        with pytest.raises(MCPError, match="ask with ElicitUrl in a resolver") as failed:
            await client.call_tool("pay")
    assert failed.value.code == -32603


@pytest.mark.parametrize(("mode", "told"), [("2025-11-25", ["notifications/elicitation/complete"]), ("2026-07-28", [])])
async def test_an_older_client_can_be_told_that_a_page_was_completed(mode: str, told: list[str]) -> None:
    heard: list[Any] = []

    async def hear(message: Any) -> None:
        heard.append(message)

    async with Client(till(), mode=mode, message_handler=hear) as client:
        assert text(await client.call_tool("done")) == "told"
    assert [message["method"] for message in heard] == told
    assert all(message["params"] == {"elicitationId": "e-1"} for message in heard)
