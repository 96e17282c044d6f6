"""The profiles that come with Bespeak, and finding one by the name that `--as` gives."""

import asyncio
import importlib
import inspect
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from bespeak.conversation.connection import Received
from bespeak.conversation.profiles.langgraph import LangGraph
from bespeak.conversation.profiles.profile import Ask, Profile, Send
from bespeak.conversation.responses import Question
from bespeak.protocol.methods import ELICIT

PATIENCE_SECONDS = 5.0
LONGEST_SECONDS = 3600.0


class ClaudeCode(Profile):
    """Shows forms, but opens no pages for a server and has no model for it. It says in which folder it works."""

    declares: ClassVar[Mapping[str, Any] | None] = {"elicitation": {"form": {}}, "roots": {}}


class Silent(Profile):
    """Declares that it can be asked, and declines every question without showing it to anybody."""

    declares: ClassVar[Mapping[str, Any] | None] = {"elicitation": {"form": {}, "url": {}}}
    answers_itself: ClassVar[bool] = True

    async def answers(self, questions: Sequence[Question], ask: Ask) -> dict[str, Any]:
        return {one.key: {"action": "decline"} for one in questions if one.method == ELICIT}


class Impatient(Profile):
    """Cancels a request after some seconds, and sends it again, once."""

    repeats: ClassVar[bool] = True

    def __init__(self, seconds: float = PATIENCE_SECONDS) -> None:
        self._seconds = seconds

    async def send(self, send: Send) -> Received:
        for _ in range(2):
            limit = asyncio.timeout(self._seconds)
            try:
                async with limit:
                    return await send()
            except TimeoutError:
                if not limit.expired():
                    raise
        raise TimeoutError(f"the client gave up after {self._seconds:g} s, sent the request again and gave up again")


class Lossy(Profile):
    """Sends every request twice, because the first response never arrives."""

    repeats: ClassVar[bool] = True

    async def send(self, send: Send) -> Received:
        await send()
        return await send()


KNOWN: Mapping[str, Callable[..., Profile]] = {
    "langgraph": LangGraph,
    "claude-code": ClaudeCode,
    "silent": Silent,
    "impatient": Impatient,
    "lossy": Lossy,
}


@dataclass(frozen=True, slots=True)
class ChosenProfile:
    """The profile that `--as` names."""

    given: str
    """As it was written."""
    make: Callable[[], Profile]
    """Returns the client of one call."""

    @property
    def name(self) -> str:
        """Its name without a value."""
        return self.given.partition("=")[0]


def find_profile(given: str) -> ChosenProfile:
    """Return the profile of that name: one of `KNOWN`, or a class of yours as MODULE:CLASS or FILE:CLASS.

    Raises `ValueError`.
    """
    name, equals, value = given.partition("=")
    known = KNOWN.get(name)
    if known is None:
        if ":" not in given:
            listed = ", ".join(KNOWN)
            raise ValueError(f"there is no profile {given!r}; use {listed}, or MODULE:CLASS or FILE:CLASS for your own")
        return ChosenProfile(given, _own(given))
    if not equals:
        return ChosenProfile(given, known)
    if known is not Impatient:
        raise ValueError(f"the profile {name} takes no value; write {name}")
    seconds = _seconds(value)
    return ChosenProfile(given, lambda: Impatient(seconds))


def is_profile_name(name: str) -> bool:
    """Return whether a profile may have that name. Own profiles are not loaded."""
    return name in KNOWN or ":" in name


def _seconds(value: str) -> float:
    try:
        seconds = float(value)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= LONGEST_SECONDS:
        raise ValueError(
            f"impatient={value}: write the number of seconds after which the client gives up, such as impatient=5;"
            f" at most {LONGEST_SECONDS:g}"
        )
    return seconds


def _own(given: str) -> Callable[[], Profile]:
    place, _, name = given.rpartition(":")
    path = Path(place)
    folder, module = (path.resolve().parent, path.stem) if place.endswith(".py") else (Path.cwd(), place)
    if place.endswith(".py") and not path.is_file():
        raise ValueError(f"--as {given}: there is no file {place}")
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        found: Any = getattr(importlib.import_module(module), name, None)
    except Exception as error:  # noqa: BLE001 - whatever an author's file raises
        raise ValueError(f"--as {given}: {place} cannot be loaded: {type(error).__name__}: {error}") from None
    if not (inspect.isclass(found) and issubclass(found, Profile)):
        raise ValueError(f"--as {given}: {place} has no class {name!r} that is based on bespeak.testing.Profile")
    try:
        inspect.signature(found).bind()
    except TypeError:
        raise ValueError(f"--as {given}: {name}() must need no arguments; there is a new one for each call") from None
    return found
