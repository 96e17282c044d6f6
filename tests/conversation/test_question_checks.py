"""What the schema requires of questions: protocol.md sections 7 and 8."""

from typing import Any

import pytest

from bespeak.conversation.question_checks import question_findings
from bespeak.conversation.responses import Question

Json = dict[str, Any]
MODERN, NOVEMBER, JUNE, MARCH = "2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"
ELICIT = "elicitation/create"


def form(field: Any, version: str = MODERN, **schema: Any) -> list[str]:
    """What is wrong with a form of one field."""
    requested = {"type": "object", "properties": {"f": field}, **schema}
    found = question_findings(Question("q", ELICIT, {"message": "?", "requestedSchema": requested}), version)
    assert {one.rule for one in found} <= {"form"}
    return [one.text for one in found]


def page(url: str, version: str = MODERN, **more: Any) -> list[str]:
    """The rules that a page breaks."""
    asked = Question("q", ELICIT, {"mode": "url", "message": "?", "url": url, **more})
    return [one.rule for one in question_findings(asked, version)]


TITLED = [{"const": "a", "title": "A"}]
FIELDS: list[Json] = [
    {"type": "string", "minLength": 1.0, "maxLength": 9, "default": "x", "title": "T", "description": "D"},
    *({"type": "string", "format": kind} for kind in ("email", "uri", "date", "date-time")),
    {"type": "number", "minimum": 0.5, "default": 1},
    {"type": "integer", "default": 1.0},
    {"type": "boolean", "default": True},
    {"type": "string", "enum": ["a"], "enumNames": ["A"], "default": "a"},
    {"type": "string", "oneOf": TITLED},
    {"type": "string", "pattern": "a"},
]
CHOICES: list[Json] = [
    {"type": "array", "items": {"type": "string", "enum": ["a"]}, "minItems": 1, "default": ["a"]},
    {"type": "array", "items": {"anyOf": TITLED}},
]


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("version", [MODERN, NOVEMBER, JUNE])
def test_every_kind_of_field_is_allowed(field: Json, version: str) -> None:
    assert form(field, version) == []


@pytest.mark.parametrize("field", CHOICES)
def test_several_may_be_chosen_from_a_list_since_november(field: Json) -> None:
    assert form(field, MODERN) == form(field, NOVEMBER) == []
    assert form(field, JUNE) == ["the form 'q' has a field 'f' that is an array, which this revision does not have"]


FAULTS: list[tuple[Any, str]] = [
    (True, "is a boolean, not an object"),
    ({"type": "object", "properties": {}}, "is an object, so the form is not flat"),
    ({"enum": ["a"]}, "has no type"),
    ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "has no type"),
    ({"type": ["string", "null"]}, 'has the type ["string", "null"]'),
    ({"type": "null"}, 'has the type "null"'),
    (
        {"type": "string", "format": "uuid"},
        'has the format "uuid"; formats are email, uri, date, date-time',
    ),
    ({"type": "string", "default": 1}, "has a default that is a number, not a string"),
    ({"type": "number", "default": True}, "has a default that is a boolean, not a number"),
    ({"type": "boolean", "default": "yes"}, "has a default that is a string, not a boolean"),
]
NO_CHOICES: list[Json] = [
    {},
    {"items": {"type": "string"}},
    {"items": {"type": "integer", "enum": [1]}},
    {"items": {"type": "string", "enum": [1]}},
    {"items": {"anyOf": [{"const": "a"}]}},
    {"items": {"anyOf": ["a"]}},
    {"items": 5},
]
UNCHOSEN = "is an array without a list of strings to choose from"


@pytest.mark.parametrize(("field", "fault"), [*FAULTS, *(({"type": "array", **more}, UNCHOSEN) for more in NO_CHOICES)])
def test_a_field_that_forms_do_not_have_is_found(field: Any, fault: str) -> None:
    assert form(field) == [f"the form 'q' has a field 'f' that {fault}"]


def test_a_form_is_an_object() -> None:
    assert form({"type": "string"}, type="array") == ["""the form 'q' has the type "array", not object"""]


@pytest.mark.parametrize("required", ["f", [1], None])
def test_required_is_a_list_of_names(required: Any) -> None:
    assert form({"type": "string"}, required=required) == [
        "the form 'q' has a member required that is not a list of strings"
    ]


def test_a_revision_without_forms_has_no_rule_for_them() -> None:
    assert form({"type": "object"}, MARCH) == []


@pytest.mark.parametrize(
    "url",
    ["https://x.example", "https://x.example/ä?b={c}", "myapp://open", "mailto:a@x.example", "HTTPS://X.example:1"],
)
def test_every_kind_of_url_is_allowed(url: str) -> None:
    assert page(url) == []


@pytest.mark.parametrize(
    "url",
    ["", "x.example", "/a", "https://", "https:///a", "https://x.example:port", "https://[x", "a b:c", "https://x y"],
)
def test_a_url_that_is_not_valid_is_found(url: str) -> None:
    assert page(url) == ["url"]


@pytest.mark.parametrize("url", ["http://localhost", "http://127.0.0.1:8000/a", "http://[::1]/", "http://a.localhost"])
def test_a_page_of_this_machine_needs_no_https(url: str) -> None:
    assert page(url) == []
    assert page("http://127.0.0.1.x.example") == ["url-https"]


def test_only_november_has_an_id_for_pages() -> None:
    assert page("https://x.example", NOVEMBER) == ["elicitation-id"]
    assert page("https://x.example", NOVEMBER, elicitationId="1") == page("https://x.example") == []


USE: Json = {"type": "tool_use", "id": "1", "name": "t", "input": {}}
USED: Json = {"type": "tool_result", "toolUseId": "1", "content": []}
TEXT: Json = {"type": "text", "text": "x"}


@pytest.mark.parametrize(
    ("contents", "faults"),
    [
        ([TEXT], []),
        ([[TEXT, 5]], []),
        ([USE, USED, TEXT], []),
        ([[TEXT, USE], [USED]], []),
        ([USE], ["the last message has a tool use that nothing answers"]),
        ([USE, TEXT], ["messages[1] does not answer every tool use of the message before it"]),
        ([USE, [USED, TEXT]], ["messages[1] has tool results and something else"]),
        ([USED], ["messages[0] has a tool result without a tool use in the message before it"]),
    ],
)
def test_tool_results_follow_their_tool_uses(contents: list[Any], faults: list[str]) -> None:
    messages = [{"role": "user", "content": content} for content in contents]
    asked = Question("q", "sampling/createMessage", {"messages": [*messages], "maxTokens": 9})
    assert [one.text for one in question_findings(asked, MODERN)] == [f"the question 'q': {one}" for one in faults]
    assert question_findings(asked, JUNE) == []


@pytest.mark.parametrize(
    ("message", "faults"),
    [
        ({"role": "assistant", "content": [TEXT]}, []),
        ({"role": "system", "content": TEXT}, ['messages[0] has the role "system"']),
        ({"role": "user", "content": "x"}, ["messages[0] has no content"]),
        (5, ["messages[0] has the role null", "messages[0] has no content"]),
    ],
)
def test_a_sampling_message_has_a_role_and_content(message: Any, faults: list[str]) -> None:
    asked = Question("q", "sampling/createMessage", {"messages": [message], "maxTokens": 1})
    for version in (MODERN, JUNE):
        assert [one.text for one in question_findings(asked, version)] == [f"the question 'q': {one}" for one in faults]


def test_roots_and_the_compatibility_dialect_have_nothing_to_check() -> None:
    assert question_findings(Question("q", "roots/list", {}), MODERN) == []
    assert question_findings(Question("q", None, {"kind": "string", "description": ""}), MODERN) == []
