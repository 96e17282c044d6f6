"""pytest and suites (testing.md section 5): what is collected, with which lines, what runs, and what a failure shows."""

import json
import shlex
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.testing.conftest import HEAD, QUIET, Bench, said, titles, told

SUITE = """
- name: asks for the city, then the units
  tool: forecast
  arguments: {loc: SFO}
  eras: [2025-11-25, 2026-07-28]
  inputResponses: {city: San Francisco, units: C}
  expect: {rounds: 2, text: San Francisco in C}

- name: says it again
  tool: say
  arguments: {text: a}
  expect: {text: a}
  cases:
    - name: as it is
    - name: in German

      arguments: {text: ä}
      expect: {text: ä}
- {name: says otherwise, tool: say, arguments: {text: a}, expect: {text: b}}
"""
TITLES = [
    "asks for the city, then the units [2025-11-25]",
    "asks for the city, then the units [2026-07-28]",
    "says it again [as it is]",
    "says it again [in German]",
    "says otherwise",
]
TOKEN = "tok-4711-that-nobody-may-see"
RAW = f"""
import json, sys

ASKED = {{"method": "elicitation/create", "params": {{"message": "Which city?", "requestedSchema": {{
    "type": "object", "properties": {{"city": {{"type": "string"}}}}, "required": ["city"]}}}}}}
FOUND = {{"supportedVersions": ["2026-07-28"], "capabilities": {{"tools": {{}}}}, "ttlMs": 0, "cacheScope": "private"}}
TOLD = {{"content": [{{"type": "text", "text": "in Rome"}}], "structuredContent": {{"days": [{{"warm": 1}}, {{"warm": 0}}]}}}}

for line in sys.stdin:
    request = json.loads(line)
    result = {{"resultType": "complete", **(FOUND if request["method"] == "server/discover" else TOLD)}}
    if request["method"] == "tools/call" and "requestState" not in request["params"]:
        result = {{"resultType": "input_required", "inputRequests": {{"city": ASKED}}, "requestState": "{TOKEN}"}}
    print(json.dumps({{"jsonrpc": "2.0", "id": request["id"], "result": result}}), flush=True)
"""
"""A server of one tool, which asks for a city and hands out a state that can be looked for."""


@pytest.fixture
def suite(bench: Bench) -> Path:
    return bench.suite(SUITE)


# What is collected


def test_there_is_one_item_for_each_test_case_and_era(bench: Bench, suite: Path) -> None:
    ran = bench.pytest("--collect-only", "-q")
    assert titles(ran.outlines) == TITLES
    assert ran.outlines[0] == f"{suite.name}::{TITLES[0]}"


@pytest.mark.long
def test_items_have_the_line_of_their_test_or_case(bench: Bench, suite: Path) -> None:
    bench.pytest("--junitxml=junit.xml", "-o", "junit_family=xunit1")
    cases = ET.parse(bench.path / "junit.xml").getroot().findall(".//testcase")
    assert {case.get("file") for case in cases} == {suite.name}
    lines = suite.read_text().splitlines()
    assert [lines[int(case.get("line", 0))].strip() for case in cases] == [  # pytest counts from 0 there
        "- name: asks for the city, then the units",
        "- name: asks for the city, then the units",
        "- name: as it is",
        "- name: in German",
        "- {name: says otherwise, tool: say, arguments: {text: a}, expect: {text: b}}",
    ]


@pytest.mark.timing
@pytest.mark.parametrize("server", ["{command: [python, -c, \"open('loaded', 'w')\"]}", "{python: desk:mcp}"])
def test_collecting_starts_no_server(bench: Bench, server: str) -> None:
    bench.write("a.bespeak.yaml", f"version: 1\nservers: {{s: {server}}}\ntests: [{{name: t, tool: say}}]\n")
    bench.pytest("--collect-only").assert_outcomes()
    assert not (bench.path / "loaded").exists()
    bench.pytest().assert_outcomes(failed=1)
    assert (bench.path / "loaded").exists()  # so it would have shown


def test_only_names_that_end_as_suites_do_are_collected(bench: Bench, suite: Path) -> None:
    for name in ("desk.yaml", "desk.bespeak.yml", "bespeak.yaml", "desk.bespeak.yaml.bak"):
        bench.write(name, suite.read_text())
    assert len(titles(bench.pytest("--collect-only", "-q").outlines)) == len(TITLES)


BAD: dict[str, tuple[bytes, int, str]] = {
    "key": (f"{HEAD}  - {{name: t, tol: say}}".encode(), 5, "unknown key 'tol'; did you mean 'tool'?"),
    "name": (
        f"{HEAD}  - {{name: t, tool: a}}\n  - {{name: t, tool: a}}".encode(),
        6,
        "there is another test called 't'",
    ),
    "matcher": (f"{HEAD}  - name: t\n    tool: a\n    expect: {{text: {{matches: '('}}}}".encode(), 7, "matches"),
    "twice": (f"{HEAD}  - name: t\n    name: u".encode(), 6, "name"),
    "syntax": (f"{HEAD}  - [".encode(), 5, "expected the node content"),
    "empty": (b"", 1, "the file is empty"),
    "coding": (b"version: 1\n\xff", 2, "the file is not UTF-8"),
}
"""What is wrong, where, and what is said."""


@pytest.mark.long
def test_a_bad_suite_is_a_collection_error_with_its_file_and_line(bench: Bench) -> None:
    for name, (text, _, _) in BAD.items():
        (bench.path / f"{name}.bespeak.yaml").write_bytes(text)
    ran = bench.pytest()
    ran.assert_outcomes(errors=len(BAD))
    places = {f"{name}.bespeak.yaml:{line}:": message for name, (_, line, message) in BAD.items()}
    assert {
        place: any(place in line and message in line for line in ran.outlines) for place, message in places.items()
    } == dict.fromkeys(places, True)
    assert "plugin.py" not in said(ran)


@pytest.mark.long
def test_a_bad_suite_does_not_keep_the_others_from_running(bench: Bench, suite: Path) -> None:
    bench.write("bad.bespeak.yaml", "version: 2")
    bench.pytest("--continue-on-collection-errors").assert_outcomes(passed=4, failed=1, errors=1)


@pytest.mark.long
def test_without_what_reads_yaml_it_is_said_what_to_install(bench: Bench, suite: Path) -> None:
    bench.write("conftest.py", "import sys\nsys.modules['ruamel.yaml'] = None")
    ran = bench.pytest()
    ran.stdout.fnmatch_lines("*loading suites needs ruamel.yaml: pip install 'bespeak?test?'")
    assert "plugin.py" not in said(ran)


# What is run


def test_suites_and_tests_in_code_are_one_run(bench: Bench, suite: Path) -> None:
    bench.write("test_code.py", "def test_it(): pass")
    bench.pytest().assert_outcomes(passed=5, failed=1)


@pytest.mark.parametrize(
    ("words", "chosen"),
    [
        ("asks", TITLES[:2]),
        ("2026-07-28", TITLES[1:2]),
        ("German", TITLES[3:4]),
        ("says and not again", TITLES[4:]),
        ("desk.bespeak.yaml", TITLES),
    ],
)
def test_k_looks_at_names_cases_and_eras(bench: Bench, suite: Path, words: str, chosen: list[str]) -> None:
    assert titles(bench.pytest("--collect-only", "-q", "-k", words).outlines) == chosen


def test_a_server_is_started_once_and_ended_with_the_run(bench: Bench) -> None:
    bench.write(
        "counted.py",
        """
        from contextlib import asynccontextmanager
        from bespeak import MCPServer

        @asynccontextmanager
        async def lifespan(server):
            with open("log", "a") as log:
                log.write("began ")
                yield
                log.write("ended ")

        mcp = MCPServer("counted", lifespan=lifespan)

        @mcp.tool()
        async def say() -> str:
            return "a"
        """,
    )
    tests = "[{name: t, tool: say}, {name: u, tool: say, expect: {text: b}}, {name: v, tool: say}]"
    bench.write("a.bespeak.yaml", f"version: 1\nservers: {{s: {{python: counted:mcp}}}}\ntests: {tests}\n")
    bench.pytest().assert_outcomes(passed=2, failed=1)
    assert (bench.path / "log").read_text() == "began ended "


@pytest.mark.timing
@pytest.mark.long
def test_a_run_without_a_suite_loads_nothing_of_the_tool(bench: Bench) -> None:
    bench.write("test_code.py", "def test_it(): pass")
    bench.write(
        "conftest.py",
        """
        import sys

        def pytest_unconfigure():
            parts = ("bespeak", "pydantic", "mcp_types", "anyio.from_thread", "ruamel", "jsonschema", "typer")
            print("loaded:", *sorted(name for name in sys.modules if name.startswith(parts)))
        """,
    )
    # By its entry point, as in everybody's runs; other plugins have loads of their own.
    others = [word for name in ("anyio", "hypothesispytest", "xdist", "pytest_cov") for word in ("-p", f"no:{name}")]
    ran = bench.pytester.run(sys.executable, "-m", "pytest", "-s", "-c", "/dev/null", *others, ".")
    ran.stdout.fnmatch_lines(["plugins:*bespeak*"])
    ran.stdout.re_match_lines([r"loaded: bespeak bespeak\.testing bespeak\.testing\.plugin$"])


# What a failure shows


@pytest.fixture
def raw(bench: Bench) -> Bench:
    bench.write("raw.py", RAW)
    return bench


def one_test(expect: str, answers: str = "{city: Rome}") -> str:
    return (
        "version: 1\nservers: {raw: {command: [python, raw.py]}}\ntests:\n"
        f"  - name: asks\n    tool: any\n    inputResponses: {answers}\n    expect: {expect}\n"
    )


@pytest.mark.timing
def test_a_failure_shows_its_place_its_rounds_where_it_differs_and_how_to_run_it_again(raw: Bench) -> None:
    raw.write("sub/raw.py", RAW)
    raw.write("sub/a.bespeak.yaml", one_test("{structuredContent: {days: [{warm: 1}, {warm: 1}]}}"))
    ran = raw.pytest(
        "--junitxml=junit.xml", "--bespeak-report=json=r.json", "--bespeak-report=junit=r.xml", "-rA", "-v"
    )
    ran.stdout.fnmatch_lines(
        [
            "sub/a.bespeak.yaml:4: asks",
            "*structuredContent.days?1?.warm: *",
            "    at structuredContent.days?1?.warm",
            "    --- expected",
            "    +++ actual",
            "    @@ -1,3 +1,3 @@",
            "     days:",
            "       - warm: 1",
            "    -  - warm: 1",
            "    +  - warm: 0",
            "  round 1 asked",
            '    city: "Which city?"',
            '      answered {"action": "accept", "content": {"city": "Rome"}}',
            "  run it again: bespeak test sub/a.bespeak.yaml -k '\"asks\"'",
        ]
    )
    written = [said(ran), *((raw.path / name).read_text() for name in ("junit.xml", "r.json", "r.xml"))]
    assert [TOKEN in one for one in written] == [False] * 4


@pytest.mark.timing
def test_a_failure_shows_nothing_of_python(raw: Bench) -> None:
    raw.write("a.bespeak.yaml", one_test("{text: in Paris}"))
    output = said(raw.pytest("--tb=long"))
    assert "SuiteFailed" not in output
    assert ".py" not in output.partition("= FAILURES =")[2]


def test_values_of_the_environment_are_hidden_wherever_pytest_writes(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DESK_SECRET", "hunter-42")
    bench.suite(
        "- {name: t, tool: say, arguments: {text: 'a ${env:DESK_SECRET}'}, expect: {text: 'b ${env:DESK_SECRET}'}}"
    )
    ran = bench.pytest("--junitxml=junit.xml", "--bespeak-report=json=r.json", "--tb=long", "-l", "-vv")
    ran.stdout.fnmatch_lines(['    actual   "a ${env:DESK_SECRET}"'])
    written = [said(ran), *((bench.path / name).read_text() for name in ("junit.xml", "r.json"))]
    assert ["hunter-42" in one for one in written] == [False] * 3


NAMES = [
    "plain",
    'says "hi"',
    "it's",
    "x'y\"z",
    "this or that",
    "a (b) and c",
    "$(touch x) `y`",
    "Groß",
    "-k",
    "not",
    "a\\b",
    "a  b",
    " z",
]
"""None of them is a part of another."""


@pytest.mark.long
def test_the_command_that_runs_it_again_runs_that_test_and_no_other(bench: Bench) -> None:
    tests = "- {name: %s, tool: say, arguments: {text: a}, expect: {text: b}}"
    bench.suite("\n".join(tests % json.dumps(name) for name in NAMES))
    lines = [line.partition("run it again: ")[2] for line in bench.pytest().outlines if "run it again: " in line]
    ran: dict[str, list[str]] = {}
    for name, line in zip(NAMES, lines, strict=True):
        bench.bespeak(*shlex.split(line)[1:], "--report", "json=again.json")
        ran[name] = [one["name"] for one in told((bench.path / "again.json").read_bytes())["results"]]
    assert ran == {name: [name] for name in NAMES}


@pytest.mark.long
def test_the_command_that_runs_it_again_knows_the_era_of_the_run(bench: Bench) -> None:
    bench.suite("- {name: t, tool: say, arguments: {text: a}, expect: {text: b}}")
    line = next(line for line in bench.pytest("--bespeak-era=legacy").outlines if "run it again: " in line)
    code, output = bench.bespeak(*shlex.split(line.partition("run it again: ")[2])[1:])
    assert code == 1
    assert "t [2025-11-25]" in output


# What pytest keeps between runs, and what it says in one line

AGAIN = """
- name: says, it
  tool: say
  arguments: {text: a}
  eras: [2025-11-25, 2026-07-28]
  cases:
    - name: good one
      expect: {text: a}
    - name: "bad, [two] :: x/y"
      expect: {text: b}
- {name: last, tool: say, arguments: {text: a}}
"""


@pytest.mark.parametrize("option", ["--lf", "--sw"])
@pytest.mark.long
def test_failed_tests_are_found_again_whatever_their_titles(bench: Bench, option: str) -> None:
    bench.suite(AGAIN)
    pairs = zip(QUIET[::2], QUIET[1::2], strict=True)
    words = [word for pair in pairs if pair[1] != "no:cacheprovider" for word in pair]
    first = bench.pytester.runpytest_inprocess(*words, *([option] if option == "--sw" else []))
    first.assert_outcomes(**({"passed": 2, "failed": 1} if option == "--sw" else {"passed": 3, "failed": 2}))
    again = bench.pytester.runpytest_inprocess(*words, option)
    again.assert_outcomes(**({"failed": 1, "deselected": 2} if option == "--sw" else {"failed": 2}))


def test_one_test_is_selected_by_its_title(bench: Bench) -> None:
    bench.suite(AGAIN)
    bench.pytest("desk.bespeak.yaml::says, it [good one, 2025-11-25]").assert_outcomes(passed=1)


@pytest.mark.parametrize("more", [(), ("-vv",)])
def test_the_summary_line_has_the_cause(bench: Bench, more: tuple[str, ...]) -> None:
    bench.suite("- {name: t, tool: say, arguments: {text: a}, expect: {text: b}}")
    ran = bench.pytest("--junitxml=junit.xml", *more)
    ran.stdout.fnmatch_lines(['FAILED desk.bespeak.yaml::t - text: expected "b", got "a"'])
    message = ET.parse(bench.path / "junit.xml").getroot().find(".//failure")
    assert message is not None
    assert message.get("message") == 'text: expected "b", got "a"'


def test_the_durations_of_pytest_are_those_of_the_tests(bench: Bench) -> None:
    bench.suite("- {name: t, tool: say, arguments: {text: a}}")
    bench.pytest("--durations=5", "--durations-min=0", "-vv").stdout.fnmatch_lines(["*s call * desk.bespeak.yaml::t"])


def test_pytest_writes_an_html_report(bench: Bench) -> None:
    bench.suite("- {name: t, tool: say, arguments: {text: a}}")
    bench.pytest("--bespeak-report=html=r.html").assert_outcomes(passed=1)
    assert "calls the tool say" in (bench.path / "r.html").read_text()


# Tags, outcomes, commands and included files

OUTCOMES = """
- {name: quick, tool: say, arguments: {text: a}, tags: [fast-ones], expect: {text: a}}
- {name: slow, tool: say, tags: [slow], skip: takes an hour}
- {name: wrong, tool: say, arguments: {text: a}, tags: [slow], expect: {text: b}, xfail: known}
"""


def test_skip_and_xfail_are_those_of_pytest(bench: Bench) -> None:
    suite = bench.suite(OUTCOMES)
    ran = bench.pytest("-rsx", "--strict-markers", "-W", "error", "--bespeak-report", "json=r.json")
    ran.assert_outcomes(passed=1, skipped=1, xfailed=1)
    text = ran.stdout.str()
    assert f"{suite.name}:6: takes an hour" in text
    assert "known" in text
    report = told((bench.path / "r.json").read_bytes())
    assert [one["outcome"] for one in report["results"]] == ["passed", "skipped", "xfailed"]


def test_an_expected_failure_that_passes_fails(bench: Bench) -> None:
    bench.suite("- {name: a, tool: say, arguments: {text: a}, xfail: known}")
    ran = bench.pytest()
    ran.assert_outcomes(failed=1)
    assert "the test is marked xfail (known), but it passed; remove xfail" in ran.stdout.str()


@pytest.mark.parametrize(
    ("expression", "count"), [("slow", (0, 1, 1)), ("fast-ones", (1, 0, 0)), ("not slow", (1, 0, 0))]
)
@pytest.mark.long
def test_tags_are_markers(bench: Bench, expression: str, count: tuple[int, int, int]) -> None:
    bench.suite(OUTCOMES)
    passed, skipped, xfailed = count
    ran = bench.pytest("-m", expression, "--strict-markers")
    ran.assert_outcomes(passed=passed, skipped=skipped, xfailed=xfailed, deselected=3 - sum(count))


@pytest.mark.long
def test_a_suite_is_set_up_once_and_cleaned_up_after_its_last_test(bench: Bench) -> None:
    suite = bench.suite("- {name: a, tool: say, arguments: {text: a}}\n- {name: b, tool: say, arguments: {text: a}}")
    commands = "setup: [[sh, -c, echo up >> log]]\nteardown: [[sh, -c, echo down >> log]]\n"
    suite.write_text(suite.read_text() + commands)
    bench.write(
        "test_after.py",
        "from pathlib import Path\ndef test_it(): assert Path('log').read_text().split() == ['up', 'down']",
    )
    bench.pytest(str(suite), "test_after.py").assert_outcomes(passed=3)


def test_a_teardown_that_fails_is_an_error_of_the_last_test(bench: Bench) -> None:
    suite = bench.suite("- {name: a, tool: say, arguments: {text: a}}")
    suite.write_text(suite.read_text() + "teardown: [[sh, -c, echo locked; exit 1]]\n")
    ran = bench.pytest()
    ran.assert_outcomes(passed=1, errors=1)
    assert "teardown of the suite: the command sh -c 'echo locked; exit 1' exited with code 1" in ran.stdout.str()
    assert "locked" in ran.stdout.str()


def test_tests_of_an_included_file_have_its_name_and_line(bench: Bench) -> None:
    bench.write("shared.yaml", "version: 1\ntests:\n  - {name: shared, tool: say, skip: later}\n")
    suite = bench.suite("- {name: own, tool: say, arguments: {text: a}}")
    suite.write_text(suite.read_text() + "include: [shared.yaml]\n")
    ran = bench.pytest("-rs")
    ran.assert_outcomes(passed=1, skipped=1)
    assert "shared.yaml:3: later" in ran.stdout.str()
