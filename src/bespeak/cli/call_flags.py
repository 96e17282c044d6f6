"""The command line of `bespeak call`: reading its options, and writing it down again for a person to repeat."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from bespeak.cli.tool_arguments import json_or_text, read_json
from bespeak.conversation.answers import FORMS
from bespeak.conversation.connection_answers import ConnectionAnswers, missing_roots, read_roots
from bespeak.conversation.connection_settings import TIMEOUT_SECONDS
from bespeak.conversation.fixtures import InputResponseFixture

ROUNDS = 10
"""The default maximum of rounds to answer."""
_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Flags:
    """The command line of `bespeak call`."""

    words: Sequence[str]
    arguments: str | None
    answers: Sequence[str]
    save: Path | None
    resume: str | None
    era: str | None
    rounds: int | None
    seconds: float
    whole: bool
    headers: Sequence[str] = ()
    roots: Sequence[str] = ()
    sends_unseen: bool = False
    """Whether answers are sent without being shown once more."""
    profile: str | None = None


class BadFlags(Exception):
    """The command line is wrong. The message says what to write."""


def read_answer(given: str) -> tuple[str, Any]:
    """Return the name and the value of an `--answer`: JSON as in a suite, or plain text.

    Text that looks like the beginning of JSON is JSON, because otherwise a missing quote would send something else than was meant.
    Raises `BadFlags` and `BadArguments`.
    """
    key, equals, value = given.partition("=")
    if not (key and equals):
        raise BadFlags(f"--answer must be KEY=VALUE, not {given!r}")
    if value.lstrip().startswith(("{", "[", '"')):
        return key, read_json(f"--answer {key}", value, _ANSWER)
    return key, json_or_text(value)


_ANSWER = 'write it like {"accept": {"confirm": true}}; text that begins with {, [ or " goes in double quotes'


def check_answers(answers: Mapping[str, Any]) -> None:
    """Raises `BadFlags` for an answer that is not one."""
    for key, answer in answers.items():
        try:
            InputResponseFixture({key: answer})
        except ValueError as error:
            raise BadFlags(f"{error}{_example(answer)}") from None


def _example(answer: Any) -> str:
    """What to write for a map that probably has the fields of a form."""
    fields = cast("dict[str, Any]", answer) if isinstance(answer, dict) else {}
    if not fields or FORMS & fields.keys():
        return ""
    shown = [json.dumps({"accept": fields}, ensure_ascii=False)]
    shown += [json.dumps(value, ensure_ascii=False) for value in fields.values() if len(fields) == 1]
    return f"; for a form with these fields, write {' or only '.join(shown)}"


def read_headers(headers: Sequence[str]) -> dict[str, str]:
    """Return the headers by name. Raises `BadFlags`, which does not show a value: it may be a secret."""
    found: dict[str, str] = {}
    for number, given in enumerate(headers, 1):
        header = _HEADER.fullmatch(given)
        if header is None:
            raise BadFlags(f"--header must be NAME:VALUE; number {number} is not")
        if header[1].lower() in map(str.lower, found):
            raise BadFlags(f"--header {header[1]} is given twice")
        found[header[1]] = header[2].rstrip()
    return found


def read_connection_answers(flags: Flags) -> ConnectionAnswers:
    """Return the answers to questions outside the call: the roots. Raises `BadFlags`."""
    try:
        return ConnectionAnswers(read_roots(list(flags.roots), Path.cwd()) if flags.roots else None)
    except ValueError as error:
        raise BadFlags(f"--root: {error}") from None


def missing_root_notes(flags: Flags) -> list[str]:
    """Return a sentence for each root that does not exist."""
    return [f"--root: {what}" for _, what in missing_roots(flags.roots, Path.cwd())]


def secret_options(flags: Flags) -> list[str]:
    """Return the options whose values are not printed, with dots in place of the values."""
    return [f"--header={name}:..." for name in read_headers(flags.headers)]


def as_words(flags: Flags) -> list[str]:
    """Return the command line as words, without the values of headers and without options that have their default values."""
    options = {
        "--arguments": flags.arguments,
        "--as": flags.profile,
        "--era": flags.era,
        "--max-rounds": None if flags.rounds == ROUNDS else flags.rounds,
        "--save-answers": flags.save,
        "--timeout": None if flags.seconds == TIMEOUT_SECONDS else f"{flags.seconds:g}",
    }
    said = [f"{name}={value}" for name, value in options.items() if value is not None]
    said += [f"--answer={answer}" for answer in flags.answers]
    said += [f"--root={root}" for root in flags.roots]
    said += secret_options(flags)
    said += [name for name, given in (("--json", flags.whole), ("--yes", flags.sends_unseen)) if given]
    return [*flags.words, *said]
