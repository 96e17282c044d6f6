"""`inputResponses` is an object of answers by key; an answer is read as its wire type."""

from typing import Any

import pytest
from mcp_types import (
    CreateMessageResult,
    CreateMessageResultWithTools,
    ElicitResult,
    ListRootsResult,
)

from bespeak.protocol.errors import INVALID_PARAMS, MCPError
from bespeak.protocol.input_responses import read_answers, typed_answer

SAMPLED = {"role": "assistant", "content": {"type": "text", "text": "Paris"}, "model": "m"}


@pytest.mark.parametrize("sent", [{}, {"a": {"action": "accept", "content": {"n": 1}}, "b": {"anything": None}}])
def test_answers_are_returned_as_they_were_sent(sent: dict[str, Any]) -> None:
    assert read_answers({"inputResponses": sent}) == sent


def test_a_request_without_answers_has_none() -> None:
    assert read_answers({}) is None


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (None, "inputResponses must be an object that maps question keys to answers"),
        ([{"id": "a", "value": 1}], "inputResponses must be an object that maps question keys to answers"),
        ({"a": {}, "b": None}, "inputResponses['b'] must be an object"),
        ({"a": {}, "b": "yes"}, "inputResponses['b'] must be an object"),
    ],
)
def test_malformed_answers_are_invalid_params(sent: Any, message: str) -> None:
    with pytest.raises(MCPError) as caught:
        read_answers({"inputResponses": sent})
    assert (caught.value.code, caught.value.message) == (INVALID_PARAMS, message)


@pytest.mark.parametrize(
    ("answer", "model"),
    [
        ({"action": "accept", "content": {"n": 3.5}}, ElicitResult),
        ({"roots": [{"uri": "file:///a"}]}, ListRootsResult),
        (SAMPLED, CreateMessageResult),
        ({**SAMPLED, "content": [SAMPLED["content"]]}, CreateMessageResultWithTools),
    ],
)
def test_the_members_of_an_answer_decide_its_type(answer: dict[str, Any], model: type[Any]) -> None:
    assert type(typed_answer("k", answer)) is model


@pytest.mark.parametrize(
    ("answer", "model"),
    [
        ({"action": "maybe"}, "ElicitResult"),
        ({"roots": "x"}, "ListRootsResult"),
        ({}, "CreateMessageResult"),
        ({"role": "assistant", "content": [1], "model": "m"}, "CreateMessageResultWithTools"),
    ],
)
def test_an_answer_that_is_not_valid_for_its_type_is_invalid_params(answer: dict[str, Any], model: str) -> None:
    with pytest.raises(MCPError, match=rf"inputResponses\['k'\] is not a valid {model}$") as caught:
        typed_answer("k", answer)
    assert caught.value.code == INVALID_PARAMS
