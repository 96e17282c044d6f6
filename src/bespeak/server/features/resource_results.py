"""What a resource returns: contents, as text or as bytes in Base64."""

from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from pydantic_core import to_json

from bespeak.protocol import wire_types

if TYPE_CHECKING:
    from mcp_types import BlobResourceContents, TextResourceContents

BINARY = "application/octet-stream"
TEXT = "text/plain"
JSON = "application/json"


@dataclass(frozen=True, slots=True)
class ReadResourceContents:
    """The text or bytes of one resource. A function may return several of them in a list."""

    content: str | bytes
    mime_type: str | None = None
    meta: dict[str, Any] | None = None


def resource_result(value: Any, uri: str, mime_type: str | None) -> dict[str, Any]:
    """A returned value as a `resources/read` result. Raises `TypeError` or `ValueError` for what cannot be read."""
    if wire_types.in_use() and isinstance(value, wire_types.ReadResourceResult):
        dumped = value.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"meta", "result_type"})
        dumped["contents"] = [_wire(one, uri, mime_type) for one in value.contents]
        return dumped | ({"_meta": value.meta} if value.meta else {})
    return {"contents": [_wire(one, uri, mime_type) for one in _items(value)]}


def _items(value: Any) -> Sequence[Any]:
    """The contents in a returned value: those of a list of contents, or the value itself."""
    if isinstance(value, (list, tuple)):
        items = cast("Sequence[Any]", value)
        if items and all(isinstance(one, (ReadResourceContents, *_wire_contents())) for one in items):
            return items
    return [value]


def _wire_contents() -> "tuple[type[TextResourceContents | BlobResourceContents], ...]":
    return (wire_types.TextResourceContents, wire_types.BlobResourceContents) if wire_types.in_use() else ()


def _wire(one: Any, uri: str, mime_type: str | None) -> dict[str, Any]:
    if isinstance(one, _wire_contents()):
        dumped = one.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"meta"})
        return dumped | ({"_meta": one.meta} if one.meta else {})
    if isinstance(one, ReadResourceContents):
        about = {"_meta": one.meta} if one.meta else {}
        return {**_content(one.content, uri, one.mime_type or mime_type), **about}
    return _content(one, uri, mime_type)


def _content(value: Any, uri: str, mime_type: str | None) -> dict[str, Any]:
    if isinstance(value, (bytes, bytearray)):
        return {"uri": uri, "mimeType": mime_type or BINARY, "blob": b64encode(value).decode()}
    if isinstance(value, str):
        return {"uri": uri, "mimeType": mime_type or TEXT, "text": value}
    if value is None:
        raise TypeError("a resource returned None; return text, bytes or a value that JSON can represent")
    text = to_json(value, indent=2, by_alias=True).decode()
    return {"uri": uri, "mimeType": mime_type or JSON, "text": text}


def read_contents(result: dict[str, Any]) -> list[ReadResourceContents]:
    """The contents of a `resources/read` result, decoded."""
    return [
        ReadResourceContents(
            b64decode(one["blob"]) if "blob" in one else one["text"], one.get("mimeType"), one.get("_meta")
        )
        for one in result["contents"]
    ]
