"""Runs tests: each to a result, whatever happens to it."""

import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from bespeak.client.errors import CallbackFailed, InvalidServerResponse
from bespeak.protocol.versions import is_modern
from bespeak.testing.answers import CannotAnswer
from bespeak.testing.cassettes import Book, Mode, StaleCassette
from bespeak.testing.chain import Conversation, MalformedResponse, RoundsExceeded
from bespeak.testing.connection import Connection, Line
from bespeak.testing.findings import Finding
from bespeak.testing.fixtures import InputResponseFixture, MissingAnswer
from bespeak.testing.hostile import Attack, NotReached, judge_tampered
from bespeak.testing.judging import judge
from bespeak.testing.paths import value_at
from bespeak.testing.plan import Item, items_of
from bespeak.testing.pool import Pool, Wanted
from bespeak.testing.redaction import Redaction
from bespeak.testing.results import Failure, Kind, Result
from bespeak.testing.scripts import Asks, FixtureScript, PromptScript, RoundsScript, Script, paste
from bespeak.testing.servers import Unreachable, described
from bespeak.testing.snapshots import SnapshotFile
from bespeak.testing.suite import EVERYTHING, Server, Test, Verify
from bespeak.testing.talking import BrokenRule, Talk
from bespeak.testing.variables import Unknown, environment, fill, lookup, names_in


@dataclass(frozen=True, slots=True)
class Options:
    """What holds for all tests of a run."""

    record: Mode = Mode.NONE
    verify: bool = False
    cassettes: Path | None = None
    """The folder of cassettes, instead of what suites say."""
    servers: Mapping[str, str] = field(default_factory=dict[str, str])
    """What to use instead of a suite's server of that name: another of its servers, or a target of the command line."""
    prompt: Asks | None = None
    """Somebody who is asked before the fixture is."""
    start: Path = field(default_factory=Path.cwd)
    """Where the run was started: paths in reports are relative to it."""


class Runner:
    """Runs the tests of one run, one after the other."""

    def __init__(self, options: Options | None = None) -> None:
        self._options = options or Options()
        self._pool = Pool()
        self._captured: dict[tuple[Path, str | None], dict[str, Any]] = {}
        self._ran: dict[tuple[Path, str, str | None], bool] = {}

    async def close(self) -> None:
        """Close all connections, and end the servers that were started."""
        await self._pool.close()

    async def run(self, item: Item) -> Result:
        """Run one test. What goes wrong with it is in its result."""
        began = time.perf_counter()
        run = _Run(item, self._options, self._pool)
        try:
            secrets = environment(item.suite.needs)
            run.redaction = Redaction(item.suite.model.redact, secrets)
            run.hidden = Redaction((), secrets)
            captured = await self._needed(item)
            run.fill(lookup(secrets, captured))
            await run.run()
        except Unknown as error:
            run.failures.append(Failure(str(error)))
        key = (item.suite.path, item.era)
        self._captured.setdefault(key, {}).update(run.captured)
        self._ran[(item.suite.path, item.test.name, item.era)] = not run.failures
        return run.result(time.perf_counter() - began)

    async def _needed(self, item: Item) -> dict[str, Any]:
        """What the tests before this one have captured; those that did not run are run first. Raises `Unknown`."""
        captured = self._captured.setdefault((item.suite.path, item.era), {})
        written = item.test.model_dump(by_alias=True, exclude_unset=True)
        for name in {name for name in names_in(written) if not name.startswith("env:")} - captured.keys():
            source = next((one for one in items_of(item.suite) if name in one.test.capture), None)
            if source is None or self._ran.get((item.suite.path, source.test.name, item.era)) is False:
                raise Unknown(f"${{{name}}} stands for nothing: the test that captures it failed")
            before = await self.run(replace(source, era=item.era))
            if not before.passed:
                raise Unknown(
                    f"${{{name}}} stands for nothing: the test {source.test.name!r}, which captures it, failed"
                )
        return captured


class _Run:
    """One test while it runs."""

    def __init__(self, item: Item, options: Options, pool: Pool) -> None:
        self.item = item
        self.options = options
        self.pool = pool
        self.test: Test = item.test
        self.redaction = Redaction()
        self.hidden = Redaction()
        """Only the secrets: what is said of a result has no paths any more."""
        self.find: Callable[[str], Any] = lambda name: f"${{{name}}}"
        self.failures: list[Failure] = []
        self.captured: dict[str, Any] = {}
        self.conversation: Conversation | None = None

    def fill(self, find: Callable[[str], Any]) -> None:
        """Put values in place of `${...}`."""
        self.find = find
        written = self.test.model_dump(by_alias=True, exclude_unset=True)
        if next(names_in(written), None) is not None:
            self.test = Test.model_validate(fill(written, find))

    def wanted(self) -> Wanted:
        test, suite = self.test, self.item.suite
        name = self.item.server_name
        target = self.options.servers.get(name, name)
        known = suite.model.servers.get(target)
        server = known or _in_place_of(self.item.server, described(target))
        declared = test.declare if test.declare is not None else server.declare
        return Wanted(
            name,
            server,
            suite.folder if known is not None else self.options.start,
            self.item.era or server.protocol,
            EVERYTHING if declared is None else declared,
            test.timeout or server.timeout,
            self.find,
        )

    # The conversation

    async def run(self) -> None:
        folder = self.options.cassettes or (
            self.item.suite.folder / self.item.suite.model.cassettes if self.item.suite.model.cassettes else None
        )
        if folder is None:
            await self._live()
            return
        book = Book(folder, self.item, self.redaction)
        if self.options.verify:
            await self._verify(book)
        elif self.options.record.records(book):
            await self._live(book)
        else:
            await self._replay(book)

    async def _live(self, book: Book | None = None) -> None:
        """Talk to the server; write down what was said if there is where."""
        wanted = self.wanted()
        if self.test.fresh:
            await self.pool.drop(wanted)
        try:
            connection = await self.pool.connection(wanted)
        except Unreachable as error:
            self._fail(str(error), kind=Kind.UNREACHABLE)
            return
        line: Line = connection if book is None else book.recorder(connection)
        usable = await self._talk(line, connection)
        if book is not None and not self.failures:
            book.write()
        if not usable:
            await self.pool.drop(wanted)

    async def _replay(self, book: Book) -> None:
        try:
            line = book.player()
            await self._talk(line, None)
            if not self.failures:
                line.check_played()
        except StaleCassette as error:
            if self.options.record is Mode.NEW:
                self.failures.clear()
                await self._live(book)
                return
            self._stale(error)

    async def _verify(self, book: Book) -> None:
        """Drive the live server again, and compare what it does with what was recorded."""
        try:
            recorded = book.read()
        except StaleCassette as error:
            self._stale(error)
            return
        await self._live(book.comparing())
        if not self.failures:
            difference = book.difference(recorded)
            if difference is not None:
                self._stale(difference)

    def _stale(self, error: StaleCassette) -> None:
        self.failures = [
            Failure(str(error), kind=Kind.CASSETTE, path=error.path, expected=error.expected, actual=error.actual)
        ]

    async def _talk(self, line: Line, connection: Connection | None) -> bool:
        """Hold the conversation and judge it; whether the connection can be used further."""
        test = self.test
        attack = Attack(test.tamper, test.fault, test.retry or 0)
        if (test.tamper or test.fault) and not is_modern(line.version):
            self._fail(f"not reached: at {line.version} there are no rounds to tamper with")
            return True
        capabilities = connection.capabilities if connection is not None else None
        max_rounds = self.item.suite.model.maxRounds if test.maxRounds is None else test.maxRounds
        self.conversation = Conversation(test.method, test.params, max_rounds, capabilities)
        script = self._script()
        talk = Talk(line, self.conversation, script, attack)
        usable = await self._hold(talk)
        self._findings(self.conversation)
        if not self.failures:
            self._judge(talk)
            self.failures += script.leftovers()
        if not self.failures:
            self._capture(talk.envelope)
        for one in test.verify or ():
            if usable and not self.failures:
                usable = await self._verified(one, line, capabilities)
        return usable

    def _script(self) -> Script:
        test = self.test
        if self.options.prompt is not None:
            return PromptScript(self.options.prompt)
        if test.rounds is not None:
            return RoundsScript(test.rounds)
        return FixtureScript(InputResponseFixture(test.inputResponses))

    async def _hold(self, talk: Talk) -> bool:
        try:
            await talk.hold()
        except MissingAnswer as error:
            self._fail(str(error), hint=paste(error.questions))
        except CannotAnswer as error:
            self._fail(str(error))
        except RoundsExceeded as error:
            self._fail(str(error), rule="converge")
        except NotReached as error:
            self._fail(f"not reached: {error}")
        except BrokenRule:
            pass  # which is among the findings
        except MalformedResponse as error:
            if not error.findings:
                raise
        except TimeoutError as error:
            self._fail(f"the server hangs: {error}", rule="answers")
            return False
        except (OSError, InvalidServerResponse, CallbackFailed) as error:
            self._fail(f"the conversation broke off: {error}")
            return False
        return not (self.failures and not is_modern(talk.line.version))

    def _findings(self, conversation: Conversation) -> None:
        """What the server did that it must not: all of it, each once."""
        wire = self.test.wire or self.item.suite.model.wire
        found: dict[str, Finding] = {}
        for finding in conversation.findings:
            if finding.rule == "dialect" and wire != "spec":
                continue
            found.setdefault(str(finding), finding)
        if (
            wire == "list"
            and any(one for one in conversation.rounds)
            and "dialect" not in {one.rule for one in conversation.findings}
        ):
            self._fail("the suite says wire: list, and the server asks in the MCP shape")
        self.failures = [Failure(one.text, rule=one.rule) for one in found.values()] + self.failures

    def _judge(self, talk: Talk) -> None:
        test = self.test
        if test.tamper is not None:
            refused = judge_tampered(test.tamper, talk.envelope)
            if refused or "expect" not in test.model_fields_set:
                self.failures += refused
                return
        self.failures += judge(
            test.expect,
            self._redacted(talk.envelope),
            rounds=len(talk.conversation.rounds),
            asked=talk.asked,
            notifications=talk.notifications,
            snapshots=SnapshotFile(self.item.suite.path, self.item.title, self.options.record, self.hidden),
        )

    def _redacted(self, envelope: Any) -> Any:
        message = cast("dict[str, Any]", envelope) if isinstance(envelope, dict) else {}
        if not isinstance(message.get("result"), dict):
            return message
        return {**message, "result": Redaction(self.redaction.paths).apply(message["result"])}

    def _capture(self, envelope: Any) -> None:
        for name, path in self.test.capture.items():
            result: Any = cast("dict[str, Any]", envelope).get("result")
            try:
                self.captured[name] = value_at(result, path)
            except LookupError:
                self._fail(f"capture: the result has nothing at {path!r}", path=path)

    async def _verified(self, verify: Verify, line: Line, capabilities: dict[str, Any] | None) -> bool:
        """Make a call afterwards, to see what the test has done; whether the connection can be used further."""
        conversation = Conversation(verify.method, verify.params, capabilities=capabilities)
        talk = Talk(line, conversation, FixtureScript(InputResponseFixture(verify.inputResponses)))
        usable = await self._hold(talk)
        if self.failures:
            return usable
        found = judge(
            verify.expect,
            self._redacted(talk.envelope),
            rounds=len(conversation.rounds),
            asked=talk.asked,
            notifications=talk.notifications,
            snapshots=SnapshotFile(self.item.suite.path, self.item.title, self.options.record, self.hidden),
        )
        rule = "single-use" if self.test.fault is not None else None
        what = "after a response was lost and the same request came again" if rule else "verify"
        self.failures += [replace(one, message=f"{what}: {one.message}", rule=rule) for one in found]
        return usable

    def _fail(self, message: str, **more: Any) -> None:
        self.failures.append(Failure(message, **more))

    # What came of it

    def result(self, seconds: float) -> Result:
        item = self.item
        rounds = self.conversation.rounds if self.conversation is not None else []
        suite = relative(item.suite.path, self.options.start)
        return Result(
            suite=suite,
            line=item.line,
            name=item.test.name,
            case=item.case,
            era=item.era,
            server=item.server_name,
            failures=[self._clean(failure) for failure in self.failures],
            rounds=[
                replace(
                    one,
                    asked=self.hidden.apply(one.asked),
                    answered=self.redaction.apply({"inputResponses": one.answered})["inputResponses"],
                )
                for one in rounds
            ],
            again=shlex.join(["bespeak", "test", suite, "-k", f'"{item.title}"']),
            seconds=seconds,
        )

    def _clean(self, failure: Failure) -> Failure:
        redact = self.hidden
        return replace(
            failure,
            message=redact.text(failure.message),
            expected=redact.apply(failure.expected),
            actual=redact.apply(failure.actual),
            hint=None if failure.hint is None else redact.text(failure.hint),
        )


def named_server(given: str) -> tuple[str, str]:
    """A server that is to take the place of a suite's. Raises `ValueError`."""
    name, equals, target = given.partition("=")
    if not (name and equals and target):
        raise ValueError(f"--server takes NAME=TARGET, not {given!r}")
    described(target)
    return name, target


def _in_place_of(server: Server, other: Server) -> Server:
    """Another server, spoken to as the suite says of the one whose place it takes."""
    kept = {name: getattr(server, name) for name in ("protocol", "declare", "timeout")}
    return other.model_copy(update=kept)


def relative(path: Path, start: Path) -> str:
    """A path as short as it can be written from a folder."""
    try:
        return path.resolve().relative_to(start.resolve()).as_posix()
    except ValueError:
        return path.as_posix()


async def run_items(runner: Runner, items: Sequence[Item], finished: Callable[[Result], bool]) -> None:
    """Run tests in their order until one is told to be the last, and close the connections."""
    try:
        for item in items:
            if not finished(await runner.run(item)):
                return
    finally:
        await runner.close()
