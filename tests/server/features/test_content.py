"""Content blocks: text as it is, lists block by block, media with its type, anything else as JSON text."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from mcp_types import (
    AudioContent,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)
from pydantic import BaseModel, Field

from bespeak import Audio, Client, Image, MCPServer
from tests.conftest import Connect

TEXT = TextContent(type="text", text="ready-made", _meta={"a": None})
LINK = ResourceLink(type="resource_link", uri="file:///a", name="a")
EMBEDDED = EmbeddedResource(type="resource", resource=TextResourceContents(uri="file:///a", text="inside"))
X = b64encode(b"x").decode()


async def returned(connect: Connect, value: Any) -> CallToolResult:
    mcp = MCPServer("shop")

    @mcp.tool()
    def tool() -> Any:
        return value

    async with connect(mcp) as client:
        return await client.call_tool("tool")


def plain(text: str) -> TextContent:
    return TextContent(type="text", text=text)


class Stock(BaseModel):
    title: str = Field(serialization_alias="bookTitle")


@dataclass
class Point:
    x: int


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("text", [plain("text")]),
        ("", [plain("")]),
        (None, []),
        (3, [plain("3")]),
        (True, [plain("true")]),
        ([], []),
        (["a", 1, None], [plain("a"), plain("1")]),
        (("a", "b"), [plain("a"), plain("b")]),
        ({"a": [1]}, [plain('{\n  "a": [\n    1\n  ]\n}')]),
        (Stock(title="Dune"), [plain('{\n  "bookTitle": "Dune"\n}')]),
        (Point(1), [plain('{\n  "x": 1\n}')]),
        (date(2026, 7, 28), [plain('"2026-07-28"')]),
        (TEXT, [TEXT]),
        (LINK, [LINK]),
        (EMBEDDED, [EMBEDDED]),
        (Image(data=b"x"), [ImageContent(type="image", data=X, mime_type="image/png")]),
        (Audio(data=b"x"), [AudioContent(type="audio", data=X, mime_type="audio/wav")]),
        (
            ["a", Image(data=b"x", format="JPEG"), {"k": 1}, TEXT, [EMBEDDED]],
            [
                plain("a"),
                ImageContent(type="image", data=X, mime_type="image/jpeg"),
                plain('{\n  "k": 1\n}'),
                TEXT,
                EMBEDDED,
            ],
        ),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_a_returned_value_becomes_blocks(in_memory: Connect, value: Any, content: list[Any]) -> None:
    result = await returned(in_memory, value)
    assert result.content == content
    assert not result.is_error


async def test_a_value_json_does_not_know_becomes_its_text(in_memory: Connect) -> None:
    class Handle:
        def __str__(self) -> str:
            return "a handle"

    assert (await returned(in_memory, {"handle": Handle()})).content == [plain('{\n  "handle": "a handle"\n}')]


@pytest.mark.every_revision
async def test_an_untyped_list_may_hold_media(connect: Connect) -> None:
    mcp = MCPServer("shop")

    @mcp.tool()
    def tool() -> list:  # pyright: ignore[reportMissingTypeArgument, reportUnknownParameterType] - untyped on purpose
        return list[Any](["a", Image(data=b"x")])

    async with connect(mcp) as client:
        result = await client.call_tool("tool")
    assert result.content == [plain("a"), ImageContent(type="image", data=X, mime_type="image/png")]
    assert not result.is_error


class Handle:
    """Has no text of its own."""

    def method(self) -> None: ...


def local() -> object:
    """One whose class has `<locals>` in its name."""

    class Handle:
        pass

    return Handle()


async def later() -> None: ...


async def stream() -> AsyncGenerator[int]:
    yield 1


NO_TEXT = "has no text that a model could read; return text, a list, a dict, a dataclass or a pydantic model, or define __str__"
WITHOUT_TEXT: list[tuple[Callable[[], Any], str]] = [
    (Handle, f"a value of type 'Handle' {NO_TEXT}"),
    (lambda: [Handle()], f"a value of type 'Handle' {NO_TEXT}"),
    (lambda: {"a": [{"b": Handle()}]}, f"a value of type 'Handle' {NO_TEXT}"),
    (lambda: {Handle(): 1}, f"a value of type 'Handle' {NO_TEXT}"),
    (lambda: Point(Handle()), f"a value of type 'Handle' {NO_TEXT}"),  # pyright: ignore[reportArgumentType] - on purpose
    (lambda: {"a": SimpleNamespace(b=Handle())}, f"a value of type 'SimpleNamespace' {NO_TEXT}"),
    (lambda: {"a": local()}, f"a value of type 'Handle' {NO_TEXT}"),
    (lambda: Handle().method, f"a value of type 'method' {NO_TEXT}"),
    (lambda: Handle, f"a value of type 'type' {NO_TEXT}"),
    (lambda: later, f"a value of type 'function' {NO_TEXT}"),
    (lambda: len, f"a value of type 'builtin_function_or_method' {NO_TEXT}"),
    (lambda: "".join, f"a value of type 'builtin_function_or_method' {NO_TEXT}"),
    (lambda: Handle().__init__, f"a value of type 'method-wrapper' {NO_TEXT}"),
    (lambda: asyncio, f"a value of type 'module' {NO_TEXT}"),
    (lambda: partial(later), f"a value of type 'partial' {NO_TEXT}"),
    (lambda: {"a": stream()}, f"a value of type 'async_generator' {NO_TEXT}"),
    (lambda: (number for number in (1, 2)), "a generator was returned; return a list of what it yields"),
    (lambda: [(number for number in (1, 2))], "a generator was returned; return a list of what it yields"),
]


@pytest.mark.parametrize(("make", "reason"), WITHOUT_TEXT)
async def test_a_value_that_has_only_an_address_to_show_is_a_failure_of_the_tool(
    make: Callable[[], Any], reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    result = await returned(Client, make())
    assert result.is_error
    assert result.content == [plain("Error executing tool tool")]
    assert reason in caplog.text


async def test_what_was_never_awaited_is_a_failure_of_the_tool(caplog: pytest.LogCaptureFixture) -> None:
    coroutine, future = later(), asyncio.get_running_loop().create_future()
    for value, kind in ((coroutine, "coroutine"), (future, "Future")):
        for whole in ([value], {"a": value}):
            result = await returned(Client, whole)
            assert (result.is_error, result.content) == (True, [plain("Error executing tool tool")])
            assert f"a value of type '{kind}' was never awaited; await it before returning it" in caplog.text
            caplog.clear()
    coroutine.close()


@pytest.mark.parametrize("text", ["<p>at home</p>", "<Order 7>", "at 0x7f2bc5132190>", "<at 0xyz>"])
async def test_a_text_of_its_own_may_look_like_markup(text: str) -> None:
    class Tag:
        def __str__(self) -> str:
            return text

    result = await returned(Client, {"tag": Tag()})
    assert not result.is_error
    assert text in result.model_dump_json()


# Media


@pytest.mark.parametrize(
    ("kind", "name", "mime"),
    [
        (Image, "a.png", "image/png"),
        (Image, "a.JPG", "image/jpeg"),
        (Image, "a.jpeg", "image/jpeg"),
        (Image, "a.gif", "image/gif"),
        (Image, "a.webp", "image/webp"),
        (Image, "a.unknown", "application/octet-stream"),
        (Audio, "a.wav", "audio/wav"),
        (Audio, "a.mp3", "audio/mpeg"),
        (Audio, "a.ogg", "audio/ogg"),
        (Audio, "a.flac", "audio/flac"),
        (Audio, "a.m4a", "audio/mp4"),
    ],
)
def test_the_type_of_a_file_comes_from_its_name(kind: type[Image] | type[Audio], name: str, mime: str) -> None:
    assert kind(name).mime_type == mime


def test_a_given_format_beats_the_name() -> None:
    assert Image("a.png", format="WebP").mime_type == "image/webp"


def test_media_is_read_from_its_file(tmp_path: Path) -> None:
    file = tmp_path / "a.gif"
    file.write_bytes(b"x")
    assert Image(file).to_image_content() == ImageContent(type="image", data=X, mime_type="image/gif")
    assert Image(str(file)).to_image_content() == Image(file).to_image_content()


def test_audio_is_read_from_bytes() -> None:
    made = Audio(data=b"x", format="ogg").to_audio_content()
    assert made == AudioContent(type="audio", data=X, mime_type="audio/ogg")


def test_empty_bytes_are_media_too() -> None:
    assert Image(data=b"").to_image_content().data == ""


@pytest.mark.parametrize("kind", [Image, Audio])
def test_media_takes_a_path_or_data(kind: type[Image] | type[Audio]) -> None:
    with pytest.raises(ValueError, match=f"{kind.__name__} needs either a path or data"):
        kind()
    with pytest.raises(ValueError, match="needs either a path or data"):
        kind("a.png", b"x")


async def test_a_missing_file_is_the_tool_s_crash_and_its_path_stays_private(
    in_memory: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    result = await returned(in_memory, Image("secret/nowhere.png"))
    assert result.content == [plain("Error executing tool tool")]
    assert "FileNotFoundError" in caplog.text
