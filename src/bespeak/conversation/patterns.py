"""Regular expressions in suites: Python's syntax, with a time limit for searches.

Python's own engine cannot be stopped: `^(a|a)*$` takes it years on forty letters, and no signal is handled during that
time. The package `regex` accepts a time limit and the same syntax, but some of it has another meaning there: `{e}`
allows errors, `[[:alpha:]]` is a class, and letters and spaces are those of another version of Unicode. So an
expression is first parsed by `re`, which reports what is wrong with it, and then rewritten for `regex` so that it keeps
its meaning.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby
from time import perf_counter
from typing import Any, TypeVar

from bespeak.transports.interfaces import MissingExtra

T = TypeVar("T")
SECONDS = 5.0
"""How long all searches for one expression may take together."""
LARGEST = 100_000
"""How many parts an expression may have once its repetitions are expanded, as `regex` does."""


class InvalidPattern(ValueError):
    """A text is not a regular expression."""


class PatternTimeout(Exception):
    """The search for an expression took too long, so its result is not known."""

    def __init__(self, pattern: str, path: str = "", actual: Any = None) -> None:
        self.pattern, self.path, self.actual = pattern, path, actual
        self.where = ""
        """The path to the expression, if it is part of a schema."""
        super().__init__(pattern)

    def __str__(self) -> str:
        where = f" at {self.where}" if self.where else ""
        return (
            f"the search for the pattern {self.pattern!r}{where} was stopped after {SECONDS:g} s; "
            "rewrite it so that it can match a text in only one way"
        )


@dataclass(slots=True)
class Expression:
    """A regular expression and its remaining search time."""

    pattern: str
    seconds: float = SECONDS
    _compiled: dict[bool, Any] = field(default_factory=dict[bool, Any], init=False, repr=False)

    def __post_init__(self) -> None:
        """Raises `InvalidPattern`."""
        try:
            re.compile(self.pattern)
        except (re.error, OverflowError, RecursionError, Warning) as error:  # a warning where these are errors
            raise InvalidPattern(str(error)) from None
        self._compiled[True] = _compiled(self.pattern, ascii_only=True)

    def found_in(self, text: str) -> bool:
        """Return whether it is found in a text. Raises `PatternTimeout`."""
        return self._searched(text, lambda compiled, timeout: compiled.search(text, timeout=timeout) is not None)

    def spans_in(self, text: str) -> list[tuple[int, int]]:
        """Return where it is found in a text, from left to right. Raises `PatternTimeout`."""
        return self._searched(
            text, lambda compiled, timeout: [found.span() for found in compiled.finditer(text, timeout=timeout)]
        )

    def _searched(self, text: str, search: Callable[[Any, float], T]) -> T:
        plain = text.isascii()
        if plain not in self._compiled:
            self._compiled[plain] = _compiled(self.pattern, ascii_only=plain)
        began = perf_counter()
        try:
            if self.seconds <= 0:
                raise TimeoutError
            return search(self._compiled[plain], self.seconds)
        except TimeoutError:
            self.seconds = 0
            raise PatternTimeout(self.pattern) from None
        finally:
            self.seconds -= perf_counter() - began


def _compiled(pattern: str, *, ascii_only: bool) -> Any:
    """The expression for `regex`; one for texts of ASCII alone, where letters need not be listed."""
    try:
        import regex
    except ImportError:
        raise MissingExtra("regular expressions need regex: pip install 'bespeak[test]'") from None
    engine: Any = regex
    written = _Rewriting(pattern, ascii_only=ascii_only)
    if written.size > LARGEST:
        raise InvalidPattern(f"its repetitions expand to more than {LARGEST:,} parts")
    try:
        return engine.compile(written.text, engine.V0)
    except (engine.error, OverflowError, RecursionError, MemoryError, Warning) as error:
        raise InvalidPattern(str(error)) from None


# Kinds of characters, as Python has them


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"


_KINDS: dict[str, Callable[[str], bool]] = {"d": str.isdecimal, "s": str.isspace, "w": _is_word}


@cache
def _ranges(kind: str) -> str:
    """All characters of a kind, or with a capital letter all others, as they are listed in a class."""
    test = _KINDS[kind.lower()]
    wanted = kind.islower()
    listed: list[str] = []
    for belongs, group in groupby(range(0x110000), key=lambda code: test(chr(code)) is wanted):
        if belongs:
            codes = list(group)
            listed.append(f"\\U{codes[0]:08x}-\\U{codes[-1]:08x}")
    return "".join(listed)


class _Rewriting:
    """An expression that `re` has read, written for `regex`."""

    def __init__(self, pattern: str, *, ascii_only: bool) -> None:
        flags = re.compile(pattern).flags
        self._pattern = pattern
        self._at = 0
        self._verbose = bool(flags & re.VERBOSE)
        self._ascii = [bool(flags & re.ASCII)]
        """Whether each open group is for ASCII alone, where both engines agree."""
        self._listed = "ds" if ascii_only else "dsw"
        self._sizes: list[int] = [0]
        """What each open group comes to."""
        self._last = 0
        """What the last part came to, which a repetition repeats."""
        self.text = "".join(self._parts())
        self.size = max(self._sizes)

    def _parts(self) -> list[str]:
        parts: list[str] = []
        while self._at < len(self._pattern):
            parts.append(self._part())
        return parts

    def _part(self) -> str:
        char = self._pattern[self._at]
        if char == "\\":
            return self._counted(self._escape())
        if char == "[":
            return self._counted(self._class())
        if char == "(":
            return self._opened()
        if char == ")":
            self._last = self._sizes.pop() + 1
            self._ascii.pop()
            self._sizes[-1] += self._last
            return self._taken(1)
        if char in "*+?{" and (found := _REPEAT.match(self._pattern, self._at)):
            return self._repeated(found)
        if char == "#" and self._verbose:
            return self._taken(len(self._pattern[self._at :].split("\n", 1)[0]))
        self._at += 1
        return self._counted("\\{" if char == "{" else char)

    def _taken(self, length: int) -> str:
        self._at += length
        return self._pattern[self._at - length : self._at]

    def _counted(self, part: str) -> str:
        self._last = 1
        self._sizes[-1] += 1
        return part

    def _opened(self) -> str:
        if self._pattern.startswith("(?#", self._at):
            return self._taken(self._pattern.index(")", self._at) + 1 - self._at)
        found = _OPENING.match(self._pattern, self._at)
        assert found is not None, "a bracket is an opening"
        flags: str = found["flags"] or ""
        if not flags.endswith(")"):  # otherwise these are flags for all of it, and no group
            self._sizes.append(0)
            self._ascii.append("a" in flags or (self._ascii[-1] and "u" not in flags))
        return self._taken(len(found[0]))

    def _repeated(self, found: re.Match[str]) -> str:
        self._at = found.end()
        if found["least"] is None:
            return found[0]
        least, most = int(found["least"] or 0), found["most"]
        times = least + (most is not None and (not most or int(most) > least))
        # The part itself has been counted already.
        self._sizes[-1] += self._last * max(times - 1, 0)
        self._last *= max(times, 1)
        return f"{{{least}{'' if most is None else ',' + most}}}"

    def _escape(self) -> str:
        kind = self._pattern[self._at + 1]
        if kind == "N":
            return self._taken(self._pattern.index("}", self._at) + 1 - self._at)
        if kind.lower() in self._listed and not self._ascii[-1]:
            self._at += 2
            return f"[{_ranges(kind)}]"
        if kind in "bB":
            self._at += 2
            return self._edge(kind)
        return self._taken(2)

    def _edge(self, kind: str) -> str:
        """Where a word begins or ends, or for `B` does not. To `re` that is nowhere in an empty text."""
        edge = "\\b"
        if "w" in self._listed and not self._ascii[-1]:
            word = f"[{_ranges('w')}]"
            edge = f"(?:(?<={word})(?!{word})|(?<!{word})(?={word}))"
        return edge if kind == "b" else f"(?!{edge}|\\A\\Z)"

    def _class(self) -> str:
        """A class, in which an opening bracket is only a bracket."""
        parts = [self._taken(2 if self._pattern.startswith("[^", self._at) else 1)]
        first = True
        while first or self._pattern[self._at] != "]":
            char = self._pattern[self._at]
            if char == "\\":
                kind = self._pattern[self._at + 1]
                if kind == "N":
                    parts.append(self._taken(self._pattern.index("}", self._at) + 1 - self._at))
                elif kind.lower() in self._listed and not self._ascii[-1]:
                    self._at += 2
                    parts.append(_ranges(kind))
                else:
                    parts.append(self._taken(2))
            else:
                self._at += 1
                parts.append(f"\\{char}" if char in "[]" else char)
            first = False
        return "".join([*parts, self._taken(1)])


_REPEAT = re.compile(r"(?:[*+?]|\{(?!\})(?P<least>[0-9]*)(?P<comma>,(?P<most>[0-9]*))?\})")
_OPENING = re.compile(r"\((?:\?(?:P<\w+>|P=|<?[=!]|>|\((?:\w+)\)|(?P<flags>[a-zA-Z-]*[:)])))?")
