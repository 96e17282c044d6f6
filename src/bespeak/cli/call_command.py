"""`bespeak call`: call a tool, answer its questions at the terminal, or save the call to continue it later."""

import json
import re
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TextIO, cast

from bespeak.cli.call_flags import (
    ROUNDS,
    BadFlags,
    Flags,
    check_answers,
    missing_root_notes,
    read_answer,
    read_connection_answers,
    read_headers,
)
from bespeak.cli.exit_codes import ExitCode
from bespeak.cli.forgotten_files import forgotten_file
from bespeak.cli.list_command import Flags as ListFlags
from bespeak.cli.list_command import list_server
from bespeak.cli.output import NAME, complain, result_lines, tell
from bespeak.cli.prepared_answers import Bounded, PreparedAnswers, Waiting, WithoutTerminal, nearest, unused_note
from bespeak.cli.resume_command import NotConfirmed, choose_target, read_saved, shown
from bespeak.cli.saved_calls import put_down
from bespeak.cli.schema_types import members
from bespeak.cli.server_log import brief_failures, with_cause
from bespeak.cli.signals import run
from bespeak.cli.tool_arguments import BadArguments, check_arguments, read_call
from bespeak.client.errors import CallbackFailed, InvalidServerResponse
from bespeak.conversation.answer_examples import written
from bespeak.conversation.answer_sources import PromptScript, Script
from bespeak.conversation.answers import CannotAnswer, Refused
from bespeak.conversation.askers import asker_of
from bespeak.conversation.atomic_files import write_whole
from bespeak.conversation.call_rounds import Conversation, MalformedResponse, RoundsExceeded
from bespeak.conversation.connection import Connection
from bespeak.conversation.connection_pool import Pool, Wanted
from bespeak.conversation.connection_settings import EVERYTHING, mode_of
from bespeak.conversation.exchange import BrokenRule, Talk
from bespeak.conversation.profiles.known_profiles import find_profile
from bespeak.conversation.profiles.profile import Profile
from bespeak.conversation.question_names import name_of
from bespeak.conversation.result_text import text_of
from bespeak.conversation.server_targets import Target, parse_target
from bespeak.conversation.servers import CannotBeLoaded, Unreachable
from bespeak.protocol.errors import INVALID_PARAMS
from bespeak.protocol.methods import ELICIT, ROOTS, SAMPLE
from bespeak.protocol.versions import MODERN_PROTOCOL_VERSIONS, is_modern
from bespeak.terminal.prompt import NoMoreInput, Prompt, at_terminal
from bespeak.terminal.safe_text import escaped, printable, text_at

LONGEST_SECONDS = 3600
CANNOT_CONTINUE = (
    "a new process of the server can continue a call only if it accepts the requestState of the old one; "
    "if it does not, make the call again"
)
SHOWN = 20
"""How many names of questions a message lists."""


@dataclass(frozen=True, slots=True)
class _Call:
    """One call: the server, the conversation so far, and the given answers."""

    target: str
    mode: str
    conversation: Conversation
    answers: dict[str, Any]
    """The answers given on the command line, by key or name, as written in a suite."""
    used: Mapping[str, str] = field(default_factory=dict[str, str])
    """The names that were answered before the call was saved, each with its last key."""
    again: str = ""
    """How to make a saved call again, if its server may not be able to continue it."""
    doubt: str | None = None
    """What to say if the call fails."""
    unknown: str | None = None
    """What to say if the server refuses the name of the tool."""


def call_tool(flags: Flags) -> int:
    """Make the call. Return the exit code."""
    out = sys.stdout
    try:
        if flags.resume is None and len(flags.words) == 1:
            return _listed(flags, flags.words[0])
        with (
            brief_failures(),
            redirect_stdout(sys.stderr),
        ):  # what a server in this process prints is not part of the result
            return run(_called(flags, out))
    except (BadFlags, ValueError) as error:
        return complain(str(error), ExitCode.BAD_USAGE)
    except NotConfirmed as error:
        return complain(str(error), ExitCode.FAILED)
    except CannotBeLoaded as error:
        return complain(str(error), ExitCode.BAD_USAGE, error)
    except Unreachable as error:
        hint = forgotten_file(flags.words)
        return complain(f"{with_cause(error)}{f'; {hint}' if hint else ''}", ExitCode.UNREACHABLE, error)
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return ExitCode.INTERRUPTED


def _listed(flags: Flags, target: str) -> int:
    """List the tools, because the command line names none. Return the exit code."""
    code = list_server(ListFlags(target, flags.era, flags.headers, flags.seconds, flags.whole))
    if code == ExitCode.UNREACHABLE and (hint := forgotten_file(flags.words)):
        tell(hint)
    usage = f"bespeak call {shown(target)} TOOL [KEY=VALUE...]"
    return code or complain(f"Missing argument TOOL: {usage}", ExitCode.BAD_USAGE)


async def _called(flags: Flags, out: TextIO) -> int:
    if not 0 < flags.seconds <= LONGEST_SECONDS:
        raise BadFlags(f"--timeout must be more than 0 and at most {LONGEST_SECONDS} seconds")
    if flags.save is not None and (flags.save.is_dir() or not flags.save.parent.is_dir()):
        raise BadFlags(f"--save-answers: {flags.save} is a folder, or its folder does not exist")
    headers, outside = read_headers(flags.headers), read_connection_answers(flags)
    for note in missing_root_notes(flags):
        tell(note)
    client = Profile() if flags.profile is None else find_profile(flags.profile).make()
    if client.answers_itself and flags.answers:
        raise BadFlags(f"--as {flags.profile} answers every question itself, so it cannot be combined with --answer")
    prompt = Prompt(confirms=not flags.sends_unseen) if at_terminal() else None
    call = _begun(flags) if flags.resume is None else await _resumed(flags, flags.resume, prompt)
    check_answers(call.answers)
    pool = Pool()
    try:
        server = _with_headers(parse_target(call.target), headers)
        declared = dict(client.declares or EVERYTHING)
        wanted = Wanted("", server, Path.cwd(), call.mode, declared, flags.seconds, answers=outside)
        connection = await pool.connection(wanted)
        if client.needs_rounds and not is_modern(connection.version):
            raise BadFlags(f"--as {flags.profile} answers rounds, which revision {connection.version} does not have")
        if flags.resume is None:
            _, tool, *pairs = flags.words
            read = await read_call(connection, tool, pairs, flags.arguments)
            conversation = Conversation("tools/call", read.params, call.conversation.max_rounds)
            call = replace(call, conversation=conversation, doubt=read.doubt, unknown=read.unknown)
        code = await _talk(flags, call, connection, prompt, out, client)
        if code == ExitCode.FAILED and call.doubt is not None:
            tell(call.doubt)
        return code
    finally:
        await pool.close()


def _with_headers(server: Target, headers: Mapping[str, str]) -> Target:
    if headers and server.url is None:
        raise BadFlags("--header is for a server with a URL")
    return replace(server, headers=headers)


def _begun(flags: Flags) -> _Call:
    if not flags.words:
        raise BadFlags("Missing argument TARGET: bespeak call TARGET TOOL [KEY=VALUE...]")
    target, *rest = flags.words
    try:
        check_arguments(rest[1:], flags.arguments)
    except BadArguments as error:
        if shutil.which(target) is None:
            raise
        raise BadArguments(
            f"{error}; a command with arguments goes in quotes: {shlex.join([target, rest[0]])!r}"
        ) from None
    era = flags.era or "auto"
    mode = mode_of(era)
    rounds = ROUNDS if flags.rounds is None else flags.rounds
    conversation = Conversation("tools/call", {}, rounds)  # the params need the tool's schema
    return _Call(target, mode, conversation, dict(map(read_answer, flags.answers)))


async def _resumed(flags: Flags, file: str, prompt: Prompt | None) -> _Call:
    if flags.profile is not None:
        raise BadFlags("--resume continues a call as it was made, so it cannot be combined with --as")
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
            f"--resume: the file names revision {saved.revision!r}, at which a call cannot be continued; "
            "make the call again"
        )
    if conversation.pending is None:
        raise BadFlags("--resume: the call is not waiting for answers")
    if flags.rounds is not None:
        conversation.max_rounds = flags.rounds
    given = dict(map(read_answer, flags.answers))
    used = {name_of(key): key for one in conversation.rounds for key in one.answered if name_of(key) not in given}
    target = await choose_target(saved, file, next(iter(flags.words), None), prompt)
    return _Call(target, saved.revision, conversation, saved.answers | given, used, saved.again)


async def _talk(
    flags: Flags, call: _Call, connection: Connection, prompt: Prompt | None, out: TextIO, client: Profile
) -> int:
    conversation = call.conversation
    conversation.capabilities = connection.capabilities
    prepared = PreparedAnswers(call.answers, call.used)
    script: PromptScript | WithoutTerminal = (
        WithoutTerminal(prepared)
        if prompt is None
        else PromptScript(
            prompt,
            prepared,
            lambda questions, _: [tell(one) for one in prepared.new_notes(questions)],
            lambda: asker_of(shown(call.target), conversation, connection.notifications),
        )
    )
    talk = Talk(connection, conversation, Bounded(script), client=client)
    before = {name for one in conversation.rounds for key in one.asked for name in (key, name_of(key))}
    code = await _held(flags, call, connection, talk, prepared, out)
    _tell_outside(connection)
    if talk.ended:
        code = _unused([name for name in prepared.unused if name not in before], call, connection) or code
    if flags.save is not None and script.given:
        try:
            write_whole(flags.save, written(script.given))
        except OSError as error:
            return complain(f"the answers could not be saved: {error}", ExitCode.FAILED)
    return code


def _tell_outside(connection: Connection) -> None:
    """Say what the server asked outside the call, unless the command line has the answer."""
    for method in dict.fromkeys(one.question.method for one in connection.outside if not one.prepared):
        tell(_OUTSIDE[str(method)])


_ANSWERED_BY = "--answer is only for the questions of the call; for others, write a suite whose server has answers"
_OUTSIDE = {
    ROOTS: "the server asked for roots outside the call, and was told that there are none; --root PATH names one",
    ELICIT: f"the server asked a question outside the call; it was declined: {_ANSWERED_BY}",
    SAMPLE: f"the server asked for a model's reply outside the call; it was declined: {_ANSWERED_BY}",
}


def _unused(unused: Sequence[str], call: _Call, connection: Connection) -> int | None:
    """Complain about answers that no question asked for. Return the exit code; `None` if there are none."""
    if not unused:
        return None
    named = {name for one in call.conversation.rounds for key in one.asked for name in (key, name_of(key))}
    if named.issuperset(unused):
        return complain(
            f"--answer {', '.join(unused)} was not used: the client of --as answered itself", ExitCode.FAILED
        )
    nothing = "the server asked nothing in the call" if connection.outside else "the server asked nothing"
    asked = dict.fromkeys(f"'{printable(name_of(key))}'" for one in call.conversation.rounds for key in one.asked)
    told = f"the server asked {', '.join(list(asked)[:SHOWN])}" if asked else nothing
    return complain(f"no question asked for --answer {', '.join(unused)}; {told}", ExitCode.FAILED)


async def _held(
    flags: Flags, call: _Call, connection: Connection, talk: Talk, prepared: PreparedAnswers, out: TextIO
) -> int:
    """Hold the conversation and print the outcome. Return the exit code."""
    try:
        await _go_on(call.conversation, talk.script)
        await talk.hold()
    except Waiting as waiting:
        _json(put_down(call.target, call.answers, call.conversation, connection, waiting, flags), out)
        for name in prepared.unused:
            if nearest(name, waiting.questions) is not None:
                tell(unused_note(name, waiting.questions))
        return ExitCode.WAITING
    except Refused:
        return complain("you declined, so the call was not continued: nothing more was sent", ExitCode.FAILED)
    except (CannotAnswer, NoMoreInput, RoundsExceeded, BrokenRule, MalformedResponse) as error:
        return complain(str(error), ExitCode.FAILED)
    except (OSError, InvalidServerResponse, CallbackFailed) as error:
        return complain(f"the call was cut off: {error}", ExitCode.FAILED)
    code = _printed(talk.envelope, out, whole=flags.whole, unknown=call.unknown if _refuses_name(call, talk) else None)
    if call.again and "error" in talk.envelope:
        tell(f"{CANNOT_CONTINUE}: {call.again}")
    found = [] if flags.profile is None else [str(one) for one in call.conversation.findings]
    return complain("\n".join(dict.fromkeys(found)), ExitCode.FAILED) if found else code


async def _go_on(conversation: Conversation, script: Script) -> None:
    """Answer the round in which the call was saved."""
    pending = conversation.pending
    if pending is not None:
        conversation.answer(await script.answers(pending.questions, state=pending.state is not None))


def _refuses_name(call: _Call, talk: Talk) -> bool:
    """Whether the server says that it has no tool of that name."""
    error = members(members(talk.envelope).get("error"))
    name = re.escape(text_at(call.conversation.params.get("name")))
    named = re.search(rf"(?<![\w.-]){name}(?![\w-])", text_at(error.get("message")))
    return error.get("code") == INVALID_PARAMS and named is not None


def _printed(envelope: Any, out: TextIO, *, whole: bool, unknown: str | None = None) -> int:
    """Print the result on stdout. Return the exit code. `unknown` is said of an error about the name of the tool."""
    message = cast("dict[str, Any]", envelope)
    if "error" in message:
        error = cast("dict[str, Any]", message["error"])
        if whole:
            _json({"error": error}, out)
        said, code = error.get("message"), error.get("code")
        told = said if isinstance(said, str) and said else "the call ended with an error without a message"
        told = f"{told} ({code})" if isinstance(code, int) else told
        if unknown is not None:
            return complain(f"{unknown}\nthe server answered: {told}", ExitCode.BAD_USAGE)
        return complain(told, ExitCode.FAILED)
    result = cast("dict[str, Any]", message["result"])
    text = text_of(result)
    if whole or (not text and "structuredContent" in result):
        _json(result if whole else result["structuredContent"], out)
    else:
        print("\n".join(result_lines(text, out)) if out.isatty() else escaped(text), file=out)
    return ExitCode.FAILED if result.get("isError") is True else 0


def _json(value: Any, out: TextIO) -> None:
    text = json.dumps(value, indent=2, ensure_ascii=out.isatty())
    if out.isatty():  # a terminal may wrap the line anywhere
        text = text.replace(NAME, NAME.replace(":", "\\u003a"))
    print(escaped(text), file=out)
