"""The names of questions: what suites write and people read instead of whole keys.

In Bespeak's servers a key ends in `~` and eight hexadecimal digits, a digest of what was asked. The digits change with
the wording, so a suite should not have to know them. The part before them is the question's name. A whole key means the
question with exactly that key. A name means the question with that name, if only one such question is open.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from bespeak.conversation.match_operators import Spelled
from bespeak.protocol.question_keys import bare_name
from bespeak.terminal.safe_text import quoted

SHOWN = 20
"""How many keys an error lists."""
REQUESTS = "inputRequests"
"""The member of a result that holds questions by their keys."""


class AmbiguousName(Exception):
    """A name fits several open questions. The message lists their keys."""

    def __init__(self, name: str, keys: Iterable[str]) -> None:
        fitting = sorted(keys)
        listed = ", ".join(map(quoted, fitting[:SHOWN]))
        more = f" and {len(fitting) - SHOWN} more" if len(fitting) > SHOWN else ""
        super().__init__(f"the name {quoted(name)} fits several open questions: {listed}{more}; write the whole key")


def name_of(key: str) -> str:
    """Return the name in a key. A key without such an ending, or with nothing before it, is its own name."""
    return bare_name(key) or key


def meant(written: str, keys: Iterable[str]) -> str | None:
    """Return the key of the open question that a suite names, by its whole key or its name. Raises `AmbiguousName`."""
    known = list(keys)
    if written in known:
        return written
    fitting = [key for key in known if name_of(key) == written]
    if len(fitting) > 1:
        raise AmbiguousName(written, fitting)
    return fitting[0] if fitting else None


def namesakes_in(keys: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return, for each key of a round, all keys of that round with the same name; none if it is the only one."""
    by_name: dict[str, list[str]] = {}
    for key in dict.fromkeys(keys):
        by_name.setdefault(name_of(key), []).append(key)
    groups = [tuple(group) for group in by_name.values()]
    return {key: group if len(group) > 1 else () for group in groups for key in group}


def called(key: str, namesakes: Sequence[str]) -> str:
    """Return a question's name, or its key if another question of the round has the same name."""
    return key if namesakes else name_of(key)


def names_of(keys: Iterable[str]) -> dict[str, str]:
    """Return the name of each question of a round, by its key; the key itself if two questions have the same name."""
    known = list(keys)
    namesakes = namesakes_in(known)
    return {key: called(key, namesakes[key]) for key in known}


class SpelledKey(Spelled):
    """A key that equals both itself and its name where matchers compare it with what a suite says.

    The comparison raises `AmbiguousName`.
    """

    namesakes: Sequence[str]

    def __new__(cls, key: str, namesakes: Sequence[str] = ()) -> "SpelledKey":
        self = super().__new__(cls, called(key, namesakes))
        self.other, self.namesakes = key, namesakes
        return self

    def is_written(self, text: str) -> bool:
        return meant(text, self.namesakes or (self.other,)) == self.other


def with_names(result: Mapping[str, Any], written: Any) -> dict[str, Any]:
    """Return a result with the names of its questions instead of their keys, except for keys that the suite contains.

    Raises `AmbiguousName`.
    """
    asked: Any = result.get(REQUESTS)
    if not isinstance(asked, dict):
        return dict(result)
    requests, texts = cast("dict[str, Any]", asked), set(texts_in(written))
    whole = [text for text in texts if meant(text, requests) == text]
    names = names_of(requests) | dict(zip(whole, whole, strict=True))
    return {**result, REQUESTS: {names[key]: one for key, one in requests.items()}}


def texts_in(written: Any) -> Iterator[str]:
    """Return all strings in a value of a suite, keys included."""
    if isinstance(written, str):
        yield written
    elif isinstance(written, dict):
        for key, member in cast("dict[str, Any]", written).items():
            yield from texts_in(key)
            yield from texts_in(member)
    elif isinstance(written, list):
        for member in cast("list[Any]", written):
            yield from texts_in(member)
