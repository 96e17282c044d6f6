"""The published description of such a tool, to the letter: its two JSON shapes, its recognition rule, its names, its cap."""

import inspect
import json
from typing import Any

import pytest

import bespeak.testing
from bespeak.testing import (
    DEFAULT_MAX_ELICITATION_ROUNDS,
    InputRequest,
    InputRequiredResult,
    InputResponse,
    InputResponseFixture,
    MissingAnswer,
    RequestState,
    RoundsExceeded,
    build_retry_params,
    collect_responses,
    recognize_input_required,
    run_elicitation_chain,
)

RESPONSE = """{
  "jsonrpc": "2.0",
  "id": 1,
  "result": {
    "inputRequests": [
      {
        "id": "city",
        "kind": "string",
        "description": "What city?",
        "required": true
      }
    ],
    "requestState": "opaque-token-abc-123",
    "description": "Need the city before I can fetch the forecast."
  }
}"""
RETRY = """{
  "jsonrpc": "2.0",
  "id": 2,
  "method": "tools/call",
  "params": {
    "name": "weather",
    "arguments": {
      "loc": "SFO"
    },
    "inputResponses": [
      {
        "id": "city",
        "value": "San Francisco"
      }
    ],
    "requestState": "opaque-token-abc-123"
  }
}"""
ASKING: dict[str, Any] = json.loads(RESPONSE)
PARAMS: dict[str, Any] = {"name": "weather", "arguments": {"loc": "SFO"}}
FIXTURE = InputResponseFixture({"city": "San Francisco"})
FORECAST: dict[str, Any] = {"jsonrpc": "2.0", "id": 2, "result": {"content": [{"type": "text", "text": "Fog"}]}}
REQUEST = InputRequest(id="city", kind="string", description="What city?")


def with_result(**members: Any) -> dict[str, Any]:
    """The example, with members of its result replaced, or left out where they are `...`."""
    result = {**ASKING["result"], **members}
    return {**ASKING, "result": {name: value for name, value in result.items() if value is not ...}}


# The wire shapes


def test_the_example_response_is_read() -> None:
    assert recognize_input_required(ASKING) == InputRequiredResult(
        input_requests=[InputRequest(id="city", kind="string", description="What city?", required=True)],
        request_state=RequestState("opaque-token-abc-123"),
        description="Need the city before I can fetch the forecast.",
    )


def test_the_example_response_is_written_byte_for_byte() -> None:
    found = recognize_input_required(ASKING)
    assert found is not None
    result = found.model_dump(mode="json", by_alias=True)
    assert json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}, indent=2) == RESPONSE


def test_the_example_retry_is_built_byte_for_byte() -> None:
    found = recognize_input_required(ASKING)
    assert found is not None
    params = build_retry_params(PARAMS, found.request_state, [InputResponse(id="city", value="San Francisco")])
    assert json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}, indent=2) == RETRY


def test_the_example_goes_from_response_to_retry_byte_for_byte_with_a_fixture() -> None:
    found = recognize_input_required(ASKING)
    assert found is not None
    params = build_retry_params(PARAMS, found.request_state, collect_responses(found.input_requests, FIXTURE))
    assert json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}, indent=2) == RETRY


def test_the_original_arguments_stay_intact() -> None:
    build_retry_params(PARAMS, "state", [InputResponse(id="city", value="San Francisco")])
    assert PARAMS == {"name": "weather", "arguments": {"loc": "SFO"}}


@pytest.mark.parametrize("original", [None, [], "text", 5, True])
def test_params_that_are_no_object_are_handled(original: Any) -> None:
    assert build_retry_params(original, "s", [InputResponse(id="city", value="x")]) == {
        "inputResponses": [{"id": "city", "value": "x"}],
        "requestState": "s",
    }


# The recognition rule


@pytest.mark.parametrize(
    "envelope",
    [
        with_result(inputRequests=[]),
        with_result(inputRequests=...),
        with_result(inputRequests={}),
        with_result(requestState=""),
        with_result(requestState=...),
        with_result(requestState=None),
        with_result(inputRequests=[], requestState=""),
        FORECAST,
        {"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "no"}},
        {"jsonrpc": "2.0", "id": 1},
        {},
    ],
)
def test_half_a_shape_is_a_normal_result(envelope: Any) -> None:
    assert recognize_input_required(envelope) is None


@pytest.mark.parametrize("description", [..., None, ""])
def test_the_results_description_is_optional(description: Any) -> None:
    assert recognize_input_required(with_result(description=description)) is not None


@pytest.mark.parametrize(("written", "expected"), [(..., True), (True, True), (False, False)])
def test_required_is_true_when_the_server_leaves_it_out(written: Any, expected: bool) -> None:
    entry = {"id": "city", "kind": "string", "description": "What city?"} | (
        {} if written is ... else {"required": written}
    )
    found = recognize_input_required(with_result(inputRequests=[entry]))
    assert found is not None
    assert found.input_requests == [InputRequest(id="city", kind="string", description="What city?", required=expected)]
    assert InputRequest.model_validate(entry).required is expected


def test_the_wire_keys_are_camel_case() -> None:
    found = recognize_input_required(ASKING)
    assert found is not None
    assert list(found.model_dump(mode="json")) == ["inputRequests", "requestState", "description"]


# The library


@pytest.mark.parametrize(
    "name",
    [
        "InputRequest",
        "InputResponse",
        "InputRequiredResult",
        "RequestState",
        "recognize_input_required",
        "build_retry_params",
        "collect_responses",
        "InputResponseFixture",
        "run_elicitation_chain",
        "DEFAULT_MAX_ELICITATION_ROUNDS",
    ],
)
def test_each_name_is_there_and_listed(name: str) -> None:
    assert getattr(bespeak.testing, name) is not None
    assert name in bespeak.testing.__all__


def test_every_listed_name_is_there() -> None:
    assert all(getattr(bespeak.testing, name) is not None for name in bespeak.testing.__all__)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"module 'bespeak.testing' has no attribute 'ElicitationChain'"):
        _ = getattr(bespeak.testing, "ElicitationChain")  # noqa: B009 - a type checker would say so before


@pytest.mark.parametrize(
    ("function", "parameters"),
    [
        (recognize_input_required, ["envelope"]),
        (build_retry_params, ["original", "state", "responses"]),
        (collect_responses, ["requests", "fixture"]),
        (run_elicitation_chain, ["initial_response", "initial_params", "fixture", "max_rounds", "next_response"]),
    ],
)
def test_the_functions_have_the_published_parameters(function: Any, parameters: list[str]) -> None:
    assert list(inspect.signature(function).parameters) == parameters


def test_a_required_request_without_an_answer_is_an_error() -> None:
    with pytest.raises(MissingAnswer, match=r"there is no answer to 'city' \(What city\?\)"):
        collect_responses([REQUEST], InputResponseFixture({"units": "C"}))


def test_an_optional_request_without_an_answer_is_left_out() -> None:
    optional = InputRequest(id="units", required=False)
    assert collect_responses([REQUEST, optional], FIXTURE) == [InputResponse(id="city", value="San Francisco")]


def test_an_optional_request_with_an_answer_is_answered() -> None:
    optional = InputRequest(id="city", required=False)
    assert collect_responses([optional], FIXTURE) == [InputResponse(id="city", value="San Francisco")]


# The chain


class Server:
    """Asks so many times, and answers then."""

    def __init__(self, questions: int) -> None:
        self.questions = questions
        self.received: list[dict[str, Any]] = []

    def first(self) -> dict[str, Any]:
        return self.next(PARAMS) if not self.received else FORECAST

    def next(self, params: dict[str, Any]) -> dict[str, Any]:
        self.received.append(params)
        asked = len(self.received)
        return with_result(requestState=f"state-{asked}") if asked <= self.questions else FORECAST


def test_one_round_ends_with_the_forecast() -> None:
    server = Server(1)
    chain = run_elicitation_chain(server.first(), PARAMS, FIXTURE, DEFAULT_MAX_ELICITATION_ROUNDS, server.next)
    assert (chain.response, len(chain.rounds)) == (FORECAST, 1)
    assert server.received[1] == {
        **PARAMS,
        "inputResponses": [{"id": "city", "value": "San Francisco"}],
        "requestState": "state-1",
    }


def test_a_response_that_asks_nothing_passes_through_and_nothing_is_sent() -> None:
    server = Server(0)
    chain = run_elicitation_chain(FORECAST, PARAMS, FIXTURE, DEFAULT_MAX_ELICITATION_ROUNDS, server.next)
    assert (chain.response, chain.rounds, server.received) == (FORECAST, [], [])


def test_the_default_limit_is_five_rounds() -> None:
    assert DEFAULT_MAX_ELICITATION_ROUNDS == 5


def test_five_answered_rounds_pass() -> None:
    server = Server(5)
    chain = run_elicitation_chain(server.first(), PARAMS, FIXTURE, DEFAULT_MAX_ELICITATION_ROUNDS, server.next)
    assert (chain.response, len(chain.rounds), len(server.received)) == (FORECAST, 5, 6)


def test_the_sixth_question_fails() -> None:
    server = Server(6)
    with pytest.raises(RoundsExceeded, match="the server is still asking after 5 answered rounds"):
        run_elicitation_chain(server.first(), PARAMS, FIXTURE, DEFAULT_MAX_ELICITATION_ROUNDS, server.next)
    assert len(server.received) == 6
