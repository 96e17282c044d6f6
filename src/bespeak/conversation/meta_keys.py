"""Checks the keys of `_meta`: their grammar, and prefixes that are reserved for the protocol."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from bespeak.conversation.json_values import as_array, as_object
from bespeak.conversation.protocol_rules import Finding
from bespeak.terminal.safe_text import quoted

_LABEL = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_KEY = re.compile(rf"(?:(?P<prefix>{_LABEL}(?:\.{_LABEL})*)/)?(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?")
_RESERVED = ("modelcontextprotocol", "mcp")
"""Second labels of prefixes that belong to the protocol."""
_OFFICIAL = "io.modelcontextprotocol"
"""The prefix of the protocol itself and of its extensions, whose keys servers may use."""
_LISTS = ("content", "contents", "messages", "tools", "prompts", "resources", "resourceTemplates")
"""The members of results whose entries may have a `_meta`."""
_INNER = ("content", "resource")
"""The members of such an entry that may have one, too."""


def key_findings(message: Mapping[str, Any]) -> list[Finding]:
    """Return what is wrong with the keys of `_meta` in a result, or in the params of a notification."""
    faults = dict.fromkeys(fault for meta in _metas(message) for key in meta if (fault := _fault(key)) is not None)
    return [Finding("meta-keys", fault) for fault in faults]


def _metas(message: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Every `_meta` in a message, at the places where the protocol has one. Elsewhere it is the author's."""
    yield as_object(message.get("_meta"))
    for name in _LISTS:
        for entry in filter(None, map(as_object, as_array(message.get(name)))):
            yield as_object(entry.get("_meta"))
            for inner in _INNER:
                value: Any = entry.get(inner)
                for one in cast("list[Any]", value) if isinstance(value, list) else [value]:
                    yield as_object(as_object(one).get("_meta"))


def _fault(key: str) -> str | None:
    found = _KEY.fullmatch(key)
    if found is None:
        return f"_meta has the key {quoted(key)}, which does not follow the grammar for names"
    prefix = found["prefix"] or ""
    if prefix != _OFFICIAL and (prefix.split(".")[1:2] or [""])[0].lower() in _RESERVED:
        return f"_meta has the key {quoted(key)}, whose prefix is reserved"
    return None
