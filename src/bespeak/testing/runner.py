"""Runs tests: each to a result, whatever happens to it."""

import logging
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from bespeak.client.errors import CallbackFailed, InvalidServerResponse
from bespeak.conversation.answer_examples import paste
from bespeak.conversation.answer_sources import FixtureScript, PromptScript, Script
from bespeak.conversation.answers import CannotAnswer
from bespeak.conversation.call_rounds import Conversation, MalformedResponse, Round, RoundsExceeded
from bespeak.conversation.connection import Connection, Line
from bespeak.conversation.connection_pool import Pool, Wanted
from bespeak.conversation.connection_settings import EVERYTHING
from bespeak.conversation.exchange import BrokenRule, Talk
from bespeak.conversation.fixtures import InputResponseFixture, MissingAnswer
from bespeak.conversation.matchers import ABSENT
from bespeak.conversation.question_names import AmbiguousName, SpelledKey, with_names
from bespeak.conversation.responses import Dialect, Question
from bespeak.conversation.result_text import text_of
from bespeak.conversation.server_targets import parse_target
from bespeak.conversation.servers import Unreachable
from bespeak.protocol.versions import is_modern
from bespeak.terminal.prompt import NoMoreInput
from bespeak.testing.attacks import Attack, NotReached, judge_tampered
from bespeak.testing.cassettes.cassettes import Book, Mode, StaleCassette
from bespeak.testing.expect.expectations import ended, judge
from bespeak.testing.expect.paths import value_at
from bespeak.testing.expect.round_expectations import RoundsScript
from bespeak.testing.expect.snapshots import SnapshotFile
from bespeak.testing.redaction import Redaction, parse_path
from bespeak.testing.report.excerpts import LONGEST_NAME, bounded, excerpt, round_excerpt, shortened, without_middle
from bespeak.testing.report.results import Failure, Kind, Result
from bespeak.testing.suite.plan import Item, exactly, items_of
from bespeak.testing.suite.run_options import Options, relative
from bespeak.testing.suite.substitution import DoesNotFit, filled
from bespeak.testing.suite.suite_file import Expect, Test, Verify
from bespeak.testing.suite.variables import Unknown, environment, fill, lookup, names_in, text_filler

logger = logging.getLogger("bespeak.testing")


class Runner:
    """Runs the tests of one run, one after the other."""

    def __init__(self, options: Options | None = None) -> None:
        self._options = options or Options()
        self._pool = Pool()
        self._captured: dict[tuple[Path, str | None], dict[str, Any]] = {}
        self._ran: dict[tuple[Path, str, str | None], bool] = {}
        self._tokens: list[str] = []
        """The states of all tests so far: a server may print in one what it handed out in another."""

    async def close(self) -> None:
        """Close all connections, and end the servers that were started."""
        await self._pool.close()

    async def run(self, item: Item) -> Result:
        """Run one test. What goes wrong with it is in its result."""
        began = time.perf_counter()
        run = _Run(item, self._options, self._pool, self._tokens)
        try:
            secrets = environment(item.suite.needs)
            run.redaction = Redaction(item.suite.model.redact, secrets)
            run.hidden = Redaction((), secrets)
            captured = await self._needed(item)
            run.fill(lookup(secrets, captured))
            await run.run()
        except (Unknown, DoesNotFit) as error:
            run.failures.append(Failure(str(error)))
        except Exception as error:  # whatever it is, the other tests are run, and the reports written
            logger.exception("a test could not be run")
            run.failures.append(Failure(f"the test could not be run: {type(error).__name__}: {error}"))
        if not run.failures:
            self._captured.setdefault((item.suite.path, item.era), {}).update(run.captured)
        self._ran[(item.suite.path, item.test.name, item.era)] = not run.failures
        return run.result(time.perf_counter() - began)

    def broken_off(self, item: Item, how: str) -> Result:
        """The result of a test that did not come to its end."""
        run = _Run(item, self._options, self._pool, self._tokens)
        run.failures.append(Failure(f"the test was broken off: {how}"))
        return run.result(0.0)

    async def _needed(self, item: Item) -> dict[str, Any]:
        """What the tests before this one have captured; those that did not run are run first. Raises `Unknown`."""
        captured = self._captured.setdefault((item.suite.path, item.era), {})
        written = item.test.model_dump(by_alias=True, exclude_unset=True)
        needed = {name for name in names_in(written) if not name.startswith("env:")} - captured.keys()
        for source in items_of(item.suite) if needed else ():
            name = next((name for name in source.test.capture if name in needed - captured.keys()), None)
            if name is None:
                continue
            passed = self._ran.get((item.suite.path, source.test.name, item.era))
            if passed is None:
                passed = (await self.run(replace(source, era=item.era))).passed
            if not passed:
                raise Unknown(
                    f"${{{name}}} stands for nothing: the test {source.test.name!r}, which captures it, failed"
                )
        return captured


class _Run:
    """One test while it runs."""

    def __init__(self, item: Item, options: Options, pool: Pool, tokens: list[str]) -> None:
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
        self.tokens = tokens

    def fill(self, find: Callable[[str], Any]) -> None:
        """Put values in place of `${...}`. Raises `Unknown`, and `DoesNotFit`."""
        self.find = find
        self.test = filled(self.test, find)

    def wanted(self) -> Wanted:
        test, suite = self.test, self.item.suite
        name = self.item.server_name
        target = self.options.servers.get(name, name)
        known = suite.model.servers.get(target)
        server = known or self.item.server  # another is spoken to as the suite says of the one it replaces
        declared = test.declare if test.declare is not None else server.declare
        return Wanted(
            name,
            server.target() if known else replace(parse_target(target), timeout=server.timeout),
            suite.folder if known is not None else self.options.start,
            self.item.era or server.protocol,
            EVERYTHING if declared is None else declared,
            test.timeout or server.timeout,
            str if known is None else text_filler(self.find, port=bool(known.command and known.url)),
        )

    # The conversation

    async def run(self) -> None:
        folder, named = self.options.cassettes, self.item.suite.model.cassettes
        if folder is None and named is not None:
            folder = self.item.suite.folder / str(fill(named, self.find))
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

    async def _live(self, book: Book | None = None, *, keep: bool = True) -> None:
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
        if not usable:
            printed = self.pool.printed(wanted)
            if printed and self.failures:
                self.failures[-1] = replace(self.failures[-1], hint=f"the server printed:\n{printed}")
            await self.pool.drop(wanted)
        if book is not None and keep and not self.failures:
            try:
                book.write()
            except StaleCassette as error:
                self._stale(error)

    async def _replay(self, book: Book) -> None:
        try:
            line = book.player()
            await self._talk(line, None)
            if not self.failures:
                line.check_played()
        except StaleCassette as error:
            self._stale(error)
        if self.failures and self.options.record is Mode.NEW:  # the cassette no longer fits the test
            self.failures.clear()
            await self._live(book)

    async def _verify(self, book: Book) -> None:
        """Drive the live server again, and compare what it does with what was recorded."""
        try:
            recorded = book.read()
        except StaleCassette as error:
            self._stale(error)
            return
        await self._live(book, keep=False)
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
        if (test.tamper or test.fault) and not is_modern(line.version):
            self._fail(f"not reached: at {line.version} there are no rounds to tamper with")
            return True
        capabilities = connection.capabilities if connection is not None else None
        attack = Attack(test.tamper, test.fault, test.retry or 0)
        self.snapshots = SnapshotFile(self.item.suite, self.item.title, self.options.record, self.hidden)
        self.conversation = self._begun(test, capabilities)
        script, leftovers = self._script()
        talk = Talk(line, self.conversation, script, attack)
        usable = await self._held(talk)
        if not self.failures:
            self._judge(talk)
            self.failures += leftovers()
        if not self.failures:
            self._capture(talk.envelope)
        for one in test.verify or ():
            if usable and not self.failures:
                usable = await self._verified(one, line, capabilities)
        if not self.failures:
            try:
                self.snapshots.keep()
            except (OSError, ValueError) as error:
                self._fail(f"the snapshots could not be kept: {error}", kind=Kind.CASSETTE)
        return usable

    def _begun(self, target: Test | Verify, capabilities: dict[str, Any] | None) -> Conversation:
        max_rounds = self.item.suite.model.maxRounds if self.test.maxRounds is None else self.test.maxRounds
        return Conversation(target.method, target.params, max_rounds, capabilities)

    def _script(self) -> tuple[Script, Callable[[], list[Failure]]]:
        """What answers the questions of the test, and what is wrong with them once the call has ended."""
        test = self.test
        rounds = None if test.rounds is None else RoundsScript(test.rounds, self._hide)
        if self.options.prompt is not None:
            if rounds is None:
                return PromptScript(self.options.prompt), list
            return PromptScript(self.options.prompt, enter=rounds.enter), lambda: rounds.leftovers(answers=False)
        if rounds is not None:
            return rounds, rounds.leftovers
        fixture = FixtureScript(InputResponseFixture(test.inputResponses))
        return fixture, lambda: [Failure(one) for one in fixture.leftovers()]

    async def _held(self, talk: Talk) -> bool:
        """Hold a conversation, and find what keeps it from its end, or what the server did that it must not.

        Whether the connection can be used further.
        """
        usable = await self._hold(talk)
        if usable:
            await talk.settle()
        self.tokens += talk.conversation.states
        self._findings(talk.conversation)
        return usable

    async def _hold(self, talk: Talk) -> bool:
        try:
            await talk.hold()
        except MissingAnswer as error:
            asked = [self._question(one) for one in error.questions]
            self._fail(str(MissingAnswer(asked)), hint=paste(error.questions))
        except CannotAnswer as error:
            self._fail(str(error))
        except RoundsExceeded as error:
            rounds = [self._round(one, talk.conversation.states) for one in error.rounds]
            self._fail(str(RoundsExceeded(error.max_rounds, rounds)), rule="converge")
        except NoMoreInput as error:
            self._fail(str(error))
        except NotReached as error:
            self._fail(f"not reached: {error}{ended(talk.envelope)}")
        except (BrokenRule, MalformedResponse):
            pass  # which is among the findings
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
        found = {str(one): one for one in conversation.findings if one.rule != "dialect" or wire == "spec"}
        failures = [Failure(one.text, rule=one.rule) for one in found.values()]
        if wire == "list" and Dialect.SPEC in conversation.dialects:
            failures.append(Failure("the suite says wire: list, and the server asks in the MCP shape"))
        self.failures = failures + self.failures

    def _judge(self, talk: Talk) -> None:
        test = self.test
        if test.tamper is None:
            self.failures += self._judged(test.expect, talk)
            return
        self.failures += judge_tampered(
            test.tamper, talk.envelope, talk.conversation.rounds, expected="expect" in test.model_fields_set
        )
        if not self.failures and "expect" in test.model_fields_set:
            self.failures += self._judged(test.expect, talk)

    def _judged(self, expect: Expect, talk: Talk) -> list[Failure]:
        envelope = self._redacted(talk.envelope)
        try:
            if isinstance(envelope.get("result"), dict):
                envelope["result"] = with_names(envelope["result"], expect.result)
            return judge(
                expect,
                envelope,
                rounds=len(talk.conversation.rounds),
                asked=[SpelledKey(one.key, one.namesakes) for one in talk.questions],
                notifications=talk.notifications,
                snapshots=self.snapshots,
                hide=self._hide,
            )
        except AmbiguousName as error:
            return [Failure(f"expect: {error}")]

    def _redacted(self, envelope: Any) -> dict[str, Any]:
        message = cast("dict[str, Any]", envelope) if isinstance(envelope, dict) else {}
        redact = Redaction(self.redaction.paths)
        return {name: redact.apply(one) if name in ("result", "error") else one for name, one in message.items()}

    def _capture(self, envelope: Any) -> None:
        for name, path in self.test.capture.items():
            result: Any = cast("dict[str, Any]", envelope).get("result")
            try:
                if result is None:
                    raise LookupError(path)
                whole = path == "text" and "text" not in result
                named = with_names(result, list(parse_path(path)))
                self.captured[name] = text_of(result) if whole else value_at(named, path)
            except LookupError:
                self._fail(f"capture: the result has nothing at {path!r}", path=path, actual=ABSENT)
            except AmbiguousName as error:
                self._fail(f"capture: {error}", path=path, actual=ABSENT)

    async def _verified(self, verify: Verify, line: Line, capabilities: dict[str, Any] | None) -> bool:
        """Make a call afterwards, to see what the test has done; whether the connection can be used further."""
        conversation = self._begun(verify, capabilities)
        script = FixtureScript(InputResponseFixture(verify.inputResponses), "verify")
        talk = Talk(line, conversation, script)
        usable = await self._held(talk)
        if not self.failures:
            self.failures += self._judged(verify.expect, talk)
            self.failures += [Failure(one) for one in script.leftovers()]
        lost = self.test.fault is not None
        what = "after a response was lost and the same request came again" if lost else "verify"
        rule = "single-use" if lost else None
        self.failures = [replace(one, message=f"{what}: {one.message}", rule=one.rule or rule) for one in self.failures]
        return usable

    def _fail(self, message: str, **more: Any) -> None:
        self.failures.append(Failure(message, **more))

    # What came of it

    def result(self, seconds: float) -> Result:
        item = self.item
        rounds = self.conversation.rounds if self.conversation is not None else []
        suite = relative(item.suite.path, self.options.start)
        result = Result(
            suite=suite,
            line=item.line,
            name=item.test.name,
            case=item.case,
            era=item.era,
            server=item.server_name,
            failures=[self._clean(failure) for failure in self.failures],
            rounds=[round_excerpt(self._round(one, self._states()).named()) for one in rounds],
            again=shlex.join(["bespeak", "test", suite, *self.options.flags(), "-k", exactly(item.title)]),
            seconds=seconds,
        )
        return bounded(result)

    def _hide(self, value: Any) -> Any:
        """A value without secrets and tokens."""
        return replace(self.hidden, tokens=[*self.tokens, *self._states()]).apply(value)

    def _states(self) -> list[str]:
        return [] if self.conversation is None else self.conversation.states

    def _question(self, question: Question) -> Question:
        """A question as it may be shown."""
        return replace(
            question,
            key=self._hide(question.key),
            params=self._hide(self._declared(question.key, question.params)),
            namesakes=tuple(map(self._hide, question.namesakes)),
        )

    def _declared(self, key: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """The params of a question without what is declared to be kept out."""
        told: Any = Redaction(self.redaction.paths).apply({"inputRequests": {key: {"params": dict(params)}}})
        for step in ("inputRequests", key, "params"):
            told = cast("dict[str, Any]", told).get(step) if isinstance(told, dict) else None
        return cast("dict[str, Any]", told) if isinstance(told, dict) else {}

    def _round(self, one: Round, tokens: Sequence[str]) -> Round:
        """A round as it may be shown."""
        hidden = replace(self.hidden, tokens=tokens)
        answered: Any = Redaction(self.redaction.paths).apply({"inputResponses": one.answered})["inputResponses"]
        if not isinstance(answered, dict):  # all of it is declared
            answered = dict.fromkeys(one.answered, answered)
        said = {key: self._declared(key, {"message": text}).get("message", "") for key, text in one.asked.items()}
        return replace(one, asked=hidden.apply(said), answered=hidden.apply(answered))

    def _clean(self, failure: Failure) -> Failure:
        """A failure as it may be shown."""
        redact = replace(self.hidden, tokens=self.tokens)
        message = redact.message(failure.message)
        return replace(
            failure,
            message=without_middle(message),
            path=None if failure.path is None else shortened(redact.text(failure.path), LONGEST_NAME),
            expected=excerpt(redact.apply(failure.expected)),
            actual=excerpt(redact.apply(failure.actual)),
            hint=None if failure.hint is None else without_middle(redact.message(failure.hint)),
        )


async def run_items(runner: Runner, items: Sequence[Item], finished: Callable[[Result], bool]) -> None:
    """Run tests in their order until one is told to be the last, and close the connections."""
    try:
        for item in items:
            if not finished(await runner.run(item)):
                return
    finally:
        await runner.close()
