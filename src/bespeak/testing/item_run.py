"""Runs one test: connects to its server or opens its cassette, between the commands of the test."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bespeak.conversation.argument_names import may_be_hidden, unknown_name
from bespeak.conversation.connection import Connection, Line
from bespeak.conversation.connection_pool import Pool, Wanted
from bespeak.conversation.connection_settings import EVERYTHING
from bespeak.conversation.server_targets import parse_target
from bespeak.conversation.servers import Unreachable, folder_of, indented
from bespeak.testing.cassettes.cassette_file import CassetteFile, PlainValue
from bespeak.testing.cassettes.cassette_format import StaleCassette
from bespeak.testing.cassettes.record_mode import RecordMode
from bespeak.testing.cassettes.redaction_hints import redaction_hint
from bespeak.testing.expected_failures import fails_as_expected
from bespeak.testing.item_conversation import ItemConversation, client_of
from bespeak.testing.item_probe import REPLAYED, ItemProbe, wire_to
from bespeak.testing.item_result import ItemResult
from bespeak.testing.live_lines import LiveLine
from bespeak.testing.redaction.folder_paths import Folder, folders_of
from bespeak.testing.redaction.redactor import Redactor
from bespeak.testing.redaction.result_redactor import ResultRedactor
from bespeak.testing.report.outside_questions import outside_told
from bespeak.testing.report.results import Failure, Kind, Result
from bespeak.testing.report.value_diff import value_diff
from bespeak.testing.run_options import Options, relative
from bespeak.testing.setup_commands import run_commands
from bespeak.testing.suite.missing_roots import roots_not_there
from bespeak.testing.suite.plan import Item, has_no_rounds, without_rounds
from bespeak.testing.suite.server_answers import connection_answers
from bespeak.testing.suite.setup_keys import Command
from bespeak.testing.suite.suite_file import Test
from bespeak.testing.suite.variables import fill, filled, text_filler
from bespeak.testing.suite_setup import SuiteSetups


class ItemRun:
    """One test, case and era while it runs."""

    def __init__(self, item: Item, options: Options, pool: Pool, setups: SuiteSetups, tokens: list[str]) -> None:
        self.item = item
        self.options = options
        self.pool = pool
        self.setups = setups
        self.skipped: str | None = None
        """Why the profile does not run the test, if that is known before the conversation."""
        self.ran = False
        """Whether the test was run to its end: only then may it fail as expected."""
        self.test: Test = item.test
        self.redactor = Redactor()
        self.find: Callable[[str], Any] = lambda name: f"${{{name}}}"
        self.failures: list[Failure] = []
        self.tokens = tokens
        self.notes: list[str] = []
        self.outside: list[str] = []
        self.printed = ""
        self.held: ItemConversation | None = None
        """The conversation, once it has begun. One that is recorded anew replaces the replayed one."""
        self.probe: ItemProbe | None = None
        """The probes, in a test that has no conversation."""

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
        declared = next(
            (one for one in (test.declare, client_of(self.options).declares, server.declare) if one is not None), None
        )
        return Wanted(
            name,
            server.target() if known else replace(parse_target(target), timeout=server.timeout),
            folder if known is not None else self.options.start,
            self._mode,
            EVERYTHING if declared is None else dict(declared),
            test.timeout or server.timeout,
            str if known is None else text_filler(self.find, port=bool(known.command and known.url)),
            connection_answers(server, folder, self.find),
        )

    def folders(self) -> Sequence[Folder]:
        """The folders whose paths are not written: of the suite, and of the server if a command starts it."""
        wanted = self.wanted()
        server = folder_of(wanted.server, wanted.folder, wanted.fill) if wanted.server.command is not None else None
        return folders_of(self.item.suite.folder, server)

    @property
    def _mode(self) -> str:
        """The revision to run at, or how it is negotiated."""
        target = self.options.servers.get(self.item.server_name, self.item.server_name)
        return self.item.era or self.item.suite.model.servers.get(target, self.item.server).protocol

    def skips(self) -> bool:
        """Return whether the profile cannot run the test, as far as that is known without its server."""
        if client_of(self.options).needs_rounds and has_no_rounds(self._mode):
            self.skipped = without_rounds(self._mode)
        return self.skipped is not None

    # The conversation

    async def run(self) -> None:
        folder, named = self.options.cassettes, self.item.suite.model.cassettes
        if folder is None and named is not None:
            folder = self.item.suite.folder / str(fill(named, self.find))
        if folder is None or self.options.profile is not None:
            await self._live()
        elif self.test.probe is not None:
            await self._probe_live(folder)
        else:
            await self._with_cassette(folder)
        self.ran = True

    async def _probe_live(self, folder: Path) -> None:
        """Send the probes of a test whose suite has cassettes, unless that suite is replayed."""
        if self.options.verify or self.options.record.records(CassetteFile(folder, self.item, self.redactor).path):
            await self._live()
        else:
            self.item = replace(self.item, test=self.test.model_copy(update={"skip": REPLAYED}))

    async def _with_cassette(self, folder: Path) -> None:
        cassette = CassetteFile(folder, self.item, replace(self.redactor, folders=self.folders()))
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
            if await self._skips_when_asked():
                return
            self.failures += await self._commands(self.test.setup, "setup")
            if not self.failures:
                await self._connected(wanted, cassette)
            self.failures += await self._commands(self.test.teardown, "teardown", go_on=True)
        expected = fails_as_expected(self.test, self.failures)
        if cassette is None or not keep or (self.failures and not expected):
            return
        if expected and not await self._fails_in_replay(cassette):
            what = "only the live server fails the test like this, and a replay would not"
            removed = "; the earlier recording had a value that is redacted now, and was removed"
            self.notes.append(f"{self._place}: not recorded: {what}{removed if cassette.removed_if_plain() else ''}")
            return
        try:
            cassette.write()
        except StaleCassette as error:
            self._stale(error, cassette)

    async def _skips_when_asked(self) -> bool:
        """Return whether the revision of the server is one that the profile cannot play.

        Only commands make it matter before the conversation. They run before the server starts, so it is not left running.
        """
        if not client_of(self.options).needs_rounds or not (self.test.setup or self.test.teardown):
            return False
        version = await self.pool.version(self.wanted())
        if version is not None and has_no_rounds(version):
            self.skipped = without_rounds(version)
        return self.skipped is not None

    async def _fails_in_replay(self, cassette: CassetteFile) -> bool:
        """Return whether what was just recorded fails as expected when it is replayed."""
        line = cassette.recorded_player()
        if line is None:
            return False
        options = replace(self.options, prompt=None, record=RecordMode.NONE)
        held = ItemConversation(self.item, self.test, options, self.redactor, [*self.tokens], self.folders())
        try:
            await held.hold(line, None)
            line.check_played()
        except StaleCassette:
            return False
        return fails_as_expected(self.test, held.failures)

    @property
    def _place(self) -> str:
        """The file and line of the test."""
        return f"{relative(self.item.file, self.options.start)}:{self.item.line}"

    async def _commands(self, commands: Sequence[Command], what: str, *, go_on: bool = False) -> list[Failure]:
        return await run_commands(commands, self.item.file.resolve().parent, str, what, go_on=go_on)

    async def _connected(self, wanted: Wanted, cassette: CassetteFile | None) -> None:
        """Connect to the server and hold the conversation."""
        if self.test.fresh:
            await self.pool.drop(wanted)
        try:
            connection = await self.pool.connection(wanted)
        except Unreachable as error:
            self.failures.append(Failure(str(error), Kind.UNREACHABLE))
            return
        self._note_roots(wanted)
        if self.test.probe is not None:
            usable = await self._probe(self.test.probe, connection, wanted)
            self.outside = outside_told(wanted.name, connection.outside)
        else:
            live = LiveLine(connection, self.pool, self.wanted)
            line: Line = live if cassette is None else cassette.recorder(live)
            usable = await self._hold(line, live)
            self.outside = outside_told(wanted.name, live.connection.outside)
            if usable:
                await self._note_names(live.connection)
            connection = live.connection
        self._note_unfit(wanted, connection)
        if self.failures and usable:
            self.printed = self.pool.newly_printed(wanted)
        if not usable:
            printed = self.pool.newly_printed(wanted)
            if printed and self.failures:
                self.failures[-1] = self.failures[-1].with_hint(f"the server printed:\n{indented(printed)}")
            await self.pool.drop(wanted, at_once=self.held is not None and self.held.hangs)

    async def _note_names(self, connection: Connection) -> None:
        """Say that the server does not list the tool or an argument of the test. A hostile test may want just that."""
        test = self.test
        if test.tool is None or (self.held is not None and self.held.skipped is not None):
            return
        found = unknown_name(await connection.tools(), test.tool, test.arguments or {})
        if found is None:
            return
        declared = self.wanted().declared
        less, hidden = found.is_tool and declared != EVERYTHING, may_be_hidden(declared)
        if self.failures:
            self.failures[0] = self.failures[0].with_hint(f"{found}\n{hidden}" if less else str(found))
        elif less and self.options.profile is not None and test.declare is None:
            self.notes.append(f"{self._place}: the test passes, but {found.what}; {hidden}")
        elif found.meant is not None or not (found.is_tool or test.expect.error or test.expect.isError):
            self.notes.append(f"{self._place}: the test passes, but {found}")

    def _note_unfit(self, wanted: Wanted, connection: Connection) -> None:
        """Note the answers of the server's settings that could not be sent to questions outside a call."""
        suite, shown = self.item.suite, ResultRedactor(self.redactor)
        target = self.options.servers.get(wanted.name, wanted.name)
        place = ("servers", target if target in suite.model.servers else wanted.name, "answers")
        where = f"{relative(suite.file(*place), self.options.start)}:{suite.line(*place)}"
        for problem in connection.unfit_answers():
            told = f"server {wanted.name!r} asked outside a call, and its prepared answer could not be sent: {problem}"
            self.notes.append(f"{where}: {shown.message(told, self.tokens)}")

    def _note_roots(self, wanted: Wanted) -> None:
        """Note the roots in the suite that do not exist."""
        target = self.options.servers.get(wanted.name, wanted.name)
        name = target if target in self.item.suite.model.servers else wanted.name
        for file, line, what in roots_not_there(self.item.suite, name, wanted.folder, self.find):
            self.notes.append(f"{relative(file, self.options.start)}:{line}: {what}")

    async def _probe(self, names: Sequence[str], connection: Connection, wanted: Wanted) -> bool:
        """Send the probes of a test. Return whether the connection can still be used."""
        probe = self.probe = ItemProbe(names)
        try:
            return await probe.hold(wire_to(connection, self.pool, self.pool.opened(wanted)))
        finally:
            self.failures += probe.failures

    async def _replay(self, cassette: CassetteFile) -> None:
        try:
            line = cassette.player()
            await self._hold(line, None)
            expected = fails_as_expected(self.test, self.failures)
            if expected or not self.failures:
                line.check_played()
        except StaleCassette as error:
            expected = False
            self._stale(error, cassette)
        # The cassette no longer fits the test.
        if self.failures and not expected and self.options.record is RecordMode.NEW:
            self.failures.clear()
            await self._live(cassette)

    async def _verify(self, cassette: CassetteFile) -> None:
        """Run against the live server, and compare with the cassette."""
        try:
            recorded = cassette.read()
        except StaleCassette as error:
            self._stale(error, cassette)
            return
        await self._live(cassette, keep=False)
        if not self.failures or fails_as_expected(self.test, self.failures):
            difference = cassette.difference(recorded)
            if difference is not None:
                self._stale(difference, cassette)

    def _stale(self, error: StaleCassette, cassette: CassetteFile) -> None:
        shown = ResultRedactor(self.redactor)
        tokens = [*self.tokens, *self._states()]
        expected, actual = shown.value(error.expected, tokens), shown.value(error.actual, tokens)
        if error.path is not None and expected == actual and error.expected != error.actual:
            mode = RecordMode.REWRITE if self.options.verify else RecordMode.NEW
            error = PlainValue(cassette.path, error.path, mode)
        diff = value_diff(expected, actual)
        places = [(path, shown.value(old, tokens), shown.value(new, tokens)) for path, old, new in error.places]
        values = {"expected": error.expected, "actual": error.actual, "hint": redaction_hint(error, places)}
        self.failures = [Failure(str(error), Kind.CASSETTE, error.path, **values, diff=diff)]

    async def _hold(self, line: Line, live: LiveLine | None) -> bool:
        """Hold the conversation over a line. Return whether the connection can still be used."""
        held = self.held = ItemConversation(
            self.item, self.test, self.options, self.redactor, self.tokens, self.folders()
        )
        try:
            return await held.hold(line, live)
        finally:
            self.failures += held.failures
            self.notes += [f"{self._place}: {one}" for one in held.notes]

    # The result

    def result(self, seconds: float) -> Result:
        return self._happened.told(ResultRedactor(self.redactor), seconds)

    @property
    def captured(self) -> dict[str, Any]:
        """The values that the test hands on to later ones."""
        return {} if self.held is None else self.held.captured

    @property
    def matched(self) -> set[str]:
        """The redactions of the suite and of the test that match something."""
        return self._happened.matched()

    @property
    def _happened(self) -> ItemResult:
        held = self.held
        return ItemResult(
            self.item,
            self.options,
            self.failures,
            held.advice if held is not None else [] if self.probe is None else self.probe.advice,
            [] if held is None or held.conversation is None else held.conversation.rounds,
            [] if held is None or held.line is None else held.line.events,
            None if held is None else held.ended,
            held is not None and held.fails_rightly,
            self._states(),
            self.tokens,
            ran=self.ran,
            replayed=held is not None and held.replayed,
            notes=self.notes,
            skipped=self.skipped if held is None else held.skipped,
            outside=self.outside,
            printed=self.printed,
        )

    def _states(self) -> list[str]:
        return [] if self.held is None or self.held.conversation is None else self.held.conversation.states
