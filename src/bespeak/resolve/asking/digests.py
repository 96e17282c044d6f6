"""Digests of JSON values: the same for the same value, whatever the order of its members."""

import hashlib
import json

canonical = json.JSONEncoder(sort_keys=True).encode
"""A JSON value as text, one spelling for each value."""


def digest(value: object) -> str:
    """Return a short digest of a JSON value."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:32]


NOTHING = digest([])
