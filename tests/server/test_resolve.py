"""The four functions of `bespeak.server.resolve`: the shapes of the official SDK's, the code of a served call."""

import json
from collections.abc import Callable, Generator
from typing import Annotated, Any

import pytest
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    PROTOCOL_VERSION_META_KEY,
    CreateMessageResult,
    InputRequiredResult,
    SamplingMessage,
    TextContent,
)
from pydantic import BaseModel

from bespeak import Context, MCPError, MCPServer, ToolError
from bespeak.server.context import CallFacts
from bespeak.server.resolve import (
    AcceptedElicitation,
    CancelledElicitation,
    DeclinedElicitation,
    Elicit,
    ElicitationResult,
    InvalidSignature,
    ListRoots,
    Resolve,
    Sample,
    build_resolver_plans,
    find_resolved_parameters,
    resolve_arguments,
    returns_input_required,
)
from tests.answering import CANCEL, DECLINE, Person, accept, text, unresolved
from tests.conftest import Connect
from tests.serving import serve


class Stock(BaseModel):
    title: str
    copies: int


class Backorder(BaseModel):
    confirm: bool


async def check_stock(title: str) -> Stock:
    return Stock(title=title, copies=len(title))


async def confirm(stock: Annotated[Stock, Resolve(check_stock)]) -> Backorder | Elicit[Backorder]:
    return Elicit(f"{stock.copies} left. Order?", Backorder)


async def order(
    title: str,
    stock: Annotated[Stock, Resolve(check_stock)],
    sure: Annotated[Backorder, Resolve(confirm)],
    answer: Annotated[ElicitationResult[Backorder], Resolve(confirm)],
    only: Annotated[AcceptedElicitation[Backorder], Resolve(confirm)],
    ctx: Context,
) -> str:
    raise NotImplementedError


def by_hand(fn: Callable[..., Any], arguments: set[str], show: Callable[[dict[str, Any]], str] = str) -> MCPServer[Any]:
    """A server whose one tool resolves the parameters of a function itself."""
    mcp = MCPServer[Any]("shop")
    resolved = find_resolved_parameters(fn)
    plans = build_resolver_plans(resolved, arguments)

    @mcp.tool()
    async def tool(ctx: Context, title: str = "Dune") -> str | InputRequiredResult:
        values = await resolve_arguments(resolved, plans, {"title": title}, ctx)
        return values if isinstance(values, InputRequiredResult) else show(values)

    return mcp


# find_resolved_parameters


def test_marked_parameters_are_found_with_whether_they_want_the_outcome() -> None:
    found = find_resolved_parameters(order)
    assert {name: (marker.fn, wants) for name, (marker, wants) in found.items()} == {
        "stock": (check_stock, False),
        "sure": (confirm, False),
        "answer": (confirm, True),
        "only": (confirm, True),
    }


def test_each_outcome_type_alone_wants_the_outcome() -> None:
    def tool(
        a: Annotated[DeclinedElicitation, Resolve(confirm)],
        b: Annotated[CancelledElicitation, Resolve(confirm)],
        c: Annotated[AcceptedElicitation[Backorder] | DeclinedElicitation, Resolve(confirm)],
    ) -> None: ...

    assert [wants for _, wants in find_resolved_parameters(tool).values()] == [True, True, True]


def test_a_function_without_markers_has_none() -> None:
    assert find_resolved_parameters(check_stock) == {}


def test_markers_behind_postponed_hints_of_a_local_class_are_found() -> None:
    class Local(BaseModel):
        n: int

    async def give() -> Local:
        return Local(n=1)

    def tool(local: "Annotated[Local, Resolve(give)]") -> None: ...

    assert list(find_resolved_parameters(tool)) == ["local"]


def test_a_marker_that_would_be_lost_is_an_error() -> None:
    def tool(stock: "Annotated[Stok, Resolve(check_stock)]") -> None: ...  # pyright: ignore[reportUndefinedVariable, reportUnknownParameterType]  # noqa: F821

    with pytest.raises(InvalidSignature, match="'Stok', which does not exist at run time"):
        find_resolved_parameters(tool)  # pyright: ignore[reportUnknownArgumentType]


# returns_input_required


def test_an_input_required_arm_is_seen_in_every_spelling() -> None:
    async def plain() -> InputRequiredResult: ...
    async def union() -> str | InputRequiredResult: ...
    async def text_hint() -> "str | InputRequiredResult": ...
    async def annotated() -> Annotated[str | InputRequiredResult, "note"]: ...

    assert all(returns_input_required(fn) for fn in (plain, union, text_hint, annotated))


def test_other_return_types_have_no_input_required_arm() -> None:
    async def nothing(): ...
    async def anything() -> Any: ...
    async def inside() -> list[InputRequiredResult]: ...

    assert not any(returns_input_required(fn) for fn in (nothing, anything, inside, check_stock))


# build_resolver_plans


def test_plans_hold_every_resolver_once() -> None:
    plans = build_resolver_plans(find_resolved_parameters(order), {"title"})
    assert [node.key_name.rpartition(":")[2] for node in plans.values()] == ["check_stock", "confirm"]


def test_a_parameter_nobody_fills_is_an_error_that_names_it() -> None:
    with pytest.raises(
        InvalidSignature, match="parameter 'title' of resolver 'check_stock' cannot be resolved: nothing fills it"
    ):
        build_resolver_plans(find_resolved_parameters(order), {"titel"})


def test_no_parameters_make_no_plans() -> None:
    assert build_resolver_plans({}, {"title"}) == {}


# resolve_arguments


@pytest.mark.every_revision
async def test_values_are_given_by_parameter_when_nothing_is_asked(connect: Connect) -> None:
    async def ready(stock: Annotated[Stock, Resolve(check_stock)]) -> Backorder | Elicit[Backorder]:
        return Backorder(confirm=stock.copies > 1)

    def fn(
        stock: Annotated[Stock, Resolve(check_stock)],
        sure: Annotated[Backorder, Resolve(ready)],
        answer: Annotated[ElicitationResult[Backorder], Resolve(ready)],
    ) -> None: ...

    seen: list[dict[str, Any]] = []
    async with connect(by_hand(fn, {"title"}, lambda values: str(seen.append(values)))) as client:
        await client.call_tool("tool")
    assert seen == [
        {
            "stock": Stock(title="Dune", copies=4),
            "sure": Backorder(confirm=True),
            "answer": AcceptedElicitation[Any](data=Backorder(confirm=True)),
        }
    ]


async def test_without_a_client_values_are_given_too() -> None:
    def fn(stock: Annotated[Stock, Resolve(check_stock)]) -> None: ...

    assert text(await by_hand(fn, {"title"}, lambda values: repr(values["stock"])).call_tool("tool")) == (
        "Stock(title='Dune', copies=4)"
    )


@pytest.mark.asking_revisions
async def test_a_question_is_asked_once_and_its_answer_used_when_the_client_retries(connect: Connect) -> None:
    person = Person({"confirm": accept(confirm=True)})
    mcp = by_hand(order, {"title"}, lambda values: f"{values['sure'].confirm} {values['only'].action}")
    async with connect(mcp, elicitation_callback=person) as client:
        assert text(await client.call_tool("tool")) == "True accept"
    assert person.messages == ["4 left. Order?"]


@pytest.mark.asking_revisions
@pytest.mark.parametrize(("answer", "action"), [(DECLINE, "decline"), (CANCEL, "cancel")])
async def test_a_decline_is_a_tool_error_for_whoever_wants_the_bare_value(
    in_memory: Connect, answer: Any, action: str
) -> None:
    async with in_memory(by_hand(order, {"title"}), elicitation_callback=Person({"confirm": answer})) as client:
        result = await client.call_tool("tool")
    assert result.is_error
    assert text(result).endswith(unresolved("sure", action))


@pytest.mark.every_revision
async def test_sampling_and_roots_are_asked_for_together(connect: Connect) -> None:
    async def write() -> Sample:
        return Sample([SamplingMessage(role="user", content=TextContent(type="text", text="hi"))], max_tokens=9)

    async def roots() -> ListRoots:
        return ListRoots()

    def fn(poem: Annotated[CreateMessageResult, Resolve(write)], where: Annotated[Any, Resolve(roots)]) -> None: ...

    mcp = by_hand(fn, set())
    async with connect(mcp) as client:
        with pytest.raises(MCPError) as caught:
            await client.call_tool("tool")
    assert caught.value.code == -32021
    assert caught.value.data == {"requiredCapabilities": {"sampling": {}, "roots": {}}}


async def test_a_generator_needs_a_call_that_closes_it() -> None:
    def connection() -> Generator[int]:
        yield 1

    def fn(connected: Annotated[int, Resolve(connection)]) -> None: ...

    mcp = MCPServer("shop")
    resolved = find_resolved_parameters(fn)
    plans = build_resolver_plans(resolved, set())

    @mcp.tool()
    async def tool(ctx: Context) -> str:
        with pytest.raises(TypeError, match="a generator resolver must be closed at the end of the call"):
            await resolve_arguments(resolved, plans, {}, ctx)
        return "refused"

    assert text(await mcp.call_tool("tool")) == "refused"


# On the wire


async def sent(mcp: MCPServer[Any], capabilities: dict[str, Any], **params: Any) -> dict[str, Any]:
    meta = {PROTOCOL_VERSION_META_KEY: "2026-07-28", CLIENT_CAPABILITIES_META_KEY: capabilities}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "tool", "_meta": meta, **params}}
    raw = await serve(mcp, json.dumps(message).encode(), lambda _: None)
    assert raw is not None
    return json.loads(raw)


async def test_a_state_of_the_author_s_own_is_no_progress() -> None:
    mcp = MCPServer[Any]("shop")
    resolved = find_resolved_parameters(order)
    plans = build_resolver_plans(resolved, {"title"})

    @mcp.tool()
    async def tool(ctx: Context) -> str | InputRequiredResult:
        if ctx.request_state is None:
            return InputRequiredResult(request_state="something else")
        return str(await resolve_arguments(resolved, plans, {"title": "Dune"}, ctx))

    state = (await sent(mcp, {}))["result"]["requestState"]
    error = (await sent(mcp, {}, requestState=state))["error"]
    assert error == {
        "code": -32602,
        "message": "invalid or expired requestState; if the call may have taken effect, check before you start it again",
    }


async def test_by_hand_a_missing_capability_uses_the_round_up() -> None:
    # The body has run: only where the framework itself asks can it know that nothing has happened yet.
    mcp = by_hand(order, {"title"}, lambda values: str(values["sure"].confirm))
    able: dict[str, Any] = {"elicitation": {}}
    first = (await sent(mcp, able))["result"]
    retry: dict[str, Any] = {"requestState": first["requestState"]}
    assert (await sent(mcp, {}, **retry))["error"]["code"] == -32021
    assert (await sent(mcp, able, **retry))["error"]["code"] == -32021


async def test_by_hand_a_bad_answer_uses_the_round_up() -> None:
    mcp = by_hand(order, {"title"}, lambda values: str(values["sure"].confirm))
    able: dict[str, Any] = {"elicitation": {}}
    first = (await sent(mcp, able))["result"]
    (key,) = first["inputRequests"]
    state = first["requestState"]
    bad = {key: {"action": "accept", "content": {"confirm": "yes"}}}
    good = {key: {"action": "accept", "content": {"confirm": True}}}
    assert (await sent(mcp, able, requestState=state, inputResponses=bad))["result"]["isError"]
    again = (await sent(mcp, able, requestState=state, inputResponses=good))["result"]
    assert again["content"][0]["text"].endswith(
        "this call was already settled with other answers; check whether it took effect before you start a new one"
    )


async def declined(fn: Callable[..., Any], copied: bool) -> Any:
    """What a by-hand tool gets when its question is declined."""
    params = find_resolved_parameters(fn)
    plans: Any = build_resolver_plans(params, set())
    facts = CallFacts("tool")
    context = Context[Any, Any](facts=facts)
    first = await resolve_arguments(params, dict(plans) if copied else plans, {}, context)
    assert isinstance(first, InputRequiredResult)
    facts.request_state = first.request_state
    facts.answers = {key: {"action": "decline"} for key in first.input_requests or {}}
    return await resolve_arguments(params, plans, {}, context)


async def ask_plainly() -> Elicit[bool]:
    return Elicit("Sure?", bool)


@pytest.mark.parametrize("copied", [False, True])
async def test_a_default_stands_in_for_a_decline_as_in_a_served_call(copied: bool) -> None:
    async def tool(sure: Annotated[bool | None, Resolve(ask_plainly)] = None) -> None: ...

    assert await declined(tool, copied) == {"sure": None}


async def test_an_outcome_not_named_ends_the_call_as_in_a_served_call() -> None:
    async def tool(sure: Annotated[AcceptedElicitation[bool], Resolve(ask_plainly)]) -> None: ...

    with pytest.raises(ToolError, match="Resolver for parameter 'sure' could not resolve: elicitation was decline"):
        await declined(tool, copied=False)


async def test_a_context_made_by_hand_will_do_where_nothing_is_asked() -> None:
    async def stock_of(title: str) -> str:
        return title

    async def tool(title: str, stock: Annotated[str, Resolve(stock_of)]) -> None: ...

    params = find_resolved_parameters(tool)
    context = Context[Any, Any]()
    assert await resolve_arguments(params, build_resolver_plans(params, {"title"}), {"title": "z"}, context) == {
        "stock": "z"
    }
    with pytest.raises(RuntimeError, match="this context was created by hand and has no server"):
        _ = context.mcp_server
