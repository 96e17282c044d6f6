"""What a resource may return, and the contents that become of it."""

from typing import Any

import pytest
from mcp_types import BlobResourceContents, ReadResourceResult, TextResourceContents
from pydantic import BaseModel, Field

from bespeak.server import ReadResourceContents
from bespeak.server.features.resource_results import read_contents, resource_result

URI = "books://7"


class Book(BaseModel):
    title: str = Field(serialization_alias="bookTitle")


def content(mime_type: str, **more: Any) -> dict[str, Any]:
    return {"uri": URI, "mimeType": mime_type, **more}


@pytest.mark.parametrize(
    ("returned", "contents"),
    [
        ("hello", [content("text/plain", text="hello")]),
        (b"hi", [content("application/octet-stream", blob="aGk=")]),
        (bytearray(b"hi"), [content("application/octet-stream", blob="aGk=")]),
        ({"a": 1}, [content("application/json", text='{\n  "a": 1\n}')]),
        (["a"], [content("application/json", text='[\n  "a"\n]')]),
        ([], [content("application/json", text="[]")]),
        (7, [content("application/json", text="7")]),
        (Book(title="Dune"), [content("application/json", text='{\n  "bookTitle": "Dune"\n}')]),
        (ReadResourceContents("hello"), [content("text/plain", text="hello")]),
        (
            [ReadResourceContents("a", "text/html", {"m": 1}), ReadResourceContents(b"hi")],
            [content("text/html", text="a", _meta={"m": 1}), content("application/octet-stream", blob="aGk=")],
        ),
        (
            TextResourceContents(uri="books://8", text="other", _meta={"m": None}),
            [{"uri": "books://8", "text": "other", "_meta": {"m": None}}],
        ),
        (
            (BlobResourceContents(uri="books://8", blob="aGk=", mime_type="image/png"),),
            [{"uri": "books://8", "mimeType": "image/png", "blob": "aGk="}],
        ),
        (
            [ReadResourceContents("a"), "b"],
            [
                content(
                    "application/json",
                    text='[\n  {\n    "content": "a",\n    "mime_type": null,\n    "meta": null\n  },\n  "b"\n]',
                )
            ],
        ),
    ],
)
def test_a_returned_value_becomes_contents(returned: Any, contents: list[dict[str, Any]]) -> None:
    assert resource_result(returned, URI, None) == {"contents": contents}


@pytest.mark.parametrize("returned", ["hello", b"hi", {"a": 1}, ReadResourceContents("hello")])
def test_the_registered_mime_type_wins_over_the_guessed_one(returned: Any) -> None:
    assert resource_result(returned, URI, "text/html")["contents"][0]["mimeType"] == "text/html"


def test_a_mime_type_of_the_contents_wins_over_the_registered_one() -> None:
    returned = ReadResourceContents("hello", "text/csv")
    assert resource_result(returned, URI, "text/html")["contents"][0]["mimeType"] == "text/csv"


def test_a_result_is_sent_as_it_is() -> None:
    inner = TextResourceContents(uri=URI, text="a")
    result = ReadResourceResult(contents=[inner], ttl_ms=5, cache_scope="public", _meta={"a": 1})
    assert resource_result(result, "ignored", "ignored") == {
        "contents": [{"uri": URI, "text": "a"}],
        "ttlMs": 5,
        "cacheScope": "public",
        "_meta": {"a": 1},
    }


def test_nothing_is_not_content() -> None:
    message = r"^a resource returned None; return text, bytes or a value that JSON can represent$"
    with pytest.raises(TypeError, match=message):
        resource_result(None, URI, None)


def test_what_json_cannot_carry_is_refused() -> None:
    with pytest.raises(ValueError, match="object"):
        resource_result(object(), URI, None)


def test_contents_are_read_back() -> None:
    returned = [ReadResourceContents("a", "text/html", {"m": 1}), ReadResourceContents(b"hi", "image/png")]
    assert read_contents(resource_result(returned, URI, None)) == returned
