"""Four cases are told apart: the client cannot be asked, the person declined, dismissed it, nobody answered (design 5)."""

import asyncio
import logging
from typing import Annotated, Any

import pytest

from bespeak import (
    AcceptedElicitation,
    CancelledElicitation,
    Client,
    DeclinedElicitation,
    Elicit,
    ElicitationResult,
    MCPError,
    MCPServer,
    NotAsked,
    Resolve,
)
from tests.answering import CANCEL, DECLINE, Person, accept, text, unresolved
from tests.conftest import Connect
from tests.wires import Listening

Outcome = ElicitationResult[bool] | NotAsked


async def confirm() -> Elicit[bool]:
    return Elicit("Delete it?", bool)


async def delete(ok: Annotated[bool, Resolve(confirm, key="confirm")]) -> str:
    return f"deleted: {ok}"


async def look(answer: Annotated[Outcome, Resolve(confirm, key="confirm")]) -> str:
    match answer:
        case AcceptedElicitation(data=ok):
            return f"accepted {ok}"
        case DeclinedElicitation():
            return "declined"
        case CancelledElicitation():
            return "dismissed"
        case NotAsked(reason=reason, missing=missing):
            return f"not asked: {reason} {missing}"


def desk(**options: Any) -> MCPServer[Any]:
    mcp = MCPServer[Any]("Desk", **options)
    mcp.add_tool(delete)
    mcp.add_tool(look)
    return mcp


FORM = "{'elicitation': {'form': {}}}"


# What a consumer gets, and what an error says


@pytest.mark.asking_revisions
@pytest.mark.parametrize(
    ("answer", "outcome", "error"),
    [
        (accept(value=True), "accepted True", None),
        (DECLINE, "declined", unresolved("ok", "decline")),
        (CANCEL, "dismissed", unresolved("ok", "cancel")),
    ],
    ids=["accepted", "declined", "dismissed"],
)
async def test_a_person_who_answered_is_told_from_one_who_declined_and_one_who_dismissed_it(
    connect: Connect, answer: Any, outcome: str, error: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "bespeak.resolve")
    async with connect(desk(), elicitation_callback=Person({"confirm": answer})) as client:
        assert text(await client.call_tool("look")) == outcome
        told = await client.call_tool("delete")
    assert told.is_error == (error is not None)
    if error is not None:
        assert text(told).endswith(error)
        word = "declined" if answer is DECLINE else "dismissed without an answer"
        assert caplog.messages.count(f"the question of resolver 'confirm' was {word}") == 2


@pytest.mark.every_revision
async def test_a_client_that_cannot_be_asked_is_an_error_of_its_own_and_nobody_dismissed_anything(
    connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "bespeak.resolve")
    async with connect(desk()) as client:
        assert text(await client.call_tool("look")) == f"not asked: not_declared {FORM}"
        with pytest.raises(MCPError, match=r"elicitation\.form") as raised:
            await client.call_tool("delete")
    assert (raised.value.code, raised.value.data) == (-32021, {"requiredCapabilities": {"elicitation": {"form": {}}}})
    assert caplog.text.count("the question of resolver 'confirm' cannot be sent to the client: ") == 2
    assert "dismissed" not in caplog.text


@pytest.mark.parametrize("mode", ["2025-11-25", "2025-06-18"])
async def test_without_a_session_an_older_client_is_not_asked(mode: str) -> None:
    async with (
        Listening(desk().streamable_http_app(stateless_http=True)) as listening,
        Client(listening.url, mode=mode, elicitation_callback=Person()) as client,
    ):
        assert text(await client.call_tool("look")) == f"not asked: no_session {FORM}"
        with pytest.raises(MCPError, match="without sessions") as raised:
            await client.call_tool("delete")
    assert raised.value.code == -32021


@pytest.mark.parametrize("mode", ["2025-11-25", "2025-06-18"])
async def test_without_a_stream_to_ask_on_an_older_client_is_not_asked(mode: str) -> None:
    async with (
        Listening(desk().streamable_http_app(json_response=True)) as listening,
        Client(listening.url, mode=mode, elicitation_callback=Person()) as client,
    ):
        assert text(await client.call_tool("look")) == f"not asked: no_way_back {FORM}"
        with pytest.raises(MCPError, match="no stream") as raised:
            await client.call_tool("delete")
    assert raised.value.code == -32021


async def test_at_2026_07_28_neither_sessions_nor_streams_are_needed_to_ask() -> None:
    app = desk().streamable_http_app(stateless_http=True, json_response=True)
    async with (
        Listening(app) as listening,
        Client(listening.url, elicitation_callback=Person({"confirm": accept(value=True)})) as client,
    ):
        assert text(await client.call_tool("delete")) == "deleted: True"


@pytest.mark.timing
async def test_that_nobody_answered_a_pushed_question_in_time_is_an_error_of_its_own(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def never(context: Any, params: Any) -> Any:
        return await asyncio.Event().wait()

    async with Client(desk(question_timeout=0.05), mode="2025-11-25", elicitation_callback=never) as client:
        for tool in ("look", "delete"):
            told = await client.call_tool(tool)
            assert text(told).endswith("resolver 'confirm' got no answer: nobody answered within 0.05 s")
    assert caplog.messages.count("the question of resolver 'confirm' got no answer: nobody answered within 0.05 s") == 2


# NotAsked is no person's word


async def test_a_recorded_decline_stays_a_decline_though_the_client_declares_less_afterwards() -> None:
    async def size(answer: Annotated[Outcome, Resolve(confirm, key="confirm")]) -> Elicit[int]:
        return Elicit(f"{type(answer).__name__}. How many?", int)

    async def take(
        answer: Annotated[Outcome, Resolve(confirm, key="confirm")],
        size: Annotated[int, Resolve(size, key="size")] = 0,
    ) -> str:
        return f"{type(answer).__name__} {size}"

    mcp = MCPServer[Any]("Desk")
    mcp.add_tool(take)
    async with Client(mcp, elicitation_callback=Person()) as able, Client(mcp) as unable:
        call: dict[str, Any] = {"name": "take", "arguments": {}}
        first = await able.session.request("tools/call", call)
        no = {"confirm": {"action": "decline"}}
        retry = {**call, "requestState": first["requestState"], "inputResponses": no}
        second = await able.session.request("tools/call", retry)
        last = {**call, "requestState": second["requestState"]}
        done = await unable.session.request("tools/call", last)
    assert done["structuredContent"] == {"result": "DeclinedElicitation 0"}


@pytest.mark.every_revision
async def test_not_asked_that_a_resolver_hands_on_is_not_taken_for_an_acceptance(in_memory: Connect) -> None:
    async def handed_on(answer: Annotated[bool | NotAsked, Resolve(confirm)]) -> bool | NotAsked:
        return answer

    async def take(answer: Annotated[Outcome, Resolve(handed_on)]) -> str:
        return type(answer).__name__

    mcp = MCPServer[Any]("Desk")
    mcp.add_tool(take)
    async with in_memory(mcp) as client:
        assert text(await client.call_tool("take")) == "NotAsked"


@pytest.mark.asking_revisions
@pytest.mark.parametrize(
    ("answer", "kind"), [(DECLINE, "DeclinedElicitation"), (CANCEL, "CancelledElicitation")], ids=["decline", "cancel"]
)
async def test_an_outcome_that_a_resolver_hands_on_is_not_taken_for_an_acceptance(
    in_memory: Connect, answer: Any, kind: str
) -> None:
    async def handed_on(answer: Annotated[ElicitationResult[bool], Resolve(confirm)]) -> ElicitationResult[bool]:
        return answer

    async def take(answer: Annotated[ElicitationResult[bool], Resolve(handed_on)]) -> str:
        return type(answer).__name__

    async def need(answer: Annotated[bool, Resolve(handed_on)]) -> str:
        return f"{answer}"

    mcp = MCPServer[Any]("Desk")
    mcp.add_tool(take)
    mcp.add_tool(need)
    async with in_memory(mcp, elicitation_callback=Person({"confirm": answer})) as client:
        assert text(await client.call_tool("take")) == kind
        assert "could not resolve" in text(await client.call_tool("need"))


async def test_a_test_may_say_that_the_client_cannot_be_asked() -> None:
    mcp = desk()
    async with Client(mcp, elicitation_callback=Person()) as client:
        with mcp.override(confirm, value=NotAsked("no_session", {"elicitation": {"form": {}}})):
            assert text(await client.call_tool("look")) == f"not asked: no_session {FORM}"
            with pytest.raises(MCPError, match=r"elicitation\.form"):
                await client.call_tool("delete")


async def test_not_asked_is_false_so_that_nobody_takes_it_for_a_yes() -> None:
    async def erase(ok: Annotated[bool | NotAsked, Resolve(confirm)]) -> str:
        return "erased" if ok else "kept"

    mcp = MCPServer[Any]("Desk")
    mcp.add_tool(erase)
    async with Client(mcp) as client:
        assert text(await client.call_tool("erase")) == "kept"
