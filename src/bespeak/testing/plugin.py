"""The pytest plugin: collects suites, one item for each test, case and era, and provides the fixture `converse`.

Every run of pytest loads this file, so the rest of the tool is loaded only when a suite is collected or the fixture is used.
"""

import json
from collections.abc import Awaitable, Callable, Generator, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

if TYPE_CHECKING:
    from bespeak.testing.conversations import Conversed
    from bespeak.testing.pytest_run import SuiteRun
    from bespeak.testing.report.results import Result
    from bespeak.testing.suite.plan import Item

SUFFIX = ".bespeak.yaml"
BOTH = ("2025-11-25", "2026-07-28")
"""The default revisions of a test that uses `converse`."""
_RUN = pytest.StashKey["SuiteRun"]()
_RESULT = "bespeak_result"
"""The attribute of a pytest report that carries the result as text, also between processes."""
_DESELECTED, _NOTES = "bespeak_deselected", "bespeak_notes"
"""What a worker of xdist hands over when it ends."""


_DEFAULTS: dict[str, Any] = {
    "--bespeak-era": None,
    "--bespeak-record": "none",
    "--bespeak-cassettes": None,
    "--bespeak-verify": False,
    "--bespeak-server": [],
    "--bespeak-report": [],
    "--bespeak-as": None,
}


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("bespeak", "conversations with MCP servers (*.bespeak.yaml)")
    group.addoption(
        "--bespeak-era",
        metavar="ERA",
        help="run tests at this revision only; modern and legacy mean the newest of each",
    )
    group.addoption(
        "--bespeak-record", metavar="MODE", default="none", help="when to record cassettes: none, once, new or rewrite"
    )
    group.addoption(
        "--bespeak-cassettes", metavar="FOLDER", help="the cassette folder, instead of the one in the suites"
    )
    group.addoption(
        "--bespeak-verify", action="store_true", help="run against the live server and compare with the cassettes"
    )
    group.addoption(
        "--bespeak-server",
        metavar="NAME=TARGET",
        action="append",
        default=[],
        help="use this server instead of the suite's server NAME",
    )
    group.addoption(
        "--bespeak-report",
        metavar="FORM=FILE",
        action="append",
        default=[],
        help="write a json, junit or html report of the suites",
    )
    group.addoption(
        "--bespeak-as",
        metavar="PROFILE",
        help="play a client as it is in the wild: langgraph, claude-code, silent, impatient[=SECONDS], lossy or MODULE:CLASS",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(_Results(config))
    if any(config.getoption(name) != default for name, default in _DEFAULTS.items()):
        _suite_run(config)  # reports wrong options before anything runs
    config.addinivalue_line("markers", "bespeak_eras(*revisions): the protocol revisions at which `converse` runs")


def _suite_run(config: pytest.Config) -> "SuiteRun":
    """The state that all suites of a run share, created when the first is collected."""
    if _RUN not in config.stash:
        from bespeak.testing.pytest_run import SuiteRun, UnusableOptions

        def option(name: str) -> Any:
            return config.getoption(f"--bespeak-{name}")

        try:
            config.stash[_RUN] = SuiteRun(
                start=config.invocation_params.dir,
                record=option("record"),
                verify=option("verify"),
                cassettes=option("cassettes"),
                servers=option("server"),
                era=option("era"),
                reports=[] if hasattr(config, "workerinput") else option("report"),
                profile=option("as"),
            )
        except UnusableOptions as error:
            raise pytest.UsageError(str(error)) from None
    return config.stash[_RUN]


# Suites


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> "SuiteFile | None":
    if not file_path.name.endswith(SUFFIX):
        return None
    make = cast("Callable[..., SuiteFile]", SuiteFile.from_parent)
    return make(parent, path=file_path)


class SuiteFile(pytest.File):
    """A suite file. Collecting it does not start a server."""

    def collect(self) -> Iterable["SuiteItem"]:
        from bespeak.testing.pytest_run import UnusableOptions
        from bespeak.testing.suite.loader import BadSuite
        from bespeak.transports.interfaces import MissingExtra

        try:
            items = _suite_run(self.config).items(self.path)
        except (BadSuite, MissingExtra, UnusableOptions) as error:
            raise self.CollectError(str(error)) from None
        make = cast("Callable[..., SuiteItem]", SuiteItem.from_parent)
        for item in items:
            yield make(self, name=item.title, item=item)


class SuiteFailed(Exception):
    """A test of a suite failed."""

    def __init__(self, result: "Result") -> None:
        self.result = result
        super().__init__(result.title)


class SuiteItem(pytest.Item):
    """One test, case and era of a suite."""

    def __init__(self, name: str, parent: SuiteFile, *, item: "Item", **more: Any) -> None:
        # As a text, so that pytest reads it as it reads the ids that it kept: since 9.2, brackets in a name are not the same.
        more.setdefault("nodeid", f"{parent.nodeid}::{name}")
        super().__init__(name, parent, **more)  # pyright: ignore[reportUnknownMemberType] - pytest does not type it
        self.item = item
        self.result: Result | None = None
        for tag in item.test.tags or ():
            self.config.addinivalue_line("markers", f"{tag}: a tag of a suite")
            self.add_marker(tag)

    def runtest(self) -> None:
        self.result = _suite_run(self.config).run(self.item)
        if not self.result.passed:
            raise SuiteFailed(self.result)
        if self.result.skipped is not None:
            raise pytest.skip.Exception(self.result.skipped, _use_item_location=True)
        if self.result.xfailed is not None:
            pytest.xfail(self.result.xfailed)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if not isinstance(excinfo.value, SuiteFailed):
            return super().repr_failure(excinfo, style)
        from bespeak.testing.report.pretty_report import describe
        from bespeak.testing.report.summary import cause_of

        result = _suite_run(self.config).outside.left(excinfo.value.result)
        shown: Any = excinfo.getrepr(style="native")
        shown.reprtraceback.reprentries = [type(shown.reprtraceback.reprentries[0])([f"{describe(result)}\n"])]
        # The summary line and the message in JUnit XML are made of this.
        shown.reprcrash = type(shown.reprcrash)(str(self.path), self.item.line, cause_of(result))
        return shown

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.item.file, self.item.line - 1, self.name


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    report: Any = yield
    if isinstance(item, SuiteItem) and call.when == "call":
        from bespeak.testing.report.plain_json import as_text

        result = item.result or _suite_run(item.config).broken_off(item.item, repr(call.excinfo and call.excinfo.value))
        setattr(report, _RESULT, as_text(result.as_json()))
    return report


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Clean up after a suite when its last test has run."""
    if isinstance(item, SuiteItem) and (nextitem is None or nextitem.parent is not item.parent):
        from bespeak.testing.report.pretty_report import describe

        result = _suite_run(item.config).leave(item.item)
        if not result.passed:
            pytest.fail(describe(result), pytrace=False)


class _Results:
    """Collects the results of all suites, including those from other processes."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._results: list[tuple[dict[str, Any], float]] = []
        self._deselected = 0
        self._notes: dict[str, None] = {}
        """The notes of workers, each once."""
        self._interrupted = False
        self._unwritten: str | None = None

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        # pytest ends in the same way when it stops by itself.
        self._interrupted = not isinstance(excinfo.value, pytest.Session.Interrupted)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        told: Any = getattr(report, _RESULT, None)
        if told is not None:
            self._results.append((json.loads(told), report.duration))

    def pytest_deselected(self, items: Iterable[pytest.Item]) -> None:
        self._deselected += sum(isinstance(item, SuiteItem) for item in items)

    def pytest_collection_finish(self) -> None:
        if _RUN not in self._config.stash:
            return
        from bespeak.testing.pytest_run import UnusableOptions

        run = _suite_run(self._config)
        try:
            run.check_servers()
        except UnusableOptions as error:
            if not hasattr(self._config, "workerinput"):
                raise pytest.UsageError(str(error)) from None
            run.unusable = str(error)  # pytest does not show errors of a worker at this point

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """A worker of xdist has ended. All of them collect, and so deselect, the same."""
        output: dict[str, Any] = getattr(node, "workeroutput", {})
        self._deselected = max(self._deselected, output.get(_DESELECTED, 0))
        self._notes |= dict.fromkeys(output.get(_NOTES, ()))

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        if _RUN not in self._config.stash and not self._notes:
            return
        run = _suite_run(self._config)
        run.close()
        deselected = self._deselected + run.elsewhere
        output: dict[str, Any] | None = getattr(self._config, "workeroutput", None)
        if output is not None:
            output[_DESELECTED] = deselected
            output[_NOTES] = run.unused_notes()
        stopped = exitstatus == pytest.ExitCode.INTERRUPTED and not self._interrupted
        if stopped and not self._results:
            return  # something could not be collected, and nothing was run
        try:
            run.report(self._results, deselected, interrupted=self._interrupted, notes=list(self._notes))
        except OSError as error:
            self._unwritten = f"bespeak: a report could not be written: {error}"

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self._unwritten is not None:
            terminalreporter.write_line(self._unwritten, red=True)
        if _RUN in self._config.stash:
            for note in _suite_run(self._config).told_notes:
                terminalreporter.write_line(f"bespeak: note: {note}", yellow=True)


# Tests in code


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "bespeak_era" in metafunc.fixturenames:
        mark = metafunc.definition.get_closest_marker("bespeak_eras")
        metafunc.parametrize("bespeak_era", mark.args if mark is not None else BOTH, indirect=True)


@pytest.fixture
def bespeak_era(request: pytest.FixtureRequest) -> str:
    """Return the protocol revision of this run of the test."""
    return cast("str", request.param)


@pytest.fixture
def converse(bespeak_era: str, request: pytest.FixtureRequest) -> "Callable[..., Awaitable[Conversed]]":
    """`bespeak.testing.converse` at each revision: call a server with scripted answers."""
    profile: str | None = request.config.getoption("--bespeak-as")
    if profile is not None:
        from bespeak.conversation.profiles.known_profiles import find_profile
        from bespeak.protocol.versions import is_modern

        if find_profile(profile).make().needs_rounds and not is_modern(bespeak_era):
            pytest.skip(f"--bespeak-as {profile} answers rounds, which revision {bespeak_era} does not have")

    async def held(*args: Any, **more: Any) -> "Conversed":
        from bespeak.testing.conversations import converse as hold

        return await hold(*args, **{"era": bespeak_era, "profile": profile, **more})

    return held
