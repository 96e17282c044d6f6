"""Runs one test: connects or replays, holds the conversation, and compares the outcome."""

import shlex
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from bespeak.client.errors import CallbackFailed, InvalidServerResponse
from bespeak.conversation.answer_examples import paste
from bespeak.conversation.answer_sources import FixtureScript, PromptScript, Script
from bespeak.conversation.answers import CannotAnswer
from bespeak.conversation.call_rounds import Conversation, MalformedResponse, RoundsExceeded
from bespeak.conversation.connection import Connection, Line
from bespeak.conversation.connection_pool import Pool, Wanted
from bespeak.conversation.connection_settings import EVERYTHING
from bespeak.conversation.exchange import BrokenRule, Talk
from bespeak.conversation.fixtures import InputResponseFixture, MissingAnswer
from bespeak.conversation.matchers import ABSENT
from bespeak.conversation.question_names import AmbiguousName, SpelledKey, with_names
from bespeak.conversation.responses import Dialect
from bespeak.conversation.result_text import text_of
from bespeak.conversation.server_targets import parse_target
from bespeak.conversation.servers import Unreachable
from bespeak.protocol.versions import is_modern
from bespeak.terminal.prompt import NoMoreInput
from bespeak.testing.attacks import Attack, NotReached, judge_tampered
from bespeak.testing.cassettes.cassette_file import CassetteFile
from bespeak.testing.cassettes.cassette_format import StaleCassette
from bespeak.testing.cassettes.record_mode import RecordMode
from bespeak.testing.expect.expectations import ended, judge
from bespeak.testing.expect.round_expectations import RoundsScript
from bespeak.testing.expect.snapshots import SnapshotFile
from bespeak.testing.redaction.redactor import Redactor
from bespeak.testing.redaction.result_redactor import ResultRedactor
from bespeak.testing.report.excerpts import bounded, failure_excerpt, round_excerpt
from bespeak.testing.report.results import Failure, Kind, Result
from bespeak.testing.run_options import Options, relative
from bespeak.testing.suite.keyword_filter import exactly
from bespeak.testing.suite.plan import Item
from bespeak.testing.suite.suite_file import Expect, Test, Verify
from bespeak.testing.suite.variables import fill, filled, text_filler
from bespeak.testing.value_paths import parse_path, value_at


class ItemRun:
    """One test, case and era while it runs."""

    def __init__(self, item: Item, options: Options, pool: Pool, tokens: list[str]) -> None:
        self.item = item
        self.options = options
        self.pool = pool
        self.test: Test = item.test
        self.redactor = Redactor()
        self.find: Callable[[str], Any] = lambda name: f"${{{name}}}"
        self.failures: list[Failure] = []
        self.captured: dict[str, Any] = {}
        self.conversation: Conversation | None = None
        self.tokens = tokens

    def fill(self, find: Callable[[str], Any]) -> None:
        """Replace `${...}` by values. Raises `Unknown` and `DoesNotFit`."""
        self.find = find
        self.test = filled(self.test, find)

    def wanted(self) -> Wanted:
        test, suite = self.test, self.item.suite
        name = self.item.server_name
        target = self.options.servers.get(name, name)
        known = suite.model.servers.get(target)
        server = known or self.item.server  # a replacement keeps the settings of the server that it replaces
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
        cassette = CassetteFile(folder, self.item, self.redactor)
        if self.options.verify:
            await self._verify(cassette)
        elif self.options.record.records(cassette.path):
            await self._live(cassette)
        else:
            await self._replay(cassette)

    async def _live(self, cassette: CassetteFile | None = None, *, keep: bool = True) -> None:
        """Run against the live server, and record if there is a cassette file."""
        wanted = self.wanted()
        if self.test.fresh:
            await self.pool.drop(wanted)
        try:
            connection = await self.pool.connection(wanted)
        except Unreachable as error:
            self._fail(str(error), kind=Kind.UNREACHABLE)
            return
        line: Line = connection if cassette is None else cassette.recorder(connection)
        usable = await self._talk(line, connection)
        if not usable:
            printed = self.pool.printed(wanted)
            if printed and self.failures:
                self.failures[-1] = replace(self.failures[-1], hint=f"the server printed:\n{printed}")
            await self.pool.drop(wanted)
        if cassette is not None and keep and not self.failures:
            try:
                cassette.write()
            except StaleCassette as error:
                self._stale(error)

    async def _replay(self, cassette: CassetteFile) -> None:
        try:
            line = cassette.player()
            await self._talk(line, None)
            if not self.failures:
                line.check_played()
        except StaleCassette as error:
            self._stale(error)
        if self.failures and self.options.record is RecordMode.NEW:  # the cassette no longer fits the test
            self.failures.clear()
            await self._live(cassette)

    async def _verify(self, cassette: CassetteFile) -> None:
        """Run against the live server, and compare with the cassette."""
        try:
            recorded = cassette.read()
        except StaleCassette as error:
            self._stale(error)
            return
        await self._live(cassette, keep=False)
        if not self.failures:
            difference = cassette.difference(recorded)
            if difference is not None:
                self._stale(difference)

    def _stale(self, error: StaleCassette) -> None:
        self.failures = [
            Failure(str(error), kind=Kind.CASSETTE, path=error.path, expected=error.expected, actual=error.actual)
        ]

    async def _talk(self, line: Line, connection: Connection | None) -> bool:
        """Hold the conversation and judge it. Return whether the connection can still be used."""
        test = self.test
        if (test.tamper or test.fault) and not is_modern(line.version):
            self._fail(f"not reached: revision {line.version} has no rounds to tamper with")
            return True
        capabilities = connection.capabilities if connection is not None else None
        attack = Attack(test.tamper, test.fault, test.retry or 0)
        self.snapshots = SnapshotFile(
            self.item.suite, self.item.title, self.options.record, replace(self.redactor, paths=())
        )
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
                self._fail(f"the snapshots could not be saved: {error}", kind=Kind.CASSETTE)
        return usable

    def _begun(self, target: Test | Verify, capabilities: dict[str, Any] | None) -> Conversation:
        max_rounds = self.item.suite.model.maxRounds if self.test.maxRounds is None else self.test.maxRounds
        return Conversation(target.method, target.params, max_rounds, capabilities)

    def _script(self) -> tuple[Script, Callable[[], list[Failure]]]:
        """Return what answers the questions of the test, and a function that returns its failures after the call."""
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
        """Hold a conversation and collect its failures. Return whether the connection can still be used."""
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
            asked = [self._shown.question(one, self._all_tokens()) for one in error.questions]
            self._fail(str(MissingAnswer(asked)), hint=paste(error.questions))
        except CannotAnswer as error:
            self._fail(str(error))
        except RoundsExceeded as error:
            rounds = [self._shown.round(one, talk.conversation.states) for one in error.rounds]
            self._fail(str(RoundsExceeded(error.max_rounds, rounds)), rule="converge")
        except NoMoreInput as error:
            self._fail(str(error))
        except NotReached as error:
            self._fail(f"not reached: {error}{ended(talk.envelope)}")
        except (BrokenRule, MalformedResponse):
            pass  # they are among the findings
        except TimeoutError as error:
            self._fail(f"the server did not respond: {error}", rule="answers")
            return False
        except (OSError, InvalidServerResponse, CallbackFailed) as error:
            self._fail(f"the conversation was cut off: {error}")
            return False
        return not (self.failures and not is_modern(talk.line.version))

    def _findings(self, conversation: Conversation) -> None:
        """Add the rules that the server broke, each once."""
        wire = self.test.wire or self.item.suite.model.wire
        found = {str(one): one for one in conversation.findings if one.rule != "dialect" or wire == "spec"}
        failures = [Failure(one.text, rule=one.rule) for one in found.values()]
        if wire == "list" and Dialect.SPEC in conversation.dialects:
            failures.append(Failure("the suite says wire: list, but the server asks in the MCP format"))
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
        envelope = self._shown.envelope(talk.envelope)
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
        """Make a `verify` call. Return whether the connection can still be used."""
        conversation = self._begun(verify, capabilities)
        script = FixtureScript(InputResponseFixture(verify.inputResponses), "verify")
        talk = Talk(line, conversation, script)
        usable = await self._held(talk)
        if not self.failures:
            self.failures += self._judged(verify.expect, talk)
            self.failures += [Failure(one) for one in script.leftovers()]
        lost = self.test.fault is not None
        what = "after a response was lost and the request was sent again" if lost else "verify"
        rule = "single-use" if lost else None
        self.failures = [replace(one, message=f"{what}: {one.message}", rule=one.rule or rule) for one in self.failures]
        return usable

    def _fail(self, message: str, **more: Any) -> None:
        self.failures.append(Failure(message, **more))

    # The result

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
            failures=[failure_excerpt(self._shown.failure(one, self.tokens)) for one in self.failures],
            rounds=[round_excerpt(self._shown.round(one, self._states()).named()) for one in rounds],
            again=shlex.join(["bespeak", "test", suite, *self.options.flags(), "-k", exactly(item.title)]),
            seconds=seconds,
        )
        return bounded(result)

    @property
    def _shown(self) -> ResultRedactor:
        return ResultRedactor(self.redactor)

    def _hide(self, value: Any) -> Any:
        return self._shown.value(value, self._all_tokens())

    def _all_tokens(self) -> list[str]:
        return [*self.tokens, *self._states()]

    def _states(self) -> list[str]:
        return [] if self.conversation is None else self.conversation.states
