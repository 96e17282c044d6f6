"""The JSON Schema of the answers in a suite: one answer, and all of `inputResponses`."""

from typing import Any

from bespeak.conversation.fixtures import CONDITIONS

_TEXT = {"type": "string", "minLength": 1}
ROOTS: dict[str, Any] = {
    "type": "array",
    "items": {
        "anyOf": [
            _TEXT,
            {
                "type": "object",
                "required": ["uri"],
                "properties": {"uri": _TEXT, "name": {"type": "string"}},
                "additionalProperties": False,
            },
        ]
    },
}
"""The roots of a server: paths, URIs, or `{uri, name}`."""
_SCALAR = {"type": ["string", "number", "boolean"]}
ANSWER: dict[str, Any] = {
    "description": "A value for the form's only field; decline, cancel or omit; or a map such as {accept: ...}.",
    "anyOf": [
        _SCALAR,
        {"type": "array"},
        *(
            {"type": "object", "properties": {name: kind}, "required": [name], "additionalProperties": False}
            for name, kind in {
                "accept": {"type": "object"},
                "raw": {},
                "sample": {
                    "anyOf": [
                        {"type": "string"},
                        {"type": "object", "required": ["type"]},
                        {
                            "type": "object",
                            "required": ["content"],
                            "properties": {"content": {"type": ["object", "array"]}},
                        },
                    ]
                },
                "roots": {
                    "type": "array",
                    "items": {
                        "anyOf": [
                            {"type": "string"},
                            {"type": "object", "required": ["uri"], "properties": {"uri": {"type": "string"}}},
                        ]
                    },
                },
                "url": {"const": "done"},
            }.items()
        ),
    ],
}


def _rule(**members: Any) -> dict[str, Any]:
    return {"type": "object", "properties": members, "required": list(members), "additionalProperties": False}


_WHEN: dict[str, Any] = {
    "type": "object",
    "properties": {name: {} for name in CONDITIONS},
    "minProperties": 1,
    "additionalProperties": False,
}
ANSWERS: dict[str, Any] = {
    "description": "Answers by question name, or a list of rules of which the first match is used.",
    "anyOf": [
        {"type": "object", "additionalProperties": ANSWER},
        {
            "type": "array",
            "items": {
                "anyOf": [
                    _rule(id={"type": "string"}, value=ANSWER),
                    _rule(when=_WHEN, answer=ANSWER),
                    _rule(otherwise=ANSWER),
                ]
            },
        },
    ],
}
