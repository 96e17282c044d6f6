"""Ready-made resources: texts, bytes, files, directories and functions."""

import threading
from json import loads
from pathlib import Path
from typing import Annotated, Any

import pytest
from mcp_types import Annotations, Icon
from pydantic import AnyUrl

from bespeak import MCPError, MCPServer, Resolve
from bespeak.server import (
    BinaryResource,
    DirectoryResource,
    FileResource,
    FunctionResource,
    ReadResourceContents,
    TextResource,
)
from bespeak.server.features.resource_types import MOST_FILES
from bespeak.server.features.resources import Resource


async def listed(resource: Resource) -> dict[str, Any]:
    mcp = MCPServer("shop")
    mcp.add_resource(resource)
    (one,) = await mcp.list_resources()
    return one.model_dump(by_alias=True, exclude_none=True)


async def read(resource: Resource) -> ReadResourceContents:
    mcp = MCPServer("shop")
    mcp.add_resource(resource)
    (content,) = await mcp.read_resource(resource.name)
    return content


async def test_a_text() -> None:
    resource = TextResource(uri="shop://hours", text="9 bis 5 Uhr \N{EURO SIGN}")
    assert await read(resource) == ReadResourceContents("9 bis 5 Uhr \N{EURO SIGN}", "text/plain")
    assert await listed(resource) == {
        "uri": "shop://hours",
        "name": "shop://hours",
        "mimeType": "text/plain",
        "size": 15,
    }


async def test_bytes() -> None:
    resource = BinaryResource(uri="shop://logo", data=b"\x89PNG", mime_type="image/png")
    assert await read(resource) == ReadResourceContents(b"\x89PNG", "image/png")
    assert (await listed(resource))["size"] == 4


async def test_everything_that_is_said_of_a_resource_is_listed() -> None:
    resource = TextResource(
        uri=AnyUrl("shop://hours"),
        text="",
        name="hours",
        title="Hours",
        description="When we open",
        icons=[Icon(src="https://example.com/i.png")],
        annotations=Annotations(priority=1),
        meta={"a": 1},
    )
    assert await listed(resource) == {
        "uri": "shop://hours",
        "name": "hours",
        "title": "Hours",
        "description": "When we open",
        "mimeType": "text/plain",
        "size": 0,
        "icons": [{"src": "https://example.com/i.png"}],
        "annotations": {"priority": 1},
        "_meta": {"a": 1},
    }


# Files


@pytest.mark.parametrize(
    ("mime_type", "encoding"),
    [
        ("text/plain", "utf-8-sig"),
        ("text/html; charset=latin-1", "latin-1"),
        ("application/json", "utf-8-sig"),
        ("application/xml", "utf-8-sig"),
        ("application/ld+json", "utf-8-sig"),
        ("image/svg+xml", "utf-8-sig"),
        ("image/png", None),
        ("application/octet-stream", None),
        ("nonsense", "utf-8-sig"),
    ],
)
def test_the_mime_type_says_how_a_file_is_read(mime_type: str, encoding: str | None, tmp_path: Path) -> None:
    assert FileResource(uri="shop://file", path=tmp_path / "file", mime_type=mime_type).encoding == encoding


async def test_a_file_is_read_anew_each_time(tmp_path: Path) -> None:
    file = tmp_path / "prices.txt"
    resource = FileResource(uri="shop://prices", path=file)
    file.write_bytes(b"\xef\xbb\xbfDune: 9")
    assert await read(resource) == ReadResourceContents("Dune: 9", "text/plain")
    file.write_bytes("Dune: 10 \N{EURO SIGN}".encode())
    assert (await read(resource)).content == "Dune: 10 \N{EURO SIGN}"


async def test_a_file_without_an_encoding_is_bytes(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"\xff\x00")
    content = await read(FileResource(uri="shop://file", path=str(file), encoding=None))
    assert content == ReadResourceContents(b"\xff\x00", "text/plain")


async def test_a_file_is_read_in_a_worker_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[threading.Thread] = []

    def reading(*_: Any) -> str:
        seen.append(threading.current_thread())
        return ""

    monkeypatch.setattr(Path, "read_text", reading)
    await read(FileResource(uri="shop://file", path=tmp_path / "file"))
    assert seen[0] is not threading.current_thread()


async def test_a_file_that_is_gone_is_a_failure_that_does_not_tell_its_path(tmp_path: Path) -> None:
    with pytest.raises(MCPError) as caught:
        await read(FileResource(uri="shop://file", path=tmp_path / "gone"))
    assert (caught.value.code, caught.value.message) == (-32603, "Error reading resource shop://file")


@pytest.mark.parametrize("kind", [FileResource, DirectoryResource])
def test_a_path_is_absolute(kind: Any) -> None:
    message = r"^the path must be absolute, unlike 'data/x'; use Path\('data/x'\)\.absolute\(\)$"
    with pytest.raises(ValueError, match=message):
        kind(uri="shop://file", path="data/x")


@pytest.mark.parametrize("options", [{"encoding": "utf-9"}, {"mime_type": "text/plain; charset=utf-9"}])
def test_an_unknown_encoding_is_refused(options: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^unknown encoding 'utf-9'$"):
        FileResource(uri="shop://file", path=tmp_path / "file", **options)  # pyright: ignore[reportArgumentType] - options of two kinds


# Directories


@pytest.fixture
def shelves(tmp_path: Path) -> Path:
    for name in ("b.txt", "a.md", "old/c.txt", "old/older/d.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


@pytest.mark.parametrize(
    ("options", "files"),
    [
        ({}, ["a.md", "b.txt"]),
        ({"recursive": True}, ["a.md", "b.txt", "old/c.txt", "old/older/d.txt"]),
        ({"pattern": "*.txt"}, ["b.txt"]),
        ({"pattern": "*.txt", "recursive": True}, ["b.txt", "old/c.txt", "old/older/d.txt"]),
        ({"pattern": "old/*"}, ["old/c.txt"]),
    ],
)
async def test_a_directory_lists_its_files(shelves: Path, options: dict[str, Any], files: list[str]) -> None:
    content = await read(DirectoryResource(uri="shop://files", path=shelves, **options))
    assert content.mime_type == "application/json"
    assert loads(content.content) == {"files": files}


async def test_a_large_directory_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bespeak.server.features.resource_types.MOST_FILES", 2)
    for number in range(3):
        (tmp_path / str(number)).touch()
    found = loads((await read(DirectoryResource(uri="shop://files", path=tmp_path))).content)
    assert len(found["files"]) == 2
    assert found["truncated"] is True
    assert MOST_FILES == 1000


async def test_a_directory_that_is_gone_is_a_failure(tmp_path: Path) -> None:
    with pytest.raises(MCPError, match=r"^Error reading resource shop://files$"):
        await read(DirectoryResource(uri="shop://files", path=tmp_path / "gone"))


@pytest.mark.parametrize("pattern", ["../*", "/etc/*", "a/../../*"])
def test_a_pattern_stays_in_the_directory(pattern: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^the pattern '.*' reaches out of the directory$"):
        DirectoryResource(uri="shop://files", path=tmp_path, pattern=pattern)


# Functions


async def newest() -> str:
    return "Dune"


def newest_title(title: Annotated[str, Resolve(newest)]) -> str:
    """The newest book."""
    return title


async def test_a_function_with_resolvers() -> None:
    resource = FunctionResource(uri="shop://newest", fn=newest_title)
    assert await read(resource) == ReadResourceContents("Dune", "text/plain")
    assert await listed(resource) == {"uri": "shop://newest", "name": "shop://newest", "mimeType": "text/plain"}


async def test_a_function_may_name_and_describe_its_resource() -> None:
    resource = FunctionResource.from_function(newest_title, "shop://newest")
    assert isinstance(resource, FunctionResource)
    assert await listed(resource) == {
        "uri": "shop://newest",
        "name": "newest_title",
        "description": "The newest book.",
        "mimeType": "text/plain",
    }


async def test_a_local_function_is_read_where_it_is_registered() -> None:
    class Book:
        title = "Dune"

    async def local() -> "Book":
        return Book()

    def best(book: "Annotated[Book, Resolve(local)]") -> str:
        return book.title

    assert (await read(FunctionResource(uri="shop://best", fn=best))).content == "Dune"
    assert (await read(FunctionResource.from_function(best, "shop://best"))).content == "Dune"


async def test_a_resource_of_two_servers_is_overridden_on_one() -> None:
    resource = FunctionResource(uri="shop://newest", fn=newest_title)
    one, two = MCPServer[Any]("one"), MCPServer[Any]("two")
    one.add_resource(resource)
    two.add_resource(resource)
    with one.override(newest, value="Emma"):
        assert [(await mcp.read_resource("shop://newest"))[0].content for mcp in (one, two)] == ["Emma", "Dune"]


def test_two_resources_at_one_uri_are_refused() -> None:
    mcp = MCPServer("shop")
    mcp.add_resource(TextResource(uri="shop://hours", text=""))
    with pytest.raises(ValueError, match="'shop://hours' is already registered"):
        mcp.add_resource(TextResource(uri="shop://hours", text=""))
