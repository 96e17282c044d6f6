"""The parts of `make package` that need no package: the README's server, what is printed, what the Inspector said."""

import sys

import pytest
from scripts.package_check import Checks, Ended, listed_tools, run
from scripts.readme_server import README, readme_server


def test_the_server_is_the_first_snippet_with_a_server_and_a_tool() -> None:
    server = readme_server(README.read_text())
    assert 'mcp = MCPServer("Bookshop")' in server
    assert "async def order_book(" in server
    assert "```" not in server


def test_a_readme_without_a_server_is_an_error() -> None:
    with pytest.raises(LookupError, match="the README has no Python snippet with a server and a tool"):
        readme_server("```python\nimport bespeak\n```\n")


def test_each_check_has_a_line_and_a_failure_its_details(capsys: pytest.CaptureFixture[str]) -> None:
    checks = Checks()
    assert checks.note("first", True, "not printed")
    assert not checks.note("second", False, "one\ntwo")
    assert checks.failed == ["second"]
    assert capsys.readouterr().out == "ok      first\nFAILED  second\n        one\n        two\n"


def test_the_tools_that_the_inspector_prints_are_read() -> None:
    assert listed_tools(Ended(0, '{"result": {"tools": [{"name": "order_book"}]}}', "")) == ["order_book"]


@pytest.mark.parametrize("printed", ["", "[]", '{"error": {}}'])
def test_what_is_not_a_list_of_tools_has_none(printed: str) -> None:
    assert listed_tools(Ended(1, printed, "")) == []


def test_a_command_ends_with_what_it_printed() -> None:
    ended = run([sys.executable, "-c", "import sys; print('out'); sys.exit('err')"])
    assert ended == Ended(1, "out\n", "err\n")
    assert ended.everything == "exit code 1\nout\n\nerr"
