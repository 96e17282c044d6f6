"""Responses of a server, classified: complete, asking in one of two dialects, or malformed.

`resultType` decides: `input_required` is the MCP shape, `complete` is complete even if there are other members, any other
string is malformed, and without it the rule of the compatibility dialect applies. The raw JSON is read without a model, which
would hide faults.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NoReturn, cast

from bespeak.conversation.differences import shown
from bespeak.conversation.json_values import as_array, as_object, is_number, kind_of
from bespeak.conversation.protocol_rules import Finding
from bespeak.conversation.question_names import called, name_of, namesakes_in
from bespeak.conversation.result_text import text_of
from bespeak.protocol.methods import ELICIT, ROOTS, SAMPLE
from bespeak.terminal.safe_text import printable, quoted

ASKABLE = (ELICIT, SAMPLE, ROOTS)
SHORTEST_TOKEN = 16
MAY_ASK = ("tools/call", "prompts/get", "resources/read")
"""Methods whose results may ask for input."""


class Dialect(StrEnum):
    """How questions are written on the wire."""

    SPEC = "spec"
    """The MCP shape: a map of key to request."""
    LIST = "list"
    """A compatibility dialect: an array of fields."""


class Verdict(StrEnum):
    """What a response of a server is."""

    COMPLETE = "complete"
    ASKING = "asking"
    MALFORMED = "malformed"


@dataclass(frozen=True, slots=True)
class Question:
    """One question of a server, in either dialect."""

    key: str
    method: str | None
    """The method of the MCP shape; `None` in the compatibility dialect."""
    params: Mapping[str, Any]
    required: bool = True
    """Whether it must be answered; only the compatibility dialect has optional questions."""
    namesakes: tuple[str, ...] = ()
    """The keys of all questions of its round with the same name; empty if there is only one."""

    @property
    def name(self) -> str:
        """The name for people and suites."""
        return called(self.key, self.namesakes)

    @property
    def dialect(self) -> Dialect:
        """The dialect in which it was asked, and in which it is answered."""
        return Dialect.LIST if self.method is None else Dialect.SPEC

    @property
    def message(self) -> str:
        """The message for a person."""
        said: Any = self.params.get("message" if self.method else "description")
        return said if isinstance(said, str) else ""

    @property
    def _for_the_model(self) -> str:
        """What the client's model is asked."""
        return text_of(self.params) if self.method == SAMPLE else ""

    @property
    def is_url(self) -> bool:
        """Whether it asks a person to open a page."""
        return self.method == ELICIT and self.params.get("mode") == "url"

    @property
    def is_form(self) -> bool:
        """Whether it asks a person to fill in a form."""
        return self.method == ELICIT and not self.is_url

    @property
    def schema(self) -> Mapping[str, Any]:
        """The schema of the form; in the compatibility dialect, of the one value."""
        if self.method is None:
            return {"type": self.params.get("kind")}
        schema: Any = self.params.get("requestedSchema")
        return cast("Mapping[str, Any]", schema) if isinstance(schema, dict) else {}

    @property
    def properties(self) -> Mapping[str, Mapping[str, Any]]:
        """The fields of the form."""
        found: Any = self.schema.get("properties")
        known = as_object(found)
        return {name: cast("dict[str, Any]", field) for name, field in known.items() if isinstance(field, dict)}

    def told(self) -> str:
        """Return the question for use in an error message: its name and its message."""
        said = self.message or self._for_the_model or self.method
        return f"{quoted(self.name)} ({printable(said)})" if said else quoted(self.name)

    def as_json(self) -> dict[str, Any]:
        """Return the question as it was sent."""
        if self.method is None:
            return {"id": self.key, "required": self.required, **self.params}
        return {"method": self.method, **({"params": dict(self.params)} if self.params else {})}


def in_one_round(questions: Sequence[Question]) -> tuple[Question, ...]:
    """Return the questions of one round, each with the keys of its namesakes."""
    found = namesakes_in(question.key for question in questions)
    return tuple(replace(one, namesakes=found[one.key]) if found[one.key] else one for one in questions)


@dataclass(frozen=True, slots=True)
class Reading:
    """A classified response."""

    verdict: Verdict
    questions: tuple[Question, ...] = ()
    state: str | None = field(default=None, repr=False)
    """The requestState token; `None` if there was none. An empty string is a state."""
    dialect: Dialect | None = None
    description: str | None = None
    findings: tuple[Finding, ...] = ()


def read_envelope(envelope: Any, method: str = "tools/call", *, extended: bool = False) -> Reading:
    """Classify a JSON-RPC response to a request of that method. `extended` allows the result types of extensions."""
    if not isinstance(envelope, dict):
        return _malformed(Finding("envelope", "the response is not an object"))
    message = cast("dict[str, Any]", envelope)
    if "error" in message:
        if "result" in message:
            return _malformed(Finding("envelope", "the response has both a result and an error"))
        if not isinstance(message["error"], dict):
            return _malformed(
                Finding("envelope", f"the response's error is {kind_of(message['error'])}, not an object")
            )
        return Reading(Verdict.COMPLETE)
    if not isinstance(message.get("result"), dict):
        return _malformed(Finding("envelope", "the response has no result object"))
    return read_result(cast("dict[str, Any]", message["result"]), method, extended=extended)


def read_result(result: Mapping[str, Any], method: str = "tools/call", *, extended: bool = False) -> Reading:
    """Classify a result."""
    if "resultType" not in result:
        return _read_list(result, method)
    kind = result["resultType"]
    if kind == "complete":
        asks = result.get("inputRequests")
        found = [Finding("complete-asks", "the result is complete and carries inputRequests")] if asks else []
        return Reading(Verdict.COMPLETE, findings=tuple(found))
    if kind != "input_required":
        if extended and isinstance(kind, str):
            return Reading(Verdict.COMPLETE)
        return _malformed(Finding("result-type", f"the result has the resultType {_named(kind)}"))
    return _read_spec(result, method)


def read_question(question: Question) -> Reading:
    """Classify one question that was pushed, as if it had come in a round."""
    return read_result({"resultType": "input_required", "inputRequests": {question.key: question.as_json()}})


def _malformed(*findings: Finding, dialect: Dialect | None = None) -> Reading:
    return Reading(Verdict.MALFORMED, dialect=dialect, findings=findings)


# The MCP shape


def _read_spec(result: Mapping[str, Any], method: str) -> Reading:
    if method not in MAY_ASK:
        return _malformed(Finding("method", f"{method} was answered with input_required"), dialect=Dialect.SPEC)
    if "inputRequests" not in result and "requestState" not in result:
        what = "the input_required result has neither inputRequests nor requestState"
        return _malformed(Finding("empty", what), dialect=Dialect.SPEC)
    faults: list[Finding] = []
    state = result.get("requestState")
    if "requestState" in result and not isinstance(state, str):
        faults.append(Finding("shape", f"requestState is {kind_of(state)}, not a string"))
    asked: Any = result.get("inputRequests", {})
    if not isinstance(asked, dict):
        what = f"inputRequests is {kind_of(asked)}, not a map, though resultType says input_required"
        return _malformed(*faults, Finding("shape", what), dialect=Dialect.SPEC)
    requests = cast("dict[str, Any]", asked)
    faults += [fault for key, request in requests.items() for fault in _faults(key, request)]
    if faults:
        return _malformed(*faults, dialect=Dialect.SPEC)
    questions = in_one_round([Question(key, one["method"], one.get("params") or {}) for key, one in requests.items()])
    return Reading(Verdict.ASKING, questions, state, Dialect.SPEC, _description(result))


def _faults(key: str, request: Any) -> list[Finding]:
    """The faults of one entry of the map."""
    named = quoted(name_of(key))
    if not isinstance(request, dict):
        return [Finding("question", f"the question {named} is {kind_of(request)}, not an object")]
    asked = cast("dict[str, Any]", request)
    if "method" not in asked:
        return [Finding("question", f"the question {named} has no method")]
    if asked["method"] not in ASKABLE:
        return [Finding("question", f"the question {named} has the method {_named(asked['method'])}")]
    if not isinstance(asked.get("params", {}), dict):
        return [
            Finding("question", f"the params of the question {named} are {kind_of(asked['params'])}, not an object")
        ]
    params = cast("dict[str, Any]", asked.get("params", {}))
    lacking = _lacking(asked["method"], params)
    return [Finding("question", f"the question {named} has no valid {lacking}")] if lacking else []


def _lacking(method: str, params: Mapping[str, Any]) -> str | None:
    """The first required member of a question that is missing or has a wrong type."""
    if method == SAMPLE:
        if not isinstance(params.get("messages"), list):
            return "messages"
        tokens: Any = params.get("maxTokens")
        return None if is_number(tokens) else "maxTokens"
    if method == ROOTS:
        return None
    if not isinstance(params.get("message"), str):
        return "message"
    mode = params.get("mode", "form")
    if mode not in ("form", "url"):
        return "mode"
    if mode == "url":
        return None if isinstance(params.get("url"), str) else "url"
    schema: Any = params.get("requestedSchema")
    is_form = isinstance(schema, dict) and isinstance(cast("dict[str, Any]", schema).get("properties"), dict)
    return None if is_form else "requestedSchema"


# The compatibility dialect


def _read_list(result: Mapping[str, Any], method: str) -> Reading:
    asked, state = result.get("inputRequests"), result.get("requestState")
    if asked is None:
        return Reading(Verdict.COMPLETE)
    fields = as_array(asked)
    questions = [_field(field) for field in fields]
    if not questions or None in questions or not isinstance(state, str) or not state:
        half = "the result has inputRequests, but fits neither the MCP shape nor the compatibility dialect"
        return Reading(Verdict.COMPLETE, findings=(Finding("shape", half),))
    if method not in MAY_ASK:
        return _malformed(Finding("method", f"{method} was answered with inputRequests"), dialect=Dialect.LIST)
    found = tuple(question for question in questions if question is not None)
    findings = [Finding("dialect", "the server asks with an array of inputRequests and no resultType")]
    times = Counter(question.key for question in found)
    findings += [
        Finding("duplicate-key", f"the id {quoted(key)} appears {count} times")
        for key, count in times.items()
        if count > 1
    ]
    required = {question.key for question in found if question.required}
    once = {question.key: question for question in reversed(found)}
    kept = in_one_round(
        [replace(question, required=question.key in required) for question in found if once[question.key] is question]
    )
    return Reading(Verdict.ASKING, kept, state, Dialect.LIST, _description(result), tuple(findings))


def _field(field: Any) -> Question | None:
    """One entry of the array; `None` if it is not valid."""
    if not isinstance(field, dict):
        return None
    asked = cast("dict[str, Any]", field)
    id_, required = asked.get("id"), asked.get("required", True)
    texts = (asked.get("kind", "string"), asked.get("description", ""))
    if not isinstance(id_, str) or not isinstance(required, bool) or not all(isinstance(text, str) for text in texts):
        return None
    return Question(id_, None, {"kind": texts[0], "description": texts[1]}, required)


# What both have


def _description(result: Mapping[str, Any]) -> str | None:
    said = result.get("description")
    return said if isinstance(said, str) else None


def _named(value: Any) -> str:
    return quoted(value) if isinstance(value, str) else shown(value)


def is_secret(state: str) -> bool:
    """Return whether a state should be hidden in other texts. Short or plain words are not: they occur everywhere."""
    return len(state) >= SHORTEST_TOKEN and not any(map(str.isspace, state))


def no_constant(constant: str) -> NoReturn:
    """For `json.loads`, which would accept NaN and Infinity."""
    raise ValueError(f"{constant} is not valid JSON")
