"""Reading answers (design section 5), by the wire: what a hostile or careless client may send, and what it gets."""

from typing import Annotated, Any

import pytest
from mcp_types import CreateMessageResult
from pydantic import BaseModel, ConfigDict
from pydantic_core import from_json

from bespeak import Elicit, MCPError, MCPServer, Resolve, Sample
from bespeak.protocol.messages import write_request
from tests.conftest import Connect
from tests.rules.raw_calls import ABSENT, accept, answer, asked, failed, opened, said, send
from tests.serving import serve


class Order(BaseModel):
    copies: int
    gift: bool | None = None
    price: float = 1.0
    note: str | None = None


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")
    copies: int


async def ask_order() -> Elicit[Order]:
    return Elicit("How many?", Order)


async def ask_strict() -> Elicit[Strict]:
    return Elicit("How many exactly?", Strict)


async def ask_note(order: Annotated[Order, Resolve(ask_order, key="order")]) -> Elicit[str]:
    return Elicit(f"A note on {order.copies}?", str)


async def ask_model() -> Sample:
    return Sample([], max_tokens=5)


def shop(bodies: list[Any] | None = None) -> MCPServer:
    """Tools that ask one question, a strict one, two in turn, two at once, and the model."""
    mcp = MCPServer("shop")
    ran: list[Any] = [] if bodies is None else bodies

    @mcp.tool()
    async def one(order: Annotated[Order, Resolve(ask_order, key="order")]) -> str:
        ran.append(order)
        return f"{order!r}"

    @mcp.tool()
    async def strict(order: Annotated[Strict, Resolve(ask_strict, key="strict")]) -> str:
        return f"{order.copies}"

    @mcp.tool()
    async def chain(
        order: Annotated[Order, Resolve(ask_order, key="order")], note: Annotated[str, Resolve(ask_note, key="note")]
    ) -> str:
        return f"{order.copies} {note}"

    @mcp.tool()
    async def both(
        order: Annotated[Order, Resolve(ask_order, key="order")],
        again: Annotated[Strict, Resolve(ask_strict, key="strict")],
    ) -> str:
        return f"{order.copies} {again.copies}"

    @mcp.tool()
    async def model(said: Annotated[CreateMessageResult, Resolve(ask_model, key="said")]) -> str:
        return type(said).__name__

    _ = one, strict, chain, both, model
    return mcp


# Answers that break the form


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ({"copies": "5"}, "copies: must be a whole number"),
        ({"copies": True}, "copies: must be a whole number"),
        ({"copies": None}, "copies: must be a whole number"),
        ({"copies": 5, "gift": 1}, "gift: must be true or false"),
        ({"copies": 5, "price": None}, "price: must be a number"),
        ({"copies": 5, "price": "1"}, "price: must be a number"),
        ({"copies": 5, "note": 7}, "note: must be a string"),
        ({"Copies": 5}, "copies: is required"),
        ({"copies": "x", "gift": "y"}, "copies: must be a whole number; gift: must be true or false"),
    ],
)
async def test_content_that_breaks_the_shown_form_is_an_explicit_tool_error(
    in_memory: Connect, content: dict[str, Any], fault: str
) -> None:
    async with opened(in_memory, shop()) as client:
        result = await answer(client, "one", {"order": {"action": "accept", "content": content}})
    assert failed(result) == f"Error executing tool one: the answer to 'order' does not match the form: {fault}"


async def test_an_empty_form_without_defaults_is_an_explicit_tool_error(in_memory: Connect) -> None:
    async with opened(in_memory, shop()) as client:
        result = await answer(client, "strict", {"strict": accept()})
    assert failed(result).endswith("the answer to 'strict' does not match the form: copies: is required")


@pytest.mark.parametrize("spelled", [b"NaN", b"Infinity", b"-Infinity", b"1e999"])
async def test_what_is_no_number_of_json_is_refused(spelled: bytes) -> None:
    mcp = shop()
    meta: dict[str, Any] = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    }

    async def called(params: dict[str, Any], old: bytes = b"", new: bytes = b"") -> dict[str, Any]:
        raw = write_request(1, "tools/call", {"name": "one", "arguments": {}, "_meta": meta, **params})
        response = await serve(mcp, raw.replace(old, new))
        assert response is not None
        return from_json(response)

    async with mcp.running():
        state = (await called({}))["result"]["requestState"]
        retry = {"requestState": state, "inputResponses": {"order": accept(copies=1, price=31415)}}
        response = await called(retry, b"31415", spelled)
    # Refusing the message as no JSON is as good as refusing the value.
    assert "error" in response or "price: must be a number" in failed(response["result"])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "is not an elicitation result: it has no valid action"),
        ({"action": "approve", "content": {"copies": 1}}, "is not an elicitation result"),
        (
            {"role": "assistant", "content": {"type": "text", "text": "yes"}, "model": "m"},
            "is not an elicitation result",
        ),
        ({"action": "accept"}, "was accepted without content"),
        ({"action": "accept", "content": None}, "was accepted without content"),
        ({"action": "accept", "content": [1]}, "is not an object"),
        ({"action": "accept", "content": "copies"}, "is not an object"),
    ],
)
async def test_an_answer_of_another_kind_or_without_content_is_an_explicit_tool_error(
    in_memory: Connect, given: dict[str, Any], words: str
) -> None:
    bodies: list[Any] = []
    async with opened(in_memory, shop(bodies)) as client:
        result = await answer(client, "one", {"order": given})
    assert words in failed(result)
    assert "'order'" in failed(result)
    assert not bodies


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"action": "accept", "content": {"copies": 1}},
            "the answer to 'said' is not a response to sampling/createMessage",
        ),
        ({"action": "decline"}, "the answer to 'said' is not a response to sampling/createMessage"),
        ({"roots": []}, "the answer to 'said' is not a valid sampling/createMessage result: see content, model, role"),
        ({}, "is not a valid sampling/createMessage result"),
    ],
)
async def test_an_elicitation_result_does_not_answer_a_sampling_question(
    in_memory: Connect, given: dict[str, Any], words: str
) -> None:
    async with opened(in_memory, shop()) as client:
        result = await answer(client, "model", {"said": given})
    assert words in failed(result)


async def test_after_a_bad_answer_the_same_round_may_be_sent_again_with_a_right_one(connect: Connect) -> None:
    bodies: list[Any] = []
    async with opened(connect, shop(bodies)) as client:
        state = (await send(client, "one"))["requestState"]
        failed(await send(client, "one", {"order": accept(copies="5")}, state))
        assert "copies=5" in said(await send(client, "one", {"order": accept(copies=5)}, state))
    assert len(bodies) == 1


async def test_a_good_answer_beside_a_bad_one_does_not_run_the_body(in_memory: Connect) -> None:
    async with opened(in_memory, shop()) as client:
        result = await answer(client, "both", {"order": accept(copies=1), "strict": accept(copies="1")})
    assert "'strict' does not match the form" in failed(result)


async def test_an_unknown_field_is_ignored_where_the_model_ignores_it(in_memory: Connect) -> None:
    bodies: list[Any] = []
    async with opened(in_memory, shop(bodies)) as client:
        await answer(client, "one", {"order": accept(copies=5, admin=True, __class__="x")})
    assert bodies == [Order(copies=5)]


async def test_an_unknown_field_is_refused_where_the_model_refuses_it(in_memory: Connect) -> None:
    async with opened(in_memory, shop()) as client:
        result = await answer(client, "strict", {"strict": accept(copies=5, admin=True)})
    assert "the answer to 'strict' does not match the form: admin: unknown field" in failed(result)


# The map of answers


@pytest.mark.parametrize("answers", [None, [], "order"])
async def test_a_map_that_is_none_is_invalid_params(in_memory: Connect, answers: Any) -> None:
    async with opened(in_memory, shop()) as client:
        with pytest.raises(MCPError, match="inputResponses must be an object") as caught:
            await answer(client, "one", answers)
    assert caught.value.code == -32602


@pytest.mark.parametrize("entry", [None, [], "accept"])
@pytest.mark.parametrize("key", ["order", "never asked"])
async def test_an_entry_that_is_no_object_is_invalid_params(in_memory: Connect, key: str, entry: Any) -> None:
    async with opened(in_memory, shop()) as client:
        with pytest.raises(MCPError, match=rf"inputResponses\['{key}'\] must be an object") as caught:
            await answer(client, "one", {key: entry})
    assert caught.value.code == -32602


async def test_unknown_keys_are_ignored(in_memory: Connect) -> None:
    async with opened(in_memory, shop()) as client:
        result = await answer(client, "one", {"order": accept(copies=2), "": {}, "stranger": {"action": "decline"}})
    assert "copies=2" in said(result)


@pytest.mark.parametrize("answers", [{}, {"stranger": accept(copies=1)}, ABSENT])
async def test_a_missing_answer_is_asked_again(in_memory: Connect, answers: Any) -> None:
    async with opened(in_memory, shop()) as client:
        again = await answer(client, "one", answers)
        assert asked(again) == ["order"]
        assert "copies=2" in said(await send(client, "one", {"order": accept(copies=2)}, again["requestState"]))


async def test_of_two_questions_only_the_unanswered_one_is_asked_again(connect: Connect) -> None:
    async with opened(connect, shop()) as client:
        again = await answer(client, "both", {"order": accept(copies=2)})
        assert asked(again) == ["strict"]
        done = await send(client, "both", {"strict": accept(copies=3)}, again["requestState"])
    assert said(done) == "2 3"


async def test_an_answer_to_a_question_not_asked_yet_does_not_count(connect: Connect) -> None:
    async with opened(connect, shop()) as client:
        second = await answer(client, "chain", {"order": accept(copies=2), "note": accept(value="too early")})
        assert asked(second) == ["note"]
        done = await send(client, "chain", {"note": accept(value="now")}, second["requestState"])
    assert said(done) == "2 now"


async def test_answers_without_a_state_do_not_count(connect: Connect) -> None:
    bodies: list[Any] = []
    async with opened(connect, shop(bodies)) as client:
        assert asked(await send(client, "one", {"order": accept(copies=2)})) == ["order"]
        assert asked(await send(client, "one", {"order": {"action": "decline"}})) == ["order"]
    assert not bodies


async def test_a_recorded_outcome_beats_an_answer_that_is_sent_again(connect: Connect) -> None:
    async with opened(connect, shop()) as client:
        second = await answer(client, "chain", {"order": accept(copies=2)})
        assert [one["params"]["message"] for one in second["inputRequests"].values()] == ["A note on 2?"]
        answers = {"order": accept(copies=9), "note": accept(value="x")}
        assert said(await send(client, "chain", answers, second["requestState"])) == "2 x"
        bad = {"order": {"action": "cancel"}, "note": accept(value="x")}
        assert said(await send(client, "chain", bad, second["requestState"])) == "2 x"


# Size


async def test_a_huge_answer_with_a_question_after_it_is_an_error_that_names_the_answer(connect: Connect) -> None:
    async with opened(connect, shop()) as client:
        result = await answer(client, "chain", {"order": accept(copies=2, note="x" * 1_000_000)})
    text = failed(result)
    assert text.startswith("Error executing tool chain: the call's progress is too large to send")
    assert "the answer to 'order' (1000" in text
    assert "make it smaller" in text


async def test_a_huge_answer_to_the_last_question_is_fine(connect: Connect) -> None:
    async with opened(connect, shop()) as client:
        second = await answer(client, "chain", {"order": accept(copies=2)})
        done = await send(client, "chain", {"note": accept(value="x" * 1_000_000)}, second["requestState"])
    assert len(said(done)) == 1_000_002


async def test_after_a_huge_answer_a_shorter_one_goes_through(in_memory: Connect) -> None:
    async with opened(in_memory, shop()) as client:
        state = (await send(client, "chain"))["requestState"]
        failed(await send(client, "chain", {"order": accept(copies=2, note="x" * 1_000_000)}, state))
        assert asked(await send(client, "chain", {"order": accept(copies=2, note="x")}, state)) == ["note"]
