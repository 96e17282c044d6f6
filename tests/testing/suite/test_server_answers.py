"""The keys `roots` and `answers` of a server in a suite."""

from pathlib import Path

import pytest

from bespeak.testing.suite.server_answers import connection_answers
from bespeak.testing.suite.suite_file import Server
from bespeak.testing.suite.variables import DoesNotFit, Unknown, lookup
from tests.testing.suite_files import load, only_fault, with_server

NO_VALUES = lookup({}, {})


def server(**keys: object) -> Server:
    return Server.model_validate({"command": ["desk"], **keys})


@pytest.mark.parametrize(
    "keys",
    [
        "roots: []",
        "roots: [., /srv, 'file:///a', {uri: b, name: B}]",
        "roots: ['${env:HOME}']",
        "answers: {city: Rome}",
        "answers: [{otherwise: decline}]",
        "declare: {roots: {}}, roots: [a]",
    ],
)
def test_a_server_may_have_roots_and_answers(tmp_path: Path, keys: str) -> None:
    load(tmp_path, with_server(f"{{command: [desk], {keys}}}"))


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("roots: here", "roots: must be a list"),
        ("roots: null", "roots is empty; give it a value, or leave it out"),
        ("roots: [5]", "a root is a path, a file:// URI, or {uri, name}"),
        ("roots: ['https://x']", "the root 'https://x' must be a path, or a URI such as file:///srv/project"),
        ("answers: {city: {url: x}}", "a URL question is answered with {url: done}, decline or cancel"),
        ("answers: null", "answers must be a map of key to answer, or a list of rules"),
        ("answers: 5", "answers must be a map of key to answer, or a list of rules"),
        ("roots: [a], answers: {roots: {roots: []}}", "roots and answers both give the roots; use one"),
        ("protocol: '2026-07-28', roots: [a]", "at 2026-07-28 a server asks only in calls; answer it in the tests"),
        ("protocol: '2026-07-28', answers: {a: b}", "at 2026-07-28 a server asks only in calls; answer it in the tests"),
        ("declare: {}, roots: [a]", "declare has no roots, so the server must not ask for them; add roots: {} to it"),
        ("roots: ['${x}']", "${x} has no value here: a server may use ${env:NAME}, and ${port} if it has a command and a url"),
    ],
)  # fmt: skip
def test_a_mistake_in_them_is_named_with_its_line(tmp_path: Path, keys: str, message: str) -> None:
    assert only_fault(tmp_path, with_server(f"{{command: [desk], {keys}}}")) == (3, message)


def test_relative_roots_start_at_the_folder_of_the_suite(tmp_path: Path) -> None:
    answers = connection_answers(server(roots=["data", {"uri": "..", "name": "Up"}]), tmp_path, NO_VALUES)
    assert answers.roots == [
        {"uri": (tmp_path / "data").as_uri()},
        {"uri": tmp_path.parent.as_uri(), "name": "Up"},
    ]


def test_values_of_the_environment_are_filled_in(tmp_path: Path) -> None:
    find = lookup({"WHERE": "/srv/maps", "CITY": "decline"}, {})
    answers = connection_answers(server(roots=["${env:WHERE}/eu"], answers={"city": "${env:CITY}"}), tmp_path, find)
    assert answers.roots == [{"uri": "file:///srv/maps/eu"}]
    assert [rule.answer.value for rule in answers.fixture.rules] == ["decline"]  # a value, not a keyword


def test_a_value_that_does_not_fit_is_an_error_that_does_not_show_it(tmp_path: Path) -> None:
    with pytest.raises(DoesNotFit) as caught:
        connection_answers(server(roots=["${env:WHERE}"]), tmp_path, lookup({"WHERE": "https://secret"}, {}))
    told = "a value of the environment does not fit where roots or answers of the server use it"
    assert str(caught.value) == told


def test_a_value_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(Unknown, match=r"\$\{env:WHERE\} has no value here"):
        connection_answers(server(roots=["${env:WHERE}"]), tmp_path, NO_VALUES)


def test_without_the_keys_nothing_is_prepared(tmp_path: Path) -> None:
    answers = connection_answers(server(), tmp_path, NO_VALUES)
    assert (answers.roots, answers.fixture.rules) == (None, ())


@pytest.mark.parametrize("url", ["", "localhost:8000/mcp", "ws://x.example/mcp", "mcp.example.com"])
def test_a_url_without_its_scheme_is_named_with_its_line(tmp_path: Path, url: str) -> None:
    assert only_fault(tmp_path, with_server(f"{{url: '{url}'}}")) == (3, "url must begin with http:// or https://")


@pytest.mark.parametrize("url", ["http://localhost:8000/mcp", "https://x.example", "${env:URL}"])
def test_a_url_may_come_from_the_environment(tmp_path: Path, url: str) -> None:
    load(tmp_path, with_server(f"{{url: '{url}'}}"))
