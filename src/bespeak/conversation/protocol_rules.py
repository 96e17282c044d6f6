"""The rules of the protocol that servers are checked against, and findings: rules that a server broke."""

from dataclasses import dataclass
from typing import Any

RULES = {
    "dialect": "the MCP shape is {resultType: input_required, inputRequests: a map}; an array is a compatibility dialect",
    "shape": "inputRequests is a map of key to {method, params}, and requestState a string",
    "empty": "an input_required result carries inputRequests or requestState, or both",
    "result-type": "resultType is complete or input_required",
    "result": "the members of a result have the types that the protocol defines",
    "envelope": "a response is a JSON-RPC object with the id of its request and either a result or an error",
    "duplicate-key": "each question of a result has a key of its own",
    "key": "a key is printable text",
    "question": "a question is elicitation/create, sampling/createMessage or roots/list with the params of that method",
    "method": "only tools/call, prompts/get and resources/read may ask for input",
    "undeclared": "a server must not ask what the client did not declare in this request's capabilities",
    "declined": "a decline is an answer: the same question must not be asked again",
    "converge": "a call must end: a server must not keep asking forever",
    "state-verified": "a server must reject a requestState that was altered, or that belongs to another request",
    "single-use": "an effect must happen once: the same request, sent again after a lost response, must not repeat it",
    "stdout": "a server writes nothing but messages to its standard output",
    "pushed": "at this revision a server sends no requests: questions travel in results",
    "era": "before 2026-07-28 a server asks during the call; a result that asks belongs to a later revision",
    "answers": "a server answers each request, or reports that it is still working",
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
