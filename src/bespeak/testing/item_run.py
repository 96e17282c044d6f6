"""Runs one test: connects or replays, holds the conversation, and compares the outcome."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from bespeak.client.errors import CallbackFailed, InvalidServerResponse
from bespeak.conversation.answer_examples import paste
from bespeak.conversation.answer_sources import FixtureScript
from bespeak.conversation.answers import CannotAnswer
from bespeak.conversation.askers import asker_of
from bespeak.conversation.call_rounds import Conversation, MalformedResponse, RoundsExceeded
from bespeak.conversation.connection import Line
from bespeak.conversation.connection_pool import Pool, Wanted
from bespeak.conversation.connection_settings import EVERYTHING
from bespeak.conversation.exchange import BrokenRule, Stopped, Talk
from bespeak.conversation.fixtures import InputResponseFixture, MissingAnswer
from bespeak.conversation.matchers import ABSENT
from bespeak.conversation.profiles.profile import Profile
from bespeak.conversation.protocol_rules import Finding
from bespeak.conversation.question_names import AmbiguousName, SpelledKey, with_names
from bespeak.conversation.responses import Dialect
from bespeak.conversation.result_text import text_of
from bespeak.conversation.server_targets import parse_target
from bespeak.conversation.servers import Unreachable
from bespeak.protocol.versions import is_modern
from bespeak.terminal.prompt import NoMoreInput
from bespeak.terminal.prompt_types import Asker
from bespeak.testing.altered_requests import NotReached
from bespeak.testing.attacks import (
    SENT_AGAIN,
    Attack,
    advise_ignored,
    after_fault,
    ignores_state,
    judge_restarted,
    judge_tampered,
    refuses,
)
from bespeak.testing.cassettes.cassette_file import CassetteFile
from bespeak.testing.cassettes.cassette_format import StaleCassette
from bespeak.testing.cassettes.record_mode import RecordMode
from bespeak.testing.expect.asked_order import in_expected_order
from bespeak.testing.expect.expectations import Telling, allowing_an_error, ended, failed, judge, names_a_success
from bespeak.testing.expect.snapshots import SnapshotFile
from bespeak.testing.item_result import ItemResult
from bespeak.testing.live_lines import LiveLine
from bespeak.testing.redaction.redactor import Redactor
from bespeak.testing.redaction.result_redactor import ResultRedactor
from bespeak.testing.report.results import Failure, Kind, Result
from bespeak.testing.report.value_diff import value_diff
from bespeak.testing.run_options import Options
from bespeak.testing.scripts import StoppingScript, script_of
from bespeak.testing.setup_commands import run_commands
from bespeak.testing.suite.plan import Item
from bespeak.testing.suite.server_answers import connection_answers
from bespeak.testing.suite.setup_keys import Command
from bespeak.testing.suite.suite_file import AsProfile, Expect, Test, Verify
from bespeak.testing.suite.variables import fill, filled, text_filler
from bespeak.testing.suite_setup import SuiteSetups
from bespeak.testing.value_paths import parse_path, value_at
from bespeak.testing.watched_line import WatchedLine

DIALECT_RULES = ("dialect", "no-result-type")
"""What a server breaks that uses the compatibility dialect."""


class ItemRun:
    """One test, case and era while it runs."""

    def __init__(self, item: Item, options: Options, pool: Pool, setups: SuiteSetups, tokens: list[str]) -> None:
        self.item = item
        self.options = options
        self.pool = pool
        self.setups = setups
        self.ran = False
        """Whether the test was run to its end: only then may it fail as expected."""
        self.test: Test = item.test
        self.redactor = Redactor()
        self.find: Callable[[str], Any] = lambda name: f"${{{name}}}"
        self.failures: list[Failure] = []
        self.advice: list[Finding] = []
        self.captured: dict[str, Any] = {}
        self.conversation: Conversation | None = None
        self.tokens = tokens
        self.line: WatchedLine | None = None
        self.ended: str | None = None
        self.replayed = False
        """Whether the conversation comes from a cassette."""
        self.client = Profile() if options.profile is None else options.profile.make()

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
        folder = suite.file("servers", target if known else name).resolve().parent
        declared = next((one for one in (test.declare, self.client.declares, server.declare) if one is not None), None)
        return Wanted(
            name,
            server.target() if known else replace(parse_target(target), timeout=server.timeout),
            folder if known is not None else self.options.start,
            self.item.era or server.protocol,
            EVERYTHING if declared is None else dict(declared),
            test.timeout or server.timeout,
            str if known is None else text_filler(self.find, port=bool(known.command and known.url)),
            connection_answers(server, folder, self.find),
        )

    # The conversation

    async def run(self) -> None:
        folder, named = self.options.cassettes, self.item.suite.model.cassettes
        if folder is None and named is not None:
            folder = self.item.suite.folder / str(fill(named, self.find))
        if folder is None or self.options.profile is not None:
            await self._live()
        else:
            await self._with_cassette(folder)
        self.ran = True

    async def _with_cassette(self, folder: Path) -> None:
        cassette = CassetteFile(folder, self.item, self.redactor)
        if self.options.verify:
            await self._verify(cassette)
        elif self.options.record.records(cassette.path):
            await self._live(cassette)
        else:
            await self._replay(cassette)

    async def _live(self, cassette: CassetteFile | None = None, *, keep: bool = True) -> None:
        """Run against the live server, between the commands of the test, and record if there is a cassette file."""
        wanted = self.wanted()
        self.failures += await self.setups.enter(self.item.suite, self.find, self.redactor, wanted)
        if not self.failures:
            self.failures += await self._commands(self.test.setup, "setup")
            if not self.failures:
                await self._connected(wanted, cassette)
            self.failures += await self._commands(self.test.teardown, "teardown", go_on=True)
        if cassette is not None and keep and not self.failures:
            try:
                cassette.write()
            except StaleCassette as error:
                self._stale(error)

    async def _commands(self, commands: Sequence[Command], what: str, *, go_on: bool = False) -> list[Failure]:
        return await run_commands(commands, self.item.file.resolve().parent, str, what, go_on=go_on)

    async def _connected(self, wanted: Wanted, cassette: CassetteFile | None) -> None:
        """Connect to the server and hold the conversation."""
        if self.test.fresh:
            await self.pool.drop(wanted)
        try:
            connection = await self.pool.connection(wanted)
        except Unreachable as error:
            self._fail(str(error), kind=Kind.UNREACHABLE)
            return
        live = LiveLine(connection, self.pool, self.wanted)
        line: Line = live if cassette is None else cassette.recorder(live)
        usable = await self._talk(line, live)
        if not usable:
            printed = self.pool.printed(wanted)
            if printed and self.failures:
                last = self.failures[-1]
                hints = [*([] if last.hint is None else [last.hint]), f"the server printed:\n{printed}"]
                self.failures[-1] = replace(last, hint="\n".join(hints))
            await self.pool.drop(wanted)

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
        expected, actual = self._hide(error.expected), self._hide(error.actual)
        diff = value_diff(expected, actual)
        self.failures = [Failure(str(error), Kind.CASSETTE, error.path, error.expected, error.actual, diff=diff)]

    async def _talk(self, line: Line, live: LiveLine | None) -> bool:
        """Hold the conversation and judge it. Return whether the connection can still be used."""
        test = self.test
        self.replayed = live is None
        if (test.tamper or test.fault) and not is_modern(line.version):
            self._fail(f"not reached: revision {line.version} has no rounds to tamper with")
            return True
        if self.client.needs_rounds and not is_modern(line.version):
            self._fail(f"not reached: this profile answers rounds, which revision {line.version} does not have")
            return True
        capabilities = live.connection.capabilities if live is not None else None
        attack = Attack(test.tamper, test.fault, test.retry or 0, live, probes=not names_a_success(test.expect))
        self.snapshots = SnapshotFile(
            self.item.suite, self.item.title, self.options.record, replace(self.redactor, paths=())
        )
        self.conversation = self._begun(test, capabilities)
        script, leftovers = script_of(test, self.options.prompt, self._telling, self._shown.as_declared, self._asker)
        line = self.line = WatchedLine(line, list if live is None else lambda: live.notifications)
        talk = Talk(line, self.conversation, script, attack, self.client)
        usable = await self._held(talk)
        self.ended = failed(self._shown.envelope(talk.envelope))
        if isinstance(script, StoppingScript) and not script.stopped and not self.failures:
            self._fail(f"not reached: {script.never}{ended(talk.envelope)}")
        if attack.restarted:
            self._judge_restart(talk)
        instead = self._instead()
        if not self.failures and instead is not None:
            self.failures += [] if instead.expect is None else self._judged(instead.expect, talk)
        elif not self.failures:
            self._judge(talk)
            self.failures += leftovers()
        if not self.failures and instead is None:
            self._capture(talk.envelope)
        for one in (test.verify if instead is None else instead.verify) or ():
            if usable and not self.failures:
                usable = await self._verified(one, line, capabilities)
        if not self.failures:
            try:
                self.snapshots.keep()
            except (OSError, ValueError) as error:
                self._fail(f"the snapshots could not be saved: {error}", kind=Kind.CASSETTE)
        return usable

    def _instead(self) -> AsProfile | None:
        """What is expected with this profile in place of what the test expects, if it is something else."""
        profile = self.options.profile
        named = None if profile is None else self.test.profiles.get(profile.given, self.test.profiles.get(profile.name))
        return AsProfile() if named is None and self.client.answers_itself else named

    def _begun(self, target: Test | Verify, capabilities: dict[str, Any] | None) -> Conversation:
        max_rounds = self.item.suite.model.maxRounds if self.test.maxRounds is None else self.test.maxRounds
        return Conversation(target.request_method, target.request_params, max_rounds, capabilities)

    def _asker(self) -> Asker:
        assert self.conversation is not None, "it has begun"
        return asker_of(self.item.server_name, self.conversation)

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
            self._fail(str(RoundsExceeded(error.max_rounds, rounds)))
        except NoMoreInput as error:
            self._fail(str(error))
        except NotReached as error:
            self._fail(f"not reached: {error}{ended(talk.envelope)}")
        except (BrokenRule, MalformedResponse):
            pass  # they are among the findings
        except Stopped:
            talk.conversation.leave()
        except Unreachable as error:  # it was restarted
            self._fail(str(error), kind=Kind.UNREACHABLE)
            return False
        except TimeoutError as error:
            self._fail(f"the server did not respond: {error}")
            return False
        except (OSError, InvalidServerResponse, CallbackFailed) as error:
            self._fail(f"the conversation was cut off: {error}")
            return False
        return not (self.failures and not is_modern(talk.line.version))

    def _findings(self, conversation: Conversation) -> None:
        """Add the rules that the server broke, each once."""
        wire = self.test.wire or self.item.suite.model.wire
        found = {str(one): one for one in conversation.findings if one.rule not in DIALECT_RULES or wire == "spec"}
        self.advice += [one for one in found.values() if one.is_advice]
        failures = [Failure(one.text, rule=one.rule) for one in found.values() if not one.is_advice]
        if wire == "list" and Dialect.SPEC in conversation.dialects:
            failures.append(Failure("the suite says wire: list, but the server asks in the MCP format"))
        self.failures = failures + self.failures

    def _judge(self, talk: Talk) -> None:
        test = self.test
        expects = "expect" in test.model_fields_set
        if test.tamper is None or not talk.interference.is_tampered(test.tamper.round):
            self.failures += self._judged(test.expect, talk)
            return
        if not names_a_success(test.expect):
            ignored = ignores_state(talk.envelope, talk.unstated)
            self.advice += advise_ignored(test.tamper) if ignored else []
            rounds = talk.conversation.rounds
            self.failures += judge_tampered(test.tamper, talk.envelope, rounds, expected=expects, ignored=ignored)
        if expects:
            self.failures += self._judged(
                allowing_an_error(test.expect) if refuses(talk.envelope) else test.expect, talk
            )

    def _judge_restart(self, talk: Talk) -> None:
        assert self.test.fault is not None, "only a fault restarts a server"
        expect = self.test.expect
        may_fail = expect.error is not None or expect.isError is True
        found = judge_restarted(self.test.fault.round, talk, may_fail=may_fail)
        if found and not self.failures:
            found += self._judged(expect, talk)  # with what the server said
        self.failures = found + self.failures

    def _judged(self, expect: Expect, talk: Talk) -> list[Failure]:
        envelope = dict(cast("dict[str, Any]", talk.envelope)) if isinstance(talk.envelope, dict) else {}
        asked = [SpelledKey(one.key, one.namesakes) for one in talk.questions]
        rounds = talk.conversation.rounds
        try:
            if isinstance(envelope.get("result"), dict):
                envelope["result"] = with_names(envelope["result"], expect.result)
            return judge(
                expect,
                envelope,
                rounds=len(rounds),
                asked=in_expected_order(asked, [len(one.asked) for one in rounds], expect.asked),
                notifications=talk.notifications,
                snapshots=self.snapshots,
                telling=self._telling,
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
        lost = self.client.repeats or (self.test.fault is not None and self.test.fault.drop is not None)
        what = SENT_AGAIN if self.client.repeats else after_fault(self.test.fault)
        rule = "single-use" if lost else None
        self.failures = [replace(one, message=f"{what}: {one.message}", rule=one.rule or rule) for one in self.failures]
        return usable

    def _fail(self, message: str, **more: Any) -> None:
        self.failures.append(Failure(message, **more))

    # The result

    def result(self, seconds: float) -> Result:
        return self._happened.told(self._shown, seconds)

    @property
    def matched(self) -> set[str]:
        """The redactions of the suite and of the test that match something."""
        return self._happened.matched()

    @property
    def _happened(self) -> ItemResult:
        return ItemResult(
            self.item,
            self.options,
            self.failures,
            self.advice,
            [] if self.conversation is None else self.conversation.rounds,
            [] if self.line is None else self.line.events,
            self.ended,
            self._states(),
            self.tokens,
            ran=self.ran,
            replayed=self.replayed,
        )

    @property
    def _shown(self) -> ResultRedactor:
        return ResultRedactor(self.redactor)

    @property
    def _telling(self) -> Telling:
        return Telling(self._hide, self._shown.declared, replayed=self.replayed)

    def _hide(self, value: Any) -> Any:
        return self._shown.value(value, self._all_tokens())

    def _all_tokens(self) -> list[str]:
        return [*self.tokens, *self._states()]

    def _states(self) -> list[str]:
        return [] if self.conversation is None else self.conversation.states
