"""What `bespeak call` says of a command line that a newcomer may type: what was probably meant, and an exit code of 2."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import ONE
from tests.cli.desks import Raw, bespeak, told, write_raw

TOOLS: Any = [{"name": "order_book"}, {"name": "hold_book"}]


@pytest.fixture
def raw(tmp_path: Path) -> Raw:
    return write_raw(tmp_path)


def test_without_a_tool_a_file_that_is_not_there_ends_with_2() -> None:
    assert "Missing" not in told(bespeak("call", "nowhere.py"), 2)


@pytest.mark.timing
@pytest.mark.parametrize("more", [(), ("--arguments", "{}")])
def test_a_tool_that_the_server_does_not_know_ends_with_2_however_far_off_its_name_is(
    raw: Raw, more: tuple[str, ...]
) -> None:
    unknown = {"error": {"code": -32602, "message": "Unknown tool: 'pay'"}}
    assert told(bespeak("call", raw(unknown, pages=[{"tools": TOOLS}]), "pay", *more), 2) == (
        "bespeak: unknown tool 'pay'; tools of this server: order_book, hold_book\n"
        "         the server answered: Unknown tool: 'pay' (-32602)\n"
    )


@pytest.mark.parametrize(
    ("words", "meant"),
    [(["--title", "Dune"], "title=Dune"), (["--title=Dune"], "title=Dune"), (["--gift", "--json"], "gift=VALUE")],
)
def test_an_argument_that_is_written_as_an_option_is_told_how_to_write_it(words: list[str], meant: str) -> None:
    said = " ".join(told(bespeak("call", "nowhere.py", "t", *words), 2).replace("│", " ").split())
    option = words[0].partition("=")[0]
    assert f"No such option: {option}. If it is an argument of the tool, write {meant}" in said


@pytest.mark.parametrize("target", ["nowhere.py", "no_such_module:mcp"])
def test_a_file_that_is_not_there_ends_with_2(target: str) -> None:
    result = bespeak("call", target, "t")
    assert f"there is no file '{target.partition(':')[0]}'" in told(result, 2)
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("files", "words", "line"),
    [
        ({}, ["order_book", "title=Dune"], "bespeak call server.py order_book title=Dune"),
        ({"b.py": ONE, "a.py": ""}, ["order_book", "title=My Dune"], "bespeak call b.py order_book 'title=My Dune'"),
        ({"a.py": ONE, "server.py": ONE}, ["order_book"], "bespeak call server.py order_book"),
    ],
)
def test_a_command_line_without_its_server_says_so(
    files: dict[str, str], words: list[str], line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, source in files.items():
        (tmp_path / name).write_text(source)
    said = told(bespeak("call", *words), 3)
    assert "cannot start the server 'order_book': there is no such command" in said
    assert f"if 'order_book' is a tool, name its server first: {line}\n" in said


@pytest.mark.timing
def test_a_command_that_fails_is_not_taken_for_a_tool() -> None:
    assert "is a tool" not in told(bespeak("call", "true", "t"), 3)
    assert "is a tool" not in told(bespeak("call", "no-such-program-at-all --stdio", "t"), 3)


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["title=The", "Dune"], "not 'Dune'; put a value with spaces in quotes: 'title=The Dune'\n"),
        (["title=The", "new", "Dune", "x=1"], "not 'new'; put a value with spaces in quotes: 'title=The new Dune'\n"),
    ],
)
def test_the_rest_of_a_value_with_spaces_is_told_how_to_quote_it(words: list[str], meant: str) -> None:
    assert meant in told(bespeak("call", "nowhere.py", "t", *words), 2)


def test_an_argument_is_given_once() -> None:
    said = told(bespeak("call", "nowhere.py", "t", "title=Dune", "title=Neuromancer"), 2)
    assert said == "bespeak: the tool argument 'title' is given twice\n"


LISTS: Any = {
    "prompts/list": {"prompts": [{"name": "hold_books"}]},
    "resources/list": {"resources": [{"name": "prices", "uri": "shop://prices"}]},
    "resources/templates/list": {"resourceTemplates": [{"name": "price", "uriTemplate": "shop://prices/{title}"}]},
}


@pytest.mark.timing
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("hold_books", "prompt"),
        ("prices", "resource"),
        ("shop://prices", "resource"),
        ("price", "resource template"),
    ],
)
def test_what_is_not_a_tool_is_not_called(raw: Raw, name: str, kind: str) -> None:
    target = raw(pages=[{"tools": TOOLS}], lists=LISTS)
    assert told(bespeak("call", target, name), 2) == f"bespeak: '{name}' is a {kind}; bespeak call calls tools\n"
