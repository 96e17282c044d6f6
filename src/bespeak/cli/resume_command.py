"""`bespeak call --resume`: load a saved call, and decide which server to continue it with.

The file names the server of the call. Somebody else may have written the file, and a target may be any command. So either the
command line names the server, or a person at the terminal confirms it.
"""

import json
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, ValidationError

from bespeak.cli.output import tell
from bespeak.conversation.server_targets import parse_target
from bespeak.protocol.quoting import one_line
from bespeak.terminal.prompt import Prompt
from bespeak.terminal.screen import Screen
from bespeak.terminal.web_addresses import read_address
from bespeak.transports.http.url_redaction import public

STDIN = "-"


class CannotResume(ValueError):
    """A call cannot be continued. The message says why, and what to type instead."""


class NotConfirmed(Exception):
    """A person did not confirm the server that a file names."""


class SavedCall(BaseModel):
    """A saved call, as `bespeak call` printed it."""

    model_config = ConfigDict(extra="forbid", strict=True)

    waiting: dict[str, Any]
    target: str
    revision: str
    answers: dict[str, Any]
    conversation: dict[str, Any]
    resume: str
    again: str = ""
    note: str = ""


def read_saved(file: str) -> SavedCall:
    """Load a call from a file; `-` is standard input. Raises `CannotResume`."""
    text = ""
    source = _source(file)
    try:
        text = sys.stdin.read() if file == STDIN else Path(file).read_text(encoding="utf-8")
        return SavedCall.model_validate_json(text)
    except OSError as error:
        raise CannotResume(f"--resume: {source} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise CannotResume(f"--resume: {source} is not a text file") from None
    except ValidationError:
        again = _again(text)
        raise CannotResume(
            f"--resume: {again or f'{source} does not contain a call that is waiting for answers'}"
        ) from None


def _source(file: str) -> str:
    return "standard input" if file == STDIN else file


def _again(text: str) -> str | None:
    """How to repeat a call of an older revision, which cannot be continued."""
    try:
        saved: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    again: Any = cast("dict[str, Any]", saved).get("again") if isinstance(saved, dict) else None
    return f"that call cannot be continued; make it again: {again}" if isinstance(again, str) else None


async def choose_target(saved: SavedCall, file: str, named: str | None, prompt: Prompt | None) -> str:
    """Return the server to continue with: the one on the command line, or the one in the file if a person confirms it.

    Raises `CannotResume` if there is nobody to ask, and `NotConfirmed`.
    """
    if named is not None:
        if named != saved.target:
            before, now = shown(saved.target), shown(named)
            other = " (with other credentials or another query)" if before == now else ""
            tell(
                f"the call was made with the server {before}; it continues with {now}{other}, which the command line names"
            )
        return named
    command = shlex.join(["bespeak", "call", "TARGET", "--resume", file])
    if prompt is None or file == STDIN:
        raise CannotResume(
            f"--resume: {_source(file)} names the server itself ({shown(saved.target)}), and somebody else may have written it."
            f" Name the server on the command line: {command}"
        )
    if not await prompt.confirm(lambda screen: _show(screen, saved, file), "Continue this call there?"):
        raise NotConfirmed(f"the call was not continued. To continue it with a server that you name: {command}")
    return saved.target


def shown(target: str) -> str:
    """Return a target for a message. Secret parts of a URL are left out."""
    if target.startswith(("http://", "https://")):
        return public(target) or "a URL that is not valid"
    return f"'{one_line(target)}'"


def _show(screen: Screen, saved: SavedCall, file: str) -> None:
    """Show what the file would make us do, for confirmation. Somebody else may have written all of it."""
    server = parse_target(saved.target)
    screen.say("\nOnly the file names the server of this call:")
    screen.mention("file", file)
    if server.url is not None:
        address = read_address(public(server.url) or server.url)
        screen.show("url", address.text)
        screen.show("host", address.host)
        screen.show_warnings(address)
        consequence = "The call, its state and your answers would be sent to this host."
    else:
        screen.show("command" if server.command is not None else "python", saved.target)
        consequence = "This command would run on your computer, with your permissions."
    params: Any = saved.conversation.get("params")
    if isinstance(params, Mapping):
        told = cast("Mapping[str, Any]", params)
        screen.mention("tool", str(told.get("name", "")))
        screen.mention("arguments", json.dumps(told.get("arguments"), ensure_ascii=False))
    if saved.answers:
        screen.mention("answers", json.dumps(saved.answers, ensure_ascii=False))
    screen.say(consequence)
