"""The conversation of one test: held over an open line, and judged by what the test expects."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from bespeak.client.errors import CallbackFailed, InvalidServerResponse
from bespeak.conversation.answer_examples import paste, paste_in_round
from bespeak.conversation.answer_sources import FixtureScript, Script, not_used_so_far
from bespeak.conversation.answers import CannotAnswer
from bespeak.conversation.askers import asker_of
from bespeak.conversation.call_rounds import Conversation, MalformedResponse, RoundsExceeded
from bespeak.conversation.connection import Line
from bespeak.conversation.exchange import BrokenRule, Stopped, Talk
from bespeak.conversation.fixtures import InputResponseFixture, MissingAnswer
from bespeak.conversation.matchers import ABSENT
from bespeak.conversation.profiles.profile import Profile
from bespeak.conversation.protocol_rules import Finding
from bespeak.conversation.question_names import AmbiguousName, SpelledKey, with_names
from bespeak.conversation.responses import Dialect, Question
from bespeak.conversation.result_text import text_of
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
    judge_unasked,
    refuses,
    unanswered_without_state,
)
from bespeak.testing.expect.asked_order import in_expected_order
from bespeak.testing.expect.expectations import Telling, allowing_an_error, ended, failed, judge, names_a_success
from bespeak.testing.expect.round_expectations import RoundsScript, UnexpectedRound
from bespeak.testing.expect.snapshots import SnapshotFile
from bespeak.testing.live_lines import LiveLine
from bespeak.testing.redaction.folder_paths import Folder
from bespeak.testing.redaction.redactor import Redactor
from bespeak.testing.redaction.result_redactor import ResultRedactor
from bespeak.testing.report.results import Failure, Kind
from bespeak.testing.run_options import Options
from bespeak.testing.scripts import StoppingScript, answering, script_of
from bespeak.testing.suite.plan import Item, without_rounds
from bespeak.testing.suite.suite_file import AsProfile, Expect, Test, Verify
from bespeak.testing.value_paths import members_beside, parse_path, value_at
from bespeak.testing.watched_line import WatchedLine

DIALECT_RULES = ("dialect", "no-result-type")
"""What a server breaks that uses the compatibility dialect."""


class ItemConversation:
    """The conversation of one test, case and era, and what is wrong with it."""

    def __init__(
        self,
        item: Item,
        test: Test,
        options: Options,
        redactor: Redactor,
        tokens: list[str],
        folders: Sequence[Folder],
    ) -> None:
        self.item = item
        self.test = test
        """The test of the item, with its values filled in."""
        self.options = options
        self.redactor = redactor
        self.tokens = tokens
        """The request states of all tests so far."""
        self.folders = folders
        """The folders whose paths are not written to snapshots."""
        self.client = client_of(options)
        self.failures: list[Failure] = []
        self.advice: list[Finding] = []
        self.captured: dict[str, Any] = {}
        self.conversation: Conversation | None = None
        self.line: WatchedLine | None = None
        self.ended: str | None = None
        """The error text of a call that failed."""
        self.fails_rightly = False
        """Whether that error is the one that the test expects."""
        self.hangs = False
        """Whether the server did not respond in time."""
        self.skipped: str | None = None
        """Why the conversation was not held."""
        self.notes: list[str] = []
        """What the author of the suite should know, whether the test passed or not."""
        self.replayed = False
        """Whether it comes from a cassette."""

    async def hold(self, line: Line, live: LiveLine | None) -> bool:
        """Hold the conversation and judge it. Return whether the connection can still be used."""
        test = self.test
        self.replayed = live is None
        if (test.tamper or test.fault) and not is_modern(line.version):
            self._fail(f"not reached: revision {line.version} has no rounds to tamper with")
            return True
        if self.client.needs_rounds and not is_modern(line.version):
            self.skipped = without_rounds(line.version)
            return True
        capabilities = live.connection.capabilities if live is not None else None
        attack = Attack(test.tamper, test.fault, test.retry or 0, live, probes=not names_a_success(test.expect))
        self.snapshots = SnapshotFile(
            self.item.suite,
            self.item.title,
            self.options.record,
            replace(self.redactor, paths=(), folders=self.folders),
            verifying=self.options.verify,
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
        self.fails_rightly = self._fails_rightly(self.test.expect if instead is None else instead.expect, talk)
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
            missing = f"{MissingAnswer(asked)}{_unused(talk.script, error.questions)}"
            self._give_up(missing, hint=_to_paste(talk.script, error.questions))
            self.failures += _mismatches(talk.script)
        except UnexpectedRound as error:
            self._give_up(str(error), hint=_to_paste(talk.script, error.questions) if error.questions else None)
            self.failures += _mismatches(talk.script)
        except CannotAnswer as error:
            self._give_up(str(error))
            self.failures += _mismatches(talk.script)
        except RoundsExceeded as error:
            rounds = [self._shown.round(one, talk.conversation.states) for one in error.rounds]
            self._give_up(str(RoundsExceeded(error.max_rounds, rounds)))
        except NoMoreInput as error:
            self._give_up(str(error))
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
            self.hangs = True
            self._fail(f"server {self.item.server_name!r} did not respond: {error}")
            return False
        except (OSError, InvalidServerResponse, CallbackFailed) as error:
            if not any(found.rule == "content-type" for found in talk.conversation.findings):  # which says why
                self._fail(f"the conversation was cut off: {error}")
            return False
        if talk.unstated_error is not None:
            self.hangs = isinstance(talk.unstated_error, TimeoutError)
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
            fails = test.expect.error is not None or test.expect.isError is True
            self.failures += [] if test.tamper is None or fails else judge_unasked(test.tamper, talk)
            self.failures += [] if self.failures else self._judged(test.expect, talk)
            return
        if not names_a_success(test.expect):
            ignored = ignores_state(talk.envelope, talk.unstated)
            self.advice += advise_ignored(test.tamper) if ignored else []
            rounds = talk.conversation.rounds
            self.failures += judge_tampered(test.tamper, talk.envelope, rounds, expected=expects, ignored=ignored)
            if talk.unstated_error is not None:
                self._add_crash(unanswered_without_state(talk.unstated_error))
        if expects:
            self.failures += self._judged(
                allowing_an_error(test.expect) if refuses(talk.envelope) else test.expect, talk
            )

    def _add_crash(self, what: str) -> None:
        """Report a crash beside what was found before it. It is never the failure that a test is expected to have."""
        if not self.failures:
            self._fail(what, kind=Kind.FAILED if self.test.xfail is None else Kind.UNREACHABLE)
            return
        self.failures[-1] = self.failures[-1].with_hint(what)
        if self.test.xfail is not None:
            self.notes.append(what)

    def _judge_restart(self, talk: Talk) -> None:
        assert self.test.fault is not None, "only a fault restarts a server"
        expect = self.test.expect
        may_fail = expect.error is not None or expect.isError is True
        found = judge_restarted(self.test.fault.round, talk, may_fail=may_fail)
        if found and not self.failures:
            found += self._judged(expect, talk)  # with what the server said
        self.failures = found + self.failures

    def _fails_rightly(self, expect: Expect | None, talk: Talk) -> bool:
        """Whether a call has failed with the error that is expected, whatever else is wrong."""
        if self.ended is None or expect is None or (expect.error is None and expect.isError is not True):
            return False
        names = expect.model_fields_set & {"error", "isError"}
        return not self._judged(Expect.model_construct(names, error=expect.error, isError=expect.isError), talk)

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
                shown = self._shown.envelope(envelope)
                self._fail(
                    f"capture: the result has nothing at {path!r}", hint=members_beside(shown.get("result"), path)
                )
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

    def _give_up(self, message: str, **more: Any) -> None:
        """Note that the client cannot go on with the call."""
        self._fail(message, **more)
        if self.line is not None:
            self.line.gave_up(message)

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


def _to_paste(script: Script, questions: Sequence[Question]) -> str:
    """The YAML to paste, in the form that the test uses."""
    given = answering(script)
    return paste_in_round(questions, given.number) if isinstance(given, RoundsScript) else paste(questions)


def _unused(script: Script, questions: Sequence[Question]) -> str:
    """The answers that no question asked for so far, and a rule that was probably meant, to append to a message."""
    given = answering(script)
    if not isinstance(given, FixtureScript | RoundsScript):
        return ""
    return not_used_so_far(given.unused_names()) + given.nearly(questions)


def _mismatches(script: Script) -> list[Failure]:
    given = answering(script)
    return given.mismatches() if isinstance(given, RoundsScript) else []


def client_of(options: Options) -> Profile:
    """Return the client that a run plays."""
    return Profile() if options.profile is None else options.profile.make()
