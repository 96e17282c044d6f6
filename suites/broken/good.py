"""The till without a fault. The broken ones are made from it, each by one change."""

import base64
import hmac
import json
import secrets
import sys
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # it may be started as a script, too

from suites.broken.wire import INVALID_PARAMS, MISSING_CAPABILITY, Call, Failed, Json, Refused, as_object, serve, told

STATE_SECONDS = 600
TYPES = {"integer": int, "string": str, "boolean": bool}
TOOLS: dict[str, tuple[str, Json]] = {
    "pay": ("Pay somebody.", {"cents": {"type": "integer", "minimum": 1}, "to": {"type": "string"}}),
    "balance": ("Say how often and how much was paid.", {}),
    "ask_twice": ("Ask for a color, and then for its shade.", {}),
    "plain": ("Say a text again, and ask nothing.", {"text": {"type": "string"}}),
}


@dataclass(frozen=True, slots=True)
class Question:
    """A form of one field, which is called like the question's key."""

    key: str
    message: str
    kind: str
    """The JSON type of the field."""


@dataclass(frozen=True, slots=True)
class Progress:
    """What a state carries from one round to the next."""

    call_id: str
    """The same in all rounds of a call."""
    answers: tuple[Any, ...] = ()


Steps = Generator[Question, Any, Json]
"""A tool that asks: it yields its questions, gets their answers, and returns its result."""


class Till:
    """Pays once for each confirmation, and only what was confirmed."""

    name = "till"

    def __init__(self) -> None:
        self.payments = 0
        self.cents = 0
        self._key = secrets.token_bytes(32)
        self._replies: dict[tuple[str, int], tuple[Any, Json]] = {}

    # The tools

    def pay(self, cents: int, to: str) -> Steps:
        if not (yield Question("confirm", f"Pay {cents} cents to {to}?", "boolean")):
            return told("Declined.", is_error=True)
        self.payments += 1
        self.cents += cents
        return told(f"Paid {cents} cents to {to}.")

    def balance(self) -> Json:
        paid = {"payments": self.payments, "cents": self.cents}
        return told(f"{self.payments} payments, {self.cents} cents", structured=paid)

    def ask_twice(self) -> Steps:
        color = yield Question("color", "Which color?", "string")
        shade = yield Question("shade", f"Which shade of {color}?", "string")
        return told(f"{shade} {color}")

    def plain(self, text: str) -> Json:
        return told(text)

    # Their rounds

    @property
    def tools(self) -> Sequence[Json]:
        return [
            {"name": name, "description": description, "inputSchema": _schema(properties)}
            for name, (description, properties) in TOOLS.items()
        ]

    def call(self, call: Call) -> Json | None:
        _check_arguments(call)
        if call.state is None:  # an answer counts only with the state of its question
            return self.proceed(call, Progress(secrets.token_hex(16)))
        progress = self.opened(call)
        asked = self.run(call, progress.answers)
        if not isinstance(asked, Question):
            return asked
        answers = self.answered(call, asked)
        if not answers:
            return self.ask(call, asked, progress)
        if None in answers:
            return self.once(progress, answers, lambda: told("Declined.", is_error=True))
        going_on = replace(progress, answers=(*progress.answers, *answers))
        return self.once(progress, answers, lambda: self.proceed(call, going_on))

    def proceed(self, call: Call, progress: Progress) -> Json:
        """The next question, or the result."""
        reached = self.run(call, progress.answers)
        return self.ask(call, reached, progress) if isinstance(reached, Question) else reached

    def run(self, call: Call, answers: Sequence[Any]) -> Question | Json:
        """What a tool comes to with these answers to its first questions."""
        steps: Steps | Json = getattr(self, call.tool)(**call.arguments)
        if isinstance(steps, dict):
            return steps
        try:
            reached = next(steps)
            for answer in answers:
                reached = steps.send(answer)
        except StopIteration as end:
            return cast("Json", end.value)
        return reached

    def once(self, progress: Progress, answers: Sequence[Any], reply: Callable[[], Json]) -> Json:
        """The reply to a round: made once, and told again to who sends the same again, as after a lost response."""
        place = progress.call_id, len(progress.answers)
        if place not in self._replies:
            self._replies[place] = answers, reply()
        known, made = self._replies[place]
        if known != answers:
            raise Failed("This call was already settled with other answers.")
        return made

    # What they ask, and what is answered

    def ask(self, call: Call, question: Question, progress: Progress) -> Json:
        self.check_declared(call)
        form = _schema({question.key: {"title": question.key.title(), "type": question.kind}})
        params: Json = {"mode": "form", "message": question.message, "requestedSchema": form}
        return {
            "resultType": "input_required",
            "inputRequests": {question.key: {"method": "elicitation/create", "params": params}},
            "requestState": self.seal(call, progress),
        }

    def check_declared(self, call: Call) -> None:
        modes: Any = call.capabilities.get("elicitation")
        if not isinstance(modes, dict) or (modes and "form" not in modes):  # an empty one means forms
            required: Json = {"requiredCapabilities": {"elicitation": {"form": {}}}}
            raise Refused(MISSING_CAPABILITY, f"{call.tool} asks with a form", required)

    def answered(self, call: Call, question: Question) -> Sequence[Any]:
        """This round's answer, in a list: `None` for a refusal. An empty one if the question was not answered."""
        responses: Any = {} if call.responses is None else call.responses
        if not isinstance(responses, dict):
            raise Refused(INVALID_PARAMS, "inputResponses is a map of key to answer")
        if question.key not in responses:
            return []
        response = as_object(cast("Json", responses)[question.key])
        if response.get("action") in ("decline", "cancel"):
            return [None]
        if response.get("action") != "accept":
            raise Refused(INVALID_PARAMS, f"inputResponses[{question.key!r}] is no answer to a form")
        return [fitting(question, as_object(response.get("content")).get(question.key))]

    # Their state

    def seal(self, call: Call, progress: Progress) -> str:
        held = [progress.call_id, progress.answers, time.time() + STATE_SECONDS]
        body = base64.urlsafe_b64encode(json.dumps(held).encode()).decode()
        return f"{body}.{self._signature(call, body)}"

    def opened(self, call: Call) -> Progress:
        body, _, signature = (call.state or "").partition(".")
        refusal = Refused(
            INVALID_PARAMS,
            "invalid or expired requestState; if the call may have taken effect, check before you start it again",
        )
        if not hmac.compare_digest(signature.encode(errors="replace"), self._signature(call, body).encode()):
            raise refusal
        call_id, answers, until = json.loads(base64.urlsafe_b64decode(body))
        if until < time.time():
            raise refusal
        return Progress(call_id, tuple(answers))

    def _signature(self, call: Call, body: str) -> str:
        """It binds the state to the tool and to its arguments."""
        bound = json.dumps([call.tool, call.arguments, body], sort_keys=True)
        return hmac.new(self._key, bound.encode(), "sha256").hexdigest()


def fitting(question: Question, value: Any) -> Any:
    """The value, if the question asks for such a one."""
    if type(value) is not TYPES[question.kind]:
        raise Failed(f"The answer to {question.key!r} does not match its form.")
    return value


def _schema(properties: Json) -> Json:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _check_arguments(call: Call) -> None:
    if call.tool not in TOOLS:
        raise Refused(INVALID_PARAMS, f"unknown tool {call.tool!r}")
    _, properties = TOOLS[call.tool]
    if call.arguments.keys() != properties.keys():
        raise Failed(f"{call.tool} takes {', '.join(properties) or 'no arguments'}.")
    for name, schema in properties.items():
        value = call.arguments[name]
        if type(value) is not TYPES[schema["type"]] or value < schema.get("minimum", value):
            raise Failed(f"{name} does not match its schema.")


if __name__ == "__main__":
    serve(Till())
