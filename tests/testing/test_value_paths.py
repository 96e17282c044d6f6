"""A path of `capture` leads to one value of a result: through members by name, through entries by number."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.conversation.matchers import join
from bespeak.testing.value_paths import EVERY, parse_path, value_at

RESULT: dict[str, Any] = {
    "structuredContent": {"id": 7, "none": None, "odd key": {"a.b": 1}, "0": "zero", "deep": [[{"x": [1, 2]}]]},
    "content": [{"type": "text", "text": "Paid."}],
    "empty": {"": "nameless"},
}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("structuredContent.id", 7),
        ("structuredContent.none", None),
        ("structuredContent", RESULT["structuredContent"]),
        ("content[0].text", "Paid."),
        ('structuredContent["odd key"]["a.b"]', 1),
        ('structuredContent["0"]', "zero"),
        ("structuredContent.0", "zero"),
        ("structuredContent.deep[0][0].x[1]", 2),
        ('["content"][0]["type"]', "text"),
        ('empty[""]', "nameless"),
    ],
)
def test_a_path_leads_to_the_value_there(path: str, value: Any) -> None:
    assert value_at(RESULT, path) == value


@pytest.mark.parametrize(
    "path",
    [
        "gone",
        "$.structuredContent",
        "structuredContent.gone",
        "structuredContent.id.more",
        "structuredContent.none.more",
        "structuredContent.id[0]",
        "structuredContent[0]",
        "content[1]",
        "content[999999999]",
        "content.0",
        'content["0"]',
        "content.text",
        "content[0].text[0]",
        "content[0].text.length",
    ],
)
def test_a_path_that_leads_nowhere_is_a_lookup_error(path: str) -> None:
    with pytest.raises(LookupError):
        value_at(RESULT, path)


@pytest.mark.parametrize("value", [None, 5, "text", True, [], {}])
def test_a_path_into_what_has_no_such_part_is_a_lookup_error(value: Any) -> None:
    with pytest.raises(LookupError):
        value_at(value, "a")
    with pytest.raises(LookupError):
        value_at(value, "[0]")


@pytest.mark.parametrize("path", ["*", "content[*]", "structuredContent.*.id"])
def test_a_path_to_many_values_is_a_lookup_error_that_says_so(path: str) -> None:
    with pytest.raises(LookupError, match=r"a path with \* matches many values"):
        value_at({"content": [1], "structuredContent": {"a": {"id": 1}}}, path)


_STEPS = st.lists(st.one_of(st.text(max_size=6), st.integers(0, 3)), min_size=1, max_size=5)


@given(_STEPS)
def test_the_paths_of_failures_can_be_pasted_into_capture(steps: list[str | int]) -> None:
    path = ""
    value: Any = "found"
    for step in steps:
        path = join(path, step)
    for step in reversed(steps):
        value = {step: value} if isinstance(step, str) else [None] * step + [value]
    assert value_at(value, path) == "found"


@pytest.mark.parametrize(
    ("written", "steps"),
    [
        ("a", ("a",)),
        ("a.b[0].c", ("a", "b", 0, "c")),
        ("structuredContent.items[*].id", ("structuredContent", "items", EVERY, "id")),
        ("*.token", (EVERY, "token")),
        ("a.*", ("a", EVERY)),
        ("*", (EVERY,)),
        ("[0]", (0,)),
        ("[*].a", (EVERY, "a")),
        ("a[0][12]", ("a", 0, 12)),
        ('a["odd key"].b', ("a", "odd key", "b")),
        ('["a.b"]', ("a.b",)),
        (r'["a\"]b\u00e9"]', ('a"]bé',)),
        ('["*"]', ("*",)),
        ('["0"]', ("0",)),
        ('[""]', ("",)),
        ("x-api-key", ("x-api-key",)),
        ("_meta.$state", ("_meta", "$state")),
        ("straße", ("straße",)),
        ("a.0", ("a", "0")),
    ],
)
def test_a_path_is_read_step_by_step(written: str, steps: tuple[Any, ...]) -> None:
    assert parse_path(written) == steps


@pytest.mark.parametrize(
    "written",
    [
        *("", ".", ".a", "a.", "a..b", "a b", "a.[0]", "[0]a", "a[", "a[]", "a]", "a[-1]", "a[x]", "a[0", "a[0]]"),
        *(
            "a[1.5]",
            "**",
            "a**",
            "*a",
            "a*b",
            "a[**]",
            'a["x]',
            "a['x']",
            'a."b"',
            "a\\b",
            " a",
            "a[9999999999]",
            "$.a.",
        ),
    ],
)
def test_what_is_not_a_path_is_refused_with_what_to_write(written: str) -> None:
    with pytest.raises(ValueError, match="cannot be read; write it like") as caught:
        parse_path(written)
    assert 'a.b[0].c, with * for any step and ["..."] for names with special characters' in str(caught.value)


def test_a_quoted_name_must_be_a_string_of_json() -> None:
    with pytest.raises(ValueError, match=r"is not a JSON string; write \\\\ for a backslash"):
        parse_path(r'a["\x"]')


@given(st.text())
def test_any_text_is_a_path_or_is_refused(text: str) -> None:
    try:
        steps = parse_path(text)
    except ValueError as error:
        assert len(str(error)) < 300  # noqa: PT017 - either outcome is right
    else:
        assert steps
