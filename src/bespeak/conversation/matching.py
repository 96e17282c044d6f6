"""What every matcher is: something that finds the first place where a value is not as expected."""

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, Protocol

from bespeak.conversation.patterns import PatternTimeout


class Absent(Enum):
    """Stands where there is no value at all; `null` is one."""

    ABSENT = "absent"


ABSENT = Absent.ABSENT


def shown(value: Any) -> str:
    """A value in a message: as JSON, the beginning of it."""
    if value is ABSENT:
        return "nothing"
    said = json.dumps(value, ensure_ascii=False, default=repr)
    said = said if said.isprintable() else json.dumps(value, default=repr)
    return said if len(said) <= 80 else f"{said[:77]}..."


class Spelled(str, ABC):
    """A text that may be written in two ways. It is shown in the first."""

    other: str

    @abstractmethod
    def is_written(self, text: str) -> bool:
        """Whether a text stands for it."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The first place where a value is not as expected."""

    path: str
    """`a.b[0].c`; empty for the whole value."""
    message: str
    expected: Any
    """What was written for this place; `ABSENT` if nothing should be there."""
    actual: Any
    stopped: bool = False
    """Whether nobody knows, because finding out took too long."""


class Snapshots(Protocol):
    """Values kept from an earlier run."""

    def check(self, name: str, actual: Any) -> Difference | None:
        """How a value differs from the one kept under that name."""
        ...


@dataclass(frozen=True, slots=True)
class Matcher(ABC):
    """Something a value can be held against."""

    written: Any
    reads_text: ClassVar[bool] = False
    """Whether it looks at a text itself, and does not leave that to others: such a one takes either way of writing it."""

    @property
    def about_presence(self) -> bool:
        """Whether it can judge a value that is not there."""
        return False

    def judge(self, actual: Any, path: str = "", snapshots: Snapshots | None = None) -> Difference | None:
        """The first difference; `None` if the value is as expected. A search that takes too long is a difference, too."""
        try:
            return self.check(actual, path, snapshots)
        except PatternTimeout as timeout:
            return Difference(timeout.path, str(timeout), self.written, timeout.actual, stopped=True)

    def check(self, actual: Any, path: str = "", snapshots: Snapshots | None = None) -> Difference | None:
        """The first difference; `None` if the value is as expected. Raises `PatternTimeout`.

        Neither `not` nor `oneOf` can make anything of a search that was stopped, so it ends the whole check.
        """
        if actual is ABSENT and not self.about_presence:
            return self._differs("is not there", ABSENT, path)
        found = self._check(actual, path, snapshots)
        if found is not None and self.reads_text and isinstance(actual, Spelled):
            return found if self._check(actual.other, path, snapshots) else None
        return found

    @abstractmethod
    def _check(self, actual: Any, path: str, snapshots: Snapshots | None) -> Difference | None: ...

    def _differs(self, message: str, actual: Any, path: str) -> Difference:
        return Difference(path, message, self.written, actual)


def join(path: str, step: str | int) -> str:
    """A path, one step further: `.name`, `[0]`, or `["any other key"]`."""
    if isinstance(step, int):
        return f"{path}[{step}]"
    if not step.isidentifier():
        return f"{path}[{json.dumps(step, ensure_ascii=not step.isprintable())}]"
    return f"{path}.{step}" if path else step
