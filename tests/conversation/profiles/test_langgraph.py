"""The profile of LangGraph: the call is made again after each answer, and kept answers are sent. See docs/frameworks.md."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from bespeak.conversation.answer_sources import FixtureScript
from bespeak.conversation.call_rounds import Conversation, RoundsExceeded
from bespeak.conversation.connection import Push, Received, Scripts, nothing
from bespeak.conversation.exchange import Talk
from bespeak.conversation.fixtures import InputResponseFixture
from bespeak.conversation.profiles.langgraph import LangGraph
from bespeak.conversation.protocol_rules import Finding
from tests.testing.canned import MODERN, Json, asking, error, form, told

CALL: Json = {"name": "pay", "arguments": {"order": "17"}}
YES: Json = {"action": "accept", "content": {"ok": True}}
OK: Json = {"ok": {"type": "boolean"}}


@dataclass
class Shop:
    """A server that asks about prices, each look finding the next one."""

    reply: Callable[["Shop", Json], Json]
    prices: list[int] = field(default_factory=lambda: [100, 200])
    sent: list[Json] = field(default_factory=list[Json])
    version: str = MODERN

    async def send(self, method: str, params: Json, push: Push, scripts: Scripts = nothing) -> Received:
        self.sent.append(params)
        reply = self.reply(self, params)
        members = reply if "error" in reply else {"result": reply}
        return Received({"jsonrpc": "2.0", "id": 1, **members})

    def look(self) -> int:
        return self.prices.pop(0) if len(self.prices) > 1 else self.prices[0]

    def asks(self, key: str = "ask") -> Json:
        eur = self.look()
        return asking(state=f"state-{len(self.sent)}", **{key.format(eur=eur): form(f"Pay {eur} EUR?", **OK)})

    def astray(self) -> list[Finding]:
        return []

    async def settle(self) -> None:
        """Nothing comes beside what is replied."""


def careless(shop: Shop, params: Json) -> Json:
    """The same key for any price."""
    return told(f"Charged {shop.look()} EUR.") if "inputResponses" in params else shop.asks()


def careful(shop: Shop, params: Json) -> Json:
    """A key that belongs to the price."""
    return told(f"Charged {shop.look()} EUR.") if "inputResponses" in params else shop.asks("ask~{eur:08d}")


async def held(shop: Shop, answers: Any = None, max_rounds: int = 5) -> Talk:
    script = FixtureScript(InputResponseFixture(answers or [{"otherwise": {"accept": {"ok": True}}}]))
    talk = Talk(shop, Conversation("tools/call", CALL, max_rounds), script, client=LangGraph())
    await talk.hold()
    return talk


async def test_after_an_answer_the_call_is_made_again_without_its_state_and_the_kept_answer_goes_to_the_new_question() -> (
    None
):
    shop = Shop(careless, [100])
    await held(shop)
    assert shop.sent == [CALL, CALL, {**CALL, "inputResponses": {"ask": YES}, "requestState": "state-2"}]


async def test_what_was_approved_and_what_was_done_is_found_where_a_key_does_not_change_with_the_price() -> None:
    talk = await held(Shop(careless))
    (found,) = talk.conversation.findings
    assert found.rule == "stale-answer"
    assert found.text == (
        "the person answered 'Pay 100 EUR?', and the server accepted the answer for 'Pay 200 EUR?'; "
        "its result is 'Charged 200 EUR.'"
    )


async def test_a_new_key_for_a_new_price_is_put_to_the_person_and_nothing_is_found() -> None:
    shop = Shop(careful)
    talk = await held(shop)
    assert talk.conversation.findings == []
    last = {**CALL, "inputResponses": {"ask~00000200": YES}, "requestState": "state-5"}
    assert shop.sent == [CALL] * 5 + [last], "as the adapter does it, with the loop around its tools"
    assert talk.envelope["result"]["content"][0]["text"] == "Charged 200 EUR."


async def test_only_the_last_call_counts_as_rounds_and_questions() -> None:
    talk = await held(Shop(careful))
    assert [list(one.asked) for one in talk.conversation.rounds] == [["ask~00000200"]]
    assert talk.asked == ["ask"]


async def test_a_price_that_stays_is_no_finding() -> None:
    assert (await held(Shop(careless, [100]))).conversation.findings == []


async def test_answers_are_kept_in_their_order_over_several_rounds() -> None:
    def two_rounds(shop: Shop, params: Json) -> Json:
        given = params.get("inputResponses", {})
        if "second" in given:
            return told("done")
        key = "second" if "first" in given else "first"
        return asking(state=f"state-{len(shop.sent)}", **{key: form(f"The {key}?", **OK)})

    shop = Shop(two_rounds)
    talk = await held(shop)
    assert ["inputResponses" in one for one in shop.sent] == [False, False, True, False, True, True]
    assert talk.asked == ["first", "second"]
    assert talk.conversation.findings == []


@pytest.mark.parametrize(
    "end", [error("the price has moved"), told("the price has moved", isError=True)], ids=["an error", "isError"]
)
async def test_a_server_that_refuses_the_stale_answer_is_not_at_fault(end: Json) -> None:
    def refusing(shop: Shop, params: Json) -> Json:
        return end if "inputResponses" in params else shop.asks()

    assert (await held(Shop(refusing))).conversation.findings == []


async def test_a_server_that_asks_again_is_not_at_fault() -> None:
    def asking_again(shop: Shop, params: Json) -> Json:
        answered = len([one for one in shop.sent if "inputResponses" in one])
        return told("Charged 200 EUR.") if answered > 2 else shop.asks()

    assert (await held(Shop(asking_again))).conversation.findings == []


async def test_a_server_that_goes_on_to_another_question_has_accepted_the_answer() -> None:
    def going_on(shop: Shop, params: Json) -> Json:
        if "receipt" in params.get("inputResponses", {}):
            return told("done")
        return asking(receipt=form("A receipt?", **OK)) if "inputResponses" in params else shop.asks()

    talk = await held(Shop(going_on, [100, 200, 300]))
    assert [one.text for one in talk.conversation.findings] == [
        "the person answered 'Pay 100 EUR?', and the server accepted the answer for 'Pay 200 EUR?'",
        "the person answered 'Pay 100 EUR?', and the server accepted the answer for 'Pay 300 EUR?'",
    ]


async def test_a_form_with_the_same_words_and_other_fields_is_another_question() -> None:
    def other_fields(shop: Shop, params: Json) -> Json:
        eur = {"type": "boolean", "title": f"{shop.look()} EUR"}
        return told("Charged.") if "inputResponses" in params else asking(ask=form("Pay?", ok=eur))

    (found,) = (await held(Shop(other_fields))).conversation.findings
    assert found.text == (
        "the person answered 'Pay?', and the server accepted the answer for a form of the same words and other fields; "
        "its result is 'Charged.'"
    )


async def test_a_kept_decline_approves_nothing() -> None:
    def declining(shop: Shop, params: Json) -> Json:
        return told("Not paid.") if "inputResponses" in params else shop.asks()

    assert (await held(Shop(declining), [{"otherwise": "decline"}])).conversation.findings == []


async def test_an_answer_that_was_left_out_is_asked_for_again() -> None:
    given = [{"otherwise": "omit"}]
    with pytest.raises(RoundsExceeded):
        await held(Shop(careless, [100]), given, max_rounds=2)


async def test_a_price_that_moves_at_every_look_ends_at_the_most_rounds() -> None:
    shop = Shop(careful, list(range(100, 100_000, 100)))
    with pytest.raises(RoundsExceeded) as caught:
        await held(shop, max_rounds=3)
    said = str(caught.value)
    assert said.startswith("the server is still asking after 3 answered rounds; it asked:")
    assert said.count('{"action": "accept", "content": {"ok": true}}') == 3
    assert said.endswith("-> no answer")
