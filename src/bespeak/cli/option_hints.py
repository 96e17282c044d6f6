"""What to say of an option that `bespeak call` does not have: it may have been meant as an argument of the tool."""

from typing import Any

import typer

from bespeak.cli.help_texts import Command
from bespeak.terminal.safe_text import printable

_USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[1]
"""The class of all errors about a command line, which typer does not export."""


class ToolCallCommand(Command):
    """A command whose words may be arguments of a tool."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except _USAGE_ERROR as error:
            refused: Any = error
            name: Any = getattr(error, "option_name", None)
            if type(error).__name__ == "NoSuchOption" and isinstance(name, str) and name.startswith("--"):
                refused.message += f". If it is an argument of the tool, write {_as_argument(name, given)}"
            raise


def _as_argument(name: str, given: list[str]) -> str:
    """Write an option as an argument of a tool, with the value that was given."""
    words = [word.partition("=") for word in given]
    at = next((number for number, (word, _, _) in enumerate(words) if word == name), len(words))
    _, equals, value = words[at] if at < len(words) else ("", "", "")
    following = given[at + 1 : at + 2]
    if not equals and following and not following[0].startswith("-"):
        value = following[0]
    return f"{printable(name[2:])}={printable(value) or 'VALUE'}"
