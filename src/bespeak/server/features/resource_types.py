"""Resources that need no function of their own: a text, bytes, a file or a directory, for `MCPServer.add_resource`."""

import codecs
from collections.abc import Callable
from email.message import Message
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from pydantic_core import to_json
from typing_extensions import TypedDict, Unpack

from bespeak.resolve.reading.callables import calling_frame
from bespeak.server.features.resource_results import JSON, TEXT
from bespeak.server.features.resources import Resource, ResourceOptions

if TYPE_CHECKING:
    from mcp_types import Annotations, Icon
    from pydantic import AnyUrl

MOST_FILES: Final = 1000
"""How many files a directory lists."""
BY_MIME_TYPE: Any = object()


class About(TypedDict, total=False):
    """What may be said of every resource."""

    name: str | None
    title: str | None
    description: str | None
    icons: "list[Icon] | None"
    annotations: "Annotations | None"
    meta: dict[str, Any] | None


def _options(uri: "str | AnyUrl", about: About, mime_type: str | None, size: int | None = None) -> ResourceOptions:
    return ResourceOptions(
        name=about.get("name") or str(uri),
        title=about.get("title"),
        description=about.get("description") or "",
        mime_type=mime_type,
        icons=about.get("icons"),
        annotations=about.get("annotations"),
        meta=about.get("meta"),
        size=size,
    )


class TextResource(Resource):
    """A resource that is a text."""

    def __init__(self, *, uri: "str | AnyUrl", text: str, mime_type: str = TEXT, **about: Unpack[About]) -> None:
        async def read() -> str:
            return text

        super().__init__(read, str(uri), _options(uri, about, mime_type, len(text.encode())), None)


class BinaryResource(Resource):
    """A resource that is bytes."""

    def __init__(self, *, uri: "str | AnyUrl", data: bytes, mime_type: str = TEXT, **about: Unpack[About]) -> None:
        async def read() -> bytes:
            return data

        super().__init__(read, str(uri), _options(uri, about, mime_type, len(data)), None)


class FileResource(Resource):
    """A resource that is a file, read anew each time, in a worker thread.

    It is sent as text in the given encoding, or as bytes if that is `None`. Without one, the MIME type decides: its
    charset, or UTF-8 for text, JSON and XML, and bytes for all others.
    """

    def __init__(
        self,
        *,
        uri: "str | AnyUrl",
        path: str | Path,
        mime_type: str = TEXT,
        encoding: str | None = BY_MIME_TYPE,
        **about: Unpack[About],
    ) -> None:
        self.path = file = _absolute(path)
        self.encoding = known = _encoding_of(mime_type) if encoding is BY_MIME_TYPE else encoding
        if known is not None:
            try:
                codecs.lookup(known)
            except LookupError:
                raise ValueError(f"unknown encoding {known!r}") from None

        def read() -> str | bytes:
            return file.read_bytes() if known is None else file.read_text(known)

        super().__init__(read, str(uri), _options(uri, about, mime_type), None)


class DirectoryResource(Resource):
    """A resource that lists the files of a directory, as JSON, with paths relative to it. At most 1000 are listed."""

    def __init__(
        self,
        *,
        uri: "str | AnyUrl",
        path: str | Path,
        recursive: bool = False,
        pattern: str | None = None,
        mime_type: str = JSON,
        **about: Unpack[About],
    ) -> None:
        self.path = directory = _absolute(path)
        self.recursive = recursive
        self.pattern = pattern
        if pattern is not None and (Path(pattern).is_absolute() or ".." in Path(pattern).parts):
            raise ValueError(f"the pattern {pattern!r} reaches out of the directory")

        def read() -> str:
            if not directory.is_dir():
                raise NotADirectoryError(f"{directory} is not a directory")
            found = directory.rglob(pattern or "*") if recursive else directory.glob(pattern or "*")
            files = list(islice((one for one in found if one.is_file()), MOST_FILES + 1))
            names = sorted(one.relative_to(directory).as_posix() for one in files[:MOST_FILES])
            more = {"truncated": True} if len(files) > MOST_FILES else {}
            return to_json({"files": names, **more}, indent=2).decode()

        super().__init__(read, str(uri), _options(uri, about, mime_type), None)


class FunctionResource(Resource):
    """A resource that is what a function returns: text, bytes, or a value that is sent as JSON."""

    def __init__(
        self, *, uri: "str | AnyUrl", fn: Callable[..., Any], mime_type: str = TEXT, **about: Unpack[About]
    ) -> None:
        super().__init__(fn, str(uri), _options(uri, about, mime_type), calling_frame())

    @classmethod
    def from_function(
        cls,
        fn: Callable[..., Any],
        uri: str,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        icons: "list[Icon] | None" = None,
        annotations: "Annotations | None" = None,
        meta: dict[str, Any] | None = None,
    ) -> Self:
        """A resource named and described by its function, unless told otherwise."""
        made = cls.__new__(cls)
        options = ResourceOptions(name, title, description, mime_type or TEXT, icons, annotations, meta)
        Resource.__init__(made, fn, uri, options, calling_frame())
        return made


def _absolute(path: str | Path) -> Path:
    if not Path(path).is_absolute():
        raise ValueError(f"the path must be absolute, unlike {str(path)!r}; use Path({str(path)!r}).absolute()")
    return Path(path)


def _encoding_of(mime_type: str) -> str | None:
    """The encoding of a file by its MIME type; `None` if it is not text."""
    parsed = Message()
    parsed["content-type"] = mime_type
    charset = parsed.get_content_charset()
    if charset is not None:
        return charset
    kind = parsed.get_content_type()
    is_text = kind.startswith("text/") or kind.endswith(("/json", "/xml", "+json", "+xml"))
    return "utf-8-sig" if is_text else None  # which leaves out the mark that some editors begin a file with
