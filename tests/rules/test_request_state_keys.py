"""Where the keys of a server's states come from, codecs of an author's own, and what a state hides and may weigh (section 7)."""

import secrets
import warnings
from typing import Annotated, Any

import pytest
from mcp_types import InputRequiredResult
from pydantic import BaseModel

from bespeak import Client, Elicit, MCPError, MCPServer, RequestStateSecurity, Resolve
from bespeak.state.seal import AESGCMRequestStateCodec, InvalidRequestState, RequestStateCodec
from bespeak.state.stores.memory import MemoryStore
from tests.answering import Person
from tests.conftest import Connect
from tests.rules.refund_desk import NEW, OLD, Desk, ask, assert_logged, refused, retry


class Approval(BaseModel):
    reason: str


def shop(**options: Any) -> MCPServer[Any]:
    mcp = MCPServer[Any]("shop", **options)

    async def approve() -> Elicit[Approval]:
        return Elicit("Refund?", Approval)

    @mcp.tool()
    async def refund(order: str, approval: Annotated[Approval, Resolve(approve, key="approve")]) -> str:
        return approval.reason

    return mcp


# Keys


async def test_a_ring_opens_states_of_its_old_key_and_seals_with_the_new_one(connect: Connect) -> None:
    before, ring, after = Desk(keys=[OLD]), Desk(keys=[NEW, OLD]), Desk(keys=[NEW])
    async with connect(before.mcp, elicitation_callback=Person()) as client:
        old = await ask(client, "twice")
    async with connect(ring.mcp, elicitation_callback=Person()) as client:
        new = (await retry(client, old, "twice"))["requestState"]
    async with connect(after.mcp, elicitation_callback=Person()) as client:
        assert (await retry(client, new, "twice"))["resultType"] == "input_required"
        await refused(client, old, "twice")


@pytest.mark.long
async def test_servers_with_the_environments_keys_open_each_others_states(
    in_memory: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BESPEAK_STATE_KEYS", secrets.token_urlsafe(32))
    store = MemoryStore()
    async with in_memory(shop(store=store), elicitation_callback=Person()) as client:
        token = await ask(client)
    async with in_memory(shop(store=store), elicitation_callback=Person()) as client:
        assert (await retry(client, token))["isError"] is False


async def test_a_result_sealed_with_a_key_that_was_rotated_out_is_gone(in_memory: Connect) -> None:
    store = MemoryStore()
    rings = [[NEW, OLD], [OLD, NEW], [NEW]]
    asking, paying, later = (
        shop(store=store, request_state_security=RequestStateSecurity(keys=ring)) for ring in rings
    )
    async with in_memory(asking, elicitation_callback=Person()) as client:
        token = await ask(client)
    async with in_memory(paying, elicitation_callback=Person()) as client:
        assert (await retry(client, token))["isError"] is False
    async with in_memory(later, elicitation_callback=Person()) as client:
        gone = await retry(client, token)
    assert gone["isError"] is True
    assert (
        "its result is no longer kept; check whether it took effect before you repeat it" in gone["content"][0]["text"]
    )


async def test_without_keys_a_restarted_server_does_not_open_old_states(in_memory: Connect) -> None:
    async with in_memory(shop(), elicitation_callback=Person()) as client:
        token = await ask(client)
    async with in_memory(shop(), elicitation_callback=Person()) as client:
        await refused(client, token)


@pytest.mark.parametrize("source", ["author", "codec", "environment"])
def test_given_keys_without_a_store_are_a_loud_warning(monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    security = None
    if source == "environment":
        monkeypatch.setenv("BESPEAK_STATE_KEYS", secrets.token_urlsafe(32))
    elif source == "codec":
        security = RequestStateSecurity(codec=AESGCMRequestStateCodec([NEW]))
    else:
        security = RequestStateSecurity(keys=[NEW])
    with pytest.warns(
        RuntimeWarning,
        match=r"no shared store is: .* the same approval could be spent again\. Pass .*: MCPServer\(store=",
    ):
        MCPServer("shop", request_state_security=security)


@pytest.mark.parametrize("security", [None, RequestStateSecurity(), RequestStateSecurity.ephemeral()])
def test_keys_made_for_this_process_are_no_reason_to_warn(security: RequestStateSecurity | None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MCPServer("shop", request_state_security=security)


def test_given_keys_with_a_store_are_no_reason_to_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MCPServer("shop", request_state_security=RequestStateSecurity(keys=[NEW]), store=MemoryStore())


@pytest.mark.parametrize("by_hand_first", [True, False])
async def test_a_state_made_by_hand_is_no_state_of_a_tool_with_resolvers_and_the_other_way_round(
    in_memory: Connect, caplog: pytest.LogCaptureFixture, by_hand_first: bool
) -> None:
    options: dict[str, Any] = {
        "request_state_security": RequestStateSecurity(keys=[NEW]),
        "store": MemoryStore(),
    }
    by_hand, runs = MCPServer[Any]("shop", **options), list[str]()

    @by_hand.tool()
    async def refund(order: str) -> InputRequiredResult:
        runs.append(order)
        return InputRequiredResult(request_state="half done")

    before, after = (by_hand, shop(**options)) if by_hand_first else (shop(**options), by_hand)
    async with in_memory(before, elicitation_callback=Person()) as client:
        token = await ask(client)
    runs.clear()
    async with in_memory(after, elicitation_callback=Person()) as client:
        await refused(client, token)
    assert runs == []
    assert_logged(caplog, "made by hand, but the tool has resolvers", token)


# An author's own codec


class Plain:
    """Seals nothing; opens with whatever it was told to."""

    def __init__(self, opened: Any) -> None:
        self._opened = opened

    def seal(self, payload: bytes) -> str:
        return "token"

    def unseal(self, token: str) -> bytes:
        if isinstance(self._opened, Exception):
            raise self._opened
        return self._opened


@pytest.mark.parametrize(
    ("opened", "reason"),
    [
        (InvalidRequestState("not mine"), "not mine"),
        (b"", "not a state of this version"),
        (b"\x00\xff garbage", "not a state of this version"),
        (b"s" + b"[" * 100_000, "not a state of this version"),
        (b's[1,"tools/call"]', "not a state of this version"),
        (b"sNaN", "not a state of this version"),
        (ValueError("its own kind of error"), ""),
        (KeyError("its own kind of error"), ""),
    ],
    ids=lambda value: repr(value)[:30],
)
async def test_garbage_from_a_codec_is_refused_like_any_other_state(
    in_memory: Connect, caplog: pytest.LogCaptureFixture, opened: Any, reason: str
) -> None:
    desk = Desk(codec=Plain(opened))
    async with in_memory(desk.mcp, elicitation_callback=Person()) as client:
        await refused(client, "token")
    assert desk.ran == []
    assert_logged(caplog, reason, "token")


async def test_an_authors_codec_seals_and_opens_states_and_results(in_memory: Connect) -> None:
    class Prefixed:
        def __init__(self, inner: RequestStateCodec) -> None:
            self._inner = inner

        def seal(self, payload: bytes) -> str:
            return f"own-{self._inner.seal(payload)}"

        def unseal(self, token: str) -> bytes:
            return self._inner.unseal(token.removeprefix("own-"))

    desk = Desk(codec=Prefixed(AESGCMRequestStateCodec([NEW])))
    async with in_memory(desk.mcp, elicitation_callback=Person()) as client:
        token = await ask(client)
        assert token.startswith("own-b1.")
        first, second = await retry(client, token), await retry(client, token)
    assert first["content"] == second["content"]
    assert desk.store.kept[0].startswith(b"own-b1.")


# What a state hides, and how large it may be


async def test_servers_that_share_keys_of_this_process_and_no_store_do_not_open_each_others_states() -> None:
    """Otherwise each of them would spend the same approval."""
    security, store = RequestStateSecurity(), MemoryStore()
    one, other, kin = (
        shop(request_state_security=security),
        shop(request_state_security=security),
        shop(request_state_security=security, store=store),
    )
    twin = shop(request_state_security=security, store=store)
    said: list[str] = []
    for asking, answering in ((one, other), (kin, one), (kin, twin)):
        async with Client(asking, elicitation_callback=Person()) as client:
            state = await ask(client)
        async with Client(answering, elicitation_callback=Person()) as client:
            try:
                said.append((await retry(client, state))["content"][0]["text"])
            except MCPError as error:
                said.append(error.message[:32])
    assert said == ["invalid or expired requestState;"] * 2 + ["broken"]
