"""Questions: how they are rendered, their digests, and what an answer means (design 5)."""

from typing import Any, cast

import pytest
from mcp_types import (
    CreateMessageRequest,
    CreateMessageResult,
    CreateMessageResultWithTools,
    ElicitRequest,
    ListRootsResult,
    ModelPreferences,
    SamplingMessage,
    TextContent,
    Tool,
    ToolChoice,
)
from pydantic import BaseModel, ConfigDict, Field, field_validator

from bespeak.resolve.asking.form_schemas import FormError, Refused
from bespeak.resolve.asking.progress import Settled
from bespeak.resolve.asking.questions import outcome_of, render, settle
from bespeak.resolve.errors import BadAnswer
from bespeak.resolve.markers import Elicit, ListRoots, Question, Sample
from bespeak.resolve.outcomes import AcceptedElicitation, CancelledElicitation, DeclinedElicitation

HELLO = SamplingMessage(role="user", content=TextContent(type="text", text="hello"))
READ_HUNK = Tool(name="read_hunk", input_schema={"type": "object"})


class Confirm(BaseModel):
    ok: bool = Field(description="Really?")


class Even(BaseModel):
    model_config = ConfigDict(extra="forbid")
    number: int

    @field_validator("number")
    @classmethod
    def is_even(cls, number: int) -> int:
        if number % 2:
            raise ValueError("must be even")
        return number


# Rendering


def test_a_form_is_rendered_as_an_elicitation() -> None:
    request = render("k", Elicit("Sure?", Confirm)).request()
    assert request == {
        "method": "elicitation/create",
        "params": {
            "mode": "form",
            "message": "Sure?",
            "requestedSchema": {
                "type": "object",
                "properties": {"ok": {"title": "Ok", "description": "Really?", "type": "boolean"}},
                "required": ["ok"],
            },
        },
    }
    ElicitRequest.model_validate(request)


def test_the_note_stands_under_the_question_and_nowhere_else() -> None:
    question = render("k", Elicit("Sure?", Confirm))
    noted = question.request("must be even")
    assert noted["params"].pop("message") == "Sure?\n\nmust be even"
    plain = question.request()
    assert plain["params"]["message"] == "Sure?"
    assert noted["params"] == {key: value for key, value in plain["params"].items() if key != "message"}


def test_choices_reach_the_rendered_form() -> None:
    params = render("k", Elicit("Which?", str, choices={"ord-1": "Order 1"})).params
    assert params is not None
    assert params["requestedSchema"]["properties"]["value"]["oneOf"] == [{"const": "ord-1", "title": "Order 1"}]


def test_a_sample_is_rendered_with_all_that_was_given_and_nothing_else() -> None:
    request = render(
        "k",
        Sample(
            [HELLO],
            max_tokens=7,
            system_prompt="be brief",
            include_context="thisServer",
            temperature=0.5,
            stop_sequences=["."],
            metadata={"a": 1},
            model_preferences=ModelPreferences(cost_priority=0.5),
            tools=[READ_HUNK],
            tool_choice=ToolChoice(mode="auto"),
        ),
    ).request()
    assert request == {
        "method": "sampling/createMessage",
        "params": {
            "messages": [{"role": "user", "content": {"type": "text", "text": "hello"}}],
            "maxTokens": 7,
            "systemPrompt": "be brief",
            "includeContext": "thisServer",
            "temperature": 0.5,
            "stopSequences": ["."],
            "metadata": {"a": 1},
            "modelPreferences": {"costPriority": 0.5},
            "tools": [{"name": "read_hunk", "inputSchema": {"type": "object"}}],
            "toolChoice": {"mode": "auto"},
        },
    }
    CreateMessageRequest.model_validate(request)
    bare = render("k", Sample([HELLO], max_tokens=7)).params
    assert bare is not None
    assert bare.keys() == {"messages", "maxTokens"}


def test_json_given_by_the_author_keeps_its_nulls() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"n": {"default": None}}}
    sample = Sample([HELLO], max_tokens=1, metadata={"a": None}, tools=[Tool(name="t", input_schema=schema)])
    params = render("k", sample).params
    assert params is not None
    assert params["metadata"] == {"a": None}
    assert params["tools"][0]["inputSchema"] == schema


def test_roots_are_asked_without_parameters() -> None:
    assert render("k", ListRoots()).request() == {"method": "roots/list"}
    assert render("k", ListRoots()).request("a note") == {"method": "roots/list"}


def test_a_message_that_is_not_text_cannot_be_asked() -> None:
    with pytest.raises(FormError, match="the message is not a string"):
        render("k", Elicit(cast("Any", bool), cast("Any", "Sure?")))


@pytest.mark.parametrize("attempts", [0, 101])
def test_attempts_below_1_or_above_100_cannot_be_asked(attempts: int) -> None:
    with pytest.raises(FormError, match="attempts must be between 1 and 100"):
        render("k", Elicit("Sure?", Confirm, attempts=attempts))


def test_a_form_that_cannot_be_shown_cannot_be_asked() -> None:
    with pytest.raises(FormError, match="is nested"):
        render("k", Elicit("Sure?", dict[str, int]))


def test_an_unknown_question_cannot_be_asked() -> None:
    class Guess(Question):
        pass

    with pytest.raises(ValueError, match="Guess is not a question that this server can ask"):
        render("k", Guess())


@pytest.mark.parametrize(
    ("marker", "text"),
    [
        (Elicit("Sure?", bool), "Sure?"),
        (Sample([HELLO], max_tokens=7), "hello"),
        (ListRoots(), "roots/list"),
    ],
)
def test_the_text_for_a_log_says_what_was_asked(marker: Question, text: str) -> None:
    assert text in render("k", marker).text


def test_the_text_for_a_log_is_bounded() -> None:
    assert len(render("k", Elicit("x" * 10_000, bool)).text) == 500


# Digests, from which pins and keys are made


def test_the_same_question_has_the_same_digest() -> None:
    assert render("k", Elicit("Sure?", Confirm)).digest() == render("k", Elicit("Sure?", Confirm)).digest()


@pytest.mark.parametrize(
    "marker",
    [
        Elicit("Sure!", Confirm),
        Elicit("Sure?", bool),
        Elicit("Sure?", str, choices={"a": "A"}),
        Sample([HELLO], max_tokens=7),
        ListRoots(),
    ],
)
def test_another_question_has_another_digest(marker: Question) -> None:
    assert render("k", marker).digest() != render("k", Elicit("Sure?", Confirm)).digest()


def test_attempts_and_notes_are_not_part_of_the_digest() -> None:
    once = render("k", Elicit("Sure?", Confirm, attempts=1))
    before = once.digest()
    once.request("a note")
    assert once.digest() == before == render("k", Elicit("Sure?", Confirm, attempts=9)).digest()


# What an answer means


def test_an_accepted_answer_is_recorded_as_it_was_sent() -> None:
    question = render("k", Elicit("?", Even))
    entry, outcome = settle(question, {"action": "accept", "content": {"number": 4.0}, "more": 1}, "p")
    assert entry == Settled("p", "accept", {"number": 4.0})
    assert isinstance(outcome, AcceptedElicitation)
    assert outcome.data == Even(number=4)


@pytest.mark.parametrize(("action", "kind"), [("decline", DeclinedElicitation), ("cancel", CancelledElicitation)])
def test_declining_and_cancelling_are_outcomes_and_their_content_is_ignored(action: Any, kind: type[Any]) -> None:
    question = render("k", Elicit("?", Even))
    entry, outcome = settle(question, {"action": action, "content": "rubbish"}, "p")
    assert entry == Settled("p", action, None)
    assert isinstance(outcome, kind)
    assert isinstance(outcome_of(question, entry), kind)


@pytest.mark.parametrize("content", [{}, None])
def test_a_form_without_fields_needs_no_content(content: Any) -> None:
    class Nothing(BaseModel):
        pass

    _, outcome = settle(render("k", Elicit("?", Nothing)), {"action": "accept", "content": content}, "p")
    assert isinstance(outcome, AcceptedElicitation)
    assert outcome.data == Nothing()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({}, "is not an elicitation result: it has no valid action"),
        ({"action": "yes"}, "is not an elicitation result"),
        ({"action": ["accept"]}, "is not an elicitation result"),
        ({"action": "ACCEPT", "content": {"number": 2}}, "is not an elicitation result"),
        ({"role": "assistant", "content": {"type": "text", "text": "x"}, "model": "m"}, "is not an elicitation result"),
        ({"action": "accept"}, "was accepted without content"),
        ({"action": "accept", "content": []}, "the content of the answer to 'k' is not an object"),
        ({"action": "accept", "content": {}}, "does not match the form: number: is required"),
        ({"action": "accept", "content": {"number": "2"}}, "number: must be a whole number"),
        ({"action": "accept", "content": {"number": 2, "x": 1}}, "x: unknown field"),
    ],
)
def test_breaking_the_form_is_the_clients_fault(answer: dict[str, Any], words: str) -> None:
    with pytest.raises(BadAnswer, match="the answer to 'k'") as caught:
        settle(render("k", Elicit("?", Even)), answer, "p")
    assert words in str(caught.value)


def test_what_the_authors_validator_refuses_is_a_slip() -> None:
    with pytest.raises(Refused, match="number: must be even"):
        settle(render("k", Elicit("?", Even)), {"action": "accept", "content": {"number": 3}}, "p")


@pytest.mark.parametrize("content", [None, [], {"number": 3}, {"number": "4"}, {"number": 4, "x": 1}], ids=str)
def test_a_recorded_answer_is_read_as_strictly_as_a_fresh_one(content: Any) -> None:
    with pytest.raises((BadAnswer, Refused)):
        outcome_of(render("k", Elicit("?", Even)), Settled("p", "accept", content))


SAID: dict[str, Any] = {"role": "assistant", "content": {"type": "text", "text": "x"}, "model": "m"}
CALLED: dict[str, Any] = {
    "role": "assistant",
    "content": [{"type": "tool_use", "id": "1", "name": "t", "input": {}}],
    "model": "m",
}


@pytest.mark.parametrize(
    ("marker", "answer", "kind"),
    [
        (Sample([HELLO], max_tokens=1), SAID, CreateMessageResult),
        (Sample([HELLO], max_tokens=1, tools=[READ_HUNK]), CALLED, CreateMessageResultWithTools),
        (Sample([HELLO], max_tokens=1, tools=[]), SAID, CreateMessageResultWithTools),
        (Sample([HELLO], max_tokens=1, tool_choice=ToolChoice(mode="none")), SAID, CreateMessageResultWithTools),
        (ListRoots(), {"roots": [{"uri": "file:///srv"}]}, ListRootsResult),
    ],
)
def test_other_questions_inject_the_wire_result(marker: Question, answer: dict[str, Any], kind: type[Any]) -> None:
    question = render("k", marker)
    entry, outcome = settle(question, answer, "p")
    assert entry == Settled("p", "accept", answer)
    assert isinstance(outcome, AcceptedElicitation)
    assert type(outcome.data) is kind
    assert outcome_of(question, entry) == outcome


@pytest.mark.parametrize("marker", [Sample([HELLO], max_tokens=1), ListRoots()])
@pytest.mark.parametrize("answer", [{"action": "accept", "content": {}}, {"action": "decline"}, {"action": "cancel"}])
def test_an_elicitation_result_answers_nothing_else(marker: Question, answer: dict[str, Any]) -> None:
    with pytest.raises(BadAnswer, match="the answer to 'k' is not a response to"):
        settle(render("k", marker), answer, "p")


@pytest.mark.parametrize(
    ("marker", "answer", "words"),
    [
        (
            Sample([HELLO], max_tokens=1),
            {"roots": []},
            "is not a valid sampling/createMessage result: see content, model, role",
        ),
        (ListRoots(), SAID, "is not a valid roots/list result: see roots"),
        (ListRoots(), {"roots": [{"uri": "https://example.com"}]}, "see roots.0.uri"),
    ],
)
def test_a_malformed_result_is_the_clients_fault(marker: Question, answer: dict[str, Any], words: str) -> None:
    with pytest.raises(BadAnswer, match="the answer to 'k'") as caught:
        settle(render("k", marker), answer, "p")
    assert words in str(caught.value)
    assert "pydantic" not in str(caught.value)
