"""Keys of questions: the name of the resolver that asks, `~`, and eight hexadecimal digits of a digest of the question."""

import re

KEY_META = "bespeak/key"
"""The member of `_meta` in which a question that is sent to an older client carries its key."""
_SUFFIX = re.compile(r"~[0-9a-f]{8}\Z")


def full_key(name: str, asked: str) -> str:
    """Return a question's key. `asked` is the hexadecimal digest of the call and of what the client is shown."""
    return f"{name}~{asked[:8]}"


def bare_name(key: str) -> str:
    """Return the name in a question's key. A key without a suffix, as other servers write them, is the name itself."""
    return _SUFFIX.sub("", key)
