"""What to say of an option that a command does not have: what was probably meant by it."""

import shlex
from collections.abc import Sequence
from typing import Any

import typer

from bespeak.cli.help_texts import Command
from bespeak.terminal.safe_text import printable

_USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[1]
"""The class of all errors about a command line, which typer does not export."""
_OF_PYTEST = {
    "--lf": "--lf",
    "--last-failed": "--lf",
    "--ff": "--ff",
    "--failed-first": "--ff",
    "--sw": "--sw",
    "--stepwise": "--sw",
}


class HintingCommand(Command):
    """A command that says more of an option that it does not have."""

    def hint(self, name: str, given: Sequence[str]) -> str | None:
        """Return what was probably meant by an option, as a sentence without its full stop."""
        raise NotImplementedError

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except _USAGE_ERROR as error:
            refused: Any = error
            name: Any = getattr(error, "option_name", None)
            if type(error).__name__ == "NoSuchOption" and isinstance(name, str) and (told := self.hint(name, given)):
                refused.message += f". {told}"
            raise


class ToolCallCommand(HintingCommand):
    """A command whose words may be arguments of a tool."""

    def hint(self, name: str, given: Sequence[str]) -> str | None:
        return f"If it is an argument of the tool, write {_as_argument(name, given)}" if name.startswith("--") else None


class SuiteCommand(HintingCommand):
    """A command that runs tests, and may get the command of a server as an option."""

    def hint(self, name: str, given: Sequence[str]) -> str | None:
        if name in _OF_PYTEST:
            return f"pytest has it, and runs suites too: pytest {_OF_PYTEST[name]}"
        begun = given.index("--init") if "--init" in given else len(given)
        command, rest = given[begun + 1 : begun + 2], given[begun + 2 :]
        is_command = bool(command) and not command[0].endswith(".py") and "://" not in command[0]
        # Short options may be joined: -yq.
        if is_command and any(word.partition("=")[0] == name or word[:2] == name for word in rest):
            words = [*command, *rest]
            return f"A command with arguments goes in quotes: --init {shlex.quote(printable(' '.join(words)))}"
        return None


def _as_argument(name: str, given: Sequence[str]) -> str:
    """Write an option as an argument of a tool, with the value that was given."""
    words = [word.partition("=") for word in given]
    at = next((number for number, (word, _, _) in enumerate(words) if word == name), len(words))
    _, equals, value = words[at] if at < len(words) else ("", "", "")
    following = given[at + 1 : at + 2]
    if not equals and following and not following[0].startswith("-"):
        value = following[0]
    return f"{printable(name[2:])}={printable(value) or 'VALUE'}"
