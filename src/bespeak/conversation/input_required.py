"""`input_required` results and their retries as typed models, in both dialects."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, Field, RootModel
from pydantic.alias_generators import to_camel

from bespeak.conversation.responses import Question, Verdict, read_envelope


class _Wire(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, frozen=True, serialize_by_alias=True, hide_input_in_errors=True
    )


class RequestState(RootModel[str]):
    """The opaque token of a call under way. Never parsed, and never printed."""

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    def __repr_args__(self) -> list[tuple[str | None, Any]]:
        return [(None, ...)]

    def __str__(self) -> str:
        return repr(self)


class InputRequest(_Wire):
    """One requested field."""

    id: str
    kind: str = "string"
    description: str = ""
    required: bool = True

    def question(self) -> Question:
        """Return it as a question of the compatibility dialect."""
        return Question(self.id, None, {"kind": self.kind, "description": self.description}, self.required)


class InputResponse(_Wire):
    """One answer, to the request with this id."""

    id: str
    value: Any


class InputRequiredResult(_Wire):
    """A result that asks. The requests are a map in the MCP shape, and a list in the compatibility dialect."""

    result_type: str | None = Field(default=None, exclude_if=lambda value: value is None)
    input_requests: dict[str, dict[str, Any]] | list[InputRequest] = Field(
        default_factory=dict[str, dict[str, Any]], exclude_if=lambda value: not value
    )
    request_state: RequestState | None = Field(default=None, exclude_if=lambda value: value is None)
    description: str | None = Field(default=None, exclude_if=lambda value: value is None)


def recognize_input_required(envelope: Any) -> InputRequiredResult | None:
    """Return the asking result in a JSON-RPC response; `None` if it is complete or malformed."""
    read = read_envelope(envelope)
    if read.verdict is not Verdict.ASKING:
        return None
    result = cast("dict[str, Any]", envelope["result"])
    return InputRequiredResult(
        result_type=result.get("resultType"),
        input_requests=requests_of(read.questions),
        request_state=None if read.state is None else RequestState(read.state),
        description=read.description,
    )


def requests_of(questions: Sequence[Question]) -> dict[str, dict[str, Any]] | list[InputRequest]:
    """Return questions in the form of their dialect."""
    if questions and questions[0].method is None:
        return [InputRequest(id=one.key, required=one.required, **one.params) for one in questions]
    return {one.key: one.as_json() for one in questions}


Responses = Mapping[str, Any] | Sequence[InputResponse]
"""Answers in the dialect of their questions: a map of key to result, or a list of id and value."""


def build_retry_params(original: Any, state: RequestState | str | None, responses: Responses | None) -> dict[str, Any]:
    """Return the params of the next request: the original params, the answers of this round, and the unchanged state.

    Without a state the retry has none either; an empty string is a state. `None` for the responses leaves them out,
    for a round that asked nothing. Params that are not an object count as empty.
    """
    params: dict[str, Any] = dict(cast("Mapping[str, Any]", original)) if isinstance(original, Mapping) else {}
    retry = {name: copy.deepcopy(value) for name, value in params.items() if name not in ADDED}
    if isinstance(responses, Mapping):
        retry["inputResponses"] = copy.deepcopy(dict(responses))
    elif responses is not None:
        retry["inputResponses"] = [{"id": one.id, "value": copy.deepcopy(one.value)} for one in responses]
    if state is not None:
        retry["requestState"] = state.root if isinstance(state, RequestState) else state
    return retry


ADDED = ("inputResponses", "requestState")
"""What a retry adds to the original params."""
