"""The key of a question: the name of the place that asks it, `~`, and eight hexadecimal digits that name what is asked."""

import re

_SUFFIX = re.compile(r"~[0-9a-f]{8}\Z")


def full_key(name: str, asked: str) -> str:
    """The key of a question; `asked` is a hexadecimal digest of the call and of what the client is shown in it."""
    return f"{name}~{asked[:8]}"


def bare_name(key: str) -> str:
    """The name in a question's key. A key without a suffix, as other servers write them, is its own name."""
    return _SUFFIX.sub("", key)
