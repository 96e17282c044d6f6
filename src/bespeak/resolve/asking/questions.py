"""Turns a marker into a wire request, and an answer into an outcome."""

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from pydantic import BaseModel, ValidationError
from pydantic_core import to_json

from bespeak.protocol import wire_types
from bespeak.protocol.capabilities import requirements
from bespeak.protocol.methods import ELICIT, ROOTS, SAMPLE
from bespeak.protocol.question_urls import WEB, scheme_of, url_problem
from bespeak.resolve.asking.digests import canonical, digest, digest_of
from bespeak.resolve.asking.form_schemas import EMPTY, Form, FormError, Refused, form_of
from bespeak.resolve.asking.progress import Settled
from bespeak.resolve.errors import BadAnswer, NoValidAnswer
from bespeak.resolve.markers import MISSING, Elicit, ElicitUrl, ListRoots, Question, Sample
from bespeak.resolve.outcomes import AcceptedElicitation, CancelledElicitation, DeclinedElicitation

Outcome = AcceptedElicitation[Any] | DeclinedElicitation | CancelledElicitation

MAX_ATTEMPTS = 100
"""How often a form may be shown at most."""

DECLINED = DeclinedElicitation()
CANCELLED = CancelledElicitation()

OPENED_SECONDS = 25.0
"""How long a resolver is run again after its page was opened, before the person is asked again."""


class Rendered(NamedTuple):
    """A question as the client will see it."""

    name: str
    """The name in its key, for messages."""
    method: str
    params: dict[str, Any] | None
    requires: dict[str, Any]
    """The client capabilities it needs."""
    attempts: int
    form: Form | None = None
    is_url: bool = False
    """Whether it sends the user to a page. Then to accept it settles nothing."""
    result: type[BaseModel] | None = None
    """The type of the client's answer, if the question is not an elicitation."""

    def request(self, note: str | None = None) -> dict[str, Any]:
        """Return the wire request, with the validator's message under the question when it is asked again."""
        if self.params is None:
            return {"method": self.method}
        if note is None:
            return {"method": self.method, "params": self.params}
        return {"method": self.method, "params": {**self.params, "message": f"{self.params['message']}\n\n{note}"}}

    def digest(self) -> str:
        """Return a digest of exactly what the client is shown."""
        if self.form is not None and self.params is not None:
            # No JSON, which takes longer. Its length tells where the message ends.
            message: str = self.params["message"]
            return digest_of(f"{len(message)} {message} {self.form.text}".encode())
        return digest([self.method, self.params])

    @property
    def text(self) -> str:
        """The question for a log line: its message and its form."""
        if self.params is None:
            return self.method
        if self.form is not None:
            return f"{self.params['message']} {self.form.text}"[:500]
        return canonical(self.params)[:500]


def render(name: str, marker: Question, *, lenient: bool = False) -> Rendered:
    """Return the question as a wire request; `name` is for messages. See `form_of` for `lenient`.

    Raises `FormError` or `ValueError` if it cannot be asked.
    """
    if isinstance(marker, Elicit):
        return _render_form(name, cast("Elicit[Any]", marker), lenient=lenient)
    if isinstance(marker, ElicitUrl):
        return _render_url(name, marker)
    if isinstance(marker, Sample):
        return _render_sample(name, marker)
    if isinstance(marker, ListRoots):
        return Rendered(name, ROOTS, None, requirements(ROOTS, {}), 1, result=wire_types.ListRootsResult)
    raise ValueError(f"{type(marker).__name__} is not a question that this server can ask")


def _render_form(name: str, marker: Elicit[Any], *, lenient: bool) -> Rendered:
    message: Any = marker.message
    if not isinstance(message, str):
        raise FormError("the message is not a string", "write Elicit(message, schema)")
    if marker.schema is MISSING:
        raise FormError("it has no schema", f"say what is asked for, as in Elicit({marker.message[:40]!r}, bool)")
    if not 1 <= marker.attempts <= MAX_ATTEMPTS:
        raise FormError(
            f"attempts must be between 1 and {MAX_ATTEMPTS}", "leave it out, or say how often the form may be shown"
        )
    message.encode()  # raises for what JSON cannot carry: text from a file name, say, may not be text
    form = form_of(marker.schema, marker.choices, lenient=lenient)
    params = {"mode": "form", "message": message, "requestedSchema": form.schema}
    return Rendered(name, ELICIT, params, {"elicitation": {"form": {}}}, marker.attempts, form)


def _render_url(name: str, marker: ElicitUrl) -> Rendered:
    if not isinstance(cast("Any", marker.message), str):
        raise FormError("the message is not a string", "write ElicitUrl(message, url)")
    marker.message.encode()
    if not isinstance(cast("Any", marker.url), str):
        raise FormError("the URL is not a string", "write ElicitUrl(message, url)")
    problem = url_problem(marker.url)
    if problem is None and scheme_of(marker.url) not in WEB:
        problem = f"has the scheme {scheme_of(marker.url)[:40]!r}"
    if problem is not None:
        raise FormError(f"the URL {problem}", "write a complete URL, such as https://pay.example.com/orders/7")
    every: Any = marker.every
    if every is not None and not (type(every) in (int, float) and 0 < every <= OPENED_SECONDS):
        raise FormError(
            f"every must be more than 0 and at most {OPENED_SECONDS:g} seconds",
            "leave it out, or write a number such as every=2.0",
        )
    params = {"mode": "url", "message": marker.message, "url": marker.url}
    return Rendered(name, ELICIT, params, requirements(ELICIT, params), 1, is_url=True)


def _render_sample(name: str, marker: Sample) -> Rendered:
    if isinstance(cast("Any", marker.messages), str):
        written = "[SamplingMessage(role='user', content=TextContent(type='text', text=...))]"
        raise FormError("its messages are a string", f"write Sample({written}, max_tokens=...)")
    if marker.max_tokens is MISSING:
        raise FormError(
            "it has no max_tokens", "say how long the message may be, as in Sample(messages, max_tokens=500)"
        )
    with_tools = marker.tools is not None or marker.tool_choice is not None
    params = wire_types.CreateMessageRequestParams(
        messages=list(marker.messages),
        max_tokens=marker.max_tokens,
        system_prompt=marker.system_prompt,
        include_context=marker.include_context,
        temperature=marker.temperature,
        stop_sequences=marker.stop_sequences,
        metadata=marker.metadata,
        model_preferences=marker.model_preferences,
        tools=marker.tools,
        tool_choice=marker.tool_choice,
    ).model_dump(mode="json", by_alias=True, exclude_none=True)
    to_json(params)  # raises for what JSON cannot carry
    result = wire_types.CreateMessageResultWithTools if with_tools else wire_types.CreateMessageResult
    return Rendered(name, SAMPLE, params, requirements(SAMPLE, params), 1, result=result)


def settle(question: Rendered, answer: Mapping[str, Any], pin: str) -> tuple[Settled, Outcome]:
    """Return the outcome of an answer. Raises `BadAnswer` for a client's error, `Refused` for a person's mistake."""
    if question.form is None and not question.is_url:
        entry = Settled(pin, "accept", dict(answer))
        return entry, outcome_of(question, entry)
    action = answer.get("action")
    if action not in ("accept", "decline", "cancel"):
        raise BadAnswer(f"the answer to {question.name!r} is not an elicitation result: it has no valid action")
    if action != "accept":
        entry = Settled(pin, action, None)
        return entry, outcome_of(question, entry)
    if question.form is None:
        return Settled(pin, "accept", None), AcceptedElicitation(data=None)
    content: Any = answer.get("content")
    if content is None and not question.form.schema["properties"]:
        content = {}
    if content is None:
        raise BadAnswer(f"the answer to {question.name!r} was accepted without content")
    entry = Settled(pin, "accept", content)
    return entry, outcome_of(question, entry)


def outcome_of(question: Rendered, entry: Settled) -> Outcome:
    """Return the outcome of a recorded answer, which is checked as strictly as a new one."""
    if entry.action == "decline":
        return DECLINED
    if entry.action == "cancel":
        return CANCELLED
    if question.form is None:
        return AcceptedElicitation(data=_result(question, entry.content))
    return AcceptedElicitation(data=question.form.value(_content(question, question.form, entry)))


def is_guess(question: Rendered, answer: Mapping[str, Any]) -> bool:
    """Return whether an answer fits the flat schema, and the author's model has yet to accept or refuse it."""
    if question.form is None or not question.form.takes_tries or answer.get("action") != "accept":
        return False
    try:
        _content(question, question.form, Settled("", "accept", answer.get("content")))
    except (BadAnswer, Refused):
        return False
    return True


def _content(question: Rendered, form: Form, entry: Settled) -> dict[str, Any]:
    """Return the content of an accepted form, if it fits the flat schema."""
    content: dict[str, Any] = entry.content
    if type(entry.content) is not dict:
        raise BadAnswer(f"the content of the answer to {question.name!r} is not an object")
    left_empty = form.is_left_empty(content)
    faults = form.faults(content)
    if faults and (content or not left_empty):
        raise BadAnswer(f"the answer to {question.name!r} does not match the form: {'; '.join(faults)}")
    if left_empty:
        raise Refused(EMPTY)
    return content


def _result(question: Rendered, answer: Any) -> BaseModel:
    model = question.result
    if model is None or not isinstance(answer, dict) or "action" in answer:
        raise BadAnswer(f"the answer to {question.name!r} is not a response to {question.method}")
    try:
        return model.model_validate(answer)
    except ValidationError as error:
        places = ", ".join(sorted({".".join(map(str, detail["loc"])) or "it" for detail in error.errors()}))
        raise BadAnswer(
            f"the answer to {question.name!r} is not a valid {question.method} result: see {places}"
        ) from None


def too_often(question: Rendered, note: str | None) -> NoValidAnswer:
    """Return the error for a question that was never answered with a valid value."""
    tries = "1 attempt" if question.attempts == 1 else f"{question.attempts} attempts"
    return NoValidAnswer(f"no valid answer to {question.name!r} after {tries}: {note}")
