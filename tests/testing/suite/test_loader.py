"""A suite is refused with file and line, all of it at once, in words that say what to write instead (testing.md section 2)."""

from pathlib import Path

import pytest

from bespeak.testing.suite.loader import MOST_BYTES, BadSuite, load_suite
from tests.testing.suite_files import GOOD, NEXT, in_test, load, only_fault, refused, with_server


def test_a_good_suite_is_read(tmp_path: Path) -> None:
    suite = load(tmp_path, GOOD)
    assert (suite.model.tests[0].name, suite.model.tests[0].tool) == ("one", "pay")
    assert suite.line("tests", 0) == 5


def test_a_fault_is_reported_with_its_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "desk.bespeak.yaml"
    path.write_text(in_test("tols: pay"))
    with pytest.raises(BadSuite) as caught:
        load_suite(path)
    assert str(caught.value) == f"{path}:{NEXT}: unknown key 'tols'; did you mean 'tool'?"


# Unknown keys: which one was meant


@pytest.mark.parametrize(
    ("text", "line", "key", "meant"),
    [
        (GOOD + "maxRound: 3\n", NEXT, "maxRound", "maxRounds"),
        (with_server("{python: x, timout: 3}"), 3, "timout", "timeout"),
        (in_test("inputResponse: {}"), NEXT, "inputResponse", "inputResponses"),
        (in_test("era: [2026-07-28]"), NEXT, "era", "eras"),
        (in_test("expect: {txt: paid}"), NEXT, "txt", "text"),
        (in_test("expect:", "  structured_content: 1"), NEXT + 1, "structured_content", "structuredContent"),
        (in_test("expect: {error: {codes: 1}}"), NEXT, "codes", "code"),
        (in_test("rounds:", "  - answers: {}"), NEXT + 1, "answers", "answer"),
        (in_test("rounds:", "  - expect:", "      ask: [a]"), NEXT + 2, "ask", "asks"),
        (in_test("tamper: {round: 1, request_state: flip}"), NEXT, "request_state", "requestState"),
        (in_test("fault: {round: 1, drop: response, rounds: 1}", "retry: 1"), NEXT, "rounds", "round"),
        (in_test("cases:", "  - name: a", "    expects: {}"), NEXT + 2, "expects", "expect"),
        (in_test("verify:", "  - tool: balance", "    argument: {}"), NEXT + 2, "argument", "arguments"),
        (in_test("verify:", "  - tool: balance", "    expect: {txt: 1}"), NEXT + 2, "txt", "text"),
        (in_test("verify:", "  tool: balance", "  argument: {}"), NEXT + 2, "argument", "arguments"),
    ],
)
def test_an_unknown_key_is_refused_at_every_level_and_the_one_that_was_meant_is_named(
    tmp_path: Path, text: str, line: int, key: str, meant: str
) -> None:
    assert (line, f"unknown key {key!r}; did you mean {meant!r}?") in refused(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "listed"),
    [
        (GOOD + "zzz: 1\n", "version, servers, tests"),
        (with_server("{python: x, zzz: 1}"), "command, env, cwd, url"),
        (in_test("zzz: 1"), "tool, prompt, resource"),
        (in_test("expect: {error: {zzz: 1}}"), "code, message, data"),
        (in_test("rounds: [{expect: {zzz: 1}}]"), "asks, messages, schemas, methods, state"),
    ],
)
def test_an_unknown_key_that_resembles_none_is_reported_with_those_there_are(
    tmp_path: Path, text: str, listed: str
) -> None:
    _, message = only_fault(tmp_path, text)
    assert message.startswith("unknown key 'zzz'; known keys: ")
    assert listed in message


# The shape


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("[]", 1, "a suite is a map with version, servers and tests"),
        (GOOD.replace("version: 1\n", ""), 1, "the key 'version' is missing"),
        (GOOD.replace("version: 1", "version: 2"), 1, "version: must be 1"),
        (GOOD.replace("version: 1", "version: true"), 1, "version must be 1"),
        ("version: 1\nservers: {s: {python: x}}\ntests:\n", 3, "tests: is empty; give it at least one entry"),
        ("version: 1\nservers: {s: {python: x}}\ntests: []\n", 3, "tests: is empty"),
        ("version: 1\nservers: {s: {python: x}}\ntests: [pay]\n", 3, "must be a map"),
        ("version: 1\nservers: {s: {python: x}}\ntests: [{tool: pay}]\n", 3, "the key 'name' is missing"),
        ("version: 1\nservers: {s: {python: x}}\ntests: [{name: '', tool: pay}]\n", 3, "name: is empty"),
        ("version: 1\nservers: {}\ntests: [{name: a, tool: pay}]\n", 2, "servers: is empty"),
        ("version: 1\nservers: [s]\ntests: [{name: a, tool: pay}]\n", 2, "servers: must be a map"),
        (with_server("desk.py"), 3, "desk: must be a map"),
        (with_server("{}"), 3, "a server needs a command, a url, both, or python"),
        (with_server("{python: x, url: y}"), 3, "a server needs a command, a url, both, or python"),
        (with_server("{command: 3}"), 3, "command: must be a list"),
        (
            with_server("{command: python 'my server.py'}"),
            3,
            'command: must be a list of words: ["python", "my server.py"]',
        ),
        (with_server("{command: python 'x}"), 3, """command: must be a list of words: ["python", "'x"]"""),
        (in_test("roots: [data]"), NEXT, "'roots' is a key of a server, not of a test; write it below servers"),
        (with_server("{command: []}"), 3, "command: is empty"),
        (with_server("{command: [serve, 8080]}"), 3, 'quote it: "8080"'),
        (with_server("{command: [serve], env: {DEBUG: true}}"), 3, 'quote it: "true"'),
        (with_server("{url: 'http://x/', env: {A: b}}"), 3, "env and cwd are for a command"),
        (with_server("{command: [x], headers: {A: b}}"), 3, "headers are for a url"),
        (with_server("{python: x, protocol: newest}"), 3, "protocol is one of auto, modern, legacy, 2026-07-28"),
        (with_server("{python: x, timeout: 0}"), 3, "timeout: must be greater than 0"),
        (with_server("{python: x, timeout: true}"), 3, "timeout: must be a number"),
        (GOOD + "cassettes: ''\n", NEXT, "cassettes: is empty"),
        (GOOD + "redact: token\n", NEXT, "redact: must be a list"),
        (GOOD + "redact: [a..b]\n", NEXT, "the path 'a..b' cannot be read"),
        (GOOD + "redact: [{pattern: '('}]\n", NEXT, "pattern needs a regular expression: missing )"),
        (GOOD + "redact: [{pattern: 'a*'}]\n", NEXT, "the pattern 'a*' also matches the empty text"),
        (GOOD + "redact: [{pattern: '${env:X}'}]\n", NEXT, "a pattern cannot contain ${...}; write it out"),
        (GOOD + "redact: [{pattern: ''}]\n", NEXT, "pattern: is empty"),
        (GOOD + "redact: [{}]\n", NEXT, "write a path, or {pattern: ...} with a regular expression"),
        (GOOD + "redact: [{path: a, pattern: b}]\n", NEXT, "write a path, or {pattern: ...} with a regular expression"),
        (GOOD + "redact: [{regex: b}]\n", NEXT, "unknown key 'regex'"),
        (in_test("redact: [a..b]"), NEXT, "the path 'a..b' cannot be read"),
        (in_test("redact: [resultType]"), NEXT, "'resultType' cannot be redacted"),
        (GOOD + "wire: both\n", NEXT, "wire: must be 'spec', 'any' or 'list', not 'both'"),
    ],
)
def test_a_suite_of_the_wrong_shape_is_reported_in_the_words_of_yaml(
    tmp_path: Path, text: str, line: int, said: str
) -> None:
    found, message = only_fault(tmp_path, text)
    assert found == line
    assert said in message


@pytest.mark.parametrize(
    ("lines", "line", "said"),
    [
        (["prompt: pay"], 5, "name exactly one of tool, prompt, resource, method and probe"),
        (["arguments: [1]"], NEXT, "arguments: must be a map"),
        (["eras: []"], NEXT, "eras: is empty"),
        (
            ["eras:", "  - 2026-07-28", "  - 2025-11-26"],
            NEXT + 2,
            "unknown revision '2025-11-26'; use modern, legacy, or one of 2026-07-28",
        ),
        (["eras: [2026-07-28, 2026-07-28]"], NEXT, "2026-07-28 is listed twice"),
        (["eras: [2026-07-28, modern]"], NEXT, "2026-07-28 is listed twice"),
        (["cases: []"], NEXT, "cases: is empty"),
        (["rounds: [{expect: {asks: city}}]"], NEXT, "asks: must be a list"),
        (["rounds: [{expect: {state: yes}}]"], NEXT, "state: must be 'present' or 'absent'"),
        (["expect: paid"], NEXT, "expect: must be a map"),
        (["expect: {isError: yes}"], NEXT, "isError: must be true or false"),
        (["tamper: {requestState: flip}"], NEXT, "the key 'round' is missing"),
        (["tamper: {round: 0, requestState: flip}"], NEXT, "round: must be greater than or equal to 1"),
        (["tamper: {round: 1, requestState: swap}"], NEXT, "'other-arguments'"),
        (
            ["tamper: {round: 1, requestState: other-arguments}"],
            NEXT,
            "other-arguments needs arguments: the arguments to send instead",
        ),
        (
            ["tamper: {round: 1, requestState: flip, arguments: {}}"],
            NEXT,
            "arguments belongs to other-arguments and other-tool, not to flip",
        ),
        (["fault: {round: 1, drop: response}"], 5, "fault and retry go together"),
        (["retry: 1"], 5, "fault and retry go together"),
        (["fault: {round: 1, drop: request}", "retry: 1"], NEXT, "drop: must be 'response', not 'request'"),
        (["fault: {round: 1, drop: response}", "retry: 11"], NEXT + 1, "retry: must be less than or equal to 10"),
        (["fresh: false"], NEXT, "must be true"),
        (["maxRounds: -1"], NEXT, "maxRounds: must be greater than or equal to 0"),
        (["verify: []"], NEXT, "verify: is empty"),
        (["capture: {id: 5}"], NEXT, 'id: must be a string; quote it: "5"'),
        (["inputResponses: {}", "rounds: []"], 5, "inputResponses and rounds both give answers; use one"),
        (
            ["inputResponses: {}", "input_responses: {}"],
            5,
            "inputResponses and input_responses are the same key; use one",
        ),
    ],
)
def test_a_test_of_the_wrong_shape_is_reported_in_the_words_of_yaml(
    tmp_path: Path, lines: list[str], line: int, said: str
) -> None:
    found, message = only_fault(tmp_path, in_test(*lines))
    assert found == line
    assert said in message


@pytest.mark.parametrize(
    "text",
    [
        GOOD + "zzz: 1\n",
        in_test("tamper: x", "fault: x", "expect: x", "fresh: no", "cases: {}", "eras: []", "capture: [a]"),
        in_test("rounds: [{expect: x}]", "timeout: x", "retry: x", "maxRounds: x", "verify: x", "arguments: x"),
        with_server("{command: x, env: {A: 1}, url: 1}"),
        "version: 1\nservers: {}\ntests: [x]\n",
    ],
)
def test_no_message_shows_what_it_was_checked_with(tmp_path: Path, text: str) -> None:
    said = " ".join(message for _, message in refused(tmp_path, text)).lower()
    for internal in (
        "instance of",
        "dictionary",
        "pydantic",
        "input should",
        "validation",
        "nonetype",
        "true or instance",
    ):
        assert internal not in said
    assert "must be a valid" not in said


# What is accepted, because it is what an author would write


@pytest.mark.parametrize(
    "lines",
    [
        ["eras: [2025-11-25, 2026-07-28]"],
        [
            "inputResponses: {city: San Francisco, units: {accept: {units: C}}, when: 2026-10-02, n: 3, ok: true, of: [a, b]}"
        ],
        ["input_responses: {city: decline, units: cancel, page: {url: done}, said: {sample: Paris}, at: {roots: []}}"],
        ["inputResponses: [{id: city, value: Paris}, {id: units, value: omit}]"],
        ["inputResponses: [{when: {message: {matches: (?i)city}}, answer: {raw: null}}, {otherwise: decline}]"],
        ["rounds: [{expect: {asks: [city], state: present}, answer: {city: Paris}}, {}]"],
        ["expect: {error: {}}"],
        ["expect: {structuredContent: null}"],
        ["tamper: {round: 1, requestState: other-arguments, arguments: {}}"],
        ["fault: {round: 0, drop: response}", "retry: true"],
        ["verify: {tool: balance, expect: {text: '0'}}"],
        ["verify: [{tool: balance}, {resource: 'till://log'}]"],
        ["arguments: {nothing: null, price: $5, braces: '{x}', escaped: '$${x}'}"],
        ["maxRounds: 2.0", "timeout: 1"],
        ["cases: [{name: a}, {name: b, input_responses: {x: 1}}]"],
    ],
)
def test_what_an_author_would_write_is_accepted(tmp_path: Path, lines: list[str]) -> None:
    load(tmp_path, in_test(*lines))


# All of it at once


def test_all_that_is_wrong_with_the_shape_is_reported_at_once_in_the_order_of_lines(tmp_path: Path) -> None:
    text = "version: 2\nservers:\n  s: {python: x, zzz: 1}\ntests:\n  - name: a\n    yyy: 1\n    tool: 5\nxxx: 1\n"
    told = refused(tmp_path, text)
    assert [line for line, _ in told] == [1, 3, 6, 7, 8]


def test_all_that_is_wrong_with_the_meaning_is_reported_at_once_in_the_order_of_lines(tmp_path: Path) -> None:
    told = refused(
        tmp_path,
        in_test(
            "server: till",
            "inputResponses:",
            "  city: null",
            "  units: {accept: C}",
            "expect:",
            "  text: {matches: (}",
            "  error: {code: {gt: x}}",
            "capture: {id: a..b}",
        )
        + "  - name: one\n    tool: x\n",
    )
    assert [line for line, _ in told] == [NEXT, NEXT + 2, NEXT + 3, NEXT + 5, NEXT + 6, NEXT + 7, NEXT + 8]


def test_a_suite_with_very_many_faults_says_that_there_are_more(tmp_path: Path) -> None:
    told = refused(tmp_path, GOOD + "".join(f"k{number}: 1\n" for number in range(500)))
    assert len(told) < 100
    assert told[0][0] == NEXT
    assert "more" in told[-1][1]


# Files that are no suites


@pytest.mark.parametrize(
    ("raw", "line", "said"),
    [
        (b"", 1, "the file is empty"),
        (b"# nothing\n\n", 1, "the file is empty"),
        (GOOD.encode("utf-16"), 1, "the file is not UTF-8"),
        (GOOD.encode() + b"# caf\xe9\n", NEXT, "the file is not UTF-8"),
        (b"version: 1\n\x00", 2, "the character 0x0000 cannot be in a file"),
        (b"#" * (MOST_BYTES + 1), 1, "the file is larger than"),
        (GOOD.encode() + b"version: 1\n", NEXT, "the key 'version' is used twice, first on line 1"),
        (GOOD.encode() + b"1: x\n", NEXT, 'quote it: "1"'),
        (GOOD.encode() + b"x: !!python/object/apply:os.system [id]\n", NEXT, "tags are not supported"),
        (GOOD.encode() + b"<<: {a: 1}\n", NEXT, "merge keys are not supported"),
        (GOOD.encode() + b"---\nversion: 1\n", NEXT, "the file has a second document"),
        (GOOD.encode() + b"x: &x [*x]\n", NEXT, "refers to a value that contains it"),
        (GOOD.encode() + b"x: " + b"[" * 500, NEXT, "nested more than 100 deep"),
        (GOOD.encode() + b"\tx: 1\n", NEXT, "tabs"),
        (GOOD.encode() + b"x: a: b\n", NEXT, "quote text that contains"),
    ],
)
def test_a_file_that_cannot_be_read_is_reported_with_the_line_that_is_to_blame(
    tmp_path: Path, raw: bytes, line: int, said: str
) -> None:
    found, message = only_fault(tmp_path, raw)
    assert found == line
    assert said in message


@pytest.mark.parametrize("encoded", [b"\xef\xbb\xbf" + GOOD.encode(), GOOD.replace("\n", "\r\n").encode()])
def test_files_of_other_systems_are_read(tmp_path: Path, encoded: bytes) -> None:
    assert load(tmp_path, encoded).line("tests", 0, "tool") == 6


@pytest.mark.parametrize(("name", "said"), [("gone.bespeak.yaml", "No such file"), ("", "Is a directory")])
def test_a_file_that_is_not_there_is_reported_without_a_traceback(tmp_path: Path, name: str, said: str) -> None:
    with pytest.raises(BadSuite) as caught:
        load_suite(tmp_path / name)
    assert f"the file cannot be read: {said}" in str(caught.value)


def test_a_fault_in_what_an_alias_repeats_is_reported_where_it_was_written(tmp_path: Path) -> None:
    text = in_test("inputResponses: &answers {city: {accept: C}}") + "  - name: two\n    tool: x\n"
    told = refused(tmp_path, text + "    inputResponses: *answers\n")
    assert {line for line, _ in told} == {NEXT}
