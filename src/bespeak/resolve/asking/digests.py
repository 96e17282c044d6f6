"""Digests of JSON values: the same for the same value, whatever the order of its members."""

import hashlib
import json
from typing import Any

from pydantic_core import to_json

canonical = json.JSONEncoder(sort_keys=True).encode
"""A JSON value as text, one spelling for each value."""


def digest(value: Any) -> str:
    """Return a short digest of a JSON value."""
    return hashlib.blake2b(json_bytes(value), digest_size=16).hexdigest()


def digest_of(raw: bytes) -> str:
    """Return a short digest of bytes."""
    return hashlib.blake2b(raw, digest_size=16).hexdigest()


def json_bytes(value: Any) -> bytes:
    """Return a JSON value as bytes, one spelling for each value."""
    return to_json(_sorted(value) if type(value) in _NESTED else value, inf_nan_mode="constants")


_NESTED: frozenset[type] = frozenset({dict, list, tuple})


def _sorted(value: Any) -> Any:
    """An object or array with the members of all objects in order."""
    members: dict[str, Any] = value
    if type(value) is not dict:
        return value if _NESTED.isdisjoint(map(type, value)) else list(map(_in_order, value))
    if _NESTED.isdisjoint(map(type, members.values())):
        return dict(sorted(members.items())) if len(members) > 1 else members
    return {name: _in_order(members[name]) for name in sorted(members)}


def _in_order(value: Any) -> Any:
    return _sorted(value) if type(value) in _NESTED else value


NOTHING = digest([])
