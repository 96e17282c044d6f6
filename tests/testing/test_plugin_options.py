"""pytest's reports and options of suites (testing.md section 5): the same report as `bespeak test`, also of several processes."""

import json
import os
import re
import subprocess
import sys
import textwrap
import threading
import xml.etree.ElementTree as ET
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.testing.conftest import DESK, HEAD, Bench, said, told

pytestmark = pytest.mark.timing

SUITE = """
- {name: hands it out, tool: say, arguments: {text: "7"}, capture: {number: "content[0].text"}}
- {name: hands nothing out, tool: say, arguments: {text: a}, capture: {nothing: structuredContent.none}}
- {name: takes it, tool: say, arguments: {text: "${number}"}, expect: {text: "7"}}
- {name: wants it, tool: say, arguments: {text: "${nothing}"}}
- name: asks for the city, then the units
  tool: forecast
  arguments: {loc: SFO}
  eras: [2025-11-25, 2026-07-28]
  inputResponses: {city: Rome, units: C}
  expect: {rounds: 2, text: Rome in C}
- name: table
  tool: say
  arguments: {text: a}
  expect: {text: a}
  cases:
    - {name: right}
    - {name: wrong, expect: {text: b, structuredContent: {result: {gt: 5}}}}
- {name: unanswered, tool: forecast, arguments: {loc: SFO}, inputResponses: {city: Rome}, eras: [2025-11-25]}
- {name: unasked, tool: say, arguments: {text: a}, inputResponses: {city: Rome}}
- {name: unknown, tool: nonsuch}
- {name: bad answer, tool: forecast, arguments: {loc: SFO}, inputResponses: {city: 5}}
- {name: expects too much, tool: say, arguments: {text: a}, expect: {structuredContent: {absent: true}, error: {code: 5}}}
"""
PLUGINS = ("-p", "xdist", "-p", "bespeak.testing.plugin")


@pytest.fixture
def suite(bench: Bench) -> Path:
    return bench.suite(SUITE)


# One report


@pytest.mark.parametrize(
    ("options", "flags"),
    [
        ([], []),
        (["-k", "asks or table"], ["-k", "asks or table"]),
        (["-k", "nonsense"], ["-k", "nonsense"]),
        (["--bespeak-era=legacy"], ["--era", "legacy"]),
        (["--bespeak-era=2026-07-28", "-k", "asks"], ["--era", "2026-07-28", "-k", "asks"]),
        (["-x"], ["-x"]),
        (["--bespeak-server=desk=other"], ["--server", "desk=other"]),
        (["--bespeak-server=desk=nonsuch.py"], ["--server", "desk=nonsuch.py"]),
        (["--bespeak-cassettes=tapes"], ["--cassettes", "tapes"]),
        (["--bespeak-cassettes=tapes", "--bespeak-verify"], ["--cassettes", "tapes", "--verify"]),
    ],
    ids=[
        "all",
        "some",
        "none",
        "older",
        "newer",
        "first failure",
        "other server",
        "no server",
        "no tape",
        "nothing to verify",
    ],
)
@pytest.mark.long
def test_the_json_report_is_that_of_the_command_line(
    bench: Bench, suite: Path, options: list[str], flags: list[str]
) -> None:
    assert bench.pytest_report(*options) == bench.bespeak_report(*flags)


@pytest.mark.long
def test_the_json_report_is_that_of_the_command_line_for_a_suite_elsewhere(
    bench: Bench, suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (bench.path / "elsewhere").mkdir()
    monkeypatch.chdir(bench.path / "elsewhere")
    bench.pytest("--bespeak-report=json=a.json", "--rootdir=..", f"../{suite.name}")
    bench.bespeak("test", "--report=json=b.json", f"../{suite.name}")
    bench.bespeak("test", "--report=json=c.json", str(suite))
    reports = {name: Path(name).read_bytes() for name in ("a.json", "b.json", "c.json")}
    assert reports == dict.fromkeys(reports, reports["b.json"])


@pytest.fixture(scope="module")
def spread(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, bytes]:
    """What a run of two processes says, and its report."""
    folder = tmp_path_factory.mktemp("spread")
    (folder / "desk.py").write_text(DESK)
    (folder / "desk.bespeak.yaml").write_text(HEAD + textwrap.indent(SUITE.strip("\n"), "  ") + "\n")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *PLUGINS, "-n", "2", "-v"]
    ran = subprocess.run(
        [*command, "-k", "not unknown", "--bespeak-report=json=report.json"],
        cwd=folder,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=50,
        check=False,
    )
    return ran.stdout, (folder / "report.json").read_bytes()


@pytest.mark.long
def test_what_another_process_captured_is_captured_again(spread: tuple[str, bytes]) -> None:
    output = spread[0]
    ran = {title: worker for worker, title in re.findall(r"\[(gw\d)\].*PASSED desk\.bespeak\.yaml::(.*?)\s*\n", output)}
    assert ran["hands it out"] != ran["takes it"]


@pytest.mark.long
def test_several_processes_tell_the_results_of_one(bench: Bench, suite: Path, spread: tuple[str, bytes]) -> None:
    expected = told(bench.bespeak_report("-k", "not unknown"))
    assert told(spread[1])["results"] == expected["results"]


class Odd(BaseHTTPRequestHandler):
    """A server whose every result holds what JSON can carry and UTF-8 cannot, and more levels than anybody reads."""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        found: dict[str, Any] = {
            "supportedVersions": ["2026-07-28"],
            "capabilities": {},
            "ttlMs": 0,
            "cacheScope": "private",
        }
        text = f'{{"deep": {"[" * 300}{"]" * 300}, "large": {10**40}, "half": "\\ud800"}}'
        result: dict[str, Any] = {"resultType": "complete", "content": [], "structuredContent": "?", **found}
        body = json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}).replace('"?"', text).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nobody reads it."""


@pytest.fixture
def odd() -> Generator[str]:
    server = HTTPServer(("127.0.0.1", 0), Odd)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/mcp"
    server.shutdown()
    thread.join()
    server.server_close()


TRAVELS = """
import execnet
import pytest

def pytest_configure(config):
    config.pluginmanager.register(Travels(config))

class Travels:
    def __init__(self, config):
        self.config = config

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report):
        sent = self.config.hook.pytest_report_to_serializable(config=self.config, report=report)
        execnet.loads(execnet.dumps(sent))
"""
"""What xdist does to each report of a worker, in one process."""


def test_whatever_a_server_says_travels_from_one_process_to_another(bench: Bench, odd: str) -> None:
    bench.write("conftest.py", TRAVELS)
    test = "{name: t, tool: any, expect: {structuredContent: 5}}"
    bench.write("a.bespeak.yaml", f"version: 1\nservers: {{s: {{url: '{odd}'}}}}\ntests: [{test}]\n")
    assert bench.pytest_report() == bench.bespeak_report()


STOPS = """
import asyncio, os, signal
from bespeak import MCPServer

mcp = MCPServer("stops")

@mcp.tool()
async def say() -> str:
    return "a"

@mcp.tool()
async def stop() -> str:
    os.kill(os.getpid(), signal.SIGINT)
    await asyncio.sleep(30)

@mcp.tool()
async def hang() -> str:
    await asyncio.sleep(30)
"""


def stopping(bench: Bench, *tools: str) -> None:
    bench.write("stops.py", STOPS)
    tests = "".join(f"  - {{name: {number}. {tool}, tool: {tool}}}\n" for number, tool in enumerate(tools))
    bench.write("a.bespeak.yaml", f"version: 1\nservers: {{s: {{python: stops:mcp}}}}\ntests:\n{tests}")


@pytest.mark.long
def test_an_interrupted_run_reports_what_it_has_as_the_command_line_does(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopping(bench, "say", "stop", "say")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    ran = bench.pytester.run(sys.executable, "-m", "pytest", *PLUGINS, "--bespeak-report=json=pytest.json")
    assert ran.ret == pytest.ExitCode.INTERRUPTED
    report = (bench.path / "pytest.json").read_bytes()
    assert told(report)["summary"] == {
        "passed": 1,
        "failed": 0,
        "skipped": 0,
        "xfailed": 0,
        "deselected": 0,
        "interrupted": True,
    }
    assert report == bench.bespeak_report()


@pytest.mark.long
def test_a_test_that_pytest_itself_ends_is_in_the_report(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    stopping(bench, "hang", "say")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    options = ("-p", "pytest_timeout", "--timeout=0.3", "--bespeak-report=json=r.json")
    bench.pytester.run(sys.executable, "-m", "pytest", *PLUGINS, *options).assert_outcomes(passed=1, failed=1)
    report = told((bench.path / "r.json").read_bytes())
    assert [one["outcome"] for one in report["results"]] == ["failed", "passed"]
    assert "Timeout" in report["results"][0]["failures"][0]["message"]


@pytest.mark.long
def test_a_bad_suite_is_not_an_interruption(bench: Bench, suite: Path) -> None:
    bench.write("bad.bespeak.yaml", "version: 2")
    bench.pytest("--bespeak-report=json=r.json")
    report = bench.path / "r.json"
    assert not report.exists() or told(report.read_bytes())["summary"]["interrupted"] is False


@pytest.mark.long
def test_a_run_that_stops_at_a_failure_is_reported(bench: Bench) -> None:
    """`--sw` and xdist's `-x` stop as if they were interrupted."""
    bench.suite("- {name: t, tool: nonsuch}\n- {name: u, tool: nonsuch}")
    report = told(bench.pytest_report("-p", "cacheprovider", "-p", "stepwise", "--sw"))
    assert report["summary"] == {
        "passed": 0,
        "failed": 1,
        "skipped": 0,
        "xfailed": 0,
        "deselected": 0,
        "interrupted": False,
    }


@pytest.mark.long
def test_reports_are_of_suites_only_and_there_may_be_several(bench: Bench, suite: Path) -> None:
    bench.write("test_code.py", "def test_it(): assert False")
    bench.pytest("--bespeak-report=json=out/r.json", "--bespeak-report=junit=out/r.xml", "-k", "table or it")
    names = {one["name"] for one in told((bench.path / "out/r.json").read_bytes())["results"]}
    cases = ET.parse(bench.path / "out/r.xml").getroot().findall(".//testcase")
    assert {"table"} < names
    assert "test_it" not in names
    assert {"table [right]", "table [wrong]"} < {case.get("name") for case in cases}


@pytest.mark.long
def test_a_report_that_cannot_be_written_in_the_end_is_said(bench: Bench) -> None:
    bench.write("conftest.py", "from pathlib import Path\ndef pytest_runtest_teardown(): Path('r.json').mkdir()")
    bench.suite("- {name: t, tool: say, arguments: {text: a}, expect: {text: b}}")
    ran = bench.pytest("--bespeak-report=json=r.json", "-W", "error")
    ran.assert_outcomes(failed=1)
    assert "a report could not be written" in said(ran)
    assert "Traceback" not in said(ran)


# Options


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--bespeak-record=maybe"], "the record mode is one of none, once, new, rewrite, not 'maybe'"),
        (["--bespeak-era=1999"], "an era is modern, legacy or one of 2026-07-28, *, not '1999'"),
        (["--bespeak-server=desk"], "*NAME=TARGET, not 'desk'"),
        (["--bespeak-server=desk='"], "*not a valid command*"),
        (["--bespeak-report=json"], "--bespeak-report takes json=FILE, junit=FILE or html=FILE"),
        (["--bespeak-report=json=."], "'json=.' cannot be written: *"),
        (["--bespeak-report=json=a", "--bespeak-report=junit=a"], "two reports would be written to *; *"),
        (["--bespeak-verify", "--bespeak-record=once"], "verify compares with existing cassettes; *"),
    ],
    ids=[
        "record",
        "era",
        "server",
        "no command",
        "no file",
        "folder",
        "same file",
        "verify and record",
    ],
)
def test_an_option_that_is_invalid_is_refused_before_anything_is_done(
    bench: Bench, options: list[str], message: str
) -> None:
    bench.write("test_code.py", "def test_it(): pass")  # and there need not be any suite
    ran = bench.pytest(*options)
    assert ran.ret == pytest.ExitCode.USAGE_ERROR
    ran.stderr.fnmatch_lines([f"ERROR: {message}"])
    assert "collected" not in said(ran)


def test_a_server_that_replaces_no_server_is_refused(bench: Bench, suite: Path) -> None:
    """A slip of the pen must not test the server that was to be spared."""
    ran = bench.pytest("--bespeak-server=dessk=other")
    assert "dessk" in said(ran)
    assert "passed" not in said(ran)


@pytest.mark.parametrize("ci", ["1", "true", "woodpecker"])
def test_recording_is_refused_under_ci(bench: Bench, suite: Path, monkeypatch: pytest.MonkeyPatch, ci: str) -> None:
    monkeypatch.setenv("CI", ci)
    ran = bench.pytest("--bespeak-record=once", "--bespeak-cassettes=tapes")
    assert ran.ret == pytest.ExitCode.USAGE_ERROR
    ran.stderr.fnmatch_lines(["ERROR: recording (once) is refused in CI; record on your own machine, *"])
    assert not (bench.path / "tapes").exists()


@pytest.mark.long
def test_recorded_conversations_are_replayed_without_their_server(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "false")
    bench.suite(
        "- {name: t, tool: forecast, arguments: {loc: L}, inputResponses: {city: a, units: b}, expect: {text: a in b}}"
    )
    bench.pytest("--bespeak-cassettes=tapes").assert_outcomes(failed=1)
    bench.pytest("--bespeak-cassettes=tapes", "--bespeak-record=once").assert_outcomes(passed=1)
    bench.pytest("--bespeak-cassettes=tapes", "--bespeak-verify").assert_outcomes(passed=1)
    (bench.path / "desk.py").write_text(DESK.replace('in {units.units}"', 'at {units.units}"'))
    diverged = bench.pytest("--bespeak-cassettes=tapes", "--bespeak-verify")
    diverged.assert_outcomes(failed=1)
    (bench.path / "desk.py").unlink()
    bench.pytest("--bespeak-cassettes=tapes").assert_outcomes(passed=1)


def test_an_era_keeps_those_that_name_it_and_those_that_name_none(bench: Bench, suite: Path) -> None:
    ran = bench.pytest("--collect-only", "-q", "--bespeak-era=modern", "-k", "asks or unanswered or takes")
    assert [line.partition("::")[2] for line in ran.outlines if "::" in line] == [
        "takes it [2026-07-28]",
        "asks for the city, then the units [2026-07-28]",
    ]


# Profiles

ASKING = """
- {name: asks, tool: forecast, arguments: {loc: SFO}, inputResponses: {city: Rome, units: C}, expect: {text: Rome in C}}
- {name: asks before, tool: forecast, arguments: {loc: SFO}, eras: [2025-11-25], inputResponses: {city: Rome, units: C}}
"""


@pytest.mark.long
def test_a_profile_plays_the_suites_and_the_tests_in_code(bench: Bench) -> None:
    bench.suite(ASKING)
    bench.write(
        "test_code.py",
        """
        import asyncio
        from desk import mcp

        def test_code(converse):
            said = asyncio.run(converse(mcp, "forecast", {"loc": "SFO"}, answers={"city": "Rome", "units": "C"}))
            assert said.text == "Rome in C"
        """,
    )
    bench.pytest("--bespeak-as", "langgraph").assert_outcomes(passed=2, skipped=2)
    bench.pytest("--bespeak-as", "claude-code").assert_outcomes(passed=4)


def test_a_profile_that_there_is_not_is_refused(bench: Bench) -> None:
    bench.suite(ASKING)
    assert "there is no profile 'nobody'" in said(bench.pytest("--bespeak-as", "nobody"))


@pytest.mark.long
def test_bespeak_test_plays_a_profile_and_says_why_it_skips_a_test(bench: Bench) -> None:
    suite = bench.suite(ASKING)
    code, printed = bench.bespeak("test", str(suite), "--as", "langgraph")
    assert code == 0, printed
    assert "1 passed, 1 skipped" in printed
    code, printed = bench.bespeak("test", str(suite), "--as", "langgraph", "-k", "before")
    assert code == 0, printed
    assert "(this profile answers rounds, which revision 2025-11-25 does not have)" in printed
    assert "no tests were selected" not in printed
    code, printed = bench.bespeak("test", str(suite), "--as", "nobody")
    assert (code, "there is no profile 'nobody'" in printed) == (2, True)
