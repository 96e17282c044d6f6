"""The keys of `_meta`: protocol.md section 2.4."""

from typing import Any

import pytest

from bespeak.conversation.meta_keys import key_findings


def faults(**members: Any) -> list[str]:
    return [one.text for one in key_findings(members)]


@pytest.mark.parametrize(
    "key",
    [
        "",
        "a",
        "traceparent",
        "ui.resource-uri_2",
        "com.example/",
        "com.example/name",
        "com.example.mcp/name",
        "bespeak/key",
        "mcp/name",
        "io.modelcontextprotocol/serverInfo",
        "io.modelcontextprotocol/anything-that-an-extension-adds",
    ],
)
def test_a_key_may_have_a_prefix_and_a_name(key: str) -> None:
    assert faults(_meta={key: 1}) == []


@pytest.mark.parametrize("key", ["-a", "a-", "a b", "é", "1a/b", "a./b", "a..b/c", "a-/b", "/a", "a/b/c", "a\n"])
def test_any_other_key_is_found(key: str) -> None:
    assert len(faults(_meta={key: 1})) == 1


def test_a_key_is_named_with_what_is_wrong_with_it() -> None:
    assert faults(_meta={"a b": 1, "dev.mcp/x": 2}) == [
        "_meta has the key 'a b', which does not follow the grammar for names",
        "_meta has the key 'dev.mcp/x', whose prefix is reserved",
    ]


@pytest.mark.parametrize("prefix", ["dev.mcp", "com.mcp.tools", "org.modelcontextprotocol", "io.MCP"])
def test_a_prefix_with_a_reserved_second_label_is_found(prefix: str) -> None:
    assert len(faults(_meta={f"{prefix}/x": 1})) == 1


@pytest.mark.parametrize(
    "members",
    [
        {"content": [{"_meta": {" ": 1}}]},
        {"content": [{"resource": {"_meta": {" ": 1}}}]},
        {"contents": [5, {"_meta": {" ": 1}}]},
        {"messages": [{"content": {"_meta": {" ": 1}}}]},
        {"messages": [{"content": [{"_meta": {" ": 1}}]}]},
        {"tools": [{"_meta": {" ": 1}}, {"_meta": {" ": 1}}]},
    ],
)
def test_the_parts_of_a_result_may_have_keys_too(members: Any) -> None:
    assert len(faults(**members)) == 1


def test_what_is_called_meta_elsewhere_is_the_authors() -> None:
    assert faults(structuredContent={"_meta": {" ": 1}}, _meta=5, content=5) == []
