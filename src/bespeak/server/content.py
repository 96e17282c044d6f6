"""What a tool may return beside plain values: images, audio, and ready-made content blocks."""

from base64 import b64encode
from pathlib import Path
from typing import Any, cast

from mcp_types import AudioContent, EmbeddedResource, ImageContent, ResourceLink, TextContent
from pydantic_core import to_json

CONTENT_BLOCKS = (TextContent, ImageContent, AudioContent, ResourceLink, EmbeddedResource)
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


class _Media:
    """Bytes or a file, with a format."""

    kind: str
    suffixes: dict[str, str]

    def __init__(self, path: str | Path | None = None, data: bytes | None = None, format: str | None = None) -> None:
        if (path is None) == (data is None):
            raise ValueError(f"{type(self).__name__} takes a path or data, one of the two")
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

    def to_image_content(self) -> ImageContent:
        return ImageContent(type="image", data=self.base64(), mime_type=self.mime_type)


class Audio(_Media):
    """Audio for a tool to return, from a file or from bytes."""

    kind = "audio"
    suffixes = _AUDIO_SUFFIXES

    def to_audio_content(self) -> AudioContent:
        return AudioContent(type="audio", data=self.base64(), mime_type=self.mime_type)


def blocks(value: Any) -> list[dict[str, Any]]:
    """A returned value as content blocks: text as it is, lists block by block, all else as JSON text."""
    if isinstance(value, str):
        return [{"type": "text", "text": value}]
    if value is None:
        return []
    if isinstance(value, CONTENT_BLOCKS):
        return [value.model_dump(mode="json", by_alias=True, exclude_none=True)]
    if isinstance(value, Image):
        return blocks(value.to_image_content())
    if isinstance(value, Audio):
        return blocks(value.to_audio_content())
    if isinstance(value, (list, tuple)):
        return [block for item in cast("list[Any]", value) for block in blocks(item)]
    return [{"type": "text", "text": to_json(value, indent=2, fallback=str, by_alias=True).decode()}]
