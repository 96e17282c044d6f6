"""The keys of `_meta`: protocol.md section 2.4."""

from typing import Any

import pytest

from bespeak.conversation.meta_keys import key_findings
from tests.conversation.raw_servers import JUNE, MODERN, NOVEMBER, Json


def faults(**members: Any) -> list[str]:
    return [one.text for one in key_findings(members, MODERN)]


@pytest.mark.parametrize(
    "key",
    [
        "",
        "a",
        "tracestate",
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


@pytest.mark.parametrize("prefix", ["mcp.dev", "modelcontextprotocol.io", "api.mcp.dev", "tools.mcp.com"])
def test_at_2025_06_18_a_reserved_label_is_one_that_has_another_after_it(prefix: str) -> None:
    meta: Json = {"_meta": {f"{prefix}/x": 1, "dev.mcp/x": 1, "io.modelcontextprotocol/x": 1}}
    (found,) = key_findings(meta, JUNE)
    assert found.text == f"_meta has the key '{prefix}/x', whose prefix is reserved"
    assert key_findings({"_meta": {"mcp.dev/x": 1}}, NOVEMBER) == []


TRACE = f"{'a' * 32}-{'b' * 16}-01"


@pytest.mark.parametrize("value", [f"00-{TRACE}", f"cc-{TRACE}-what-comes-later"])
def test_a_trace_has_its_context_in_traceparent(value: str) -> None:
    assert faults(_meta={"traceparent": value}) == []


@pytest.mark.parametrize(
    "value", [1, "", TRACE, f"ff-{TRACE}", f"00-{TRACE.upper()}", f"00-{'0' * 32}-{'b' * 16}-01", f"00-{TRACE}-x"]
)
def test_any_other_context_is_found(value: Any) -> None:
    assert faults(_meta={"traceparent": value}) == ["_meta has a traceparent that is not valid"]


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
