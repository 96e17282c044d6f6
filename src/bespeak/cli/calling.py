"""`bespeak call`: one call from the command line, with its questions at the terminal, or put down to be taken up again."""

import asyncio
import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from bespeak.client.errors import InvalidServerResponse
from bespeak.protocol.errors import MCPError
from bespeak.protocol.versions import is_modern
from bespeak.testing.answers import CannotAnswer
from bespeak.testing.chain import Conversation, MalformedResponse, RoundsExceeded
from bespeak.testing.connection import Connection
from bespeak.testing.fixtures import InputResponseFixture, responses_to
from bespeak.testing.judging import text_of
from bespeak.testing.plan import revision
from bespeak.testing.pool import Pool, Wanted
from bespeak.testing.prompting import NoMoreInput, Prompt, at_terminal, clean
from bespeak.testing.results import Failure
from bespeak.testing.scripts import PromptScript, Script, written
from bespeak.testing.servers import Unreachable, described
from bespeak.testing.suite import EVERYTHING
from bespeak.testing.talking import BrokenRule, Talk
from bespeak.testing.variables import lookup
from bespeak.testing.verdicts import Question

FAILED, BAD, UNREACHABLE, WAITING, INTERRUPTED = 1, 2, 3, 6, 130
PAGES = 100


@dataclass(frozen=True, slots=True)
class Flags:
    """What was said on the command line."""

    words: Sequence[str]
    arguments: str | None
    answers: Sequence[str]
    save: Path | None
    resume: str | None
    era: str
    rounds: int
    seconds: float
    whole: bool


class BadFlags(Exception):
    """Something on the command line makes no sense. Says what would."""


class Waiting(Exception):
    """Questions are open, and nobody is there to answer them."""

    def __init__(self, questions: Sequence[Question]) -> None:
        self.questions = questions
        super().__init__(f"{len(questions)} questions wait for answers")


class _Nobody:
    """Stands where there is no terminal: answers what was answered beforehand, and nothing else."""

    def __init__(self, prepared: InputResponseFixture) -> None:
        self._prepared = prepared
        self.given: dict[str, Any] = {}

    async def answers(self, questions: Sequence[Question], number: int, *, state: bool | None) -> dict[str, Any]:
        found = {question.key: self._prepared.answer_for(question) for question in questions}
        missing = [question for question in questions if question.required and found[question.key] is None]
        if missing:
            raise Waiting(missing)
        self.given |= {key: answer.as_written() for key, answer in found.items() if answer is not None}
        return responses_to(questions, lambda question: found[question.key])

    def leftovers(self) -> list[Failure]:
        return []


@dataclass(frozen=True, slots=True)
class _Call:
    """One call: whom, what, and how far it has come."""

    target: str
    mode: str
    conversation: Conversation
    prepared: InputResponseFixture


def call_tool(flags: Flags) -> int:
    """Do what was said; the exit code."""
    try:
        return asyncio.run(_called(flags))
    except (BadFlags, ValueError) as error:
        return _failed(str(error), BAD)
    except Unreachable as error:
        return _failed(str(error), UNREACHABLE)
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return INTERRUPTED


async def _called(flags: Flags) -> int:
    prepared = InputResponseFixture(dict(map(_answer, flags.answers)))
    call = _resumed(flags, prepared) if flags.resume is not None else _begun(flags, prepared)
    pool = Pool()
    try:
        server = described(call.target)
        wanted = Wanted("", server, Path.cwd(), call.mode, EVERYTHING, flags.seconds, lookup({}, {}))
        connection = await pool.connection(wanted)
        if flags.resume is None:
            call.conversation.params["arguments"] = await _arguments(flags, connection)
        return await _talk(flags, call, connection)
    finally:
        await pool.close()


def _begun(flags: Flags, prepared: InputResponseFixture) -> _Call:
    if len(flags.words) < 2:
        raise BadFlags("say which server and which tool: bespeak call TARGET TOOL [KEY=VALUE...]")
    target, tool, *_ = flags.words
    mode = flags.era if flags.era in ("auto", "legacy") else revision(flags.era)
    return _Call(target, mode, Conversation("tools/call", {"name": tool, "arguments": {}}, flags.rounds), prepared)


def _resumed(flags: Flags, prepared: InputResponseFixture) -> _Call:
    if flags.words or flags.arguments is not None:
        raise BadFlags("--resume goes on with a call as it was made; it takes no target, tool or arguments")
    try:
        text = sys.stdin.read() if flags.resume == "-" else Path(flags.resume or "").read_text(encoding="utf-8")
        saved: Any = json.loads(text)
        conversation = Conversation.from_json(saved["conversation"])
        target, mode = saved["target"], saved["revision"]
    except OSError as error:
        raise BadFlags(f"--resume: {flags.resume} cannot be read: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise BadFlags(f"--resume: that is no call that waits for answers ({error})") from None
    if conversation.pending is None:
        raise BadFlags("--resume: that call cannot be gone on with; make it again, with --answer")
    return _Call(target, mode, conversation, prepared)


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
    whole: Any = {}
    if flags.arguments is not None:
        whole = _json_or_text(flags.arguments)
        if not isinstance(whole, dict):
            raise BadFlags("--arguments takes a JSON object")
    arguments = cast("dict[str, Any]", whole)
    pairs = [word.partition("=") for word in flags.words[2:]]
    for key, equals, _ in pairs:
        if not (key and equals):
            raise BadFlags(f"arguments are KEY=VALUE, not {key!r}")
    if pairs:
        schema = await _schema(connection, flags.words[1])
        arguments |= {key: _typed(schema.get(key), value) for key, _, value in pairs}
    return arguments


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
    if isinstance(schema, dict) and cast("dict[str, Any]", schema).get("type") == "string":
        return value
    return _json_or_text(value)


async def _talk(flags: Flags, call: _Call, connection: Connection) -> int:
    conversation = call.conversation
    conversation.capabilities = connection.capabilities
    script: PromptScript | _Nobody = PromptScript(Prompt(), call.prepared) if at_terminal() else _Nobody(call.prepared)
    talk = Talk(connection, conversation, script)
    try:
        await _go_on(conversation, script)
        await talk.hold()
    except Waiting as waiting:
        print(json.dumps(_put_down(call, connection, waiting, flags), indent=2, ensure_ascii=False))
        return WAITING
    except (CannotAnswer, NoMoreInput, RoundsExceeded, BrokenRule, MalformedResponse) as error:
        return _failed(str(error), FAILED)
    except (OSError, InvalidServerResponse) as error:
        return _failed(f"the call broke off: {error}", FAILED)
    finally:
        if flags.save is not None and script.given:
            flags.save.write_text(written(script.given), encoding="utf-8")
    return _printed(talk.envelope, whole=flags.whole)


async def _go_on(conversation: Conversation, script: Script) -> None:
    """Answer the round that a call was put down in."""
    pending = conversation.pending
    if pending is not None:
        number = len(conversation.rounds) + 1
        conversation.answer(await script.answers(pending.questions, number, state=pending.state is not None))


def _put_down(call: _Call, connection: Connection, waiting: Waiting, flags: Flags) -> dict[str, Any]:
    """A call that waits, and how to go on with it."""
    answer = [f"--answer {shlex.quote(question.key)}=..." for question in waiting.questions]
    told: dict[str, Any] = {
        "waiting": {question.key: question.as_json() for question in waiting.questions},
        "target": call.target,
        "revision": connection.version,
    }
    if is_modern(connection.version):
        told["conversation"] = call.conversation.as_json()
        told["resume"] = " ".join(["bespeak call --resume FILE", *answer])
    else:  # the server was waiting in mid-call, and does no longer
        told["again"] = " ".join([shlex.join(["bespeak", "call", *flags.words]), *answer])
    return told


def _printed(envelope: Any, *, whole: bool) -> int:
    """The result on stdout; the exit code."""
    message = cast("dict[str, Any]", envelope)
    if "error" in message:
        error = message["error"]
        told = cast("dict[str, Any]", error) if isinstance(error, dict) else {"message": str(error)}
        if whole:
            print(json.dumps({"error": error}, indent=2, ensure_ascii=False))
        return _failed(clean(f"{told.get('message')} ({told.get('code')})"), FAILED)
    result = cast("dict[str, Any]", message["result"])
    text = text_of(result)
    if whole or (not text and "structuredContent" in result):
        print(json.dumps(result if whole else result["structuredContent"], indent=2, ensure_ascii=False))
    else:
        print(clean(text) if sys.stdout.isatty() else text)
    return FAILED if result.get("isError") is True else 0


def _failed(problem: str, code: int) -> int:
    print(f"bespeak: {problem}", file=sys.stderr)
    return code
