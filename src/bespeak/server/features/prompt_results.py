"""What a prompt returns: messages, from texts, content blocks and ready-made messages.

A message is a model that has content blocks, so this module needs `mcp_types`; import it where a prompt is rendered.
"""

from collections.abc import Sequence
from typing import Any, Literal, cast

from mcp_types import AudioContent, EmbeddedResource, GetPromptResult, ImageContent, ResourceLink, TextContent
from pydantic import BaseModel, ValidationError

from bespeak.server.features.content import Audio, Image, blocks, content_blocks

Content = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource


class Message(BaseModel):
    """One message of a prompt."""

    role: Literal["user", "assistant"]
    content: Content

    def __init__(self, content: "str | Content | Image | Audio", *, role: Literal["user", "assistant"]) -> None:
        super().__init__(role=role, content=_block(content))


class UserMessage(Message):
    """A message from the user."""

    def __init__(
        self, content: "str | Content | Image | Audio", *, role: Literal["user", "assistant"] = "user"
    ) -> None:
        super().__init__(content, role=role)


class AssistantMessage(Message):
    """A message from the assistant."""

    def __init__(
        self, content: "str | Content | Image | Audio", *, role: Literal["user", "assistant"] = "assistant"
    ) -> None:
        super().__init__(content, role=role)


def _block(content: Any) -> Any:
    if isinstance(content, str):
        return TextContent(type="text", text=content)
    if isinstance(content, Image):
        return content.to_image_content()
    return content.to_audio_content() if isinstance(content, Audio) else content


def prompt_result(value: Any, description: str) -> dict[str, Any]:
    """Return a `prompts/get` result for a returned value. Each item of a list is a message; plain content comes from the user.

    Raises `TypeError` or `ValueError` for what cannot be a message.
    """
    if isinstance(value, GetPromptResult):
        return value.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"meta", "result_type"}) | (
            {"_meta": value.meta} if value.meta else {}
        )
    items = cast("Sequence[Any]", value) if isinstance(value, (list, tuple)) else [value]
    messages = [message for item in items for message in _messages(item)]
    return {**({"description": description} if description else {}), "messages": messages}


def _messages(item: Any) -> list[dict[str, Any]]:
    if isinstance(item, Message):
        return [item.model_dump(mode="json", by_alias=True, exclude_none=True)]
    if isinstance(item, dict) and "role" in item:
        return [_from_dict(cast("dict[str, Any]", item))]
    if item is None:
        raise TypeError("a prompt returned None where a message was expected; return text, messages or content blocks")
    return [{"role": "user", "content": block} for block in blocks(item)]


def _from_dict(item: dict[str, Any]) -> dict[str, Any]:
    content: Any = item.get("content")
    if isinstance(content, (str, Image, Audio, *content_blocks())):
        content = blocks(content)[0]
    try:
        message = Message.model_validate({"role": item["role"], "content": content})
    except ValidationError as error:
        reason = error.errors(include_url=False)[0]["msg"]
        raise ValueError(f"a prompt returned a dict that is not a message: {reason}") from None
    return message.model_dump(mode="json", by_alias=True, exclude_none=True)
