"""The text of a result of a tool, a prompt or a resource."""

from collections.abc import Iterable, Mapping
from typing import Any, cast


def text_of(result: Mapping[str, Any]) -> str:
    """Return the text blocks of a result, joined by newlines."""
    return "\n".join(_texts(result))


def _texts(result: Mapping[str, Any]) -> Iterable[str]:
    for block in _entries(result.get("content")):
        yield from _text(block)
    for message in _entries(result.get("messages")):
        content: Any = message.get("content")
        for block in _entries(content if isinstance(content, list) else [content]):
            yield from _text(block)
    for contents in _entries(result.get("contents")):
        yield from _text(contents)


def _entries(value: Any) -> list[dict[str, Any]]:
    return [one for one in cast("list[Any]", value) if isinstance(one, dict)] if isinstance(value, list) else []


def _text(block: Mapping[str, Any]) -> Iterable[str]:
    text: Any = block.get("text")
    if isinstance(text, str):
        yield text
