"""`bespeak test`: which suites and tests are run, where the reports go, and every exit code. Testing.md sections 2 and 5."""

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests.cli.desks import bespeak, served, text, told, write_raw

SUITE = """version: 1
servers:
  desk: {python: "DESK"}
  same: {python: "DESK"}
  gone: {python: nowhere.py}
server: desk
tests:
  - name: says nothing
    tool: say
    expect: {text: nothing}
  - name: says
    tool: say
    cases:
      - {name: one, arguments: {text: "1"}, expect: {text: "1"}}
      - {name: two, arguments: {text: "2"}, expect: {text: "2"}}
  - name: asks at both
    tool: forecast
    inputResponses: {city: Rome, units: C}
    eras: [2025-11-25, 2026-07-28]
    expect: {rounds: {gte: 1}, text: Rome in C today}
  - name: fails, too "loud"
    tool: say
    expect: {text: something}
"""
NAMES = ["says nothing", "says [one]", "says [two]", "asks at both [2025-11-25]", "asks at both [2026-07-28]"]
FAILING = 'fails, too "loud"'


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    with served(tmp_path_factory.mktemp("testing") / "testing_desk.py") as target:
        yield target


@pytest.fixture
def suite(desk: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[str]:
    """A suite in the folder the command is typed in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CI", raising=False)
    Path("a.bespeak.yaml").write_text(SUITE.replace("DESK", desk))
    yield "a.bespeak.yaml"
    for name in [name for name in sys.modules if name.endswith("_for_testing")]:
        del sys.modules[name]


def write(name: str, *tests: Any, **server: Any) -> str:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text(json.dumps({"version": 1, "servers": {"it": server}, "tests": tests}, indent=1))
    return name


def run(*words: str) -> list[str]:
    """The titles of the tests that were run, in their order."""
    result = bespeak("test", *words, "--report", "json")
    results = json.loads(result.stdout)["results"]
    named = [(one["name"], [more for more in (one["case"], one["era"]) if more]) for one in results]
    return [f"{name} [{', '.join(more)}]" if more else name for name, more in named]


# Exit codes


def test_a_run_in_which_all_is_as_expected_ends_with_0(suite: str) -> None:
    result = bespeak("test", suite, "-k", "not fails")
    assert told(result, 0) == ""
    assert result.stdout.startswith("ok      says nothing  a.bespeak.yaml:8\n")
    assert "\n5 passed, 1 deselected in " in result.stdout


def test_a_run_in_which_something_is_not_ends_with_1_and_shows_it(suite: str) -> None:
    result = bespeak("test", suite)
    assert told(result, 1) == ""
    assert 'FAILED  fails, too "loud"  a.bespeak.yaml:21\n' in result.stdout
    assert '    at text\n    expected "something"\n    actual   "nothing"\n' in result.stdout
    assert "1 failed, 5 passed in " in result.stdout


@pytest.mark.parametrize("record", ["once", "new", "rewrite"])
def test_recording_under_ci_is_refused_with_5(suite: str, record: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    said = told(bespeak("test", suite, "--record", record, "--cassettes", "c"), 5)
    assert record in said
    assert "is refused in CI; record on your own machine, review the cassettes and commit them" in said
    assert not Path("c").exists()


@pytest.mark.timing
@pytest.mark.parametrize(
    "server",
    [
        {"url": "http://127.0.0.1:9/mcp"},
        {"command": ["no-such-program"]},
        {"command": [sys.executable, "-c", "exit(1)"]},
    ],
)
def test_a_server_of_any_kind_that_cannot_be_reached_is_3(suite: str, server: Any) -> None:
    assert told(bespeak("test", write("b.bespeak.yaml", {"name": "x", "tool": "t"}, **server)), 3) == ""


def test_a_cassette_that_is_missing_or_stale_is_4(suite: str) -> None:
    never = bespeak("test", suite, "-k", "nothing", "--cassettes", "c")
    assert told(never, 4) == ""
    assert "never recorded: there is no" in never.stdout
    assert bespeak("test", suite, "-k", "nothing", "--cassettes", "c", "--record", "once").exit_code == 0
    assert bespeak("test", suite, "-k", "nothing", "--cassettes", "c", "--server", "desk=gone").exit_code == 0
    assert bespeak("test", suite, "-k", "nothing", "--cassettes", "c", "--verify").exit_code == 0
    Path(suite).write_text(Path(suite).read_text().replace("tool: say\n    expect: {text: nothing}", "tool: shout"))
    stale = bespeak("test", suite, "-k", "nothing", "--cassettes", "c")
    assert told(stale, 4) == ""
    assert "diverged at round 0" in stale.stdout


def test_where_nothing_is_selected_it_is_7(suite: str) -> None:
    for words in ([suite, "-k", "no such words"], [suite, "-k", "both", "--era", "2024-11-05"]):
        result = bespeak("test", *words)
        assert told(result, 7) == ""  # the report says it
        assert result.stdout.count("no tests were selected") == 1
        for report in ("json", "pretty=report.txt"):
            assert told(bespeak("test", *words, "--report", report), 7) == "bespeak: no tests were selected\n"


def test_a_folder_without_suites_is_7_and_said(suite: str) -> None:
    Path("empty").mkdir()
    assert told(bespeak("test", "empty"), 7) == "bespeak: there are no suites (*.bespeak.yaml) in empty\n"
    assert told(bespeak("test", "empty", "--validate"), 7) == "bespeak: there are no suites (*.bespeak.yaml) in empty\n"


def test_an_interrupt_is_130_and_what_there_was_is_reported(suite: str, desk: str) -> None:
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    tests = [{"name": name, "tool": tool} for name, tool in (("a", "say"), ("b", "interrupted"), ("c", "say"))]
    file = write("b.bespeak.yaml", *tests, python=desk)
    result = bespeak("test", file, "--report", "pretty", "--report", "json=report.json", "--report", "junit=r.xml")
    assert told(result, 130) == ""
    assert "interrupted after 1 of 3: 1 passed in " in result.stdout
    report = json.loads(Path("report.json").read_text())
    assert (report["summary"]["interrupted"], [one["name"] for one in report["results"]]) == (True, ["a"])
    assert ET.parse("r.xml").getroot().get("tests") == "1"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--era", "1999"], "an era is modern, legacy or one of 2026-07-28, 2025-11-25"),
        (["-k", "("], "-k: a word is missing; write words with and, or, not and parentheses"),
        (["-k", "says)"], "-k: unexpected ')' in 'says)'"),
        (["--record", "always"], "one of none, once, new, rewrite, not 'always'"),
        (["--record", "once", "--verify"], "cannot be combined with recording"),
        (["--server", "desk"], "NAME=TARGET, not 'desk'"),
        (["--server", "desk='"], "is not a valid command: No closing quotation"),
        (["--server", "desc=same"], "no suite has a server called 'desc'; servers: desk, gone, same"),
        (["--durations", "3", "--report", "json"], "--durations is for the pretty report; add --report pretty"),
        (["--report", "xml"], "unknown report 'xml'; reports are pretty, json, junit and html"),
        (["--report", "json", "--report", "junit"], "two reports would be written to standard output"),
        (["--report", "json=."], "'json=.' cannot be written"),
        (["nowhere.bespeak.yaml"], "nowhere.bespeak.yaml:1: the file cannot be read: No such file or directory"),
        (["--nothing"], "No such option"),
        (["--init"], "requires an argument"),
    ],
)
def test_a_bad_flag_is_2_and_nothing_is_run(suite: str, words: list[str], said: str) -> None:
    before = set(Path().iterdir())
    result = bespeak("test", suite, *words)
    assert said in told(result, 2)
    assert result.stdout == ""
    assert set(Path().iterdir()) == before


def test_a_bad_suite_is_2_and_all_faults_of_all_suites_are_reported_at_once(suite: str) -> None:
    Path("b.bespeak.yaml").write_text("version: 1\nservers: {x: {url: 'http://a'}}\ntests:\n  - name: x\n    tol: y\n")
    Path("c.bespeak.yaml").write_text("version: [\n")
    said = told(bespeak("test", "."), 2).splitlines()
    assert any(line.endswith("b.bespeak.yaml:5: unknown key 'tol'; did you mean 'tool'?") for line in said)
    assert any("c.bespeak.yaml:2: " in line for line in said)


def test_a_variable_that_is_not_set_is_2_unless_no_test_needs_it(suite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BESPEAK_NOT_SET", raising=False)
    file = write("b.bespeak.yaml", {"name": "x", "tool": "t"}, url="http://127.0.0.1:9/${env:BESPEAK_NOT_SET}")
    said = told(bespeak("test", file), 2)
    assert (
        said
        == "bespeak: b.bespeak.yaml:5: the environment variable BESPEAK_NOT_SET is not set; set it before the run\n"
    )
    assert told(bespeak("test", ".", "-k", "nothing"), 0) == ""


# Which suites


def test_folders_are_looked_through_in_order_and_without_a_name_the_one_it_is_typed_in(suite: str, desk: str) -> None:
    Path("suites.yaml").write_text("not a suite")
    write("z/deep/b.bespeak.yaml", {"name": "deep", "tool": "say"}, python=desk)
    assert run("-k", "nothing or deep") == ["says nothing", "deep"]
    assert run("z", suite, "-k", "nothing or deep") == ["says nothing", "deep"]
    assert run("z") == ["deep"]


def test_a_file_is_a_suite_whatever_it_is_called(suite: str) -> None:
    Path(suite).rename("mine.yml")
    assert run("mine.yml", "-k", "nothing") == ["says nothing"]


@pytest.mark.parametrize(("files", "said"), [(["a.bespeak.yaml"], "1 suite, 6 tests"), (["."], "2 suites, 7 tests")])
def test_validating_starts_no_server(suite: str, files: list[str], said: str) -> None:
    command = [sys.executable, "-c", "open('started', 'w')"]
    write("b/b.bespeak.yaml", {"name": "x", "tool": "t"}, command=command, env={"A": "${env:BESPEAK_NOT_SET}"})
    result = bespeak("test", "--validate", *files)
    assert told(result, 0) == ""
    assert said in result.stdout
    assert not Path("b/started").exists()


def test_validating_says_what_is_wrong_with_2(suite: str) -> None:
    Path("b.bespeak.yaml").write_text("version: 2\n")
    assert "b.bespeak.yaml:1: " in told(bespeak("test", "--validate", "."), 2)


# Which tests


@pytest.mark.parametrize(
    ("words", "chosen"),
    [
        ("says", NAMES[:3]),
        ("SAYS and not nothing", NAMES[1:3]),
        ("one or 2025-11-25", [NAMES[1], NAMES[3]]),
        ("says (one or two)", None),
        ("says and (one or two)", NAMES[1:3]),
        ("not (says or fails)", NAMES[3:]),
        ("at both", NAMES[3:]),
        ('"says [one]"', NAMES[1:2]),
        ("'too \"loud\"'", [FAILING]),
    ],
)
def test_words_choose_tests_by_their_titles(suite: str, words: str, chosen: list[str] | None) -> None:
    if chosen is None:
        assert told(bespeak("test", suite, "-k", words), 2).startswith("bespeak: -k: ")
    else:
        assert run(suite, "-k", words) == chosen


@pytest.mark.parametrize(
    ("era", "revision"), [("modern", "2026-07-28"), ("legacy", "2025-11-25"), ("2025-11-25", "2025-11-25")]
)
def test_an_era_chooses_the_tests_that_name_it_and_those_that_leave_it_open(
    suite: str, era: str, revision: str
) -> None:
    assert run(suite, "--era", era, "-k", "both or nothing") == [
        f"says nothing [{revision}]",
        f"asks at both [{revision}]",
    ]


def test_the_first_failure_ends_the_run_if_told_so(suite: str, desk: str) -> None:
    tests = [{"name": name, "tool": "say", "expect": {"text": name}} for name in ("nothing", "bad", "worse")]
    assert run(write("b.bespeak.yaml", *tests, python=desk), "-x") == ["nothing", "bad"]
    assert bespeak("test", "b.bespeak.yaml", "-x").exit_code == 1


@pytest.mark.parametrize(
    "more", [[], ["--era", "legacy"], ["--server", "desk=same"], ["--cassettes", "c"], ["--era=2024-11-05", "--server=desk=same"]]
)  # fmt: skip
def test_the_command_that_a_failure_shows_runs_it_again(suite: str, more: list[str]) -> None:
    result = bespeak("test", suite, *more, "-k", "fails")
    (again,) = (line.partition("run it again: bespeak ")[2] for line in result.stdout.splitlines() if "again" in line)
    second = bespeak(*shlex.split(again))
    assert second.exit_code == result.exit_code in (1, 4)
    assert again in second.stdout
    assert "1 failed, 5 deselected" in second.stdout


# Other servers


@pytest.mark.timing
@pytest.mark.parametrize("kind", ["file", "command"])
def test_a_target_replaces_a_suites_server(suite: str, kind: str, tmp_path: Path, desk: str) -> None:
    command = write_raw(tmp_path)(*[text("something")] * 9)
    Path("other_desk_for_testing.py").write_text(
        "from bespeak import MCPServer\nmcp = MCPServer('x')\n@mcp.tool()\ndef say() -> str:\n    return 'something'\n"
    )
    target = {"file": "other_desk_for_testing.py", "command": command}[kind]
    result = bespeak("test", suite, "-k", "fails", "--server", f"desk={target}")
    assert result.exit_code == 0, result.output


# Reports


def test_a_json_report_is_alone_on_the_output_whatever_a_server_prints(suite: str) -> None:
    Path("printing_desk_for_testing.py").write_text(
        "from bespeak import MCPServer\nprint('LOADED')\nmcp = MCPServer('x')\n"
        "@mcp.tool()\ndef say() -> str:\n    print('CALLED')\n    return 'x'\n"
    )
    file = write("b.bespeak.yaml", {"name": "prints", "tool": "say"}, python="printing_desk_for_testing.py:mcp")
    result = bespeak("test", file, "--report", "json")
    assert json.loads(result.stdout)["summary"] == {
        "passed": 1,
        "failed": 0,
        "skipped": 0,
        "xfailed": 0,
        "deselected": 0,
        "interrupted": False,
    }


def test_reports_go_to_files_and_the_same_run_gives_the_same_json(suite: str) -> None:
    for name in ("one", "two"):
        forms = (f"--report=json=new/{name}.json", f"--report=junit=new/{name}.xml", f"--report=pretty=new/{name}.txt")
        result = bespeak("test", suite, *forms)
        assert (result.exit_code, result.stdout) == (1, "")
    assert Path("new/one.json").read_bytes() == Path("new/two.json").read_bytes()
    assert "1 failed, 5 passed" in Path("new/one.txt").read_text()
    assert "\x1b" not in Path("new/one.txt").read_text()


@pytest.mark.parametrize("form", ["json", "junit", "html"])
def test_the_pretty_report_stays_on_the_terminal_while_another_goes_to_a_file(suite: str, form: str) -> None:
    result = bespeak("test", suite, "--report", f"{form}=report")
    assert "1 failed, 5 passed" in result.stdout
    assert 'expected "something", got "nothing"' in result.stdout
    assert Path("report").exists()


def test_nothing_is_added_to_a_report_on_the_output_while_another_goes_to_a_file(suite: str) -> None:
    result = bespeak("test", suite, "--report", "html=report", "--report", "json")
    assert json.loads(result.stdout)["summary"]["failed"] == 1


def test_a_bad_suite_is_an_error_in_the_reports_that_go_to_files(suite: str) -> None:
    Path("b.bespeak.yaml").write_text("version: 1\nservers: {x: {url: 'http://a'}}\ntests:\n  - name: x\n    tol: y\n")
    Path("r.xml").write_text("the report of an earlier run")
    result = bespeak("test", ".", *(f"--report={spec}" for spec in ("junit=r.xml", "json=r.json", "html=r.html")))
    said = "b.bespeak.yaml:5: unknown key 'tol'; did you mean 'tool'?"
    assert said in told(result, 2)
    assert result.stdout == ""
    root = ET.fromstring(Path("r.xml").read_text())
    (case,) = root.iter("testcase")
    assert (root.get("tests"), root.get("errors"), case.get("name")) == ("1", "1", "is a valid suite")
    (error,) = case.iter("error")
    assert (error.get("type"), said in (error.text or "")) == ("unusable", True)
    report = json.loads(Path("r.json").read_text())
    assert (report["summary"]["failed"], report["results"][0]["failures"][0]["kind"]) == (1, "unusable")
    assert "did you mean" in Path("r.html").read_text()


def test_a_bad_option_is_an_error_in_the_reports_that_go_to_files(suite: str) -> None:
    result = bespeak("test", suite, "--report", "junit=r.xml", "--era", "1999", "--report", "xml=x")
    assert "an era is modern" in told(result, 2)
    (error,) = ET.fromstring(Path("r.xml").read_text()).iter("error")
    assert str(error.get("message")).startswith("an era is modern, legacy or one of")
    assert not Path("x").exists()


def test_a_junit_report_on_the_output_counts_tests_and_failures(suite: str) -> None:
    root = ET.fromstring(bespeak("test", suite, "--report", "junit").stdout)
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("6", "1", "0")
    assert [case.get("name") for case in root.iter("testcase") if case.find("failure") is not None] == [FAILING]


def test_paths_in_reports_are_reported_from_where_it_was_typed(suite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("in").mkdir()
    Path(suite).rename("in/a.bespeak.yaml")
    (result,) = json.loads(bespeak("test", "in", "-k", "nothing", "--report", "json").stdout)["results"]
    assert (result["suite"], result["line"]) == ("in/a.bespeak.yaml", 8)
    monkeypatch.chdir("in")
    (result,) = json.loads(bespeak("test", "-k", "nothing", "--report", "json").stdout)["results"]
    assert result["suite"] == "a.bespeak.yaml"


def test_a_suite_named_twice_is_run_once_and_those_of_other_programs_not_at_all(tmp_path: Path) -> None:
    written = "version: 1\nservers: {s: {url: 'http://127.0.0.1:1/mcp'}}\ntests: [{name: a, tool: t}]\n"
    for folder in ("", "node_modules/x", ".venv/x"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / "a.bespeak.yaml").write_text(written)
    validated = bespeak("test", "--validate", str(tmp_path), str(tmp_path / "a.bespeak.yaml"))
    assert validated.stdout == "1 suite, 1 test: no mistakes found\n"


def test_a_program_in_place_of_a_suite_is_reported_how_to_get_one() -> None:
    told = bespeak("test", "server.py")
    assert (told.exit_code, told.stderr) == (
        2,
        "server.py:1: this is a Python file; a suite is called *.bespeak.yaml. "
        "To print a first suite for a server, use --init server.py\n",
    )


def test_a_folder_without_suites_is_not_valid(tmp_path: Path) -> None:
    assert bespeak("test", "--validate", str(tmp_path)).exit_code == 7


# Time, and a counter


def test_durations_are_shown_if_asked_for(suite: str) -> None:
    assert "the slowest 1 test:" in bespeak("test", suite, "-k", "says", "--durations", "1").stdout


@pytest.mark.parametrize(
    ("terminal", "term", "more", "counts"),
    [
        (True, "xterm", [], True),
        (False, "xterm", [], False),
        (True, "dumb", [], False),
        (True, "xterm", ["--interactive"], False),
        (True, "xterm", ["--report", "pretty=r.txt"], False),
    ],
)
def test_tests_are_counted_on_a_terminal_alone(
    suite: str, monkeypatch: pytest.MonkeyPatch, terminal: bool, term: str, more: list[str], counts: bool
) -> None:
    monkeypatch.setenv("TERM", term)

    def is_terminal(_: object) -> bool:
        return terminal

    monkeypatch.setattr("bespeak.cli.test_command.is_terminal", is_terminal)
    output = bespeak("test", suite, "-k", "says", *more).stdout
    assert ("\r\x1b[2K0/" in output) == counts


@pytest.mark.parametrize(("value", "coloured"), [("", True), ("1", False)])
def test_colours_are_left_out_where_nobody_wants_them(
    suite: str, monkeypatch: pytest.MonkeyPatch, value: str, coloured: bool
) -> None:
    monkeypatch.setenv("NO_COLOR", value)

    def is_terminal(_: object) -> bool:
        return True

    monkeypatch.setattr("bespeak.cli.test_command.is_terminal", is_terminal)
    assert ("\x1b[32m" in bespeak("test", suite, "-k", "says").stdout) == coloured


# Tags, outcomes, commands and included files

SERVERS = "version: 1\nservers: {desk: {python: 'DESK'}}\n"
OUTCOMES = """version: 1
include: [servers.yaml]
teardown: [[sh, -c, echo done >> log]]
tests:
  - {name: quick, tool: say, tags: [fast], expect: {text: nothing}}
  - {name: slow, tool: say, tags: [slow, web], skip: takes an hour}
  - {name: wrong, tool: say, tags: [web], expect: {text: x}, xfail: known}
"""


@pytest.fixture
def outcomes(suite: str, desk: str) -> str:
    Path("servers.yaml").write_text(SERVERS.replace("DESK", desk))
    Path("outcomes.bespeak.yaml").write_text(OUTCOMES)
    return "outcomes.bespeak.yaml"


def test_skipped_and_expected_failures_are_counted_and_the_exit_code_is_0(outcomes: str) -> None:
    result = bespeak("test", outcomes)
    assert result.exit_code == 0
    assert "1 passed, 1 skipped, 1 xfailed in" in result.stdout
    assert "skip    slow  outcomes.bespeak.yaml:6  (takes an hour)" in result.stdout
    assert Path("log").read_text() == "done\n"


@pytest.mark.parametrize(
    ("flags", "counts"),
    [
        (["--tag", "fast"], "1 passed, 2 deselected"),
        (["--tag", "web"], "1 skipped, 1 xfailed, 1 deselected"),
        (["--tag", "web", "--tag", "fast", "--not-tag", "slow"], "1 passed, 1 xfailed, 1 deselected"),
        (["--not-tag", "web", "-k", "quick"], "1 passed, 2 deselected"),
    ],
)
def test_tests_are_selected_by_tags(outcomes: str, flags: list[str], counts: str) -> None:
    assert f"\n{counts} in " in bespeak("test", outcomes, *flags).stdout


def test_a_tag_that_no_test_has_is_a_bad_flag(outcomes: str) -> None:
    result = bespeak("test", outcomes, "--not-tag", "slwo")
    assert result.exit_code == 2
    assert "--not-tag: no test has the tag 'slwo'; tags: fast, slow, web" in result.stderr


def test_an_expected_failure_that_passes_is_a_failure(outcomes: str) -> None:
    Path(outcomes).write_text(OUTCOMES.replace("{text: x}", "{text: nothing}"))
    result = bespeak("test", outcomes)
    assert result.exit_code == 1
    assert "the test is marked xfail (known), but it passed; remove xfail" in result.stdout


def test_a_suite_whose_teardown_fails_is_a_failure_with_its_output(outcomes: str) -> None:
    Path(outcomes).write_text(OUTCOMES.replace("echo done >> log", "echo locked; exit 1"))
    result = bespeak("test", outcomes, "-k", "quick")
    assert result.exit_code == 1
    assert "teardown of the suite: the command sh -c 'echo locked; exit 1' exited with code 1" in result.stdout
    assert "    locked" in result.stdout


def test_a_mistake_in_an_included_file_is_shown_with_that_file(outcomes: str) -> None:
    Path("servers.yaml").write_text(SERVERS + "tets: []\n")
    result = bespeak("test", outcomes)
    assert result.exit_code == 2
    assert "servers.yaml:3: unknown key 'tets' in an included file" in result.stderr


# A reader that goes away


@pytest.mark.timing
@pytest.mark.parametrize(("words", "code"), [([], 130), (["--report", "pretty", "--report", "json=r.json"], 0)])
@pytest.mark.long
def test_a_reader_that_goes_away_is_not_complained_about(suite: str, words: list[str], code: int) -> None:
    """As in `bespeak test | head`. Without another report, nobody waits for the rest of the run."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "bespeak.cli", "test", suite, "-k", "not fails", *words]
    ran = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, timeout=50, check=False)
    os.close(writing)
    assert (ran.returncode, ran.stderr) == (code, "")
    assert Path("r.json").exists() == bool(words)


@pytest.mark.timing
@pytest.mark.long
def test_a_reader_that_goes_away_while_a_schema_is_printed_is_not_complained_about() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "bespeak.cli", "test", "--schema"]
    ran = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, timeout=50, check=False)
    os.close(writing)
    assert ran.stderr == ""
