"""What each older revision knows of results, tools, questions and capabilities (protocol 25.5 and 26)."""

import json
from typing import Any

import pytest

from bespeak.protocol.legacy import (
    JUNE,
    MARCH,
    NOVEMBER,
    QuestionNotSupported,
    capabilities_at,
    declared_at,
    info_at,
    question_at,
    result_at,
    takes_batches,
    tool_at,
)

FIRST = "2024-11-05"
OLDER = [FIRST, MARCH, JUNE, NOVEMBER]
EVERYTHING: dict[str, Any] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {"tools": {}, "context": {}},
    "roots": {},
}
NOTIFIES = {"listChanged": True}
"""In those revisions a client declares that it will say when its roots have changed."""


def test_batches_were_allowed_before_2025_06_18() -> None:
    assert [takes_batches(version) for version in (*OLDER, None)] == [True, True, False, False, False]


# Capabilities and names


@pytest.mark.parametrize(
    ("version", "modern", "declared"),
    [
        (NOVEMBER, EVERYTHING, {**EVERYTHING, "roots": NOTIFIES}),
        (
            JUNE,
            {"elicitation": {"form": {}}, "sampling": {"context": {}}, "roots": {}},
            {"elicitation": {}, "sampling": {}, "roots": NOTIFIES},
        ),
        (MARCH, {"sampling": {"context": {}}, "roots": {}}, {"sampling": {}, "roots": NOTIFIES}),
        (FIRST, {"sampling": {"context": {}}, "roots": {}}, {"sampling": {}, "roots": NOTIFIES}),
    ],
)
def test_capabilities_are_those_of_the_revision(version: str, modern: dict[str, Any], declared: dict[str, Any]) -> None:
    assert declared_at(version, EVERYTHING) == declared
    assert capabilities_at(version, EVERYTHING) == modern
    assert capabilities_at(version, {}) == declared_at(version, {}) == {}
    assert capabilities_at(version, {"elicitation": None, "sampling": True, "roots": "yes"}) == {}


def test_an_info_loses_only_what_came_later() -> None:
    info: dict[str, Any] = {"name": "n", "version": "1", "title": "t", "icons": [], "own": 1}
    assert info_at(FIRST, info) == {"name": "n", "version": "1", "own": 1}
    assert info_at(JUNE, info).keys() == info.keys() - {"icons"}
    assert info_at(NOVEMBER, info) == info


# Tools


def test_a_tool_loses_only_what_came_later() -> None:
    later = ("annotations", MARCH), ("title", JUNE), ("outputSchema", JUNE), ("_meta", JUNE), ("icons", NOVEMBER)
    tool = {"name": "t", "inputSchema": {}, **{name: {"type": "object"} for name, _ in later}}
    for version in OLDER:
        known = {"name", "inputSchema", *(name for name, since in later if version >= since)}
        assert tool_at(version, tool).keys() == known
        assert result_at(version, "tools/list", {"tools": [tool], "ttlMs": 0}) == {"tools": [tool_at(version, tool)]}


@pytest.mark.parametrize("schema", [{"type": "array"}, {"anyOf": []}, {}])
def test_an_output_schema_of_anything_but_objects_is_left_out(schema: dict[str, Any]) -> None:
    assert tool_at(NOVEMBER, {"name": "t", "outputSchema": schema}) == {"name": "t"}


# Results of calls


def content_at(version: str, block: dict[str, Any]) -> dict[str, Any]:
    (known,) = result_at(version, "tools/call", {"content": [block], "resultType": "complete"})["content"]
    return known


def since(revision: str, block: dict[str, Any], before: dict[str, Any]) -> None:
    for version in OLDER:
        assert content_at(version, block) == (block if version >= revision else before)


def test_audio_came_with_2025_03_26() -> None:
    said = "(audio content of type audio/wav; this protocol version does not support audio)"
    audio = {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}
    since(MARCH, audio, {"type": "text", "text": said})


def test_links_to_resources_came_with_2025_06_18() -> None:
    link = {"type": "resource_link", "name": "Dune", "uri": "file:///dune"}
    since(JUNE, link, {"type": "text", "text": "Dune: file:///dune"})
    assert content_at(JUNE, {**link, "icons": []}) == link
    assert content_at(NOVEMBER, {**link, "icons": []}) == {**link, "icons": []}


def test_meta_on_content_came_with_2025_06_18() -> None:
    since(JUNE, {"type": "text", "text": "x", "_meta": {"mine": 1}}, {"type": "text", "text": "x"})
    resource = {"uri": "file:///dune", "text": "x"}
    before = {"type": "resource", "resource": resource}
    since(JUNE, {"type": "resource", "resource": {**resource, "_meta": {}}, "_meta": {}}, before)


@pytest.mark.parametrize("value", [[1, 2], 0, "", True])
def test_structured_content_that_is_not_an_object_becomes_text(value: Any) -> None:
    text = {"type": "text", "text": json.dumps(value, separators=(",", ":"))}
    said = {"type": "text", "text": "said already"}
    for version in OLDER:
        assert result_at(version, "tools/call", {"content": [], "structuredContent": value}) == {"content": [text]}
        assert result_at(version, "tools/call", {"content": [said], "structuredContent": value}) == {"content": [said]}


def test_structured_content_came_with_2025_06_18_and_is_text_before() -> None:
    result: dict[str, Any] = {"content": [], "structuredContent": {"n": 1}}
    assert result_at(MARCH, "tools/call", result) == {"content": [{"type": "text", "text": '{"n":1}'}]}
    assert result_at(JUNE, "tools/call", result) == result


# Questions


def form_at(version: str, **fields: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": fields}
    params = {"mode": "form", "message": "?", "requestedSchema": schema}
    return question_at(version, {"method": "elicitation/create", "params": params})["params"]


def test_a_form_of_2025_06_18_has_enum_names_and_no_mode() -> None:
    field = {"type": "string", "default": "a", "oneOf": [{"const": "a", "title": "A"}, {"const": "b"}]}
    older = form_at(JUNE, x=field, sure={"type": "boolean", "default": True})
    assert "mode" not in older
    assert older["requestedSchema"]["properties"] == {
        "x": {"type": "string", "enum": ["a", "b"], "enumNames": ["A", "b"]},
        "sure": {"type": "boolean", "default": True},
    }
    assert form_at(NOVEMBER, x=field)["requestedSchema"]["properties"] == {"x": field}


def test_a_list_of_choices_is_not_supported_at_2025_06_18() -> None:
    said = "a client of 2025-06-18 does not support lists of choices, such as the field 'y'"
    with pytest.raises(QuestionNotSupported, match=said):
        form_at(JUNE, y={"type": "array"})


def test_a_message_to_sample_had_one_block_of_content_before_2025_11_25() -> None:
    def asked(version: str, content: Any) -> Any:
        params = {"messages": [{"role": "user", "content": content}], "maxTokens": 9}
        return question_at(version, {"method": "sampling/createMessage", "params": params})["params"]["messages"]

    assert asked(JUNE, ["a", "b"]) == [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]
    assert asked(JUNE, "a") == asked(NOVEMBER, "a") == [{"role": "user", "content": "a"}]
    assert asked(NOVEMBER, ["a", "b"]) == [{"role": "user", "content": ["a", "b"]}]


def test_a_question_without_params_stays_without() -> None:
    assert question_at(FIRST, {"method": "roots/list"}) == {"method": "roots/list"}
