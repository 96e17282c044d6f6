"""Checks the keys of `_meta`: their grammar, prefixes that are reserved for the protocol, and the context of a trace."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from bespeak.conversation.json_values import as_array, as_object
from bespeak.conversation.protocol_rules import Finding
from bespeak.conversation.rule_types import JUNE
from bespeak.terminal.safe_text import quoted

_LABEL = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_KEY = re.compile(rf"(?:(?P<prefix>{_LABEL}(?:\.{_LABEL})*)/)?(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?")
_TRACE = re.compile(
    r"(?P<version>(?!ff)[0-9a-f]{2})-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?P<more>-.*)?"
)
_RESERVED = ("modelcontextprotocol", "mcp")
"""Labels of prefixes that belong to the protocol."""
_OFFICIAL = "io.modelcontextprotocol"
"""The prefix of the protocol itself and of its extensions, whose keys servers may use."""
_LISTS = ("content", "contents", "messages", "tools", "prompts", "resources", "resourceTemplates")
"""The members of results whose entries may have a `_meta`."""
_INNER = ("content", "resource")
"""The members of such an entry that may have one, too."""


def key_findings(message: Mapping[str, Any], version: str) -> list[Finding]:
    """Return what is wrong with the keys of `_meta` in a result, or in the params of a notification."""
    metas = list(_metas(message))
    faults = dict.fromkeys(fault for meta in metas for key in meta if (fault := _fault(key, version)) is not None)
    found = [Finding("meta-keys", fault) for fault in faults]
    if any("traceparent" in meta and not _is_trace(meta["traceparent"]) for meta in metas):
        found.append(Finding("trace-context", "_meta has a traceparent that is not valid"))
    return found


def _is_trace(value: Any) -> bool:
    found = _TRACE.fullmatch(value) if isinstance(value, str) else None
    return found is not None and not (found["version"] == "00" and found["more"])


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


def _fault(key: str, version: str) -> str | None:
    found = _KEY.fullmatch(key)
    if found is None:
        return f"_meta has the key {quoted(key)}, which does not follow the grammar for names"
    prefix = found["prefix"] or ""
    labels = prefix.lower().split(".")
    # At 2025-06-18 it is any label that has another one after it, as in `mcp.dev`; later it is the second label.
    reserved = labels[:-1] if version <= JUNE else labels[1:2]
    if prefix != _OFFICIAL and any(label in _RESERVED for label in reserved):
        return f"_meta has the key {quoted(key)}, whose prefix is reserved"
    return None
