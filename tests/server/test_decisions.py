"""The record of decisions: what was asked, who decided, and what was spent on it, in both eras. Never what was answered."""

import asyncio
import logging
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult
from pydantic import AfterValidator, BaseModel

from bespeak import Client, Elicit, ElicitationResult, MCPError, MCPServer, NotAsked, RequestStateSecurity, Resolve
from bespeak.server import Context, Decision, MemoryStore
from tests.answering import CANCEL, DECLINE, Person, text
from tests.answering import accept as accepts
from tests.conftest import Connect
from tests.rules.raw_calls import accept, nobody, said, send
from tests.waiting import eventually

SECRET = "my secret answer"


def one_letter(value: str) -> str:
    if len(value) != 1:
        raise ValueError("one letter, please")
    return value


class Letter(BaseModel):
    value: Annotated[str, AfterValidator(one_letter)]


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


class Desk:
    """A server that keeps its decisions, and a clock that the test moves."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.seen: list[Decision] = []
        security = RequestStateSecurity(keys=["k" * 32], clock=self.clock)
        self.mcp = mcp = MCPServer[Any]("desk", request_state_security=security, store=MemoryStore())
        mcp.on_decision(self.seen.append)
        self.wording = "What?"

        async def words() -> Elicit[str]:
            return Elicit(self.wording, str)

        self.words = words

        @mcp.tool()
        async def say(words: Annotated[str, Resolve(words, key="words")]) -> str:
            return f"said {words}"

        @mcp.tool()
        async def fail(words: Annotated[str, Resolve(words, key="words")]) -> str:
            raise RuntimeError(words)

        @mcp.tool()
        async def with_default(words: Annotated[str, Resolve(words, key="words")] = "silence") -> str:
            return f"said {words}"

        @mcp.tool()
        async def or_not(words: Annotated[ElicitationResult[str] | NotAsked, Resolve(words, key="words")]) -> str:
            return type(words).__name__

        async def handed_on(
            words: Annotated[ElicitationResult[str], Resolve(words, key="words")],
        ) -> ElicitationResult[str]:
            return words

        @mcp.tool()
        async def say_later(words: Annotated[str, Resolve(handed_on)]) -> str:
            return f"said {words}"

        async def short() -> Elicit[Letter]:
            return Elicit("One letter?", Letter)

        @mcp.tool()
        async def letter(short: Annotated[Letter, Resolve(short, key="short")]) -> str:
            return short.value

        @mcp.tool()
        async def by_hand(ctx: Context) -> str | InputRequiredResult:
            if not ctx.input_responses:
                form: dict[str, Any] = {"type": "object", "properties": {"value": {"type": "string"}}}
                asked = ElicitRequest(params=ElicitRequestFormParams(message="What?", requested_schema=form))
                return InputRequiredResult(input_requests={"hand": asked}, request_state="mine")
            return "done"

        @mcp.tool()
        async def plain() -> str:
            return "plain"

    @property
    def events(self) -> list[str]:
        return [one.event for one in self.seen]

    def only(self, event: str) -> Decision:
        (found,) = [one for one in self.seen if one.event == event]
        return found


@pytest.fixture
def desk() -> Desk:
    return Desk()


async def begun(client: Client, tool: str) -> tuple[str, list[str]]:
    asked = await send(client, tool)
    return asked["requestState"], list(asked["inputRequests"])


async def test_a_modern_call_is_recorded_from_its_question_to_its_end(desk: Desk) -> None:
    async with Client(desk.mcp, elicitation_callback=nobody) as client:
        state, keys = await begun(client, "say")
        desk.clock.now += 42
        assert said(await send(client, "say", {keys[0]: accept(value=SECRET)}, state)) == f"said {SECRET}"
        assert said(await send(client, "say", {keys[0]: accept(value=SECRET)}, state)) == f"said {SECRET}"
    assert desk.events == ["asked", "answered", "claimed", "finished", "replayed"]
    asked, answered, claimed, finished, replayed = desk.seen
    assert len({one.call_id for one in desk.seen}) == 1
    assert asked.call_id
    assert [one.round for one in desk.seen] == [1, 2, 2, 2, 2]
    assert {(one.method, one.target, one.era, one.principal) for one in desk.seen} == {
        ("tools/call", "say", "modern", None)
    }
    assert (asked.key, asked.decided_by) == ("words", None)
    assert (answered.key, answered.decided_by, answered.seconds) == ("words", "client", 42)
    assert asked.pin == answered.pin != None  # noqa: E711 - both are the same, and there
    assert (claimed.key, finished.seconds, finished.reason, replayed.reason) == (None, 0, None, None)


async def test_an_older_client_s_call_is_recorded_in_the_same_way(desk: Desk) -> None:
    async def slow(context: Any, params: Any) -> Any:
        desk.clock.now += 7
        return await Person({"words": accepts(value=SECRET)})(context, params)

    async with Client(desk.mcp, elicitation_callback=slow, mode="legacy") as client:
        await client.call_tool("say")
    assert desk.events == ["asked", "answered", "claimed", "finished"]
    assert {one.era for one in desk.seen} == {"legacy"}
    assert len({one.call_id for one in desk.seen}) == 1
    assert desk.only("answered").seconds == 7


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize(("answer", "event"), [(DECLINE, "declined"), (CANCEL, "cancelled")])
async def test_a_decline_and_a_cancel_are_the_client_s_decision(desk: Desk, mode: Any, answer: Any, event: str) -> None:
    async with Client(desk.mcp, elicitation_callback=Person({"words": answer}), mode=mode) as client:
        assert (await client.call_tool("say")).is_error
    assert desk.events[:2] == ["asked", event]
    assert desk.only(event).decided_by == "client"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize(("tool", "by"), [("with_default", "default"), ("or_not", "nobody")])
async def test_who_decided_is_the_default_or_nobody_where_the_client_cannot_be_asked(
    desk: Desk, mode: Any, tool: str, by: str
) -> None:
    async with Client(desk.mcp, mode=mode) as client:
        assert not (await client.call_tool(tool)).is_error
    assert [(one.event, one.key, one.decided_by) for one in desk.seen] == [("answered", "words", by)]


async def never_awaits() -> str:
    return "fixed"


async def awaits() -> str:
    await asyncio.sleep(0)
    return "fixed"


def in_a_thread() -> str:
    return "fixed"


FAKES: list[dict[str, Any]] = [
    {"value": "fixed"},
    *({"replacement": one} for one in (never_awaits, awaits, in_a_thread)),
]


@pytest.mark.asking_revisions
@pytest.mark.parametrize("fake", FAKES, ids=["a value", "never awaits", "awaits", "in a thread"])
async def test_an_override_is_named_as_the_one_who_decided(desk: Desk, connect: Connect, fake: dict[str, Any]) -> None:
    async with connect(desk.mcp, elicitation_callback=nobody) as client:
        with desk.mcp.override(desk.words, **fake):
            assert not (await client.call_tool("say")).is_error
    assert [(one.event, one.key, one.decided_by) for one in desk.seen] == [("answered", "words", "override")]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_slip_is_asked_again(desk: Desk, mode: Any) -> None:
    person = Person({"short": [accepts(value="too long"), accepts(value="x")]})

    async with Client(desk.mcp, elicitation_callback=person, mode=mode) as client:
        assert not (await client.call_tool("letter")).is_error
    assert desk.events == ["asked", "re-asked", "answered", "claimed", "finished"]


async def test_a_question_that_changed_has_drifted(desk: Desk) -> None:
    async with Client(desk.mcp, elicitation_callback=nobody) as client:
        state, keys = await begun(client, "say")
        desk.wording = "What now?"
        await send(client, "say", {keys[0]: accept(value=SECRET)}, state)
    assert desk.events == ["asked", "drifted", "asked"]


async def test_an_expired_state_and_a_refused_one_are_recorded_with_the_reason(desk: Desk) -> None:
    async with Client(desk.mcp, elicitation_callback=nobody) as client:
        state, keys = await begun(client, "say")
        desk.clock.now += 601
        with pytest.raises(MCPError):
            await send(client, "say", {keys[0]: accept(value=SECRET)}, state)
        with pytest.raises(MCPError):
            await send(client, "say", {}, state[:-1])
    asked, expired, refused = desk.seen
    assert (expired.event, expired.call_id, expired.reason) == ("expired", asked.call_id, "expired")
    assert (refused.event, refused.call_id) == ("refused", None)
    assert refused.reason is not None
    assert state not in refused.reason


async def test_a_call_settled_otherwise_is_refused_with_the_reason(desk: Desk) -> None:
    async with Client(desk.mcp, elicitation_callback=nobody) as client:
        state, keys = await begun(client, "say")
        await send(client, "say", {keys[0]: accept(value=SECRET)}, state)
        await send(client, "say", {keys[0]: accept(value="another")}, state)
    assert (
        desk.only("refused").reason
        == "this call was already settled with other answers; check whether it took effect before you start a new one"
    )


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_an_approved_call_that_fails_says_so(desk: Desk, mode: Any) -> None:
    async with Client(desk.mcp, elicitation_callback=Person({"words": accepts(value="x")}), mode=mode) as client:
        assert (await client.call_tool("fail")).is_error
    assert desk.only("finished").reason == "failed"


@pytest.mark.parametrize(("answer", "reason"), [(DECLINE, "declined"), (CANCEL, "cancelled")])
@pytest.mark.parametrize(("mode", "tool"), [("auto", "say"), ("auto", "say_later"), ("legacy", "say_later")])
async def test_a_claimed_call_that_a_person_ends_has_not_failed(
    desk: Desk, answer: Any, reason: str, mode: Any, tool: str
) -> None:
    async with Client(desk.mcp, elicitation_callback=Person({"words": answer}), mode=mode) as client:
        assert (await client.call_tool(tool)).is_error
    assert desk.only("finished").reason == reason


async def test_a_question_that_nobody_answers_in_time_has_expired() -> None:
    desk = Desk()

    async def never(context: Any, params: Any) -> Any:
        await asyncio.Event().wait()

    mcp = MCPServer[Any]("impatient", question_timeout=0.05)
    mcp.on_decision(desk.seen.append)

    @mcp.tool()
    async def say(words: Annotated[str, Resolve(desk.words, key="words")]) -> str:
        return words

    async with Client(mcp, elicitation_callback=never, mode="legacy") as client:
        assert (await client.call_tool("say")).is_error
    assert desk.events == ["asked", "expired"]
    expired = desk.only("expired")
    assert (expired.decided_by, expired.reason) == ("nobody", "nobody answered within 0.05 s")


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_questions_made_by_hand_are_recorded_too(desk: Desk, mode: Any) -> None:
    async with Client(desk.mcp, elicitation_callback=Person({"hand": accepts(value="x")}), mode=mode) as client:
        assert not (await client.call_tool("by_hand")).is_error
    assert [(one.event, one.key) for one in desk.seen if one.key] == [("asked", "hand"), ("answered", "hand")]


async def test_a_tool_that_asks_nothing_has_no_decisions(desk: Desk) -> None:
    async with Client(desk.mcp) as client:
        await client.call_tool("plain")
    assert desk.seen == []


async def test_the_log_has_every_decision_as_data_and_never_what_was_answered(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "bespeak.decisions"):
        async with Client(desk.mcp, elicitation_callback=Person({"words": accepts(value=SECRET)})) as client:
            await client.call_tool("say")
    records = [record for record in caplog.records if record.name == "bespeak.decisions"]
    data = [getattr(record, "decision") for record in records]  # noqa: B009 - added by the logger
    assert [one["event"] for one in data] == ["asked", "answered", "claimed", "finished"]
    assert records[0].getMessage() == "asked: tools/call say, question 'words', round 1"
    assert SECRET not in str(data) + caplog.text
    assert SECRET not in str(desk.seen)


async def test_an_asynchronous_function_has_recorded_the_approval_before_the_body_begins(desk: Desk) -> None:
    table: list[str] = []

    @desk.mcp.on_decision
    async def keep(decision: Decision) -> None:
        for _ in range(3):
            await asyncio.sleep(0)
        table.append(decision.event)

    @desk.mcp.tool()
    async def look(words: Annotated[str, Resolve(desk.words, key="words")]) -> str:
        return " ".join(table)

    async with Client(desk.mcp, elicitation_callback=Person({"words": accepts(value="x")})) as client:
        assert text(await client.call_tool("look")) == "asked answered claimed"
    assert table == ["asked", "answered", "claimed", "finished"]


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_what_a_function_raises_is_logged_and_changes_nothing(
    desk: Desk, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(decision: Decision) -> None:
        raise RuntimeError("no table")

    async def broken_later(decision: Decision) -> None:
        raise RuntimeError("no table")

    chosen: Callable[[Decision], Any] = broken if kind == "sync" else broken_later
    desk.mcp.on_decision(chosen)
    async with Client(desk.mcp, elicitation_callback=Person({"words": accepts(value="x")})) as client:
        assert not (await client.call_tool("say")).is_error
    assert f"the function '{chosen.__name__}', which records decisions, failed" in caplog.text
    assert len(desk.seen) == 4


async def test_a_slow_function_does_not_let_the_lease_lapse_and_one_that_cancels_itself_burns_no_approval(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bespeak.state.ledger.LEASE_SECONDS", 0.06)
    renewed: list[str] = []
    store: Any = desk.mcp._calls.ledger._store  # pyright: ignore[reportPrivateUsage] - it sees the renewals
    renew = store.renew

    async def counted(call: str, owner: str, lease: float) -> None:
        renewed.append(call)
        await renew(call, owner, lease)

    monkeypatch.setattr(store, "renew", counted)

    @desk.mcp.on_decision
    async def slow(decision: Decision) -> None:
        if decision.event == "claimed":
            await eventually(lambda: renewed)
            raise asyncio.CancelledError

    async with Client(desk.mcp, elicitation_callback=Person({"words": accepts(value="x")})) as client:
        assert text(await client.call_tool("say")) == "said x"
    assert renewed
