"""Which capabilities a question needs, and which of them a client did not declare (protocol 7)."""

from typing import Any

import pytest

from bespeak.protocol.capabilities import capability_names, lacking, merge, requirements
from bespeak.resolve.asking.questions import ELICIT, ROOTS, SAMPLE
from bespeak.resolve.errors import MissingCapability

FORM: dict[str, Any] = {"elicitation": {"form": {}}}
URL: dict[str, Any] = {"elicitation": {"url": {}}}


@pytest.mark.parametrize(
    ("method", "params", "expected"),
    [
        (ELICIT, {}, FORM),
        (ELICIT, {"mode": "form"}, FORM),
        (ELICIT, {"mode": "url"}, URL),
        (SAMPLE, {}, {"sampling": {}}),
        (SAMPLE, {"tools": []}, {"sampling": {"tools": {}}}),
        (SAMPLE, {"toolChoice": {"mode": "none"}}, {"sampling": {"tools": {}}}),
        (SAMPLE, {"includeContext": "none"}, {"sampling": {}}),
        (SAMPLE, {"includeContext": "thisServer"}, {"sampling": {"context": {}}}),
        (SAMPLE, {"includeContext": "allServers", "tools": []}, {"sampling": {"tools": {}, "context": {}}}),
        (ROOTS, {}, {"roots": {}}),
    ],
)
def test_each_question_needs_its_capability(method: str, params: dict[str, Any], expected: dict[str, Any]) -> None:
    assert requirements(method, params) == expected


@pytest.mark.parametrize(
    ("requires", "declared", "missing"),
    [
        (FORM, {}, FORM),
        (FORM, {"elicitation": {}}, {}),
        (FORM, {"elicitation": {"form": {}}}, {}),
        (FORM, {"elicitation": {"url": {}}}, FORM),
        (FORM, {"elicitation": {"form": {}, "url": {}}}, {}),
        (FORM, {"elicitation": None}, FORM),
        (FORM, {"elicitation": True}, FORM),
        (URL, {"elicitation": {}}, URL),
        (URL, {"elicitation": {"url": {}}}, {}),
        ({"sampling": {}}, {}, {"sampling": {}}),
        ({"sampling": {}}, {"sampling": {}}, {}),
        ({"sampling": {"tools": {}}}, {"sampling": {}}, {"sampling": {"tools": {}}}),
        ({"sampling": {"tools": {}, "context": {}}}, {"sampling": {"tools": {}}}, {"sampling": {"context": {}}}),
        ({"roots": {}}, {"roots": {"listChanged": True}}, {}),
        ({"roots": {}}, FORM, {"roots": {}}),
    ],
)
def test_what_was_not_declared_is_lacking(
    requires: dict[str, Any], declared: dict[str, Any], missing: dict[str, Any]
) -> None:
    assert lacking(requires, declared) == missing


def test_required_capabilities_of_several_questions_add_up() -> None:
    needed: dict[str, Any] = {}
    parts: list[dict[str, Any]] = [FORM, URL, {"sampling": {}}, {"sampling": {"tools": {}}}, {"roots": {}}, FORM]
    for one in parts:
        merge(needed, one)
    assert needed == {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}}
    assert capability_names(needed) == ["elicitation.form", "elicitation.url", "sampling.tools", "roots"]
    assert "declare elicitation.form, elicitation.url, sampling.tools, roots for this call" in str(
        MissingCapability(needed)
    )


def test_adding_up_leaves_the_parts_as_they_were() -> None:
    needed: dict[str, Any] = {}
    merge(needed, FORM)
    merge(needed, URL)
    assert FORM == {"elicitation": {"form": {}}}
