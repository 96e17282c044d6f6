"""Names that a user probably meant, and the names there are."""

import difflib
from collections.abc import Collection

from bespeak.terminal.safe_text import quoted

SHOWN = 20
"""How many names a message lists."""
DID_YOU_MEAN = "did you mean "


def suggestion(name: str, names: Collection[str], listed_as: str) -> str:
    """Return the end of a message about an unknown name: the name that was probably meant, or else those there are."""
    near = difflib.get_close_matches(name, names, 1)
    if near:
        return f"{DID_YOU_MEAN}{quoted(near[0])}?"
    shown = ", ".join(quoted(one)[1:-1] for one in list(names)[:SHOWN])
    more = len(names) - SHOWN
    return f"{listed_as} {shown}{f' and {more} more' if more > 0 else ''}"
