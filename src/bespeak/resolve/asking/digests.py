"""Digests of JSON values: the same for the same value, whatever the order of its members."""

import hashlib
import json
from typing import Any, cast

from pydantic_core import to_json

canonical = json.JSONEncoder(sort_keys=True).encode
"""A JSON value as text, one spelling for each value."""


def digest(value: Any) -> str:
    """Return a short digest of a JSON value."""
    return digest_of(json_bytes(value))


def digest_of(raw: bytes) -> str:
    """Return a short digest of bytes."""
    return hashlib.blake2b(raw, digest_size=16).hexdigest()


def json_bytes(value: Any) -> bytes:
    """Return a JSON value as bytes, one spelling for each value."""
    return to_json(_sorted(value) if type(value) in _NESTED else value, inf_nan_mode="constants")


_NESTED: frozenset[type] = frozenset({dict, list, tuple})


def _sorted(value: Any) -> Any:
    """An object or array with the members of all objects in order."""
    if type(value) is not dict:
        return [_sorted(one) if type(one) in _NESTED else one for one in value]
    members = cast("dict[str, Any]", value)
    return {
        name: _sorted(members[name]) if type(members[name]) in _NESTED else members[name] for name in sorted(members)
    }


NOTHING = digest([])
