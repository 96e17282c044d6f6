"""The timeline of a conversation in the HTML report: the client's messages on the left, the server's on the right."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast
from xml.etree import ElementTree as ET

from bespeak.conversation.result_text import text_of
from bespeak.testing.report.html_elements import add, add_block
from bespeak.testing.report.timeline import Event, Step
from bespeak.testing.report.yaml_lines import yaml_lines

_CALLS = {"tools/call": "calls the tool", "prompts/get": "gets the prompt", "resources/read": "reads the resource"}
_LABELS = {
    Step.ANSWERS: "answers",
    Step.AGAIN: "sends the same request again, as if the response was lost",
    Step.ASKS: "asks",
    Step.ANSWER: "answers",
    Step.NOTIFICATION: "notifies",
    Step.RESULT: "returns a result",
    Step.ERROR: "returns an error",
    Step.NO_RESPONSE: "does not respond",
    Step.GIVES_UP: "gives up",
}


def add_timeline(parent: ET.Element, events: Sequence[Event], server: str) -> None:
    """Add the messages of a conversation, in their order."""
    if not events:
        return
    lanes = add(parent, "div", kind="lanes", **{"aria-hidden": "true"})
    add(lanes, "span", "client")
    add(lanes, "span", f"server {server}")
    listed = add(parent, "ol", kind="timeline")
    for event in events:
        side = "client" if event.by_client else "server"
        item = add(listed, "li", kind=f"{side} {event.step.value.replace(' ', '-')}{_failed(event)}")
        head = add(item, "p", kind="head")
        add(head, "b", "client" if event.by_client else "server", "who")
        add(head, "span", _label(event), "label")
        if event.state:
            add(head, "span", "with its state" if event.by_client else "with a state", "state")
        _BODIES.get(event.step, _add_rest)(item, event)


def _failed(event: Event) -> str:
    return " failed" if event.step is Step.RESULT and event.body.get("isError") is True else ""


def _label(event: Event) -> str:
    if event.step is Step.CALL:
        target = event.body.get("name", event.body.get("uri", ""))
        return f"{_CALLS.get(event.method, event.method)} {target}".rstrip()
    if event.step is Step.NOTIFICATION and event.method:
        return event.method.removeprefix("notifications/")
    if event.step is Step.RESULT and event.body.get("isError") is True:
        return "returns a result that is an error"
    if event.step is Step.ANSWER and not event.body:
        return "sends no answer"
    return _LABELS.get(event.step, event.step.value)


def _add_call(item: ET.Element, event: Event) -> None:
    rest = {name: one for name, one in event.body.items() if name not in ("name", "uri")}
    arguments = rest.pop("arguments", None)
    add_block(item, yaml_lines(arguments) if arguments else ())
    add_block(item, yaml_lines(rest) if rest else ())


def _add_asks(item: ET.Element, event: Event) -> None:
    asked: Any = event.body.get("inputRequests")
    if isinstance(asked, dict):
        for name, one in cast("dict[str, Any]", asked).items():
            _add_question(item, name, _map(one))
    elif isinstance(asked, list):
        for one in map(_map, cast("list[Any]", asked)):
            line = add(item, "p", kind="question")
            add(line, "b", str(one.get("id", "")), "name")
            add(line, "span", str(one.get("description", "")))
            _add_aside(item, f"{one.get('kind', '')}{'' if one.get('required', True) else ', optional'}")
    else:
        _add_aside(item, "nothing: it only hands out a state")
    _add_others(item, event.body, ("inputRequests",))


def _add_question(item: ET.Element, name: str, question: Mapping[str, Any]) -> None:
    params = _map(question.get("params"))
    line = add(item, "p", kind="question")
    add(line, "b", name, "name")
    message: Any = params.get("message")
    add(line, "span", message if isinstance(message, str) else str(question.get("method", "")))
    if isinstance(params.get("url"), str):
        _add_aside(item, params["url"])
    fields = _map(_map(params.get("requestedSchema")).get("properties"))
    required: Any = _map(params.get("requestedSchema")).get("required")
    for field, schema in fields.items():
        needed = "" if isinstance(required, list) and field in required else ", optional"
        _add_aside(item, f"{field}: {_kind(_map(schema))}{needed}")
    rest = {key: one for key, one in params.items() if key not in ("message", "mode", "requestedSchema", "url")}
    add_block(item, yaml_lines(rest) if rest else ())


def _kind(schema: Mapping[str, Any]) -> str:
    """The type of a field, with its choices."""
    titled: Any = schema.get("oneOf") or schema.get("anyOf")
    offered: Any = schema.get("enum")
    if isinstance(titled, list):
        offered = [_map(one).get("const") for one in cast("list[Any]", titled)]
    if isinstance(offered, list):
        return " | ".join(map(str, cast("list[Any]", offered)[:8]))
    named = schema.get("format") or schema.get("type") or "any"
    return str(named)


def _add_answers(item: ET.Element, event: Event) -> None:
    answers: Any = event.body.get("inputResponses")
    if isinstance(answers, list):
        given = {str(_map(one).get("id", "")): _map(one).get("value") for one in cast("list[Any]", answers)}
    else:
        given = _map(answers)
    if not given and event.step is Step.ANSWERS:
        _add_aside(item, "nothing")
    for name, answer in given.items():
        line = add(item, "p", kind="question")
        add(line, "b", name, "name")
        action, content = _map(answer).get("action"), _map(answer).get("content")
        if isinstance(action, str):
            add(line, "span", action, f"action {action}" if action in ("accept", "decline", "cancel") else "action")
            add_block(item, yaml_lines(content) if content else ())
        else:
            add_block(item, yaml_lines(answer))
    _add_others(item, event.body, ("inputResponses",))


def _add_result(item: ET.Element, event: Event) -> None:
    body = dict(event.body)
    text = text_of(body)
    add_block(item, text.split("\n") if text else (), "text", "text")
    blocks: Any = body.get("content")
    others = (
        [one for one in cast("list[Any]", blocks) if _map(one).get("type") != "text"]
        if isinstance(blocks, list)
        else []
    )
    add_block(item, yaml_lines(others) if others else ())
    _add_others(item, body, ("content", "isError", "contents", "messages") if text else ("isError",))


def _add_rest(item: ET.Element, event: Event) -> None:
    params: Any = event.body.get("params") if event.step is Step.NOTIFICATION else None
    value: Any = event.body if params is None else params
    add_block(item, yaml_lines(value) if value else ())


def _add_reason(item: ET.Element, event: Event) -> None:
    _add_aside(item, str(event.body.get("reason", "")))


def _add_others(item: ET.Element, body: Mapping[str, Any], known: Sequence[str]) -> None:
    rest = {name: one for name, one in body.items() if name not in known}
    add_block(item, yaml_lines(rest) if rest else (), name=", ".join(rest))


def _add_aside(item: ET.Element, text: str) -> None:
    if text:
        add(item, "p", text, "aside")


def _map(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


_BODIES: dict[Step, Callable[[ET.Element, Event], None]] = {
    Step.CALL: _add_call,
    Step.ASKS: _add_asks,
    Step.ANSWERS: _add_answers,
    Step.ANSWER: _add_answers,
    Step.RESULT: _add_result,
    Step.GIVES_UP: _add_reason,
}
