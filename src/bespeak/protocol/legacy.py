"""What an older revision does not know: results, tools, questions and capabilities as its clients can take them."""

from collections.abc import Mapping
from typing import Any, cast

from pydantic_core import to_json

MARCH, JUNE, NOVEMBER = "2025-03-26", "2025-06-18", "2025-11-25"
"""Revisions compare as text: they are dates."""

_MODERN_ONLY = ("resultType", "ttlMs", "cacheScope")
_TOOL_SINCE = {"annotations": MARCH, "title": JUNE, "outputSchema": JUNE, "_meta": JUNE, "icons": NOVEMBER}
_BLOCK_SINCE = {"_meta": JUNE, "icons": NOVEMBER}
_INFO_SINCE = {"title": JUNE, "icons": NOVEMBER, "description": NOVEMBER, "websiteUrl": NOVEMBER}


class Unaskable(Exception):
    """A question that clients of a revision cannot be shown; says why."""


def takes_batches(version: str | None) -> bool:
    """Whether several messages may come as one array."""
    return version is not None and version < JUNE


def capabilities_at(version: str, declared: Mapping[str, Any]) -> dict[str, Any]:
    """What a client that declared this can be asked, in the words of today."""
    able: dict[str, Any] = {name: value for name, value in declared.items() if isinstance(value, dict)}
    if version < JUNE:
        able.pop("elicitation", None)
    elif version < NOVEMBER and "elicitation" in able:
        able["elicitation"] = {"form": {}}
    if version < NOVEMBER and "sampling" in able:
        able["sampling"] = {"context": {}}  # which nobody had to declare then
    return able


def declared_at(version: str, capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """What a client of today declares in the words of an older revision."""
    known = dict(capabilities)
    if version < JUNE:
        known.pop("elicitation", None)
    elif version < NOVEMBER and "elicitation" in known:
        known["elicitation"] = {}
    if version < NOVEMBER and "sampling" in known:
        known["sampling"] = {}
    return known


def info_at(version: str, info: Mapping[str, Any]) -> dict[str, Any]:
    """What a client or a server says of itself."""
    return {name: value for name, value in info.items() if version >= _INFO_SINCE.get(name, "")}


def tool_at(version: str, tool: Mapping[str, Any]) -> dict[str, Any]:
    """A listed tool."""
    known = {name: value for name, value in tool.items() if version >= _TOOL_SINCE.get(name, "")}
    if known.get("outputSchema", {}).get("type") != "object":
        known.pop("outputSchema", None)
    return known


def result_at(version: str, method: str, result: Mapping[str, Any]) -> dict[str, Any]:
    """A result without what came later."""
    known = {name: value for name, value in result.items() if name not in _MODERN_ONLY}
    if method == "tools/list":
        known["tools"] = [tool_at(version, tool) for tool in known["tools"]]
    if method == "tools/call":
        structured = known.get("structuredContent")
        if structured is not None and (version < JUNE or not isinstance(structured, dict)):
            del known["structuredContent"]
            if not known["content"]:
                known["content"] = [_text(to_json(structured).decode())]
        known["content"] = [_block_at(version, block) for block in known["content"]]
    return known


def _block_at(version: str, block: dict[str, Any]) -> dict[str, Any]:
    if block["type"] == "resource_link" and version < JUNE:
        return _text(f"{block['name']}: {block['uri']}")
    if block["type"] == "audio" and version < MARCH:
        return _text(f"(a sound, {block['mimeType']}, which this revision of the protocol cannot carry)")
    known = {name: value for name, value in block.items() if version >= _BLOCK_SINCE.get(name, "")}
    if block["type"] == "resource" and version < JUNE:
        known["resource"] = {name: value for name, value in block["resource"].items() if name != "_meta"}
    return known


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def question_at(version: str, request: Mapping[str, Any]) -> dict[str, Any]:
    """A question as a request that is pushed. Raises `Unaskable`."""
    params: dict[str, Any] = dict(request.get("params") or {})
    if request["method"] == "elicitation/create" and version < NOVEMBER:
        params.pop("mode", None)
        params["requestedSchema"] = _form_at(version, params["requestedSchema"])
    if request["method"] == "sampling/createMessage" and version < NOVEMBER:
        params["messages"] = [one for message in params["messages"] for one in _single(message)]
    return {"method": request["method"], "params": params} if params else {"method": request["method"]}


def _form_at(version: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """A form of June 2025: no lists, titles of choices beside them, and no defaults but of yes and no."""
    shown: dict[str, Any] = {}
    for name, known in schema.get("properties", {}).items():
        field: dict[str, Any] = dict(known)
        if field.get("type") == "array":
            raise Unaskable(f"a client of {version} cannot be shown the list of choices {name!r}")
        if field.get("type") != "boolean":
            field.pop("default", None)
        titled = cast("list[dict[str, Any]]", field.pop("oneOf", []))
        if titled:
            field["enum"] = [choice["const"] for choice in titled]
            field["enumNames"] = [choice.get("title", choice["const"]) for choice in titled]
        shown[name] = field
    return {**schema, "properties": shown}


def _single(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A message as several of one block each."""
    content: Any = message["content"]
    blocks = cast("list[Any]", content) if isinstance(content, list) else [content]
    return [{**message, "content": block} for block in blocks]
