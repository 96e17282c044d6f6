"""Find a secret in a text in all its forms: plain, escaped, hex, or Base64 (also inside a longer encoded text)."""

import base64
import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import groupby
from typing import Protocol
from urllib.parse import quote, quote_plus

SHORTEST_ENCODED = 6
"""A shorter secret is not searched in Base64 and hex, nor with only some of its characters escaped."""
LONGEST_ESCAPED = 4096
"""A longer secret is searched with all of its characters escaped or none."""
SHORTEST_PIECE = 6
"""A shorter piece of a secret at the end of a cut message is harmless."""

_BREAK = r"(?:(?:\r?\n|(?:\\{1,8}r)?\\{1,8}n|(?:%0[dD])?%0[aA])[ \t]*)?"
"""A line break inside Base64."""
_OTHERWISE = re.compile(
    r"(?P<break>(?:\r?\n|(?:\\{1,8}r)?\\{1,8}n|(?:%0[dD])?%0[aA])[ \t]*)"
    r"|(?P<plus>%2[bB]|\\{1,8}u002[bB])|\\{1,8}/|%2[fF]|\\{1,8}u002[fF]"
)
"""What is ignored in Base64, or means a plus sign or a slash."""
_FIRST = re.compile(r"[\r\n%\\]")
_DIGIT = r"(?:%2[bBfF]|\\{1,8}u002[bBfF]|[A-Za-z0-9+/_-])"
_BEFORE = re.compile(rf"{_DIGIT}{_BREAK}\Z")
_AFTER = re.compile(rf"(?:{_BREAK}{_DIGIT})?(?:{_BREAK}(?:=|%3[dD]|\\{{1,8}}u003[dD])){{0,2}}")
_CUT = re.compile(r"""\.\.\.|…|['")]|\Z""")
_LETTERS = {"\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t"}
_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}

_STANDARD = str.maketrans("-_", "+/")

Span = tuple[int, int]


class Text:
    """A text that is searched for many forms."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def lower(self) -> str:
        """The text in lower case, with all positions unchanged."""
        return self.text.lower() if self.text.isascii() else self.text.translate(_LOWER)

    @cached_property
    def escapes(self) -> bool:
        return "%" in self.text or "\\" in self.text

    @cached_property
    def joined(self) -> "Joined":
        return Joined(self.text)


class Joined:
    """A text prepared for Base64 search: one alphabet, lines joined, escapes resolved."""

    def __init__(self, text: str) -> None:
        parts: list[str] = []
        self._here, self._there = [0], [0]
        """Positions from which both texts run in parallel, in this text and in the original."""
        self._ends: dict[int, int] = {}
        """Where an escaped digit ends, in this text and in the original."""
        last = length = 0
        for found in _otherwise(text):
            digit = "" if found["break"] else "+" if found["plus"] else "/"
            parts += [text[last : found.start()], digit]
            length += found.start() - last + len(digit)
            last = found.end()
            if digit:
                self._ends[length] = last
            self._here.append(length)
            self._there.append(last)
        self.text = "".join([*parts, text[last:]]).translate(_STANDARD)

    def before(self, place: int) -> int:
        """Return the end in the original of what ends here."""
        at = bisect_left(self._here, place) - 1
        return self._ends.get(place) or self._there[at] + place - self._here[at]

    def after(self, place: int) -> int:
        """Return the start in the original of what starts here."""
        at = bisect_right(self._here, place) - 1
        return self._there[at] + place - self._here[at]


def _otherwise(text: str) -> Iterator[re.Match[str]]:
    """Matches of `_OTHERWISE`. Searching for one character first is much faster than the whole expression."""
    last = 0
    if "%" in text or "\\" in text or "\n" in text:
        for first in _FIRST.finditer(text):
            found = _OTHERWISE.match(text, first.start()) if first.start() >= last else None
            if found is not None:
                yield found
                last = found.end()


class Form(Protocol):
    """One form of a secret."""

    @property
    def length(self) -> int:
        """Its approximate length. The longest forms are searched first, because a short secret may be part of a long one."""
        ...

    def spans(self, text: Text) -> Iterator[Span]:
        """Yield where it is found, from left to right."""
        ...


@dataclass(frozen=True, slots=True)
class Plain:
    """Exactly these characters."""

    needle: str

    @property
    def length(self) -> int:
        return len(self.needle)

    def spans(self, text: Text) -> Iterator[Span]:
        yield from _found(self.needle, text.text)

    def pieces(self, text: str) -> Iterator[Span]:
        """Yield where its beginning is found and the rest was cut off."""
        at = text.find(self.needle[:SHORTEST_PIECE])
        while at >= 0:
            end = at + SHORTEST_PIECE
            while end < len(text) and end - at < self.length and text[end] == self.needle[end - at]:
                end += 1
            if end - at < self.length and _CUT.match(text, end):
                yield at, end
            at = text.find(self.needle[:SHORTEST_PIECE], end)


@dataclass(frozen=True, slots=True)
class Hex:
    """Two hex digits for each byte, in lower or upper case."""

    digits: str

    @property
    def length(self) -> int:
        return len(self.digits)

    def spans(self, text: Text) -> Iterator[Span]:
        yield from _found(self.digits, text.lower)


@dataclass(frozen=True, slots=True)
class Base64:
    """The Base64 digits that depend only on the secret, for one alignment of it."""

    digits: str
    before: bool
    """Whether the digit before them depends partly on the secret."""
    after: bool

    @property
    def length(self) -> int:
        return len(self.digits)

    def spans(self, text: Text) -> Iterator[Span]:
        # What stands before may have been taken for an escape together with the first two digits, such as `%` and `2F`.
        sure = 2 if len(self.digits) >= 9 else 0
        last = 0
        joined = text.joined
        for start, end in _found(self.digits[sure:], joined.text):
            missing = sure
            while missing and start and joined.text[start - 1] == self.digits[missing - 1]:
                start, missing = start - 1, missing - 1
            start, end = max(joined.after(start) - missing, 0), joined.before(end)
            if start < last:
                continue
            if self.before and (digit := _BEFORE.search(text.text[max(start - 24, last) : start])):
                start -= len(digit[0])
            if self.after and (digit := _AFTER.match(text.text, end)):
                end = digit.end()
            yield start, end
            last = end


@dataclass(frozen=True, slots=True)
class Escaped:
    """Some or all characters escaped, each as JSON, Python or a URL does it."""

    secret: str

    @property
    def length(self) -> int:
        return len(self.secret)

    def spans(self, text: Text) -> Iterator[Span]:
        if text.escapes or (" " in self.secret and "+" in text.text):
            yield from (one.span() for one in _escaped_pattern(self.secret).finditer(text.text))


def forms_of(secret: str) -> set[str]:
    """Return the plain secret, and the secret as JSON, Python and URLs escape it."""
    if not secret:
        return set()
    in_json = {json.dumps(secret, ensure_ascii=escaped)[1:-1] for escaped in (True, False)}
    in_urls = {quote(secret, safe="", errors="surrogatepass"), quote_plus(secret, errors="surrogatepass")}
    in_python = {repr(secret)[1:-1], ascii(secret)[1:-1]}
    return {secret, *in_json, *in_urls, *in_python}


def all_forms(secret: str, *, escaped: bool = True) -> list[Form]:
    """Return all forms to search for. `escaped` includes those with only some characters escaped."""
    forms: list[Form] = [Plain(form) for form in forms_of(secret)]
    if len(secret) >= SHORTEST_ENCODED:
        for encoded in _encoded(secret):
            forms += [Hex(encoded.hex()), *_base64_forms(encoded)]
        if escaped and len(secret) <= LONGEST_ESCAPED:
            forms.append(Escaped(secret))
    return forms


def _encoded(secret: str) -> set[bytes]:
    """The bytes of a secret. Lone surrogates may stand for undecodable bytes of the environment."""
    found = {secret.encode("utf-8", "surrogatepass")}
    with suppress(UnicodeEncodeError):
        found.add(secret.encode("utf-8", "surrogateescape"))
    return found


def _base64_forms(encoded: bytes) -> Iterator[Base64]:
    for shift in range(3):
        digits = base64.b64encode(bytes(shift) + encoded).decode()
        first = (8 * shift + 5) // 6
        last, more = divmod(8 * (shift + len(encoded)), 6)
        yield Base64(digits[first:last], before=shift > 0, after=more > 0)


def _found(needle: str, text: str) -> Iterator[Span]:
    at = text.find(needle)
    while at >= 0:
        yield at, at + len(needle)
        at = text.find(needle, at + len(needle))


# Expressions


@lru_cache(maxsize=1024)
def _escaped_pattern(secret: str) -> re.Pattern[str]:
    return re.compile("".join(_any_way(char, len(list(run))) for char, run in groupby(secret)))


def _any_way(char: str, times: int) -> str:
    """A pattern for a character repeated so many times, in any escaped form."""
    code = ord(char)
    ways = [re.escape(char)]
    units = char.encode("utf-16-be", "surrogatepass").hex()
    ways.append("".join(rf"\\{{1,8}}u{_digits(units[at : at + 4])}" for at in range(0, len(units), 4)))
    if code < 0x100:
        ways.append(rf"\\{{1,8}}x{_digits(f'{code:02x}')}")
    if code > 0xFFFF:
        ways.append(rf"\\{{1,8}}U{_digits(f'{code:08x}')}")
    ways += ["".join(f"%(?:25){{0,3}}{_digits(f'{byte:02x}')}" for byte in encoded) for encoded in _encoded(char)]
    if char in _LETTERS:
        ways.append(rf"\\{{1,8}}{_LETTERS[char]}")
    if char in "\"'/":
        ways.append(rf"\\{{1,8}}{char}")
    if char == " ":
        ways.append(r"\+")
    if char == "\\":  # several may stand for one
        ways[0] = r"\\"
        return rf"(?:\\{{{times},{16 * times}}}|(?:{'|'.join(ways)}){{{times}}})"
    return f"(?:{'|'.join(ways)})" + (f"{{{times}}}" if times > 1 else "")


def _digits(text: str) -> str:
    """A pattern for hex digits in lower or upper case."""
    return "".join(f"[{digit}{digit.upper()}]" if digit.isalpha() else digit for digit in text)
