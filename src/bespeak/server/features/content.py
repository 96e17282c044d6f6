"""What a tool may return besides plain values: images, audio, and ready-made content blocks."""

import re
from base64 import b64encode
from collections.abc import Awaitable
from pathlib import Path
from types import BuiltinFunctionType, GeneratorType, ModuleType
from typing import TYPE_CHECKING, Any, cast

from pydantic_core import to_json

from bespeak.protocol import wire_types

if TYPE_CHECKING:
    from mcp_types import AudioContent, ContentBlock, ImageContent

_IMAGE_SUFFIXES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}
_AUDIO_SUFFIXES = {
    ".wav": "audio/wav",
    ".mp3": "audio/mpeg",
    ".ogg": "audio/ogg",
    ".flac": "audio/flac",
    ".m4a": "audio/mp4",
}


_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+>")
"""How the text ends that Python gives to an object without one of its own: `<shop.Order object at 0x7f2bc5132190>`."""
_CODE = (type, ModuleType, BuiltinFunctionType)
"""Parts of a program, of which some are shown without an address."""


class _Media:
    """Bytes or a file, with a format."""

    kind: str
    suffixes: dict[str, str]

    def __init__(self, path: str | Path | None = None, data: bytes | None = None, format: str | None = None) -> None:
        if (path is None) == (data is None):
            raise ValueError(f"{type(self).__name__} needs either a path or data")
        self.path = Path(path) if path is not None else None
        self.data = data
        self.format = format

    @property
    def mime_type(self) -> str:
        if self.format:
            return f"{self.kind}/{self.format.lower()}"
        if self.path is not None:
            return self.suffixes.get(self.path.suffix.lower(), "application/octet-stream")
        return next(iter(self.suffixes.values()))

    def base64(self) -> str:
        raw = self.path.read_bytes() if self.path is not None else self.data or b""
        return b64encode(raw).decode()


class Image(_Media):
    """An image for a tool to return, from a file or from bytes."""

    kind = "image"
    suffixes = _IMAGE_SUFFIXES

    def to_image_content(self) -> "ImageContent":
        """Return the image as a block of a result."""
        return wire_types.ImageContent(type="image", data=self.base64(), mime_type=self.mime_type)


class Audio(_Media):
    """Audio for a tool to return, from a file or from bytes."""

    kind = "audio"
    suffixes = _AUDIO_SUFFIXES

    def to_audio_content(self) -> "AudioContent":
        """Return the audio as a block of a result."""
        return wire_types.AudioContent(type="audio", data=self.base64(), mime_type=self.mime_type)


def content_blocks() -> "tuple[type[ContentBlock], ...]":
    """Return the types of ready-made content blocks; none before they are imported, as no value can be one."""
    if not wire_types.in_use():
        return ()
    return (
        wire_types.TextContent,
        wire_types.ImageContent,
        wire_types.AudioContent,
        wire_types.ResourceLink,
        wire_types.EmbeddedResource,
    )


def blocks(value: Any) -> list[dict[str, Any]]:
    """Return a tool's return value as content blocks: text as it is, lists block by block, anything else as JSON text.

    Raises `TypeError` or `ValueError` for a value that a model could not read.
    """
    if isinstance(value, str):
        return [{"type": "text", "text": value}]
    if value is None:
        return []
    if isinstance(value, content_blocks()):
        return [value.model_dump(mode="json", by_alias=True, exclude_none=True)]
    if isinstance(value, Image):
        return blocks(value.to_image_content())
    if isinstance(value, Audio):
        return blocks(value.to_audio_content())
    if isinstance(value, (list, tuple)):
        return [block for item in cast("list[Any]", value) for block in blocks(item)]
    if isinstance(value, GeneratorType):  # whose code would run here, on the event loop, and not where tools run
        raise TypeError("a generator was returned; return a list of what it yields")
    return [{"type": "text", "text": to_json(value, indent=2, fallback=_text, by_alias=True).decode()}]


def _text(value: Any) -> str:
    """The text of a value that JSON does not know. Raises `TypeError` if it has none."""
    if isinstance(value, Awaitable):
        raise TypeError(f"a value of type {_type_name(value)} was never awaited; await it before returning it")
    text = str(value)
    address = _ADDRESS.search(text)
    if isinstance(value, _CODE) or (address is not None and "<" in text[: address.start()]):
        raise TypeError(
            f"a value of type {_type_name(value)} has no text that a model could read; return text, a list, a dict, a "
            "dataclass or a pydantic model, or define __str__"
        )
    return text


def _type_name(value: Any) -> str:
    return repr(type(value).__name__)
