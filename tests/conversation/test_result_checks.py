"""What the schema requires of results and errors: protocol.md sections 1, 3, 4, 10 to 13 and 15."""

from typing import Any

import pytest

from bespeak.conversation.json_values import is_whole
from bespeak.conversation.result_checks import CACHEABLE, response_findings

Json = dict[str, Any]
MODERN, NOVEMBER = "2026-07-28", "2025-11-25"
TEXT: Json = {"type": "text", "text": "x"}


def said(method: str, result: Json, version: str = MODERN) -> list[tuple[str, str]]:
    envelope = {"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete", **result}}
    return [(one.rule, one.text) for one in response_findings(method, envelope, version)]


def told(error: Any, version: str = MODERN) -> list[tuple[str, str]]:
    return [(one.rule, one.text) for one in response_findings("tools/call", {"error": error}, version)]


@pytest.mark.parametrize("envelope", [None, [], {}, {"result": 5}, {"error": 5}, {"result": {"resultType": "odd"}}])
def test_what_is_no_result_is_judged_elsewhere(envelope: Any) -> None:
    assert response_findings("tools/call", envelope, MODERN) == []


@pytest.mark.parametrize(
    "block",
    [
        TEXT,
        {"type": "image", "data": "", "mimeType": "image/png"},
        {"type": "audio", "data": "", "mimeType": "audio/wav"},
        {"type": "resource_link", "uri": "file:///a", "name": "a"},
        {"type": "resource", "resource": {"uri": "file:///a", "mimeType": "text/plain", "text": ""}},
        {"type": "resource", "resource": {"uri": "file:///a", "mimeType": "image/png", "blob": ""}},
        {**TEXT, "annotations": {}, "_meta": {}, "more": 1},
    ],
)
def test_every_kind_of_block_is_allowed(block: Json) -> None:
    assert said("tools/call", {"content": [block]}) == []
    assert said("prompts/get", {"messages": [{"role": "assistant", "content": block}]}) == []


@pytest.mark.parametrize(
    ("block", "fault"),
    [
        (5, "is a number, not an object"),
        ({}, "has no type"),
        ({"type": "video"}, 'has the type "video"'),
        ({"type": ["text"]}, 'has the type ["text"]'),
        ({"type": "text"}, "has no text"),
        ({"type": "text", "text": None}, "has a text that is null, not a string"),
        ({"type": "image", "data": ""}, "has no mimeType"),
        ({"type": "resource"}, "has a resource that is not an object"),
        ({"type": "resource", "resource": {}}, "has a resource that has no uri"),
        ({"type": "resource", "resource": {"uri": "a:b"}}, "has a resource that has no text or blob"),
    ],
)
def test_a_block_that_the_schema_does_not_have_is_found(block: Any, fault: str) -> None:
    assert said("tools/call", {"content": [TEXT, block]}) == [("content", f"content[1] {fault}")]


LACKING: list[tuple[str, Json, str]] = [
    ("tools/call", {"content": None}, "content is null, not an array"),
    ("tools/call", {}, "the result has no content"),
    ("prompts/get", {}, "the result has no messages"),
    ("prompts/get", {"messages": [{"role": "system"}]}, 'messages[0] has the role "system"'),
    ("prompts/get", {"messages": [{"role": "user"}]}, "messages[0] has content that is not one block"),
    ("prompts/get", {"messages": [{"role": "user", "content": {}}]}, "messages[0] has content that has no type"),
]


@pytest.mark.parametrize(("method", "result", "fault"), LACKING)
def test_what_a_result_lacks_is_found(method: str, result: Json, fault: str) -> None:
    assert said(method, result) == [("content", fault)]


@pytest.mark.parametrize("value", [None, [], 5, "x", True, {}])
def test_structured_content_may_be_any_value_at_the_newest_revision_and_an_object_before(value: Any) -> None:
    result: Json = {"content": [TEXT], "structuredContent": value}
    assert said("tools/call", result) == []
    assert [rule for rule, _ in said("tools/call", result, NOVEMBER)] == (
        [] if isinstance(value, dict) else ["structured-object"]
    )


@pytest.mark.parametrize("method", CACHEABLE)
@pytest.mark.parametrize("ttl", [0, 60_000, 60_000.0])
def test_a_result_that_can_be_cached_says_for_how_long(method: str, ttl: Any) -> None:
    whole: Json = {key: [] for key in ("contents", "tools", "prompts", "resources", "resourceTemplates")}
    assert said(method, {**whole, "ttlMs": ttl, "cacheScope": "public"}) == []
    assert said(method, whole, NOVEMBER) == []


@pytest.mark.parametrize(
    ("hints", "faults"),
    [
        ({}, ["the result has no ttlMs", "the result has no cacheScope"]),
        (
            {"ttlMs": -1, "cacheScope": "all"},
            ["ttlMs is -1, which is not a whole number of at least 0", 'cacheScope is "all", not public or private'],
        ),
        ({"ttlMs": True, "cacheScope": "private"}, ["ttlMs is true, which is not a whole number of at least 0"]),
        ({"ttlMs": 0.5, "cacheScope": "private"}, ["ttlMs is 0.5, which is not a whole number of at least 0"]),
    ],
)
def test_cache_hints_that_are_missing_or_wrong_are_found(hints: Json, faults: list[str]) -> None:
    assert said("tools/list", {"tools": [], **hints}) == [("cache-hints", fault) for fault in faults]


def test_structured_content_should_be_given_as_text_too() -> None:
    image = {"type": "image", "data": "", "mimeType": "image/png"}
    told_ = [("structured-text", "the result has structuredContent and no text")]
    assert said("tools/call", {"content": [image], "structuredContent": {}}) == told_
    assert said("tools/call", {"content": [], "structuredContent": {}}, "2025-03-26") == []


@pytest.mark.parametrize(
    ("method", "member", "entry", "fault"),
    [
        ("tools/list", "tools", {"inputSchema": {"type": "object"}}, "tools[0] has no name"),
        ("prompts/list", "prompts", {}, "prompts[0] has no name"),
        ("resources/list", "resources", {"name": "a"}, "resources[0] has no uri"),
        ("resources/templates/list", "resourceTemplates", {"name": "a"}, "resourceTemplates[0] has no uriTemplate"),
    ],
)
def test_the_entries_of_a_list_have_their_required_members(method: str, member: str, entry: Json, fault: str) -> None:
    hints: Json = {"ttlMs": 0, "cacheScope": "private"}
    assert said(method, {member: [entry], **hints}) == [("content", fault)]
    assert said(method, hints) == [("content", f"the result has no {member}")]
    assert said(method, {member: [{**entry, "name": "a", "uri": "a:", "uriTemplate": "a:"}], **hints}) == []


def test_each_tool_of_a_list_is_checked() -> None:
    tools = [{"name": "a b", "inputSchema": {"type": "object"}}, {"name": "c"}]
    assert said("tools/list", {"tools": tools, "ttlMs": 0, "cacheScope": "private"}) == [
        ("tool-name", "the tool 'a b' has a name of other characters, or of another length"),
        ("tool-schema", "the tool 'c' has no inputSchema"),
    ]


@pytest.mark.parametrize(
    ("kind", "version", "since"),
    [("audio", "2024-11-05", "2025-03-26"), ("resource_link", "2025-03-26", "2025-06-18")],
)
def test_a_block_of_a_later_revision_is_found_in_tools_and_prompts(kind: str, version: str, since: str) -> None:
    block = {"type": kind, "data": "", "mimeType": "a/b", "uri": "a:", "name": "a"}
    found = [("later-block", f"the result has a block of type {kind}, which came with {since}")]
    assert said("tools/call", {"content": [block]}, version) == found
    assert said("prompts/get", {"messages": [{"role": "user", "content": block}]}, version) == found
    assert said("tools/call", {"content": [block]}, since) == []


@pytest.mark.parametrize("completion", [None, {}, {"values": "x"}])
def test_a_completion_has_values(completion: Any) -> None:
    assert said("completion/complete", {"completion": completion}) == [
        ("completion", "the result has no completion with values")
    ]


def test_the_values_of_a_completion_are_strings() -> None:
    assert said("completion/complete", {"completion": {"values": ["", 5]}}) == [
        ("completion", "a value of the completion is a number, not a string")
    ]


@pytest.mark.parametrize(
    ("error", "found"),
    [
        ({"code": "x", "message": "y"}, ("envelope", "the code of the error is a string, not a whole number")),
        ({"code": 1.5, "message": "y"}, ("envelope", "the code of the error is a number, not a whole number")),
        ({"message": "y"}, ("envelope", "the error has no code")),
        ({"code": 1}, ("envelope", "the error has no message, or one that is not a string")),
        (
            {"code": -32042, "message": ""},
            (
                "error-code",
                "the error has the code -32042, which means that a page must be opened in older revisions only",
            ),
        ),
        (
            {"code": -32050, "message": ""},
            ("error-code", "the error has the code -32050, which the protocol does not define"),
        ),
        ({"code": -32000, "message": ""}, ("error-range", "the error has the code -32000, which is reserved")),
        (
            {"code": -32021, "message": "", "data": {"requiredCapabilities": ["elicitation"]}},
            ("error-data", "the error -32021 has no data.requiredCapabilities, or one that is not an object"),
        ),
        (
            {"code": -32022, "message": "", "data": {"supported": "2026-07-28", "requested": "x"}},
            ("error-data", "the error -32022 has no data.supported, or one that is not a list of strings"),
        ),
        (
            {"code": -32022, "message": "", "data": {"supported": ["2026-07-28"]}},
            ("error-data", "the error -32022 has no data.requested, or one that is not a string"),
        ),
    ],
)
def test_an_error_that_the_protocol_does_not_have_is_found(error: Json, found: tuple[str, str]) -> None:
    assert told(error) == [found]


@pytest.mark.parametrize("code", [-32700, -32600, -32601, -32602, -32602.0, -32603, -32020, 0, 7, -31999, -32769])
def test_codes_of_the_protocol_and_of_the_server_are_allowed(code: Any) -> None:
    assert told({"code": code, "message": ""}) == []


@pytest.mark.parametrize("code", [-32002, -32050, -32000, -32021])
def test_older_revisions_leave_these_codes_to_the_server(code: int) -> None:
    assert told({"code": code, "message": ""}, NOVEMBER) == []


@pytest.mark.parametrize(
    "data", [None, {}, {"elicitations": []}, {"elicitations": [{"mode": "url", "url": "a:", "message": "m"}]}]
)
def test_the_error_that_requires_pages_lists_them(data: Any) -> None:
    text = "the error -32042 has no data.elicitations, or one that is not a list of pages"
    assert told({"code": -32042, "message": "", "data": data}, NOVEMBER) == [("page-required", text)]


@pytest.mark.parametrize(
    ("value", "whole"), [(1, True), (1.0, True), (1.5, False), (True, False), ("1", False), (None, False)]
)
def test_a_whole_number_may_be_written_with_a_point(value: Any, whole: bool) -> None:
    assert is_whole(value) is whole
