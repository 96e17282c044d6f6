"""The retry's half of a round: `inputResponses` is a map of objects, all else `-32602`; and an answer's type."""

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
SAMPLED_WITH_TOOLS = {**SAMPLED, "content": [SAMPLED["content"]]}


def test_no_answers_are_none() -> None:
    assert read_answers({}) is None


def test_an_empty_map_of_answers_is_a_map() -> None:
    assert read_answers({"inputResponses": {}}) == {}


def test_answers_are_handed_on_as_they_were_sent() -> None:
    sent = {"a": {"action": "accept", "content": {"n": 1}}, "b": {"anything": None}}
    assert read_answers({"inputResponses": sent}) == sent


@pytest.mark.parametrize("answers", [None, [], [{"id": "a", "value": 1}], "x", 1, True])
def test_answers_that_are_no_map_are_invalid_params(answers: Any) -> None:
    with pytest.raises(MCPError, match="inputResponses must be an object") as caught:
        read_answers({"inputResponses": answers})
    assert caught.value.code == INVALID_PARAMS


@pytest.mark.parametrize("answer", [None, [], "yes", 1, True])
def test_an_answer_that_is_no_object_is_invalid_params(answer: Any) -> None:
    with pytest.raises(MCPError, match=r"inputResponses\['b'\] must be an object") as caught:
        read_answers({"inputResponses": {"a": {}, "b": answer}})
    assert caught.value.code == INVALID_PARAMS


@pytest.mark.parametrize(
    ("answer", "model"),
    [
        ({"action": "accept", "content": {"n": 3.5}}, ElicitResult),
        ({"action": "decline"}, ElicitResult),
        ({"roots": [{"uri": "file:///a"}]}, ListRootsResult),
        ({"roots": []}, ListRootsResult),
        (SAMPLED, CreateMessageResult),
        (SAMPLED_WITH_TOOLS, CreateMessageResultWithTools),
    ],
)
def test_an_answer_becomes_the_wire_type_it_holds(answer: dict[str, Any], model: type[Any]) -> None:
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
def test_an_answer_that_is_none_of_them_is_invalid_params(answer: dict[str, Any], model: str) -> None:
    with pytest.raises(MCPError, match=rf"inputResponses\['k'\] is no valid {model}$") as caught:
        typed_answer("k", answer)
    assert caught.value.code == INVALID_PARAMS
