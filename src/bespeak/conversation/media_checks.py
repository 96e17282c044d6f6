"""Checks the binary data, the MIME types and the URIs in a result."""

import base64
import re
from collections.abc import Iterator, Mapping
from typing import Any

from bespeak.conversation.json_values import as_array, as_object
from bespeak.conversation.protocol_rules import Finding
from bespeak.terminal.safe_text import quoted

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*")
_TOKEN = r"[A-Za-z0-9!#$%&'*+.^_`|~-]+"
_MIME_TYPE = re.compile(rf"{_TOKEN}/{_TOKEN}\s*(?:;.*)?", re.DOTALL)


def media_findings(method: str, result: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield what is wrong with the data, the MIME types and the URIs of a complete result."""
    blocks = [*map(as_object, as_array(result.get("content"))), *_prompted(result)]
    inner = [as_object(one.get("resource")) for one in blocks]
    for block in blocks:
        if block.get("type") in ("image", "audio") and not _is_base64(block.get("data")):
            yield Finding("base64", f"the data of a block of type {block['type']} is not base64")
    if not all(_is_base64(one.get("blob")) for one in (*inner, *map(as_object, as_array(result.get("contents"))))):
        yield Finding("base64", "the blob of a resource is not base64")
    if method == "prompts/get":
        for block in _prompted(result):
            yield from _prompt_media(block)
    links = [one for one in blocks if one.get("type") == "resource_link"]
    for entry in (*links, *inner, *map(as_object, as_array(result.get("resources")))):
        uri: Any = entry.get("uri")
        if isinstance(uri, str) and not _URI.fullmatch(uri):
            yield Finding("resource-uri", f"the resource {quoted(uri)} has a URI that is not valid")


def _prompted(result: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The blocks in the messages of a prompt."""
    return [as_object(as_object(one).get("content")) for one in as_array(result.get("messages"))]


def _prompt_media(block: Mapping[str, Any]) -> Iterator[Finding]:
    kind, named = block.get("type"), block.get("mimeType")
    if kind in ("image", "audio") and isinstance(named, str) and not _MIME_TYPE.fullmatch(named):
        yield Finding("prompt-media", f"a block of type {kind} in the prompt has the mimeType {quoted(named)}")
    if kind == "resource" and "mimeType" not in as_object(block.get("resource")):
        yield Finding("prompt-resource", "a resource in the prompt has no mimeType")


def _is_base64(data: Any) -> bool:
    """Whether a text is base64. Line breaks are allowed, as in mail. What is missing is for other checks."""
    if not isinstance(data, str):
        return True
    try:
        base64.b64decode("".join(data.split()), validate=True)
    except ValueError:
        return False
    return True
