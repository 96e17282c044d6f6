"""The calls of the page: in both eras, with every kind of question, and as they are on the wire."""

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from bespeak import MCPServer
from bespeak.dev.page_calls import MOST_CALLS, STOPPED, TOO_MANY
from bespeak.dev.person_script import CANNOT_DECLINE
from tests.dev.asking_shop import PAID, mcp
from tests.dev.pages import LEGACY, MODERN, Page, Reader, page_of
from tests.waiting import eventually

ERAS = pytest.mark.parametrize("era", [MODERN, LEGACY])
WISH = {
    "accept": {"copies": 2, "cover": "hard", "extras": ["wrap"], "price": 2.5, "gift": True, "email": "a@b.example"}
}
SURE = {"accept": {"sure": True}}


@pytest.fixture
async def page() -> AsyncGenerator[Page]:
    PAID.clear()
    async with page_of(mcp) as page:
        yield page


async def answered(call: Reader, **by_name: Any) -> None:
    """Answer questions until all of these are answered, however they are spread over rounds."""
    left = dict(by_name)
    while left:
        asked = await call.until("questions")
        names = [one["name"].rpartition(":")[2] for one in asked["questions"]]
        response = await call.answer(*[left.pop(name) for name in names])
        assert response.status_code == 200, response.text


# The kinds of questions


@ERAS
async def test_forms_are_asked_and_their_answers_reach_the_tool(page: Page, era: str) -> None:
    async with page.call("order", {"title": "Dune"}, era) as call:
        await answered(call, wish=WISH, sure=SURE)
        result = await call.until("result")
    assert result["failed"] is False
    told = json.loads(result["text"].removeprefix("Dune: ").removesuffix(" True"))
    assert told == WISH["accept"]


async def test_modern_questions_come_together_and_legacy_ones_one_after_the_other(page: Page) -> None:
    rounds: dict[str, list[int]] = {}
    for era in (MODERN, LEGACY):
        async with page.call("order", {"title": "Dune"}, era) as call:
            await answered(call, wish=WISH, sure=SURE)
            await call.until("result")
        rounds[era] = [len(one["questions"]) for one in call.seen if one["type"] == "questions"]
        assert {one["pushed"] for one in call.seen if one["type"] == "questions"} == {era == LEGACY}
    assert rounds == {MODERN: [2], LEGACY: [1, 1]}


@ERAS
async def test_a_question_is_shown_as_it_was_sent(page: Page, era: str) -> None:
    async with page.call("praise", {"title": "Dune"}, era) as call:
        (asked,) = (await call.until("questions"))["questions"]
    assert asked["method"] == "sampling/createMessage"
    assert asked["name"] == "tests.dev.asking_shop:blurb"
    assert asked["params"]["messages"][0]["content"]["text"] == "Praise Dune"


@ERAS
@pytest.mark.long
async def test_a_web_page_is_shown_with_its_address_and_to_accept_says_that_it_was_opened(page: Page, era: str) -> None:
    async with page.call("pay", {"title": "Dune"}, era) as call:
        (asked,) = (await call.until("questions"))["questions"]
        assert asked["params"]["url"] == "https://pay.example.com/here"
        PAID.add("Dune")
        await call.answer({"url": "done"})
        assert (await call.until("result"))["text"] == "Dune paid with card"


@ERAS
async def test_a_model_s_reply_and_folders_can_be_given(page: Page, era: str) -> None:
    async with page.call("praise", {"title": "Dune"}, era) as call:
        await answered(call, blurb={"sample": "Sandy."})
        assert "Sandy." in (await call.until("result"))["text"]
    async with page.call("index", era=era) as call:
        await answered(call, folders={"roots": ["file:///a", "file:///b"]})
        assert (await call.until("result"))["text"] == "file:///a, file:///b"


@ERAS
@pytest.mark.parametrize("word", ["decline", "cancel"])
async def test_a_form_can_be_declined_and_cancelled(page: Page, era: str, word: str) -> None:
    async with page.request("resources/read", {"uri": "shop://book/Dune"}, era) as call:
        await answered(call, sure=word)
        result = await call.until("result")
    assert result["failed"] is True
    assert f"elicitation was {word}" in result["text"]


async def test_a_model_s_reply_can_be_declined_only_at_older_revisions(page: Page) -> None:
    async with page.call("praise", {"title": "Dune"}, LEGACY) as call:
        await answered(call, blurb="decline")
        assert (await call.until("result"))["failed"] is True
    async with page.call("praise", {"title": "Dune"}, MODERN) as call:
        (asked,) = (await call.until("questions"))["questions"]
        response = await call.answer("decline")
        assert (response.status_code, response.json()) == (422, {"problems": {asked["key"]: CANNOT_DECLINE}})


# Answers that do not fit


@ERAS
async def test_answers_that_do_not_fit_are_explained_and_the_call_goes_on_waiting(page: Page, era: str) -> None:
    async with page.request("prompts/get", {"name": "letter", "arguments": {"title": "Dune"}}, era) as call:
        (asked,) = (await call.until("questions"))["questions"]
        wrongs: list[tuple[Any, str]] = [
            ({"accept": {"sure": "maybe"}}, "does not fit its form"),
            ({"accept": {}}, "does not fit its form"),
            ({"accept": {"sure": True, "more": 1}}, "has no field 'more'"),
            ({"sample": "yes"}, "asks with a form"),
            ({"nonsense": 1}, "an answer is a value, decline, cancel"),
            (None, "null is not an answer"),
            ("omit", "not answered yet"),
        ]
        for wrong, why in wrongs:
            response = await call.answer(wrong)
            assert response.status_code == 422
            assert why in response.json()["problems"][asked["key"]]
        assert (await call.answer()).json()["problems"] == {asked["key"]: "it is not answered yet"}
        await call.answer(SURE)
        assert (await call.until("result"))["text"] == "Dear reader of Dune, True"


async def test_an_answer_needs_an_open_question(page: Page) -> None:
    async with page.call("order", {"title": "Dune"}) as call:
        await call.until("questions")
        assert (await call.answer(WISH, SURE)).status_code == 200
        response = await call.answer(WISH, SURE)
        assert response.text in ("no question of this call is open", "this call has ended")
        await call.end()
    response = await page.post(f"api/call/{call.id}/answers", {"answers": {}})
    assert (response.status_code, response.text) == (404, "this call has ended")


# How calls end


async def test_a_result_that_is_an_error_and_an_error_are_shown(page: Page) -> None:
    async with page.call("break_down") as call:
        result = await call.until("result")
        assert result["failed"] is True
        assert "out of order" in result["text"]
    async with page.call("nothing") as call:
        result = await call.until("result")
        assert result["failed"] is True
        assert "nothing" in result["text"]
        assert json.loads(result["whole"])["code"] == -32602


@ERAS
async def test_a_call_can_be_stopped_while_it_asks(page: Page, era: str) -> None:
    async with page.call("order", {"title": "Dune"}, era) as call:
        await call.until("questions")
        assert (await call.stop()).status_code == 200
        assert (await call.until("failed"))["message"] == STOPPED


class Slow:
    """A server with a tool that does not end by itself."""

    def __init__(self) -> None:
        self.mcp: MCPServer[Any] = MCPServer("slow")
        self.under_way = 0
        self.mcp.add_tool(self.wait)

    async def wait(self) -> None:
        """Wait."""
        self.under_way += 1
        try:
            await asyncio.Event().wait()
        finally:
            self.under_way -= 1


@ERAS
async def test_a_call_can_be_stopped_while_it_runs(era: str) -> None:
    slow = Slow()
    async with page_of(slow.mcp) as page, page.call("wait", era=era) as call:
        await call.until("call")
        await eventually(lambda: slow.under_way)
        await call.stop()
        assert (await call.until("failed"))["message"] == STOPPED
        await eventually(lambda: not slow.under_way)


@ERAS
async def test_a_call_ends_when_the_page_goes_away(era: str) -> None:
    slow = Slow()
    async with page_of(slow.mcp) as page:
        async with page.call("wait", era=era) as call:
            await call.until("call")
            await eventually(lambda: slow.under_way)
        await eventually(lambda: not slow.under_way)


@pytest.mark.long
async def test_only_so_many_calls_may_be_under_way() -> None:
    slow = Slow()
    async with page_of(slow.mcp) as page:
        readers = [page.call("wait") for _ in range(MOST_CALLS)]
        for one in readers:
            await (await one.__aenter__()).until("call")
        body = {"era": MODERN, "method": "tools/call", "params": {"name": "wait"}}
        response = await page.post("api/call", body)
        assert (response.status_code, response.text) == (400, TOO_MANY)
        for one in readers:
            await one.__aexit__(None, None, None)
        await eventually(lambda: not slow.under_way)
        async with page.call("wait") as call:
            await call.until("call")


# The timeline


async def test_the_timeline_of_a_modern_call_shows_its_rounds(page: Page) -> None:
    async with page.request("prompts/get", {"name": "letter", "arguments": {"title": "Dune"}}) as call:
        await answered(call, sure=SURE)
        await call.until("result")
    assert call.wire()[-4:] == [
        "sent request: prompts/get letter",
        "received response: input required: 1 question",
        "sent request: prompts/get letter, with answers",
        "received response: result",
    ]
    shown = json.dumps(call.seen)
    states = [one for one in call.seen if one["type"] == "wire" and "requestState" in one["text"]]
    assert len(states) == 2
    assert all("(sealed, " in one["text"] for one in states)
    assert shown.count("requestState") == 2


async def test_the_timeline_of_a_legacy_call_shows_the_question_that_was_pushed(page: Page) -> None:
    async with page.request("prompts/get", {"name": "letter", "arguments": {"title": "Dune"}}, LEGACY) as call:
        await answered(call, sure=SURE)
        await call.until("result")
    assert call.wire()[0] == "sent request: initialize"
    assert call.wire()[-4:] == [
        "sent request: prompts/get letter",
        "received request: elicitation/create Buy Dune?",
        "sent response: answer: accept",
        "received response: result",
    ]
    times = [one["ms"] for one in call.seen]
    assert times == sorted(times)


@ERAS
async def test_the_timeline_shows_notifications(page: Page, era: str) -> None:
    async with page.call("order", {"title": "Dune"}, era) as call:
        await answered(call, wish=WISH, sure=SURE)
        await call.until("result")
    assert any(one.startswith("received notification: notifications/message") for one in call.wire())


async def test_a_resource_is_read(page: Page) -> None:
    async with page.request("resources/read", {"uri": "shop://opening"}) as call:
        assert (await call.until("result"))["text"] == "nine to five"
