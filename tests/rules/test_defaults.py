"""A default is what a client shows, never a consent (design section 5), by the wire and in both eras."""

from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from bespeak import Context, Elicit, MCPServer, Resolve
from tests.conftest import Connect
from tests.rules.raw_calls import accept, answer, asked, failed, message, opened, said, send
from tests.server.legacy.older_client import JUNE, NOVEMBER, Older, Sent, yes

pytestmark = pytest.mark.filterwarnings("ignore:form field 'confirm'")

EMPTY = "The form came back empty. Fill it in, even if you agree with what it suggests."
TOO_OFTEN = f"no valid answer to 'consent' after 3 attempts: {EMPTY}"


class Consent(BaseModel):
    confirm: bool = True
    note: str = ""


class Amount(BaseModel):
    cents: int = 100


class Wishes(BaseModel):
    express: bool | None = None
    note: str | None = None


async def ask_consent() -> Elicit[Consent]:
    return Elicit("Refund 40 EUR?", Consent)


async def ask_amount() -> Elicit[Amount]:
    return Elicit("Refund how much?", Amount)


async def ask_wishes() -> Elicit[Wishes]:
    return Elicit("Anything else?", Wishes)


@pytest.fixture
def refunds() -> list[Any]:
    """What was refunded."""
    return []


@pytest.fixture
def till(refunds: list[Any]) -> MCPServer[Any]:
    mcp = MCPServer[Any]("till")

    async def refund(consent: Annotated[Consent, Resolve(ask_consent, key="consent")]) -> str:
        if consent.confirm:
            refunds.append(consent)
        return f"{consent.confirm}"

    async def refund_some(amount: Annotated[Amount, Resolve(ask_amount, key="amount")]) -> str:
        refunds.append(amount.cents)
        return f"{amount.cents}"

    async def wish(wishes: Annotated[Wishes, Resolve(ask_wishes, key="wishes")]) -> str:
        return f"{wishes.express} {wishes.note}"

    async def refund_in_body(ctx: Context) -> str:
        outcome = await ctx.elicit("Refund 40 EUR?", Consent)
        refunds.append(outcome)
        return f"{outcome!r}"

    for tool in (refund, refund_some, wish, refund_in_body):
        mcp.add_tool(tool)
    return mcp


async def test_an_empty_form_is_not_a_yes_and_is_asked_again(
    in_memory: Connect, till: MCPServer[Any], refunds: list[Any]
) -> None:
    async with opened(in_memory, till) as client:
        again = await answer(client, "refund", {"consent": accept()})
        assert asked(again) == ["consent"]
        assert message(again, "consent") == f"Refund 40 EUR?\n\n{EMPTY}"
        assert not refunds
        assert said(await send(client, "refund", {"consent": accept(confirm=True)}, again["requestState"])) == "True"
    assert len(refunds) == 1


async def test_an_empty_form_is_asked_again_no_more_often_than_another_slip(
    in_memory: Connect, till: MCPServer[Any], refunds: list[Any]
) -> None:
    async with opened(in_memory, till) as client:
        round_ = await answer(client, "refund", {"consent": accept()})
        round_ = await send(client, "refund", {"consent": accept()}, round_["requestState"])
        assert asked(round_) == ["consent"]
        last = await send(client, "refund", {"consent": accept()}, round_["requestState"])
    assert failed(last) == f"Error executing tool refund: {TOO_OFTEN}"
    assert not refunds


@pytest.mark.parametrize("version", [NOVEMBER, JUNE])
async def test_an_older_client_that_sends_an_empty_form_is_asked_again(
    till: MCPServer[Any], refunds: list[Any], version: str
) -> None:
    async with Older(till, {"consent": [yes(), yes(confirm=True)]}, version=version) as client:
        result = await client.call("refund")
    assert [one["params"]["message"] for one in client.pushed] == ["Refund 40 EUR?", f"Refund 40 EUR?\n\n{EMPTY}"]
    assert not result["isError"]
    assert len(refunds) == 1


async def test_an_older_client_whose_forms_are_always_empty_has_not_agreed(
    till: MCPServer[Any], refunds: list[Any]
) -> None:
    async with Older(till, {"consent": yes()}) as client:
        assert await client.failure("refund") == f"Error executing tool refund: {TOO_OFTEN}"
    assert not refunds


async def test_an_answer_that_leaves_the_consent_to_its_default_is_a_tool_error(
    in_memory: Connect, till: MCPServer[Any], refunds: list[Any]
) -> None:
    async with opened(in_memory, till) as client:
        result = await answer(client, "refund", {"consent": accept(note="as agreed")})
    assert failed(result) == (
        "Error executing tool refund: the answer to 'consent' does not match the form: confirm: is required"
    )
    assert not refunds


@pytest.mark.parametrize("content", [{}, {"Cents": 5}])
async def test_a_form_without_any_of_its_fields_is_empty(
    in_memory: Connect, till: MCPServer[Any], refunds: list[Any], content: Sent
) -> None:
    async with opened(in_memory, till) as client:
        again = await answer(client, "refund_some", {"amount": accept(**content)})
        assert message(again, "amount") == f"Refund how much?\n\n{EMPTY}"
    assert not refunds


async def test_a_form_whose_fields_may_all_be_none_may_come_back_empty(
    in_memory: Connect, till: MCPServer[Any]
) -> None:
    async with opened(in_memory, till) as client:
        assert said(await answer(client, "wish", {"wishes": accept()})) == "None None"
    async with Older(till, {"wishes": yes()}) as older:
        assert (await older.call("wish"))["content"][0]["text"] == "None None"


async def test_a_question_in_a_body_keeps_its_defaults_but_an_empty_form_is_not_a_yes(
    till: MCPServer[Any], refunds: list[Any]
) -> None:
    async with Older(till, {"refund_in_body": [yes(), yes(note="as agreed")]}) as client:
        text = (await client.call("refund_in_body"))["content"][0]["text"]
    assert [one["params"]["message"] for one in client.pushed] == ["Refund 40 EUR?", f"Refund 40 EUR?\n\n{EMPTY}"]
    assert all("required" not in one["params"]["requestedSchema"] for one in client.pushed)
    assert "confirm=True, note='as agreed'" in text
    assert len(refunds) == 1
