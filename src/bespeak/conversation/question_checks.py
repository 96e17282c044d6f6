"""Checks questions against what the schema of their revision requires: the fields of forms, URLs, sampling messages."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast
from urllib.parse import urlsplit

from bespeak.conversation.differences import shown
from bespeak.conversation.json_values import as_object, is_number, kind_of
from bespeak.conversation.protocol_rules import RULES, Finding
from bespeak.conversation.responses import Question
from bespeak.conversation.rule_types import JUNE
from bespeak.protocol.methods import SAMPLE
from bespeak.protocol.text_formats import FORMATS
from bespeak.terminal.safe_text import quoted

_FORMATS = tuple(FORMATS)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:.")
_UNSAFE = re.compile(r"[\x00-\x20\x7f]")
_LOCAL = re.compile(r"localhost|127(\.\d{1,3}){3}|::1|.*\.localhost")


def question_findings(question: Question, version: str) -> list[Finding]:
    """Return the rules of a revision that a question breaks. Its params are known to have the right types."""
    name = quoted(question.name)
    found: list[Finding] = []
    if question.is_url:
        found += _page(name, question.params)
    elif question.is_form:
        found += [Finding("form", f"the form {name} {fault}") for fault in _form(question.schema, version)]
    elif question.method == SAMPLE:
        found += [Finding("sampling-message", f"the question {name}: {fault}") for fault in _messages(question.params)]
        found += [Finding("tool-results", f"the question {name}: {fault}") for fault in _sampling(question.params)]
    return [finding for finding in found if RULES[finding.rule].holds_at(version)]


# Pages


def _page(name: str, params: Mapping[str, Any]) -> Iterator[Finding]:
    url: str = params["url"]
    if not isinstance(params.get("elicitationId"), str):
        yield Finding("elicitation-id", f"the question {name} has no elicitationId")
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = parts = None
    web = parts is not None and parts.scheme in ("http", "https")
    if parts is None or not _SCHEME.match(url) or _UNSAFE.search(url) or (web and not host):
        yield Finding("url", f"the question {name} has a URL that is not valid")
        return
    if parts.password is not None:
        yield Finding("url-secret", f"the question {name} has a URL with a password")
    if parts.scheme == "http" and not _LOCAL.fullmatch(host or ""):
        yield Finding("url-https", f"the question {name} has a URL that does not use HTTPS")


# Forms


def _form(schema: Mapping[str, Any], version: str) -> Iterator[str]:
    """What is wrong with a form. Keywords that the schema does not name are allowed: it is open."""
    if schema.get("type") != "object":
        yield f"has the type {shown(schema.get('type'))}, not object"
    required: Any = schema.get("required", [])
    if not isinstance(required, list) or not all(isinstance(one, str) for one in cast("list[Any]", required)):
        yield "has a member required that is not a list of strings"
    properties: Any = schema["properties"]
    for name, field in cast("dict[str, Any]", properties).items():
        is_object = isinstance(field, dict)
        fault = _field(cast("dict[str, Any]", field), version) if is_object else f"is {kind_of(field)}, not an object"
        if fault is not None:
            yield f"has a field {quoted(name)} that {fault}"


def _field(field: Mapping[str, Any], version: str) -> str | None:
    kind = field.get("type")
    if kind == "array":
        return "is an array, which this revision does not have" if version <= JUNE else _choices(field)
    if kind == "object":
        return "is an object, so the form is not flat"
    if kind not in ("string", "number", "integer", "boolean"):
        return f"has the type {shown(kind)}" if "type" in field else "has no type"
    chosen = "enum" in field or "oneOf" in field
    if kind == "string" and "format" in field and field["format"] not in _FORMATS and not chosen:
        return f"has the format {shown(field['format'])}; formats are {', '.join(_FORMATS)}"
    if "default" in field and not _is_a(kind, field["default"]):
        return f"has a default that is {kind_of(field['default'])}, not a {kind}"
    return None


def _is_a(kind: str, value: Any) -> bool:
    if kind == "string":
        return isinstance(value, str)
    return isinstance(value, bool) if kind == "boolean" else is_number(value)


def _choices(field: Mapping[str, Any]) -> str | None:
    """An array is a choice of several from a list, with or without titles."""
    found: Any = field.get("items")
    items = as_object(found)
    plain, titled = items.get("enum"), items.get("anyOf")
    if isinstance(plain, list) and items.get("type") == "string":
        right = all(isinstance(one, str) for one in cast("list[Any]", plain))
    else:
        right = isinstance(titled, list) and all(map(_is_titled, cast("list[Any]", titled)))
    return None if right else "is an array without a list of strings to choose from"


def _is_titled(choice: Any) -> bool:
    named = as_object(choice)
    return isinstance(named.get("const"), str) and isinstance(named.get("title"), str)


# Sampling


def _messages(params: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with the messages themselves."""
    for number, message in enumerate(map(as_object, params["messages"])):
        if message.get("role") not in ("user", "assistant"):
            yield f"messages[{number}] has the role {shown(message.get('role'))}"
        if not isinstance(message.get("content"), dict | list):
            yield f"messages[{number}] has no content"


def _sampling(params: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with the tool results among the messages."""
    open_uses: set[Any] = set()
    for number, message in enumerate(params["messages"]):
        blocks = _blocks(message)
        results = [block for block in blocks if block.get("type") == "tool_result"]
        if results and len(results) < len(blocks):
            yield f"messages[{number}] has tool results and something else"
        answered = {shown(block.get("toolUseId")) for block in results}
        if open_uses - answered:
            yield f"messages[{number}] does not answer every tool use of the message before it"
        if answered - open_uses:
            yield f"messages[{number}] has a tool result without a tool use in the message before it"
        open_uses = {shown(block.get("id")) for block in blocks if block.get("type") == "tool_use"}
    if open_uses:
        yield "the last message has a tool use that nothing answers"


def _blocks(message: Any) -> list[Mapping[str, Any]]:
    content: Any = as_object(message).get("content")
    listed = cast("list[Any]", content) if isinstance(content, list) else [content]
    return [cast("dict[str, Any]", block) for block in listed if isinstance(block, dict)]
