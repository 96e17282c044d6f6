"""What a server did that the protocol does not allow, and the rule each finding rests on."""

from dataclasses import dataclass
from typing import Any

RULES = {
    "dialect": "the MCP shape is {resultType: input_required, inputRequests: a map}; an array is a compatibility dialect",
    "shape": "inputRequests is a map of key to {method, params}, and requestState a string",
    "empty": "an input_required result carries inputRequests or requestState, or both",
    "result-type": "resultType is complete or input_required",
    "result": "the members of a result are of the types that the protocol gives them",
    "envelope": "a response is a JSON-RPC object with the id of its request and either a result or an error",
    "duplicate-key": "each question of a result has a key of its own",
    "key": "a key is text that can be shown and written down",
    "question": "a question is elicitation/create, sampling/createMessage or roots/list with the params of that method",
    "method": "only tools/call, prompts/get and resources/read may ask for input",
    "undeclared": "a server must not ask what the client did not declare in this request's capabilities",
    "declined": "a decline is an answer: the same question is not asked again because of it",
    "converge": "a call ends: a server that asks the same client for ever serves nobody",
    "state-verified": "a server must reject a requestState that was altered, or that belongs to another request",
    "single-use": "what must happen once happens once: a lost response and the same request again must not do it twice",
    "stdout": "a server writes nothing but messages to its standard output",
    "pushed": "at this revision a server sends no requests: questions travel in results",
    "era": "before 2026-07-28 a server asks in mid-call; a result that asks is of a later revision",
    "answers": "a server answers, or says that it is still at work",
    "complete-asks": "a complete result carries no inputRequests",
}
"""Each rule by its short name, in one sentence."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One rule that a server broke, and how."""

    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.text} ({self.rule}: {RULES[self.rule]})"

    def as_json(self) -> dict[str, Any]:
        return {"rule": self.rule, "text": self.text}
