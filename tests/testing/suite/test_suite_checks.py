"""No key of a suite is accepted that does nothing, and answers are checked wherever they stand (testing.md section 2)."""

from pathlib import Path

import pytest

from tests.testing.suite_files import GOOD, NEXT, in_test, load, only_fault, refused, with_server


@pytest.mark.parametrize(
    "key", ["server", "rounds", "tamper", "retry", "expect", "capture", "inputResponses", "prompt"]
)
def test_a_key_with_nothing_behind_it_is_refused(tmp_path: Path, key: str) -> None:
    assert {line for line, _ in refused(tmp_path, in_test(f"{key}:"))} <= {NEXT, 5}


@pytest.mark.parametrize("key", ["isError", "error"])
def test_an_expectation_of_nothing_is_refused_where_nothing_can_be(tmp_path: Path, key: str) -> None:
    assert only_fault(tmp_path, in_test("expect:", f"  {key}:")) == (
        NEXT + 1,
        f"{key} is empty; give it a value, or leave it out",
    )


@pytest.mark.parametrize("key", ["command", "env", "cwd", "url", "headers", "declare", "timeout", "protocol"])
def test_a_key_of_a_server_with_nothing_behind_it_is_refused(tmp_path: Path, key: str) -> None:
    assert refused(tmp_path, with_server(f"{{python: x, {key}: }}"))[0][0] == 3


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        (
            GOOD.replace("tool: pay", "resource: till://log") + "    cases:\n      - {name: a, arguments: {n: 1}}\n",
            NEXT + 1,
            "a resource takes no arguments",
        ),
        (GOOD.replace("tool: pay", "resource: till://log") + "    arguments: {}\n", 5, "a resource takes no arguments"),
        (
            GOOD.replace("tool: pay", "resource: till://log")
            + "    tamper: {round: 1, requestState: other-arguments, arguments: {n: 1}}\n",
            NEXT,
            "a resource takes no arguments",
        ),
        (GOOD.replace("tool: pay", "prompt: greet") + "    expect: {isError: false}\n", NEXT, "isError"),
        (GOOD + "    verify: [{prompt: greet, expect: {isError: false}}]\n", NEXT, "isError"),
        (GOOD + "    expect: {error: {}, isError: false}\n", NEXT, "isError"),
        (
            in_test("inputResponses:", "  - otherwise: decline", "  - otherwise: cancel"),
            NEXT + 2,
            "no rule may follow otherwise",
        ),
        (
            in_test("inputResponses:", "  - otherwise: decline", "  - {when: {key: a}, answer: 1}"),
            NEXT + 2,
            "no rule may follow otherwise",
        ),
        (
            in_test("rounds:", "  - answer:", "      - otherwise: omit", "      - otherwise: omit"),
            NEXT + 3,
            "otherwise",
        ),
        (
            in_test("inputResponses:", "  - {when: {mode: url}, answer: omit}", *["  - {id: a, value: 1}"] * 2),
            NEXT + 3,
            "the id 'a' is used twice",
        ),
        (in_test("rounds: [{}, {}]", "maxRounds: 1"), NEXT + 1, "rounds"),
        (
            with_server("{url: 'http://127.0.0.1:1/'}") + "    fresh: true\n",
            NEXT,
            "only a server with a command can be restarted",
        ),
        (in_test("fresh: true"), NEXT, "only a server with a command can be restarted"),
    ],
)
def test_what_could_never_matter_is_refused(tmp_path: Path, text: str, line: int, said: str) -> None:
    told = refused(tmp_path, text)
    assert told[0][0] == line
    assert said in told[0][1]


# Answers, wherever they stand


@pytest.mark.parametrize("place", ["inputResponses", "input_responses"])
@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("city", "answers must be a map of key to answer, or a list of rules"),
        ("{city: null}", "null is not an answer"),
        ("{city: {accept: C}}", "takes a map of the form's fields"),
        ("{city: {decline: true}}", "an answer is a value, decline, cancel, omit"),
        ("{page: {url: opened}}", "answered with {url: done}"),
        ("{said: {sample: 5}}", "takes the model's text"),
        ("{at: {roots: file:///x}}", "takes a list of URIs"),
        ("[city]", "a rule is {when: ..., answer: ...}"),
        ("[{when: {message: x}}]", "a rule is {when: ..., answer: ...}"),
        ("[{id: 5, value: x}]", "an id must be a string"),
        ("[{when: {mesage: x}, answer: x}]", "when must have one or more of key, message, method, mode"),
        ("[{when: {message: {matches: (}}, answer: x}]", "matches needs a regular expression"),
        ("[{otherwise: null}]", "null is not an answer"),
    ],
)
def test_an_answer_that_is_invalid_is_refused(tmp_path: Path, place: str, written: str, said: str) -> None:
    found, message = only_fault(tmp_path, in_test(f"{place}: {written}"))
    assert found == NEXT
    assert said in message


@pytest.mark.parametrize(
    "lines",
    [
        ["cases:", "  - name: a", "    inputResponses:", "      city:"],
        ["rounds:", "  - answer:", "      one: 1", "      city:"],
        ["verify:", "  - tool: balance", "    inputResponses:", "      - {id: city, value: }"],
        ["verify:", "  tool: balance", "  inputResponses:", "    city:"],
    ],
)
def test_an_answer_is_reported_with_its_own_line_wherever_it_stands(tmp_path: Path, lines: list[str]) -> None:
    assert only_fault(tmp_path, in_test(*lines))[0] == NEXT + 3


# Names, servers and eras

TWO = with_server("{python: x}\n  till: {python: y}")
TWICE = GOOD + "  - name: one\n    tool: pay\n"


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        (TWICE, NEXT, "there is another test called 'one'"),
        (in_test("cases:", "  - name: a", "  - name: a"), NEXT + 2, "there is another case called 'a'"),
        (in_test("cases: [{name: a}]") + "  - {name: 'one [a]', tool: pay}\n", NEXT + 1, "'one [a]'"),
        (in_test("eras: [2026-07-28]") + "  - {name: 'one [2026-07-28]', tool: pay}\n", NEXT + 1, "'one [2026-07-28]'"),
        (TWO, 6, "name the server to use: desk, till"),
        (TWO + "server: counter\n", 8, "there is no server 'counter'; servers: desk, till"),
        (in_test("server: ''"), NEXT, "there is no server ''; servers: desk"),
        (
            in_test("eras: [2026-07-28, 2025-11-25]", "tamper: {round: 1, requestState: flip}"),
            NEXT + 1,
            "tamper needs rounds, and revision 2025-11-25 does not have them; give this test its own eras",
        ),
        (
            in_test("fault: {round: 1, drop: response}", "retry: 1") + "eras: [2025-06-18]\n",
            NEXT,
            "fault needs rounds, and revision 2025-06-18 does not have them; give this test its own eras",
        ),
        (
            in_test("inputResponses: {}", "cases:", "  - {name: a, rounds: []}"),
            NEXT + 2,
            "both give answers; use one",
        ),
        (
            in_test("rounds: []", "cases:", "  - {name: a, inputResponses: {}}"),
            NEXT + 2,
            "both give answers; use one",
        ),
        (
            in_test("cases:", "  - {name: a, inputResponses: {}, rounds: []}"),
            NEXT + 1,
            "both give answers; use one",
        ),
        (
            in_test("tamper: {round: 1, requestState: flip}", "fault: {round: 1, drop: response}", "retry: 1"),
            5,
            "cannot be combined; write separate tests",
        ),
        (in_test("capture: {id: a..b}"), NEXT, "the path 'a..b' cannot be read; write it like a.b[0].c"),
        (in_test("capture: {id: 'items[*].id'}"), NEXT, "matches many values; name one"),
        (in_test("capture: {an id: a}"), NEXT, "a name consists of letters, digits, _ and -"),
        (in_test("capture: {port: a}"), NEXT, "must not be port"),
        (
            in_test("capture: {id: a}") + "  - {name: two, tool: x, capture: {id: b}}\n",
            NEXT + 1,
            "captures 'id' already",
        ),
    ],
)
def test_what_does_not_agree_with_the_rest_of_a_suite_is_refused(
    tmp_path: Path, text: str, line: int, said: str
) -> None:
    found, message = only_fault(tmp_path, text)
    assert found == line
    assert said in message


@pytest.mark.parametrize(
    ("lines", "line", "said"),
    [
        (["expect: {text: {matches: (}}"], NEXT, "matches needs a regular expression"),
        (["expect:", "  structuredContent:", "    - id: {gt: x}"], NEXT + 2, "gt needs a number"),
        (["expect: {error: {code: {oneOf: []}}}"], NEXT, "oneOf needs a list"),
        (["expect:", "  text: {contains: x,", "    also: y}"], NEXT + 2, 'contains is an operator and "also" is not'),
        (
            ["rounds:", "  - expect:", "      messages:", "        city: {length: x}"],
            NEXT + 3,
            "length needs a whole number",
        ),
        (["rounds:", "  - expect:", "      schemas: {a: {schema: {type: 5}}}"], NEXT + 2, "is not a valid JSON Schema"),
        (["cases:", "  - name: a", "    expect: {text: {absent: false}}"], NEXT + 2, "write {absent: true}"),
        (["verify:", "  - tool: x", "    expect: {text: {snapshot: 5}}"], NEXT + 2, "snapshot needs a name"),
    ],
)
def test_a_matcher_that_is_invalid_is_refused_with_its_own_line(
    tmp_path: Path, lines: list[str], line: int, said: str
) -> None:
    found, message = only_fault(tmp_path, in_test(*lines))
    assert found == line
    assert said in message


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("{text: {contians: x}}", "text is a string, and 'contians' is not a matcher; did you mean 'contains'?"),
        ("{text: {zzz: x}}", "'zzz' is not a matcher; matchers are equals, contains, matches"),
        ("{text: 42}", "text is a string, and can never be 42"),
        ("{text: null}", "text is a string, and can never be null"),
        ("{rounds: two}", 'rounds is a number, and can never be "two"'),
        ("{rounds: true}", "rounds is a number, and can never be true"),
        ("{asked: city}", 'asked is a list, and can never be "city"'),
        ("{notifications: {lenght: 1}}", "did you mean 'length'?"),
    ],
)
def test_an_expectation_that_nothing_could_meet_is_refused(tmp_path: Path, written: str, said: str) -> None:
    found, message = only_fault(tmp_path, in_test(f"expect: {written}"))
    assert found == NEXT
    assert said in message


@pytest.mark.parametrize("written", ["{rounds: '${v}'}", "{rounds: 2.0}", "{asked: '${v}'}", "{text: 'no. ${v}'}"])
def test_an_expectation_that_something_could_meet_is_not(tmp_path: Path, written: str) -> None:
    load(tmp_path, in_test("capture: {v: structuredContent.v}") + f"  - {{name: two, tool: x, expect: {written}}}\n")


def test_a_test_at_eras_of_its_own_may_tamper_in_a_suite_of_older_ones(tmp_path: Path) -> None:
    load(tmp_path, in_test("eras: [2026-07-28]", "tamper: {round: 1, requestState: drop}") + "eras: [2025-11-25]\n")


def test_another_of_two_servers_may_be_named_by_the_suite_or_by_the_test(tmp_path: Path) -> None:
    load(tmp_path, TWO + "server: till\n")
    load(tmp_path, TWO + "    server: till\n")


# Profiles


@pytest.mark.parametrize(
    ("lines", "line", "said"),
    [
        (
            ["profiles: {slient: {expect: {isError: true}}}"],
            NEXT,
            "there is no profile 'slient'; use langgraph, claude-code, silent, impatient, lossy, or MODULE:CLASS for your own",
        ),
        (
            ["profiles:", "  silent:", "    expect: {text: {matches: '('}}"],
            NEXT + 2,
            "matches needs a regular expression",
        ),
        (
            ["profiles:", "  silent:", "    verify:", "      tool: balance", "      expect: {text: 5}"],
            NEXT + 4,
            "text is a string, and can never be 5",
        ),
        (
            ["profiles:", "  silent:", "    verify: [{prompt: p, expect: {isError: true}}]"],
            NEXT + 2,
            "only the result of a tool has isError",
        ),
        (
            ["profiles:", "  silent:", "    expect: {isError: true, error: {}}"],
            NEXT + 2,
            "a call ends with an error or with a result that has isError; expect one of them",
        ),
        (
            ["tamper: {round: 1, requestState: flip}", "profiles: {silent: {expect: {isError: true}}}"],
            NEXT + 1,
            "a hostile test plays a client of its own, and is left out with --as",
        ),
    ],
)
def test_what_is_expected_with_a_profile_is_checked(tmp_path: Path, lines: list[str], line: int, said: str) -> None:
    where, what = only_fault(tmp_path, in_test(*lines))
    assert where == line
    assert said in what


def test_a_profile_of_your_own_may_be_named(tmp_path: Path) -> None:
    suite = load(tmp_path, in_test('profiles: {"clients.py:Stubborn": {expect: {isError: true}}}'))
    assert list(suite.model.tests[0].profiles) == ["clients.py:Stubborn"]
