"""The keys of commands that prepare a suite or a test, and clean up after it."""

from typing import Annotated, Any, cast

from pydantic import BeforeValidator, Field

from bespeak.testing.suite.suite_values import Maybe, Part, Seconds

TIMEOUT_SECONDS = 60.0
"""How long a command may take by default."""


class Command(Part):
    """A command that prepares something, or cleans up."""

    command: list[str] = Field(min_length=1, description="The program and its arguments.")
    env: dict[str, str] = Field(default={}, description="Environment variables for the command.")
    cwd: Maybe[str] = Field(default=None, description="The working directory. Default: the suite's folder.")
    timeout: Seconds = Field(default=TIMEOUT_SECONDS, description="How many seconds the command may take.")


def _spelled_out(written: Any) -> Any:
    """Read a command that is written as a list."""
    if not isinstance(written, list):
        return written
    entries = cast("list[Any]", written)
    if any(isinstance(one, str) for one in entries):
        raise ValueError("must be a list of commands, each a list of words, such as [[make, data]]")
    return [{"command": one} if isinstance(one, list) else one for one in entries]


ARGV: dict[str, Any] = {"type": "array", "items": {"type": "string"}, "minItems": 1}
"""The JSON Schema of a command that is written as a list."""
Commands = Annotated[list[Command], Field(min_length=1), BeforeValidator(_spelled_out)]
"""Commands, each a list of words or a map with `command`."""
