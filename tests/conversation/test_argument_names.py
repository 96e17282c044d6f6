"""Names of tools and arguments that a server does not list."""

from typing import Any

import pytest

from bespeak.conversation.argument_names import unknown_name

READ: dict[str, Any] = {"inputSchema": {"type": "object", "properties": {"path": {}, "head": {}}}}
TOOLS = {"read_text_file": READ, "anything": {"inputSchema": {"type": "object"}}, "nothing": {}}


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("read_txt_file", [], "the server has no tool 'read_txt_file'; did you mean 'read_text_file'?"),
        ("fly", [], "the server has no tool 'fly'; there are: read_text_file, anything, nothing"),
        ("read_text_file", ["heda"], "tool 'read_text_file' has no argument 'heda'; did you mean 'head'?"),
        ("read_text_file", ["path", "x"], "tool 'read_text_file' has no argument 'x'; there are: path, head"),
    ],
)
def test_a_name_that_is_not_listed_is_told_with_the_one_that_was_meant(
    tool: str, arguments: list[str], said: str
) -> None:
    assert str(unknown_name(TOOLS, tool, arguments)) == said


@pytest.mark.parametrize(
    ("tool", "arguments"), [("read_text_file", ["path"]), ("anything", ["x"]), ("nothing", ["x"]), ("anything", [])]
)
def test_nothing_is_said_of_names_that_are_listed_or_may_be_there(tool: str, arguments: list[str]) -> None:
    assert unknown_name(TOOLS, tool, arguments) is None


def test_nothing_is_said_if_no_tools_are_listed() -> None:
    assert unknown_name({}, "fly", []) is None


def test_a_tool_without_arguments_and_one_of_many_say_so() -> None:
    none: dict[str, Any] = {"now": {"inputSchema": {"type": "object", "properties": {}}}}
    assert str(unknown_name(none, "now", ["x"])) == "tool 'now' has no argument 'x'; there are: (none)"
    many: dict[str, Any] = {f"t{number:02}": {} for number in range(25)}
    assert str(unknown_name(many, "fly", [])).endswith(", t18, t19 and 5 more")
