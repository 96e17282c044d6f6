"""`bespeak call`: one call from the command line, with its questions at the terminal, or put down to be taken up again."""

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TextIO, cast

from bespeak.cli.output import NAME, complain, result_lines
from bespeak.cli.resume_command import NotConfirmed, choose_target, read_saved
from bespeak.cli.signals import run
from bespeak.client.errors import CallbackFailed, InvalidServerResponse
from bespeak.client.pushed_questions import MAX_QUESTIONS
from bespeak.conversation.answer_examples import written
from bespeak.conversation.answer_sources import PromptScript, Script, written_for
from bespeak.conversation.answers import Answer, CannotAnswer
from bespeak.conversation.call_rounds import Conversation, MalformedResponse, RoundsExceeded
from bespeak.conversation.connection import Connection
from bespeak.conversation.connection_pool import Pool, Wanted
from bespeak.conversation.connection_settings import EVERYTHING, mode_of
from bespeak.conversation.exchange import BrokenRule, Talk
from bespeak.conversation.fixtures import InputResponseFixture, responses_to
from bespeak.conversation.question_names import name_of
from bespeak.conversation.responses import Question
from bespeak.conversation.result_text import text_of
from bespeak.conversation.server_targets import parse_target
from bespeak.conversation.servers import Unreachable
from bespeak.protocol.errors import MCPError
from bespeak.protocol.versions import MODERN_PROTOCOL_VERSIONS, is_modern
from bespeak.terminal.prompt import NoMoreInput, Prompt, at_terminal
from bespeak.testing.report.files import write_whole

FAILED, BAD, UNREACHABLE, WAITING, INTERRUPTED = 1, 2, 3, 6, 130
PAGES = 100
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


class Waiting(Exception):
    """Questions are open, and nobody is there to answer them."""

    def __init__(self, questions: Sequence[Question]) -> None:
        self.questions = questions
        super().__init__("questions wait for answers")


class _Beforehand:
    """What was answered beforehand. An answer by name is for one question: under another key, it would be for another.

    Whoever approved a price has not approved the next one that is asked under the same name.
    """

    def __init__(self, call: "_Call") -> None:
        self._fixture = InputResponseFixture(call.answers)
        self._spent = dict(call.spent)

    def answer_for(self, question: Question) -> Answer | None:
        rule = self._fixture.rule_for(question)
        if rule is None or rule.key is None or rule.key == question.key:
            return rule and rule.answer
        return rule.answer if self._spent.setdefault(rule.key, question.key) == question.key else None


class _Nobody:
    """Stands where there is no terminal: answers what was answered beforehand, and nothing else."""

    def __init__(self, prepared: _Beforehand) -> None:
        self._prepared = prepared
        self.given: dict[str, Any] = {}

    async def answers(self, questions: Sequence[Question], *, state: bool | None) -> dict[str, Any]:
        found = {question.key: self._prepared.answer_for(question) for question in questions}
        missing = [question for question in questions if question.required and found[question.key] is None]
        if missing:
            raise Waiting(missing)
        for question in questions:
            if (answer := found[question.key]) is not None:
                self.given |= written_for(question, answer.as_written(), self.given)
        return responses_to(questions, lambda question: found[question.key])


class _Bounded:
    """Refuses a round that asks more than anybody would answer."""

    def __init__(self, script: Script) -> None:
        self._script = script

    async def answers(self, questions: Sequence[Question], *, state: bool | None) -> dict[str, Any]:
        if len(questions) > MAX_QUESTIONS:
            asked = f"{len(questions):,} questions in one round"
            raise CannotAnswer(f"the server asked {asked}, more than are answered here: {MAX_QUESTIONS}")
        return await self._script.answers(questions, state=state)


@dataclass(frozen=True, slots=True)
class _Call:
    """One call: whom, what, and how far it has come."""

    target: str
    mode: str
    conversation: Conversation
    answers: dict[str, Any]
    """What was answered beforehand, by key or name, as a suite writes it."""
    spent: Mapping[str, str] = field(default_factory=dict[str, str])
    """The names under which something was answered before the call was put down, each with the last key."""


def call_tool(flags: Flags) -> int:
    """Do what was said; the exit code."""
    out = sys.stdout
    try:
        with redirect_stdout(sys.stderr):  # what a server in this process prints is no part of the result
            return run(_called(flags, out))
    except (BadFlags, ValueError) as error:
        return complain(str(error), BAD)
    except NotConfirmed as error:
        return complain(str(error), FAILED)
    except Unreachable as error:
        return complain(str(error), UNREACHABLE)
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return INTERRUPTED


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
        wanted = Wanted("", parse_target(call.target), Path.cwd(), call.mode, EVERYTHING, flags.seconds)
        connection = await pool.connection(wanted)
        if flags.resume is None:
            params = {"name": flags.words[1], "arguments": await _arguments(flags, connection)}
            call = replace(call, conversation=Conversation("tools/call", params, call.conversation.max_rounds))
        return await _talk(flags, call, connection, prompt, out)
    finally:
        await pool.close()


def _begun(flags: Flags) -> _Call:
    if len(flags.words) < 2:
        raise BadFlags("say which server and which tool: bespeak call TARGET TOOL [KEY=VALUE...]")
    target, tool, *rest = flags.words
    for word in rest:
        key, equals, _ = word.partition("=")
        if not (key and equals):
            raise BadFlags(f"arguments are KEY=VALUE, not {word!r}")
    _whole_arguments(flags)
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
    spent = {name_of(key): key for one in conversation.rounds for key in one.answered if name_of(key) not in given}
    target = await choose_target(saved, file, next(iter(flags.words), None), prompt)
    return _Call(target, saved.revision, conversation, saved.answers | given, spent)


def _answer(given: str) -> tuple[str, Any]:
    key, equals, value = given.partition("=")
    if not (key and equals):
        raise BadFlags(f"--answer takes KEY=VALUE, not {given!r}")
    return key, _json_or_text(value)


def _json_or_text(value: str) -> Any:
    try:
        return json.loads(value)
    except ValueError:
        return value


async def _arguments(flags: Flags, connection: Connection) -> dict[str, Any]:
    """The tool's arguments, each read as the tool's schema says."""
    arguments = _whole_arguments(flags)
    pairs = [word.partition("=") for word in flags.words[2:]]
    if pairs:
        schema = await _schema(connection, flags.words[1])
        arguments |= {key: _typed(schema.get(key), value) for key, _, value in pairs}
    return arguments


def _whole_arguments(flags: Flags) -> dict[str, Any]:
    whole: Any = {} if flags.arguments is None else _json_or_text(flags.arguments)
    if not isinstance(whole, dict):
        raise BadFlags("--arguments takes a JSON object")
    return cast("dict[str, Any]", whole)


async def _schema(connection: Connection, tool: str) -> Mapping[str, Any]:
    """The properties of a tool's input; none if it is not listed."""
    cursor: str | None = None
    for _ in range(PAGES):
        try:
            page = await connection.session.request("tools/list", {} if cursor is None else {"cursor": cursor})
        except (MCPError, InvalidServerResponse, OSError):
            return {}
        for one in page.get("tools") or ():
            if isinstance(one, dict) and cast("dict[str, Any]", one).get("name") == tool:
                schema: Any = cast("dict[str, Any]", one).get("inputSchema")
                properties: Any = cast("dict[str, Any]", schema).get("properties") if isinstance(schema, dict) else None
                return cast("dict[str, Any]", properties) if isinstance(properties, dict) else {}
        cursor = page.get("nextCursor")
        if cursor is None:
            break
    return {}


def _typed(schema: Any, value: str) -> Any:
    return value if _kinds(schema) - {"null"} == {"string"} else _json_or_text(value)


def _kinds(schema: Any) -> set[str]:
    """The types of JSON that a schema takes, as far as it says so."""
    if not isinstance(schema, dict):
        return set()
    members = cast("dict[str, Any]", schema)
    kind: Any = members.get("type")
    found = {kind} if isinstance(kind, str) else set(cast("list[str]", kind)) if isinstance(kind, list) else set[str]()
    options: Any = members.get("anyOf")
    return found.union(*map(_kinds, cast("list[Any]", options))) if isinstance(options, list) else found


async def _talk(flags: Flags, call: _Call, connection: Connection, prompt: Prompt | None, out: TextIO) -> int:
    conversation = call.conversation
    conversation.capabilities = connection.capabilities
    prepared = _Beforehand(call)
    script: PromptScript | _Nobody = _Nobody(prepared) if prompt is None else PromptScript(prompt, prepared)
    talk = Talk(connection, conversation, _Bounded(script))
    code = await _held(flags, call, connection, talk, out)
    if flags.save is not None and script.given:
        try:
            write_whole(flags.save, written(script.given))
        except OSError as error:
            return complain(f"the answers could not be saved: {error}", FAILED)
    return code


async def _held(flags: Flags, call: _Call, connection: Connection, talk: Talk, out: TextIO) -> int:
    """Hold the conversation and print what comes of it; the exit code."""
    try:
        await _go_on(call.conversation, talk.script)
        await talk.hold()
    except Waiting as waiting:
        told = _put_down(call, connection, waiting, flags)
        _json(told, out)
        return WAITING
    except (CannotAnswer, NoMoreInput, RoundsExceeded, BrokenRule, MalformedResponse) as error:
        return complain(str(error), FAILED)
    except (OSError, InvalidServerResponse, CallbackFailed) as error:
        return complain(f"the call broke off: {error}", FAILED)
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
        return complain(f"{told} ({code})" if isinstance(code, int) else told, FAILED)
    result = cast("dict[str, Any]", message["result"])
    text = text_of(result)
    if whole or (not text and "structuredContent" in result):
        _json(result if whole else result["structuredContent"], out)
    else:
        print("\n".join(result_lines(text, out)) if out.isatty() else text, file=out)
    return FAILED if result.get("isError") is True else 0


def _json(value: Any, out: TextIO) -> None:
    text = json.dumps(value, indent=2, ensure_ascii=out.isatty())
    if out.isatty():  # which may start a line wherever it likes
        text = text.replace(NAME, NAME.replace(":", "\\u003a"))
    print(text, file=out)
