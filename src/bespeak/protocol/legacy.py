"""Messages for the older revisions (2025-11-25 and earlier): results, tools, questions and capabilities without what
came later. Each `..._at(version, ...)` returns what that revision knows of its argument.
"""

from collections.abc import Mapping
from typing import Any, cast

from pydantic_core import to_json

MARCH, JUNE, NOVEMBER = "2025-03-26", "2025-06-18", "2025-11-25"
"""Revisions are dates, so they compare as text."""

RESOURCE_NOT_FOUND = -32002
"""What these revisions answer with if there is no such resource."""

_MODERN_ONLY = ("resultType", "ttlMs", "cacheScope")
_TOOL_SINCE = {"annotations": MARCH, "title": JUNE, "outputSchema": JUNE, "_meta": JUNE, "icons": NOVEMBER}
_ENTRY_SINCE = {"title": JUNE, "_meta": JUNE, "icons": NOVEMBER}
"""Members of a prompt, a resource or a resource template in a list."""
_BLOCK_SINCE = {"_meta": JUNE, "icons": NOVEMBER}
_INFO_SINCE = {"title": JUNE, "icons": NOVEMBER, "description": NOVEMBER, "websiteUrl": NOVEMBER}


class QuestionNotSupported(Exception):
    """A question that clients of a revision cannot be asked. The text says why."""


def takes_batches(version: str | None) -> bool:
    """Return whether a revision allows several messages in one JSON array."""
    return version is not None and version < JUNE


def capabilities_at(version: str, declared: Mapping[str, Any]) -> dict[str, Any]:
    """Return the modern form of the capabilities that a client of an older revision declared."""
    able: dict[str, Any] = {name: value for name, value in declared.items() if isinstance(value, dict)}
    if version < JUNE:
        able.pop("elicitation", None)
    elif version < NOVEMBER and "elicitation" in able:
        able["elicitation"] = {"form": {}}
    if version < NOVEMBER and "sampling" in able:
        able["sampling"] = {"context": {}}  # in those revisions it did not have to be declared
    return able


def declared_at(version: str, capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """Return a modern client's capabilities as an older revision declares them."""
    known = dict(capabilities)
    if version < JUNE:
        known.pop("elicitation", None)
    elif version < NOVEMBER and "elicitation" in known:
        known["elicitation"] = {}
    if version < NOVEMBER and "sampling" in known:
        known["sampling"] = {}
    if "roots" in known:
        known["roots"] = {"listChanged": True}
    return known


def info_at(version: str, info: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `clientInfo` or `serverInfo` that a revision knows."""
    return {name: value for name, value in info.items() if version >= _INFO_SINCE.get(name, "")}


def tool_at(version: str, tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool of `tools/list` without members that came later."""
    known = {name: value for name, value in tool.items() if version >= _TOOL_SINCE.get(name, "")}
    if known.get("outputSchema", {}).get("type") != "object":
        known.pop("outputSchema", None)
    return known


def result_at(version: str, method: str, result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result without members that came later. Structured content that is not known then becomes text."""
    known = {name: value for name, value in result.items() if name not in _MODERN_ONLY}
    if method == "tools/list":
        known["tools"] = [tool_at(version, tool) for tool in known["tools"]]
    if method in _LISTS:
        known[_LISTS[method]] = [_entry_at(version, entry) for entry in known[_LISTS[method]]]
    if method == "prompts/get":
        known["messages"] = [
            {**message, "content": _block_at(version, message["content"])} for message in known["messages"]
        ]
    if method == "resources/read" and version < JUNE:
        known["contents"] = [
            {name: value for name, value in content.items() if name != "_meta"} for content in known["contents"]
        ]
    if method == "tools/call":
        structured = known.get("structuredContent")
        if structured is not None and (version < JUNE or not isinstance(structured, dict)):
            del known["structuredContent"]
            if not known["content"]:
                known["content"] = [_text(to_json(structured).decode())]
        if version < NOVEMBER:
            known["content"] = [_block_at(version, block) for block in known["content"]]
    return known


_LISTS = {
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}


def _entry_at(version: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    known = {name: value for name, value in entry.items() if version >= _ENTRY_SINCE.get(name, "")}
    if "arguments" in known and version < JUNE:
        known["arguments"] = [
            {name: value for name, value in argument.items() if name != "title"} for argument in known["arguments"]
        ]
    return known


def _block_at(version: str, block: dict[str, Any]) -> dict[str, Any]:
    if block["type"] == "resource_link" and version < JUNE:
        return _text(f"{block['name']}: {block['uri']}")
    if block["type"] == "audio" and version < MARCH:
        return _text(f"(audio content of type {block['mimeType']}; this protocol version does not support audio)")
    known = {name: value for name, value in block.items() if version >= _BLOCK_SINCE.get(name, "")}
    if block["type"] == "resource" and version < JUNE:
        known["resource"] = {name: value for name, value in block["resource"].items() if name != "_meta"}
    return known


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def question_at(version: str, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return a question as the request that is sent to a client. Raises `QuestionNotSupported`."""
    params: dict[str, Any] = dict(request.get("params") or {})
    if request["method"] == "elicitation/create" and version < NOVEMBER:
        params.pop("mode", None)
        params["requestedSchema"] = _form_at(version, params["requestedSchema"])
    if request["method"] == "sampling/createMessage" and version < NOVEMBER:
        params["messages"] = [one for message in params["messages"] for one in _single(message)]
    return {"method": request["method"], "params": params} if params else {"method": request["method"]}


def _form_at(version: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a form as 2025-06-18 knows it: no lists, choice titles in `enumNames`, defaults for booleans only."""
    shown: dict[str, Any] = {}
    for name, known in schema.get("properties", {}).items():
        field: dict[str, Any] = dict(known)
        if field.get("type") == "array":
            raise QuestionNotSupported(
                f"a client of {version} does not support lists of choices, such as the field {name!r}"
            )
        if field.get("type") != "boolean":
            field.pop("default", None)
        titled = cast("list[dict[str, Any]]", field.pop("oneOf", []))
        if titled:
            field["enum"] = [choice["const"] for choice in titled]
            field["enumNames"] = [choice.get("title", choice["const"]) for choice in titled]
        shown[name] = field
    return {**schema, "properties": shown}


def _single(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a message as several messages with one content block each."""
    content: Any = message["content"]
    blocks = cast("list[Any]", content) if isinstance(content, list) else [content]
    return [{**message, "content": block} for block in blocks]
