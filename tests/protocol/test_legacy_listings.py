"""What each older revision knows of prompts and resources: in lists, in messages and in contents."""

from typing import Any

import pytest

from bespeak.protocol.legacy import JUNE, MARCH, NOVEMBER, RESOURCE_NOT_FOUND, result_at

FIRST = "2024-11-05"
OLDER = [FIRST, MARCH, JUNE, NOVEMBER]
ABOUT: dict[str, Any] = {"title": "T", "icons": [{"src": "i"}], "_meta": {"a": 1}, "description": "d"}
KNOWN: dict[str, set[str]] = {
    FIRST: {"description"},
    MARCH: {"description"},
    JUNE: {"description", "title", "_meta"},
    NOVEMBER: {"description", "title", "_meta", "icons"},
}


@pytest.mark.parametrize("version", OLDER)
@pytest.mark.parametrize(
    ("method", "member", "entry"),
    [
        ("prompts/list", "prompts", {"name": "order"}),
        ("resources/list", "resources", {"uri": "a:b", "name": "b", "mimeType": "text/plain", "size": 3}),
        ("resources/templates/list", "resourceTemplates", {"uriTemplate": "a:{b}", "name": "b"}),
    ],
)
def test_an_entry_loses_only_what_came_later(version: str, method: str, member: str, entry: dict[str, Any]) -> None:
    result = {member: [{**entry, **ABOUT}], "nextCursor": "c", "ttlMs": 1, "cacheScope": "public"}
    found = result_at(version, method, result)
    assert found == {
        member: [{**entry, **{name: value for name, value in ABOUT.items() if name in KNOWN[version]}}],
        "nextCursor": "c",
    }


def test_an_argument_has_a_title_since_2025_06_18() -> None:
    prompt = {"name": "order", "arguments": [{"name": "title", "title": "Title", "required": True}]}
    found = [result_at(version, "prompts/list", {"prompts": [prompt]})["prompts"][0] for version in OLDER]
    assert ["title" in one["arguments"][0] for one in found] == [False, False, True, True]
    assert all(one["arguments"][0]["required"] for one in found)


@pytest.mark.parametrize("version", OLDER)
def test_a_message_has_what_the_revision_knows(version: str) -> None:
    message = {"role": "user", "content": {"type": "text", "text": "hello", "_meta": {"a": 1}}}
    result = {"resultType": "complete", "description": "d", "messages": [message], "_meta": {"kept": 1}}
    known = {"type": "text", "text": "hello", **({"_meta": {"a": 1}} if version >= JUNE else {})}
    assert result_at(version, "prompts/get", result) == {
        "description": "d",
        "messages": [{"role": "user", "content": known}],
        "_meta": {"kept": 1},
    }


def test_a_message_with_newer_content_becomes_text() -> None:
    link = {"type": "resource_link", "name": "hours", "uri": "shop://hours"}
    audio = {"type": "audio", "mimeType": "audio/wav", "data": ""}
    result = {"messages": [{"role": "user", "content": link}, {"role": "assistant", "content": audio}]}
    first = [one["content"] for one in result_at(FIRST, "prompts/get", result)["messages"]]
    assert first == [
        {"type": "text", "text": "hours: shop://hours"},
        {
            "type": "text",
            "text": "(audio content of type audio/wav; this protocol version does not support audio)",
        },
    ]
    assert result_at(NOVEMBER, "prompts/get", result) == result


def test_an_embedded_resource_has_meta_since_2025_06_18() -> None:
    block = {"type": "resource", "resource": {"uri": "a:b", "text": "", "_meta": {"a": 1}}}
    result = {"messages": [{"role": "user", "content": block}]}
    found = [result_at(version, "prompts/get", result)["messages"][0]["content"]["resource"] for version in OLDER]
    assert ["_meta" in one for one in found] == [False, False, True, True]


def test_contents_have_meta_since_2025_06_18() -> None:
    result = {"contents": [{"uri": "a:b", "text": "", "_meta": {"a": 1}}], "ttlMs": 0, "cacheScope": "private"}
    found = [result_at(version, "resources/read", result) for version in OLDER]
    assert ["_meta" in one["contents"][0] for one in found] == [False, False, True, True]
    assert all(one.keys() == {"contents"} for one in found)


@pytest.mark.parametrize("version", OLDER)
def test_a_completion_is_the_same_at_every_revision(version: str) -> None:
    completion = {"values": ["a"], "total": 1, "hasMore": False}
    assert result_at(version, "completion/complete", {"resultType": "complete", "completion": completion}) == {
        "completion": completion
    }


def test_older_clients_know_a_code_for_resources_that_are_not_found() -> None:
    assert RESOURCE_NOT_FOUND == -32002
