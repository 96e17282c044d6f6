"""`-k`: select tests by the words in their titles, with `and`, `or`, `not` and parentheses."""

import re
from collections.abc import Callable

_WORD = re.compile(r"""\(|\)|"[^"]*"|'[^']*'|[^\s()]+""")


def keyword(expression: str) -> Callable[[str], bool]:
    """Return a function that says whether a title matches. Raises `ValueError`."""
    words = _WORD.findall(expression)
    try:
        test = _either(words)
    except RecursionError:
        raise ValueError("-k: the parentheses are nested too deeply") from None
    if words:
        raise ValueError(f"-k: unexpected {words[0]!r} in {expression!r}")
    return lambda title: test(title.lower())


def _bare(word: str) -> str:
    return word[1:-1] if len(word) > 1 and word[0] == word[-1] and word[0] in "\"'" else word


def exactly(title: str) -> str:
    """Return an expression that matches a title exactly, whatever is in it."""
    if '"' not in title:
        return f'"{title}"'
    if "'" not in title:
        return f"'{title}'"
    return " and ".join(f'"{part}"' for part in title.split('"') if part)


Meant = Callable[[str], bool]


def _either(words: list[str]) -> Meant:
    found = [_both(words)]
    while words and words[0].lower() == "or":
        words.pop(0)
        found.append(_both(words))
    return lambda title: any(one(title) for one in found)


def _both(words: list[str]) -> Meant:
    found = [_one(words)]
    while words and words[0].lower() == "and":
        words.pop(0)
        found.append(_one(words))
    return lambda title: all(one(title) for one in found)


def _one(words: list[str]) -> Meant:
    if not words or words[0] == ")" or words[0].lower() in ("and", "or"):
        raise ValueError("-k: a word is missing; write words with and, or, not and parentheses")
    word = words.pop(0)
    if word.lower() == "not":
        inner = _one(words)
        return lambda title: not inner(title)
    if word == "(":
        inner = _either(words)
        if not words or words.pop(0) != ")":
            raise ValueError("-k: a parenthesis is not closed")
        return inner
    wanted = [word]
    while words and words[0] not in "()" and words[0].lower() not in ("and", "or", "not"):
        wanted.append(words.pop(0))  # words next to each other are one phrase
    phrase = " ".join(_bare(one) for one in wanted).lower()
    if not phrase.strip() or phrase == '"':
        raise ValueError("-k: a word is missing; write words with and, or, not and parentheses")
    return lambda title: phrase in title
