"""`bespeak call`: one call from the command line, with its questions at the terminal, or put down to be taken up again."""

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TextIO, cast

from bespeak.cli.exit_codes import ExitCode
from bespeak.cli.output import NAME, complain, result_lines
from bespeak.cli.prepared_answers import Bounded, PreparedAnswers, Waiting, WithoutTerminal
from bespeak.cli.resume_command import NotConfirmed, choose_target, read_saved
from bespeak.cli.signals import run
from bespeak.cli.tool_arguments import check_arguments, json_or_text, typed_arguments
from bespeak.client.errors import CallbackFailed, InvalidServerResponse
from bespeak.conversation.answer_examples import written
from bespeak.conversation.answer_sources import PromptScript, Script
from bespeak.conversation.answers import CannotAnswer
from bespeak.conversation.connection import Connection
from bespeak.conversation.exchange import BrokenRule, Talk
from bespeak.conversation.fixtures import InputResponseFixture
from bespeak.conversation.pool import Pool, Wanted
from bespeak.conversation.question_names import name_of
from bespeak.conversation.servers import Unreachable, described
from bespeak.conversation.steps import Conversation, MalformedResponse, RoundsExceeded
from bespeak.conversation.variables import literal
from bespeak.protocol.versions import MODERN_PROTOCOL_VERSIONS, is_modern
from bespeak.terminal.prompt import NoMoreInput, Prompt, at_terminal
from bespeak.testing.atomic_files import write_whole
from bespeak.testing.expect.expectations import text_of
from bespeak.testing.suite.eras import mode_of
from bespeak.testing.suite.suite_file import EVERYTHING

ROUNDS = 10
"""How many rounds of a call are answered, unless somebody says otherwise."""
LONGEST_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class Flags:
    """What was said on the command line."""

    words: Sequence[str]
    arguments: str | None
    answers: Sequence[str]
    save: Path | None
    resume: str | None
    era: str | None
    rounds: int | None
    seconds: float
    whole: bool


class BadFlags(Exception):
    """Something on the command line makes no sense. Says what would."""


@dataclass(frozen=True, slots=True)
class _Call:
    """One call: whom, what, and how far it has come."""

    target: str
    mode: str
    conversation: Conversation
    answers: dict[str, Any]
    """What was answered beforehand, by key or name, as a suite writes it."""
    used: Mapping[str, str] = field(default_factory=dict[str, str])
    """The names under which something was answered before the call was put down, each with the last key."""


def call_tool(flags: Flags) -> int:
    """Do what was said; the exit code."""
    out = sys.stdout
    try:
        with redirect_stdout(sys.stderr):  # what a server in this process prints is no part of the result
            return run(_called(flags, out))
    except (BadFlags, ValueError) as error:
        return complain(str(error), ExitCode.BAD_USAGE)
    except NotConfirmed as error:
        return complain(str(error), ExitCode.FAILED)
    except Unreachable as error:
        return complain(str(error), ExitCode.UNREACHABLE)
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return ExitCode.INTERRUPTED


async def _called(flags: Flags, out: TextIO) -> int:
    if not 0 < flags.seconds <= LONGEST_SECONDS:
        raise BadFlags(f"--timeout takes more than 0 and at most {LONGEST_SECONDS} seconds")
    if flags.save is not None and (flags.save.is_dir() or not flags.save.parent.is_dir()):
        raise BadFlags(f"--save-answers: there is no place for {flags.save}")
    prompt = Prompt() if at_terminal() else None
    call = _begun(flags) if flags.resume is None else await _resumed(flags, flags.resume, prompt)
    InputResponseFixture(call.answers)
    pool = Pool()
    try:
        wanted = Wanted("", described(call.target), Path.cwd(), call.mode, EVERYTHING, flags.seconds, literal)
        connection = await pool.connection(wanted)
        if flags.resume is None:
            _, tool, *words = flags.words
            params = {"name": tool, "arguments": await typed_arguments(connection, tool, words, flags.arguments)}
            call = replace(call, conversation=Conversation("tools/call", params, call.conversation.max_rounds))
        return await _talk(flags, call, connection, prompt, out)
    finally:
        await pool.close()


def _begun(flags: Flags) -> _Call:
    if len(flags.words) < 2:
        raise BadFlags("say which server and which tool: bespeak call TARGET TOOL [KEY=VALUE...]")
    target, tool, *rest = flags.words
    check_arguments(rest, flags.arguments)
    era = flags.era or "auto"
    mode = mode_of(era)
    rounds = ROUNDS if flags.rounds is None else flags.rounds
    conversation = Conversation("tools/call", {"name": tool, "arguments": {}}, rounds)
    return _Call(target, mode, conversation, dict(map(_answer, flags.answers)))


async def _resumed(flags: Flags, file: str, prompt: Prompt | None) -> _Call:
    if len(flags.words) > 1 or flags.arguments is not None or flags.era is not None:
        raise BadFlags(
            "--resume continues a call as it was made: it accepts a TARGET, but no tool, arguments or era;"
            " type bespeak call TARGET --resume FILE"
        )
    saved = read_saved(file)
    try:
        conversation = Conversation.from_json(saved.conversation)
    except ValueError as error:
        raise BadFlags(f"--resume: {error}") from None
    if saved.revision not in MODERN_PROTOCOL_VERSIONS:
        raise BadFlags(
            f"--resume: at the revision {saved.revision!r}, which the file names, no call can be gone on with"
        )
    if conversation.pending is None:
        raise BadFlags("--resume: that call waits for no answers")
    if flags.rounds is not None:
        conversation.max_rounds = flags.rounds
    given = dict(map(_answer, flags.answers))
    used = {name_of(key): key for one in conversation.rounds for key in one.answered if name_of(key) not in given}
    target = await choose_target(saved, file, next(iter(flags.words), None), prompt)
    return _Call(target, saved.revision, conversation, saved.answers | given, used)


def _answer(given: str) -> tuple[str, Any]:
    key, equals, value = given.partition("=")
    if not (key and equals):
        raise BadFlags(f"--answer takes KEY=VALUE, not {given!r}")
    return key, json_or_text(value)


async def _talk(flags: Flags, call: _Call, connection: Connection, prompt: Prompt | None, out: TextIO) -> int:
    conversation = call.conversation
    conversation.capabilities = connection.capabilities
    prepared = PreparedAnswers(call.answers, call.used)
    script: PromptScript | WithoutTerminal = (
        WithoutTerminal(prepared) if prompt is None else PromptScript(prompt, prepared)
    )
    talk = Talk(connection, conversation, Bounded(script))
    code = await _held(flags, call, connection, talk, out)
    if flags.save is not None and script.given:
        try:
            write_whole(flags.save, written(script.given))
        except OSError as error:
            return complain(f"the answers could not be saved: {error}", ExitCode.FAILED)
    return code


async def _held(flags: Flags, call: _Call, connection: Connection, talk: Talk, out: TextIO) -> int:
    """Hold the conversation and print what comes of it; the exit code."""
    try:
        await _go_on(call.conversation, talk.script)
        await talk.hold()
    except Waiting as waiting:
        told = _put_down(call, connection, waiting, flags)
        _json(told, out)
        return ExitCode.WAITING
    except (CannotAnswer, NoMoreInput, RoundsExceeded, BrokenRule, MalformedResponse) as error:
        return complain(str(error), ExitCode.FAILED)
    except (OSError, InvalidServerResponse, CallbackFailed) as error:
        return complain(f"the call broke off: {error}", ExitCode.FAILED)
    return _printed(talk.envelope, out, whole=flags.whole)


async def _go_on(conversation: Conversation, script: Script) -> None:
    """Answer the round that a call was put down in."""
    pending = conversation.pending
    if pending is not None:
        conversation.answer(await script.answers(pending.questions, state=pending.state is not None))


def _put_down(call: _Call, connection: Connection, waiting: Waiting, flags: Flags) -> dict[str, Any]:
    """A call that waits, and how to go on with it."""
    missing = [f"--answer {shlex.quote(question.name)}=..." for question in waiting.questions]
    told: dict[str, Any] = {
        "waiting": {question.name: question.as_json() for question in waiting.questions},
        "target": call.target,
        "revision": connection.version,
        "answers": call.answers,
    }
    if is_modern(connection.version):
        told["conversation"] = call.conversation.as_json()
        told["resume"] = " ".join([shlex.join(["bespeak", "call", call.target, "--resume", "FILE"]), *missing])
    else:  # the server was waiting in mid-call, and does no longer
        told["again"] = " ".join([shlex.join(["bespeak", "call", *_said(flags)]), *missing])
    return told


def _said(flags: Flags) -> list[str]:
    """What was said on the command line."""
    options = {
        "--arguments": flags.arguments,
        "--era": flags.era,
        "--max-rounds": flags.rounds,
        "--save-answers": flags.save,
        "--timeout": flags.seconds,
    }
    said = [f"{name}={value}" for name, value in options.items() if value is not None]
    said += [f"--answer={answer}" for answer in flags.answers]
    return [*flags.words, *said, *(["--json"] if flags.whole else [])]


def _printed(envelope: Any, out: TextIO, *, whole: bool) -> int:
    """The result on stdout; the exit code."""
    message = cast("dict[str, Any]", envelope)
    if "error" in message:
        error = cast("dict[str, Any]", message["error"])
        if whole:
            _json({"error": error}, out)
        said, code = error.get("message"), error.get("code")
        told = said if isinstance(said, str) and said else "the call ended with an error that says nothing"
        return complain(f"{told} ({code})" if isinstance(code, int) else told, ExitCode.FAILED)
    result = cast("dict[str, Any]", message["result"])
    text = text_of(result)
    if whole or (not text and "structuredContent" in result):
        _json(result if whole else result["structuredContent"], out)
    else:
        print("\n".join(result_lines(text, out)) if out.isatty() else text, file=out)
    return ExitCode.FAILED if result.get("isError") is True else 0


def _json(value: Any, out: TextIO) -> None:
    text = json.dumps(value, indent=2, ensure_ascii=out.isatty())
    if out.isatty():  # which may start a line wherever it likes
        text = text.replace(NAME, NAME.replace(":", "\\u003a"))
    print(text, file=out)
