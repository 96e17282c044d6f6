"""Hostile, stale and misplaced states over the wire (design sections 5.1 and 7): all refused alike, before any author code."""

import json
from collections.abc import Callable
from typing import Annotated, Any, cast

import pytest

from bespeak import Context, Elicit, MCPServer, RequestStateSecurity, Resolve
from tests.answering import Person
from tests.conftest import Connect
from tests.rules.refund_desk import (
    NEW,
    START,
    Approval,
    Desk,
    ask,
    assert_logged,
    refused,
    retry,
)


def parts(token: str) -> tuple[str, str, str]:
    prefix, key_id, body = token.split(".")
    return prefix, key_id, body


def with_ciphertext(token: str) -> str:
    return _flip(token, 20)


def _flip(token: str, at: int) -> str:
    prefix, key_id, body = parts(token)
    at %= len(body)
    return f"{prefix}.{key_id}.{body[:at]}{'A' if body[at] != 'A' else 'B'}{body[at + 1 :]}"


HOSTILE: dict[str, tuple[Callable[[str], Any], str]] = {
    "prefix": (lambda token: "b2" + token[2:], "not a token of this format"),
    "key id": (lambda token: f"b1.{'0' * 12}.{parts(token)[2]}", "not in the ring"),
    "nonce": (lambda token: _flip(token, 0), "authentication failed"),
    "body": (with_ciphertext, "authentication failed"),
    "tag": (lambda token: _flip(token, -4), "authentication failed"),
    "more text": (lambda token: f"{token}-TAMPERED", ""),
    "more of the alphabet": (lambda token: f"{token}AAAA", "authentication failed"),
    "less text": (lambda token: token[:-4], ""),
    "padding": (lambda token: f"{token}=", "not base64url"),
    "whitespace": (lambda token: f"{token}\n", ""),
    "empty": (lambda token: "", "not a token"),
    "one megabyte": (lambda token: "b1." + "A" * 1_000_000, "longer than any state"),
    "not ASCII": (lambda token: "ключ" + token, "not ASCII"),
    "plain JSON": (lambda token: '[{"approve":["pin","accept",{"reason":"x"}]},{},{}]', "not a token"),
    "null": (lambda token: None, ""),
    "a number": (lambda token: 7, ""),
    "an object": (lambda token: {"requestState": token}, ""),
}


@pytest.mark.parametrize("kind", HOSTILE)
async def test_a_hostile_state_is_refused_like_any_other_before_author_code_and_logged(
    in_memory: Connect, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    desk = Desk()
    spoil, reason = HOSTILE[kind]
    async with in_memory(desk.mcp, elicitation_callback=Person()) as client:
        token = spoil(await ask(client))
        desk.ran.clear()
        await refused(client, token)
    assert desk.ran == []
    assert_logged(caplog, reason, token)


# Valid, but not for this call


async def test_a_state_of_another_tool_is_refused(connect: Connect, caplog: pytest.LogCaptureFixture) -> None:
    desk = Desk()
    async with connect(desk.mcp, elicitation_callback=Person()) as client:
        token = await ask(client, "cancel")
        desk.ran.clear()
        await refused(client, token, "refund")
    assert desk.ran == []
    assert_logged(caplog, "the target of the state and of the request differ", token)


@pytest.mark.parametrize("other", [{"order": "o-2"}, {"order": "o-1", "more": 1}, {"order": "o-1", "approval": {}}])
async def test_a_state_for_other_arguments_is_refused(
    in_memory: Connect, caplog: pytest.LogCaptureFixture, other: dict[str, Any]
) -> None:
    desk = Desk()
    async with in_memory(desk.mcp, elicitation_callback=Person()) as client:
        token = await ask(client, order="o-1")
        desk.ran.clear()
        await refused(client, token, **other)
    assert desk.ran == []
    assert_logged(caplog, "the arguments of the state and of the request differ", token)


async def test_the_order_of_the_arguments_does_not_matter(in_memory: Connect) -> None:
    desk = Desk()
    async with in_memory(desk.mcp, elicitation_callback=Person()) as client:
        token = await ask(client, order="o-1", deep={"a": 1, "b": [2]})
        assert (await retry(client, token, deep={"b": [2], "a": 1}, order="o-1"))["isError"] is False


async def test_an_argument_that_a_resolver_changes_in_place_does_not_spoil_the_state(in_memory: Connect) -> None:
    mcp = MCPServer[Any]("desk")

    async def approve(basket: Any) -> Elicit[Approval]:
        basket["items"].pop()
        return Elicit("Refund?", Approval)

    @mcp.tool()
    async def refund(basket: Any, approval: Annotated[Approval, Resolve(approve, key="approve")]) -> str:
        return "refunded"

    async with in_memory(mcp, elicitation_callback=Person()) as client:
        token = await ask(client, basket={"items": [1, 2]})
        assert (await retry(client, token, basket={"items": [1, 2]}))["isError"] is False


@pytest.mark.parametrize(
    ("sealed", "opening", "accepted"),
    [
        (("one", None), ("two", None), False),
        (("one", "shop"), ("two", "shop"), True),
        (("one", "shop"), ("one", None), False),
    ],
)
async def test_a_state_is_for_one_audience_by_default_the_servers_name(
    in_memory: Connect,
    caplog: pytest.LogCaptureFixture,
    sealed: tuple[str, str | None],
    opening: tuple[str, str | None],
    accepted: bool,
) -> None:
    first = Desk(sealed[0], keys=[NEW], audience=sealed[1])
    second = Desk(opening[0], keys=[NEW], audience=opening[1])
    async with in_memory(first.mcp, elicitation_callback=Person()) as client:
        token = await ask(client)
    async with in_memory(second.mcp, elicitation_callback=Person()) as client:
        if accepted:
            assert (await retry(client, token))["isError"] is False
        else:
            await refused(client, token)
            assert second.ran == []
            assert_logged(caplog, "the audience of the state and of the request differ", token)


@pytest.mark.parametrize(("before", "after"), [(None, "x"), ("x", "y")])
async def test_a_state_is_for_one_principal(
    in_memory: Connect, caplog: pytest.LogCaptureFixture, before: str | None, after: str | None
) -> None:
    who = [before]

    def principal(context: Context) -> str | None:
        return who[0]

    desk = Desk(bind_principal=principal)
    async with in_memory(desk.mcp, elicitation_callback=Person()) as client:
        token = await ask(client)
        desk.ran.clear()
        who[0] = after
        await refused(client, token)
        assert desk.ran == []
        assert_logged(caplog, "the principal of the state and of the request differ", token)
        who[0] = before
        assert (await retry(client, token))["isError"] is False


@pytest.mark.parametrize("hook", [None, "the default"])
async def test_in_memory_the_principal_is_none(in_memory: Connect, hook: str | None) -> None:
    desk = Desk() if hook else Desk(bind_principal=None)
    async with in_memory(desk.mcp, elicitation_callback=Person()) as client:
        token = await ask(client)
        assert (await retry(client, token))["isError"] is False
    assert json.loads(desk.security.codec.unseal(token)[1:].partition(b"\n")[0])[5] is None


def seven(_: Any) -> int:
    return 7


async def test_a_principal_that_is_no_text_is_told_in_the_log(
    in_memory: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    security = RequestStateSecurity(bind_principal=cast("Any", seven))
    mcp = MCPServer[Any]("shop", request_state_security=security)

    async def ask() -> Elicit[bool]:
        return Elicit("Pay?", bool)

    @mcp.tool()
    async def pay(sure: Annotated[bool, Resolve(ask)]) -> str:
        return "paid"

    async with in_memory(mcp, elicitation_callback=Person()) as client:
        assert (await client.call_tool("pay")).is_error
    assert "bind_principal must return a string or None, not int" in caplog.text


# Time


async def test_a_state_expires_ten_minutes_after_its_round(connect: Connect, caplog: pytest.LogCaptureFixture) -> None:
    desk = Desk()
    async with connect(desk.mcp, elicitation_callback=Person()) as client:
        token = await ask(client)
        desk.ran.clear()
        desk.clock.now = START + 600
        await refused(client, token)
        assert desk.ran == []
        assert_logged(caplog, "expired", token)
        desk.clock.now = START + 599
        assert (await retry(client, token))["isError"] is False


async def test_the_deadline_of_the_call_is_fixed_in_round_one(
    in_memory: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    desk = Desk(deadline=1000.0)
    async with in_memory(desk.mcp, elicitation_callback=Person()) as client:
        token = await ask(client, "twice")
        desk.clock.now = START + 599
        fresh = (await retry(client, token, "twice"))["requestState"]
        desk.clock.now = START + 1000  # the second round is 401 seconds old, and would live for 600
        await refused(client, fresh, "twice")
    assert_logged(caplog, "past the deadline of the call", fresh, "twice")


# Made elsewhere, or for something else


async def test_a_state_whose_progress_cannot_be_read_is_refused_before_author_code(
    in_memory: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    desk = Desk(keys=[NEW])
    async with in_memory(desk.mcp, elicitation_callback=Person()) as client:
        payload, _, _ = desk.security.codec.unseal(await ask(client)).partition(b"\n")
        token = desk.security.codec.seal(payload + b'\n{"an older":"progress"}')
        desk.ran.clear()
        await refused(client, token)
    assert desk.ran == []
    assert_logged(caplog, "not the progress of a call in this version", token)
