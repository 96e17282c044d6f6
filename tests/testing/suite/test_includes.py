"""Suites that include other files: what is put together, and the file and line of every mistake."""

from pathlib import Path

import pytest

from bespeak.testing.suite.loader import BadSuite, Suite, load_suite
from bespeak.testing.suite.plan import items_of

SERVERS = "version: 1\nservers:\n  desk: {python: 'desk:mcp'}\n  till: {python: 'till:mcp'}\n"
TESTS = "version: 1\ntests:\n  - name: shared\n    tool: pay\n    server: desk\n"
OWN = "tests:\n  - {name: own, tool: pay, server: till}\n"


def load(folder: Path, text: str, **files: str) -> Suite:
    for name, inner in files.items():
        path = folder / f"{name.replace('__', '/')}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(inner, encoding="utf-8")
    suite = folder / "desk.bespeak.yaml"
    suite.write_text(text, encoding="utf-8")
    return load_suite(suite)


def faults(folder: Path, text: str, **files: str) -> list[tuple[str, int, str]]:
    """The mistakes: file, line and message."""
    with pytest.raises(BadSuite) as caught:
        load(folder, text, **files)
    return [(one.path.relative_to(folder).as_posix(), one.line, one.message) for one in caught.value.faults]


# What is put together


def test_servers_and_tests_of_included_files_come_before_the_suite_s_own(tmp_path: Path) -> None:
    suite = load(tmp_path, f"version: 1\ninclude: [servers.yaml, tests.yaml]\n{OWN}", servers=SERVERS, tests=TESTS)
    assert list(suite.model.servers) == ["desk", "till"]
    assert [test.name for test in suite.model.tests] == ["shared", "own"]


def test_a_test_has_the_line_and_the_file_in_which_it_is_written(tmp_path: Path) -> None:
    suite = load(tmp_path, f"version: 1\ninclude: [servers.yaml, tests.yaml]\n{OWN}", servers=SERVERS, tests=TESTS)
    shared, own = items_of(suite)
    assert (shared.file, shared.line) == (tmp_path / "tests.yaml", 3)
    assert (own.file, own.line) == (suite.path, 4)
    assert shared.suite is own.suite


def test_an_included_file_may_include_others_from_its_own_folder(tmp_path: Path) -> None:
    inner = "version: 1\ninclude: [../servers.yaml]\n" + TESTS.removeprefix("version: 1\n")
    suite = load(tmp_path, "version: 1\ninclude: [more/tests.yaml]\n", more__tests=inner, servers=SERVERS)
    assert suite.file("servers", "desk").resolve() == tmp_path / "servers.yaml"
    assert suite.file("tests", 0) == tmp_path / "more" / "tests.yaml"


def test_a_file_that_two_others_include_is_there_once(tmp_path: Path) -> None:
    both = "version: 1\ninclude: [servers.yaml]\n"
    text = f"version: 1\ninclude: [a.yaml, b.yaml]\n{OWN}"
    assert len(load(tmp_path, text, a=both, b=both, servers=SERVERS).model.servers) == 2


def test_the_settings_of_a_suite_go_before_those_that_it_includes(tmp_path: Path) -> None:
    settings = f"{SERVERS}eras: [2025-11-25]\nmaxRounds: 2\nserver: desk\nredact: [a.b]\n"
    suite = load(tmp_path, f"version: 1\ninclude: [all.yaml]\nmaxRounds: 9\nredact: [c]\n{OWN}", all=settings)
    model, redacted = suite.model, [one.path for one in suite.model.redact]
    assert (model.eras, model.maxRounds, model.server, redacted) == (["2025-11-25"], 9, "desk", ["a.b", "c"])


def test_variables_of_the_environment_are_needed_wherever_they_are_written(tmp_path: Path) -> None:
    servers = "version: 1\nservers: {till: {command: [till], env: {KEY: '${env:KEY}'}}}\n"
    assert load(tmp_path, f"version: 1\ninclude: [s.yaml]\n{OWN}", s=servers).needs == {"KEY"}


# Mistakes

INCLUDE = f"version: 1\ninclude:\n  - a.yaml\n{OWN}"


def test_a_mistake_has_the_file_and_line_in_which_it_is_made(tmp_path: Path) -> None:
    tests = TESTS.replace("tool: pay", "tool: pay\n    expct: {}")
    text = "version: 1\ninclude: [servers.yaml, tests.yaml]\ntests:\n  - {name: own, tool: pay}\n"
    found = faults(tmp_path, text.replace("tool: pay", "tol: pay"), servers=SERVERS, tests=tests)
    assert found[0] == ("desk.bespeak.yaml", 4, "unknown key 'tol'; did you mean 'tool'?")
    assert found[-1] == ("tests.yaml", 5, "unknown key 'expct'; did you mean 'expect'?")


def test_a_mistake_of_meaning_has_them_too(tmp_path: Path) -> None:
    found = faults(tmp_path, INCLUDE, a=SERVERS + "tests:\n  - {name: own, tool: x, server: nobody}\n")
    assert found == [
        ("desk.bespeak.yaml", 5, "there is another test called 'own'"),
        ("a.yaml", 6, "there is no server 'nobody'; servers: desk, till"),
    ]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("- 1\n", 1, "an included file is a map; known keys: version, include, servers, tests"),
        ("servers: {}\n", 1, "an included file needs version: 1"),
        ("version: true\n", 1, "an included file needs version: 1"),
        ("version: 1\nsetup: [[x]]\n", 2, "unknown key 'setup' in an included file; known keys: version"),
        ("version: 1\ncassettes: x\n", 2, "unknown key 'cassettes' in an included file"),
        ("version: 1\nservers: [x]\n", 2, "servers: must be a map"),
        ("version: 1\ntests: {a: b}\n", 2, "tests: must be a list"),
        ("a: b: c\n", 1, "mapping values are not allowed here"),
    ],
)
def test_an_included_file_of_the_wrong_shape_is_refused(tmp_path: Path, text: str, line: int, message: str) -> None:
    found = faults(tmp_path, INCLUDE, a=text)
    assert found[0][:2] == ("a.yaml", line)
    assert message in found[0][2]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere.yaml", "there is no file"),
        ("b.bespeak.yaml", "b.bespeak.yaml would also be run as a suite of its own; call an included file NAME.yaml"),
        ("'${env:HOME}.yaml'", "the name of an included file cannot contain ${...}; write it out"),
    ],
)
def test_a_name_that_cannot_be_included_is_refused(tmp_path: Path, name: str, message: str) -> None:
    ((file, line, said),) = faults(tmp_path, INCLUDE.replace("a.yaml", name))
    assert (file, line) == ("desk.bespeak.yaml", 3)
    assert message in said


@pytest.mark.parametrize(("written", "message"), [("a.yaml", "include: must be a list"), ("[]", "include: is empty")])
def test_what_is_no_list_of_names_is_refused(tmp_path: Path, written: str, message: str) -> None:
    found = faults(tmp_path, f"version: 1\ninclude: {written}\nservers: {{till: {{python: x}}}}\n{OWN}", a=SERVERS)
    assert [(line, said.partition(";")[0]) for _, line, said in found] == [(2, message)]


def test_a_cycle_is_shown_at_the_line_that_closes_it(tmp_path: Path) -> None:
    inner = "version: 1\ninclude: [{}]\n"
    found = faults(tmp_path, INCLUDE, a=inner.format("b.yaml"), b=inner.format("a.yaml"))
    assert found == [("b.yaml", 2, "a.yaml includes itself: a.yaml -> b.yaml -> a.yaml")]


def test_a_file_that_is_listed_twice_is_a_mistake(tmp_path: Path) -> None:
    found = faults(tmp_path, INCLUDE.replace("  - a.yaml\n", "  - a.yaml\n  - a.yaml\n"), a=SERVERS)
    assert found == [("desk.bespeak.yaml", 4, "a.yaml is listed twice")]


def test_a_server_of_a_name_that_is_taken_is_a_mistake(tmp_path: Path) -> None:
    text = INCLUDE + "servers:\n  desk: {python: x}\n"
    (found,) = faults(tmp_path, text, a=SERVERS)
    assert found == (
        "desk.bespeak.yaml",
        7,
        f"there is another server called 'desk', in {tmp_path / 'a.yaml'}:3",
    )


def test_a_setting_of_two_included_files_is_a_mistake(tmp_path: Path) -> None:
    text = INCLUDE.replace("  - a.yaml\n", "  - a.yaml\n  - b.yaml\n")
    (found,) = faults(tmp_path, text, a=f"{SERVERS}wire: any\n", b="version: 1\nwire: list\n")
    assert found == ("b.yaml", 2, f"wire is also set in {tmp_path / 'a.yaml'}:5; set it in the suite itself")


def test_servers_or_tests_may_all_be_missing_from_the_suite_but_not_altogether(tmp_path: Path) -> None:
    found = faults(tmp_path, "version: 1\ninclude: [a.yaml]\n", a=SERVERS)
    assert found == [("desk.bespeak.yaml", 1, "the key 'tests' is missing")]
